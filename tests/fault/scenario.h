// SPDX-License-Identifier: Apache-2.0
/*
 * scenario - one short life of the library, told step by step: open, register
 * a file and a buffer, read, write, ask for parameters and statistics,
 * deregister, close. What each step answered is kept, and afterwards
 * everything that a failed step may not do is checked.
 */
#ifndef TESTS_SCENARIO_H
#define TESTS_SCENARIO_H

#include "harness.h"

/* What the steps answered. */
struct answers {
	CUfileError_t open, handle, buffer, unbuffer, close;
	CUfileError_t asked; /* the first of the questions that failed */
	ssize_t read, write;
	int read_errno, write_errno;
};

/* By which calls IO goes. */
enum door {
	PLAIN,
	VECTORED,
	STREAMED,
	STREAMED_BATCH,
	BATCHED,
};

struct scenario {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
	enum door door;		  /* set before prepare */
	CUfileOpError may_answer; /* a question, while something fails */
	CUstream stream;	  /* of ours, if there is a GPU */
	struct th_mem mem;
	struct th_file file;
	unsigned char *content; /* of the file */
	unsigned char *source;	/* what the write sends */
	unsigned char *got;	/* what a check looks at */
	struct answers a;
	/* as they were before the steps */
	int fds;
	long live[16];
};

void scenario_init(struct scenario *s, enum th_mem_kind mem_kind,
		   enum th_file_kind file_kind);
void scenario_fini(struct scenario *s);

/* Fresh bytes everywhere, then all steps on a thread of their own. */
void scenario_prepare(struct scenario *s);
void scenario_run(struct scenario *s);

/*
 * No byte is wrong where a step said it was there, no byte has changed where
 * no step may, no descriptor and no object is left. may_leak: kinds of
 * objects whose end was made to fail; NULL: none.
 */
void scenario_check(struct scenario *s, const char *what, const char *may_leak);
/* All steps were well. */
void scenario_check_clean(struct scenario *s, const char *what);

#endif
