// SPDX-License-Identifier: Apache-2.0
/*
 * unaligned_memory FILE - fills registered GPU memory from its fourth byte on
 * (IO pattern 5).
 *
 * The memory's side of unaligned_file.c: what a header of 3 bytes leaves to a
 * program that reads the rest of a record behind it.
 */
#include "fill.h"

int main(int argc, char **argv)
{
	struct fill f = fill_begin(argc, argv);
	const size_t skip = 3;

	CUFILE(cuFileBufRegister(fill_at(&f, 0), f.size + 4096, 0));
	for (size_t at = 0, step; at < f.size; at += step) {
		step = fill_step(&f, at);
		fill_expect(cuFileRead(f.file, fill_at(&f, 0), step, (off_t)at,
				       (off_t)(skip + at)),
			    step);
	}
	CUFILE(cuFileBufDeregister(fill_at(&f, 0)));
	return fill_end(&f, skip, f.size);
}
