// SPDX-License-Identifier: Apache-2.0
/*
 * after - what a client does after calls that failed: memory of a read and
 * bytes of a file that a write was to change are its own again as soon as it is
 * told of the failure, and its next request gets the slots and lanes of those
 * before it. Copies and writes that are still under way are seen in any of
 * them.
 */
#ifndef TESTS_AFTER_H
#define TESTS_AFTER_H

#include "failures.h"
#include "scenario.h"

/* Of one scenario. */
struct after {
	struct th_mem mem;    /* for one more read, of the whole file */
	ssize_t n;	      /* what that answered */
	bool read_more;	      /* there was one */
	bool mem_used;	      /* what the read was to fill is used again */
	bool file_used;	      /* what the write was to change likewise */
	unsigned char *bytes; /* what is there then: SIZE of them */
	unsigned char *got;   /* room for a check */
};

/* byte: what memory that is used again is filled with. */
void after_init(struct after *a, const struct scenario *s, int byte);
void after_fini(struct after *a);
/* Before each life. */
void after_begin(struct after *a);

/*
 * On the scenario's own thread, after its read, after its write, and when
 * nothing of the driver fails any more.
 */
void after_read(struct after *a, struct scenario *s);
void after_write(struct after *a, struct scenario *s);
void after_all(struct after *a, CUfileHandle_t fh);

/* When the life is over: fails the test if anything came late. */
void after_check(struct after *a, struct scenario *s, const struct failures *f,
		 const char *what);

#endif
