// SPDX-License-Identifier: Apache-2.0
/*
 * failures - several calls that fail in one life, drawn at random, and what a
 * life may answer then. What is drawn depends on the seed alone.
 */
#ifndef TESTS_FAILURES_H
#define TESTS_FAILURES_H

#include "fault.h"
#include "rows.h"
#include "scenario.h"

#define FAILURES_MOST 3

/* What fails in one life. */
struct failures {
	unsigned waits;	  /* rules by which a wait for a stream fails */
	unsigned queries; /* of a stream that fail; 2: or more */
	char plan[200];	  /* the driver's calls */
	char leaks[FAILURES_MOST * 64];
	const struct os_row *row; /* NULL: no system call */
	struct fault fault;
	unsigned copy_us; /* a copy takes so long; 0: fail to the end */
	char what[320];	  /* all of that, for the text */
};

/* threads: so many make the calls that are counted. */
void failures_draw(struct failures *f, unsigned threads);
/* Nothing tells when a copy has ended: after a wait that failed, and a question
 * that failed, the library asks once more (core/lane.c). */
bool failures_hide_copies(const struct failures *f);
/* From here on they fail; no thread is in a call of the library. */
void failures_begin(const struct failures *f);
/* Until here, likewise. Fails the test if the driver was misused meanwhile. */
void failures_end(const struct failures *f);
/* what: f->what, or longer. Fails the test where no failure of them explains an
 * answer. */
void failures_check(const struct scenario *s, const struct failures *f,
		    const char *what);

#endif
