// SPDX-License-Identifier: Apache-2.0
/* file - the files that are read and written, full of the pattern. */
#ifndef BENCH_FILE_H
#define BENCH_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes a file of size bytes and a little more, in the page cache and on the
 * disk. keep: takes the file that is there if every byte is right, and leaves
 * it there; others are removed by file_remove_all, and when a signal ends the
 * program. False: said on stderr what went wrong.
 */
bool file_make(const char *path, size_t size, bool keep);
void file_remove_all(void);

#endif
