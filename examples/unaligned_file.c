// SPDX-License-Identifier: Apache-2.0
/*
 * unaligned_file FILE - fills GPU memory from the fourth byte of a file on (IO
 * pattern 4).
 *
 * No offset has to be a multiple of anything. Through O_DIRECT, whole blocks go
 * to the disk and the edges through the page cache, so where you may choose,
 * offsets and sizes that are multiples of 4096 save work.
 */
#include "fill.h"

int main(int argc, char **argv)
{
	struct fill f = fill_begin(argc, argv);
	const size_t skip = f.size < 3 ? f.size : 3;

	for (size_t at = skip, step; at < f.size; at += step) {
		step = fill_step(&f, at);
		fill_expect(cuFileRead(f.file, fill_at(&f, at - skip), step,
				       (off_t)at, 0),
			    step);
	}
	return fill_end(&f, 0, f.size - skip);
}
