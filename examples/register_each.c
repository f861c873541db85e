// SPDX-License-Identifier: Apache-2.0
/*
 * register_each FILE - fills GPU memory from a file, and registers the part
 * that each read goes to just before it (IO pattern 1).
 *
 * Right, and the slowest way: a registration costs as much as a small read,
 * and here each is used once. What to do instead: register_once.c where memory
 * is used again, unregistered.c where it is not.
 */
#include "fill.h"

int main(int argc, char **argv)
{
	struct fill f = fill_begin(argc, argv);

	for (size_t at = 0, step; at < f.size; at += step) {
		step = fill_step(&f, at);
		/* the part is a buffer of its own, so its offset is 0 */
		CUFILE(cuFileBufRegister(fill_at(&f, at), step, 0));
		fill_expect(
			cuFileRead(f.file, fill_at(&f, at), step, (off_t)at, 0),
			step);
		/* by the very address that was registered */
		CUFILE(cuFileBufDeregister(fill_at(&f, at)));
	}
	return fill_end(&f, 0, f.size);
}
