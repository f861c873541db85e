// SPDX-License-Identifier: Apache-2.0
/*
 * unregistered FILE - fills GPU memory from a file without registering it (IO
 * pattern 3).
 *
 * For memory that is filled once, a checkpoint for example: a registration
 * would not pay, and nothing has to be undone. Any address in GPU memory will
 * do, not only the first of an allocation.
 */
#include "fill.h"

int main(int argc, char **argv)
{
	struct fill f = fill_begin(argc, argv);

	for (size_t at = 0, step; at < f.size; at += step) {
		step = fill_step(&f, at);
		fill_expect(
			cuFileRead(f.file, fill_at(&f, at), step, (off_t)at, 0),
			step);
	}
	return fill_end(&f, 0, f.size);
}
