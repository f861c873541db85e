// SPDX-License-Identifier: Apache-2.0
/*
 * register_once FILE - fills GPU memory from a file, with one registration for
 * all of it (IO pattern 2).
 *
 * For memory that is used again and again: a ring of staging buffers, the
 * weights that are loaded anew. Reads name the registered address and say with
 * the last argument where in it they go.
 */
#include "fill.h"

int main(int argc, char **argv)
{
	struct fill f = fill_begin(argc, argv);

	CUFILE(cuFileBufRegister(fill_at(&f, 0), f.size + 4096, 0));
	for (size_t at = 0, step; at < f.size; at += step) {
		step = fill_step(&f, at);
		fill_expect(cuFileRead(f.file, fill_at(&f, 0), step, (off_t)at,
				       (off_t)at),
			    step);
		/* work with the part that is there goes here */
	}
	/* after the last IO, and before the memory is freed */
	CUFILE(cuFileBufDeregister(fill_at(&f, 0)));
	return fill_end(&f, 0, f.size);
}
