// SPDX-License-Identifier: Apache-2.0
/* doors - how a scenario reads and writes: the calls, and where the bytes are.
 */
#ifndef TESTS_DOORS_H
#define TESTS_DOORS_H

#include "scenario.h"

#define SLOT_KIB 64 /* small, to be quick: steps are what matters */
#define SIZE (3 * SLOT_KIB * TH_KIB + 1001)
#define PAD 512
#define MEM_SIZE (2 * SIZE + 4 * PAD)
#define READ_AT PAD		  /* in memory */
#define WRITE_AT (SIZE + 2 * PAD) /* in memory */
#define FILE_SIZE (2 * SIZE + 8192)
#define READ_OFF 4096		     /* in the file */
#define WRITE_OFF (SIZE + 4096 + 77) /* in the file */

/* Of each entry of a batch of many, but the last. */
#define PART (12 * TH_KIB)
_Static_assert((SIZE + PART - 1) / PART == SCENARIO_PARTS, "entries");

const char *door_name(enum door door); /* for a text */

/*
 * Reads or writes SIZE bytes by s->door, and answers as cuFileRead does: the
 * number of bytes from the front, or -1 with an errno.
 */
ssize_t door_move(struct scenario *s, CUfileHandle_t fh, bool write);

/*
 * What was begun in vain has been passed: a wait behind a launch that failed
 * tells nobody. Where the question is what fails, the stream is waited for;
 * false: that has failed, too.
 */
bool door_await(CUstream stream);

#endif
