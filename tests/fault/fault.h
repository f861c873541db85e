// SPDX-License-Identifier: Apache-2.0
/*
 * fault - system calls that fail at the nth call of one kind, or move bytes
 * badly: short counts, interruptions, no O_DIRECT.
 *
 * Tables of its own stand in front of cf_os and cf_uring between fault_begin
 * and fault_end. Both end the library's workers and rings first, and no thread
 * may be in a call of the library meanwhile.
 */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The rows of struct cf_os, in its order. A read or write that is queued on a
 * ring counts as a pread or pwrite, and is hindered like one.
 */
enum fault_call {
	FAULT_OPEN,
	FAULT_CLOSE,
	FAULT_READ,
	FAULT_WRITE,
	FAULT_PREAD,
	FAULT_PWRITE,
	FAULT_FSTAT,
	FAULT_STATX,
	FAULT_FILE_TYPE,
	FAULT_FILE_ID,
	FAULT_FSTATFS,
	FAULT_GET_FLAGS,
	FAULT_GET_LEASE,
	FAULT_RECORD_LOCKS,
	FAULT_IOCTL,
	FAULT_CACHESTAT,
	FAULT_READ_AHEAD,
	FAULT_DUP_ABOVE,
	FAULT_FD_TABLE,
	FAULT_MAP_ANON,
	FAULT_MAP_SHARED,
	FAULT_MAP_FILE,
	FAULT_MAP_TO_WRITE,
	FAULT_COPY_TO,
	FAULT_COPY_OUT,
	FAULT_MAP_NOTHING,
	FAULT_FORBID,
	FAULT_MADVISE,
	FAULT_UNMAP,
	FAULT_PREFER_NODE,
	FAULT_MEMORY_POLICY,
	FAULT_GET_AFFINITY,
	FAULT_SET_AFFINITY,
	FAULT_SET_TIMER_SLACK,
	FAULT_GET_DENTS,
	FAULT_READ_LINK,
	FAULT_PIPE,
	FAULT_SPLICE_PAGES,
	FAULT_MEMFD,
	FAULT_SET_MODE,
	FAULT_RESIZE,
	FAULT_SEAL,
	FAULT_MAP_FILE_AT,
	FAULT_MAP_ANON_AT,
	FAULT_CLOCK,
	FAULT_GETENV,
	FAULT_ENVIRONMENT,
	/* of struct cf_uring */
	FAULT_RING_MAKE,
	FAULT_RING_SUBMIT,
	FAULT_RING_WAIT,
	FAULT_RING_DONE, /* the result of a queued call */
	FAULT_NR_CALLS
};

struct fault {
	/* the nth call of this row since fault_begin, counted from 1, answers
	 * -err; nth 0: none does */
	enum fault_call call;
	unsigned nth;
	bool persist; /* and all later ones, too */
	int err;      /* an errno, positive */
	/* of pread and pwrite: */
	size_t portion;	      /* most bytes that a call moves; 0: all */
	unsigned eintr_every; /* each so-many-th call is interrupted; 0: none */
	bool no_direct;	      /* IO on an O_DIRECT descriptor: -EINVAL */
	bool no_direct_open;  /* opening with O_DIRECT: -EINVAL */
	unsigned slow_ms;     /* each call takes so long */
};

const char *fault_name(enum fault_call call);
void fault_begin(const struct fault *fault);
void fault_end(void);
/* Since fault_begin: calls of that row; failures by the rule for `call`. */
unsigned fault_calls(enum fault_call call);
unsigned fault_fired(void);
/* Adds failures that a plan of the fake driver made to the program's sum. */
void fault_count(unsigned nr);
/* How often a test repeats what it draws: TEST_ROUNDS, or else so often. */
unsigned fault_rounds(unsigned nr);
/* Ends a program whose tests have left objects behind on purpose: the driver
 * was misused by none. What main returns. */
int fault_finish(int failed);

#endif
