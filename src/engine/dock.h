// SPDX-License-Identifier: Apache-2.0
/*
 * dock - the stream operations of one context, and the pinned words on which
 * its streams wait for them.
 *
 * A chunk is a page of words, one of bells, and the operations that own them.
 * It stays while an operation of it is out, or a stream may still look at a
 * word; so a dock may outlive the session that made it, and serves the next
 * one.
 */
#ifndef CF_ENGINE_DOCK_H
#define CF_ENGINE_DOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include "engine/bell.h"
#include "engine/request.h"
#include "engine/worker.h"
#include "seam/cuda.h"

struct cf_depth;
struct cf_dock;
struct cf_parcel;
struct cf_sop;
struct cf_stream_ref;

/* What an operation and its stream tell each other; in pinned memory. */
struct cf_words {
	/* less one from begin to end: the stream waits for 0 or more */
	_Atomic uint32_t gate;
	/* the ticket, once the stream is past its wait; the GPU writes it */
	_Atomic uint32_t passed;
};

/* One time that an operation is carried. */
struct cf_run {
	struct cf_task task;
	struct cf_sop *sop;
	bool awaited; /* lock of sop.c; who waits for done cleans up */
	bool done;    /* lock of sop.c */
	bool extra;   /* from malloc: the operation's own one is in use */
};

enum cf_sop_state {
	CF_SOP_QUEUED,	 /* the stream has not come to it */
	CF_SOP_BEGUN,	 /* its bytes move */
	CF_SOP_DONE,	 /* they have, and the submitter still holds it */
	CF_SOP_GIVEN_UP, /* the submission failed half way: do nothing */
};

/*
 * An operation of a stream. Owned by its submitter, then by what it put into
 * the stream or graph; the dock has it when nobody else does.
 */
struct cf_sop {
	struct cf_run run;
	struct cf_dock *dock;
	struct cf_words *words;
	struct cf_board *board; /* and its bell there */
	unsigned bell;
	CUdeviceptr gate, passed, door; /* of the words, as the GPU sees them */
	uint32_t ticket;		/* not 0 */
	struct cf_sop *next;		/* dock's lock, while it is there */
	/* lock of sop.c: */
	enum cf_sop_state state;
	bool held;     /* by its submitter */
	bool belled;   /* it rings; its gate was closed when it was submitted */
	bool captured; /* in a graph: may be carried any number of times */
	bool busy;     /* captured: run is in use */
	struct cf_stream_ref *ref; /* the registration, or NULL */
	struct cf_depth *depth;	   /* where it is counted, or NULL */
	/* what is asked for: pointers, and the values that do not change */
	struct cf_call call;
	unsigned fixed; /* CU_FILE_STREAM_FIXED_* */
	size_t *size_p;
	off_t *file_off_p, *buf_off_p;
	ssize_t *bytes_p;
	int *int_p;		  /* instead of bytes_p, or NULL */
	struct cf_parcel *parcel; /* a batch instead of all that; or NULL */
};

/* Whether new docks may use memory operations, and bells; at open. */
void cf_docks_configure(bool memops, bool bells);

/*
 * An operation for ctx, which is current. Its gate is 0 and passed differs
 * from its ticket. 0, -ENOMEM or a CUDA code.
 */
int cf_dock_lease(CUcontext ctx, unsigned long long ctx_id,
		  struct cf_sop **sop);

/* Any thread, callbacks of the driver too. */
void cf_dock_give_back(struct cf_sop *sop);

/* Streams of this context can wait for a word; else their callback waits. */
bool cf_dock_has_memops(const struct cf_dock *dock);

/* They can also ring a bell before it, all at once. */
bool cf_dock_has_bells(const struct cf_dock *dock);

/* False once the dock's context is gone or broken. An operation is out. */
bool cf_dock_alive(const struct cf_dock *dock);

/* Makes one operation ready for ctx, which is current; as cf_dock_lease. */
int cf_dock_warm(CUcontext ctx, unsigned long long ctx_id);

/* Ends the docks that nobody needs any more; nothing is being leased. */
void cf_docks_close(void);

void cf_docks_fork_prepare(void);
void cf_docks_fork_parent(void);
/* The parent's are left alone. */
void cf_docks_fork_child(void);

#endif
