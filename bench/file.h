// SPDX-License-Identifier: Apache-2.0
/* file - the files that are read and written, full of the pattern. */
#ifndef BENCH_FILE_H
#define BENCH_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes path, size bytes and a little more, in the page cache and on the
 * disk; takes what is there if keep is set and every byte is right. Files are
 * removed by file_remove_all and when a signal ends the program, but kept ones.
 */
bool file_make(const char *path, size_t size, bool keep);
void file_remove_all(void);

#endif
