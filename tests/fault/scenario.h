// SPDX-License-Identifier: Apache-2.0
/*
 * scenario - one short life of the library: open, register a file and a buffer,
 * read, write, ask for parameters and statistics, deregister, close. The answer
 * of each step is kept. Afterwards scenario_check finds what a step must not do
 * even if it failed.
 */
#ifndef TESTS_SCENARIO_H
#define TESTS_SCENARIO_H

#include "harness.h"
#include "leases.h"

/* Entries of a batch of many, side by side; the last one is shorter. */
#define SCENARIO_PARTS 17

/* What the steps answered. */
struct answers {
	CUfileError_t open, handle, buffer, unbuffer, close;
	CUfileError_t asked; /* of the first question that failed */
	ssize_t read, write;
	int read_errno, write_errno;
	unsigned contexts; /* on the stack of a thread when its calls were over
			    */
	/* of a batch of many: bytes that each entry read or wrote */
	size_t part_read[SCENARIO_PARTS], part_written[SCENARIO_PARTS];
	char leased[LEASES_TEXT]; /* and not given back before the close */
};

/* The calls by which the scenario reads and writes. */
enum door {
	PLAIN,		/* cuFileRead, cuFileWrite */
	VECTORED,	/* cuFileReadv, cuFileWritev */
	STREAMED,	/* cuFileReadAsync, cuFileWriteAsync */
	STREAMED_BATCH, /* ocf_batch_submit_stream */
	BATCHED,	/* cuFileBatchIOSubmit */
	STREAMED_MANY,	/* the two batches, of SCENARIO_PARTS entries */
	BATCHED_MANY,
};

struct scenario {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
	enum door door;		  /* the test sets it before the run */
	bool unregistered;	  /* the buffer; likewise */
	CUfileOpError may_answer; /* the error that a question may have */
	CUstream stream;	  /* NULL: no GPU */
	/* called after the read and after the write; NULL: nothing to do */
	void (*between)(struct scenario *s, CUfileHandle_t fh, bool written);
	void *arg;		     /* for it */
	_Atomic(const char *) doing; /* what is under way, in words */
	struct th_mem mem;
	struct th_file file;
	unsigned char *content; /* of the file, before the write */
	unsigned char *source;	/* bytes that the write sends */
	unsigned char *got;	/* room for a check */
	struct answers a;
	/* before the steps: descriptors, and the driver's objects by kind */
	int fds;
	long live[16];
};

void scenario_init(struct scenario *s, enum th_mem_kind mem_kind,
		   enum th_file_kind file_kind);
void scenario_fini(struct scenario *s);

/* Fresh bytes everywhere; notes what there is before the steps. */
void scenario_prepare(struct scenario *s);
/* All steps, on a thread of their own. */
void scenario_run(struct scenario *s);
/* Their parts, on the caller's thread: scenarios may share a session. */
void scenario_open(struct scenario *s);
void scenario_work(struct scenario *s);
void scenario_close(struct scenario *s);
/* The last of them on each thread, which has no context afterwards. */
void scenario_leave(struct scenario *s);

/*
 * Fails the test unless the bytes are right that a step says it moved, those
 * that no step moves are as before, each error is one of cuFile's, all that was
 * leased came back before the close, and no descriptor, object of the driver or
 * current context is left. may_leak: names
 * of kinds (fakecuda_live; and "current") whose end was made to fail; NULL:
 * none. what: for the text.
 */
void scenario_check(struct scenario *s, const char *what, const char *may_leak);
/* The same, and no step has failed. */
void scenario_check_clean(struct scenario *s, const char *what);
/* One more life, in which nothing fails. */
void scenario_run_clean(struct scenario *s, const char *what);
/*
 * The same, after a life with a failure. What runs in it is what runs in any,
 * so the thread sanitizer looks at one of four.
 */
void scenario_run_after(struct scenario *s, const char *what);

#endif
