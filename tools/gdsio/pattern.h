// SPDX-License-Identifier: Apache-2.0
/*
 * pattern - the bytes that belong at each offset of a verified file.
 *
 * A byte is told by the seed and its offset alone, so that any part of a file
 * can be made and checked in any order by any number of threads.
 */
#ifndef GDSIO_PATTERN_H
#define GDSIO_PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PATTERN_MATCHES ((size_t)-1)

void pattern_fill(void *data, size_t size, off_t off, uint64_t seed);

/* The first byte of data that is wrong, or PATTERN_MATCHES. */
size_t pattern_check(const void *data, size_t size, off_t off, uint64_t seed);

/* The byte that belongs at an offset. */
unsigned char pattern_at(off_t off, uint64_t seed);

/* Another 64 bits each time, from a state that begins as a seed. */
uint64_t random_next(uint64_t *state);
void random_fill(void *data, size_t size, uint64_t *state);

#endif
