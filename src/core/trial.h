// SPDX-License-Identifier: Apache-2.0
/* trial - shows whether two addresses are of the same memory. */
#ifndef CF_CORE_TRIAL_H
#define CF_CORE_TRIAL_H

#include <stddef.h>
#include <stdint.h>

#define CF_TRIAL_CHUNK ((size_t)4096) /* no more than a pipe holds */
#define CF_TRIAL_WORDS (CF_TRIAL_CHUNK / sizeof(uint64_t))

/* Fills a chunk for place at: no word occurs twice, nor in another round. */
void cf_trial_pattern(uint64_t *words, size_t at, uint64_t round);

/*
 * Moves at most a chunk through the pipe, by system calls, so that a bad
 * address is an error and no fault. 0 or -errno.
 */
int cf_trial_move(const int pipe[2], void *to, const void *from, size_t size);

#endif
