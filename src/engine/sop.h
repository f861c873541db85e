// SPDX-License-Identifier: Apache-2.0
/*
 * sop - a stream operation, from its submission to the release of its stream.
 *
 * Usually the stream rings the operation's bell (bell.h) and waits at its gate.
 * The worker that finds the bell rung reads the parameters, moves the bytes,
 * writes *bytes_p and opens the gate. With a ferry (core/ferry.h) its kernel
 * rings, and the stream waits for the kernel, which is ended after *bytes_p is
 * written. So everything happens in the stream's order, with one exception: a
 * read whose numbers were fixed may ring ahead of its stream; then its file is
 * read earlier, and nothing else is done before the stream is there.
 *
 * In a graph, or without bells, a host function closes the gate and posts the
 * operation instead, the same nodes at every launch; a ferry's gate is opened
 * with its first bytes. No callback waits, but where the stream cannot wait for
 * a word itself (cf_dock_has_memops).
 */
#ifndef CF_ENGINE_SOP_H
#define CF_ENGINE_SOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include "core/ferry.h"
#include "engine/bell.h"
#include "engine/dock.h"
#include "engine/errand.h"
#include "engine/worker.h"
#include "seam/hidden.h"

struct cf_depth;
struct cf_parcel;
struct cf_place;
struct cf_stream_ref;

/* What an operation and its stream tell each other; in pinned memory. */
struct cf_words {
	/* 0: open. One less from the begin of a run to its end; the stream
	 * waits until it is 0 or more */
	_Atomic uint32_t gate;
	/* holds the ticket once the stream is past its wait; the GPU writes */
	_Atomic uint32_t passed;
};

/* One time that an operation is carried. */
struct cf_run {
	struct cf_task task;
	struct cf_sop *sop;
	/* lock of sops.h; a callback waits for done, and cleans up */
	bool awaited;
	bool done;  /* lock of sops.h */
	bool extra; /* from malloc, because the operation's own is in use */
};

enum cf_sop_state {
	CF_SOP_QUEUED,	 /* the stream has not come to it */
	CF_SOP_BEGUN,	 /* it is being carried */
	CF_SOP_DONE,	 /* it is over, and the submitter still holds it */
	CF_SOP_GIVEN_UP, /* the submission failed half way: do nothing */
};

/*
 * An operation of a stream. Owned by its submitter, then by the nodes that were
 * put into the stream or graph, and by the dock when it is free.
 */
struct cf_sop {
	struct cf_run run;
	struct cf_dock *dock;
	struct cf_words *words;
	struct cf_ferry ferry;
	struct cf_board *board; /* with its bell, number `bell` there */
	unsigned bell;
	CUdeviceptr gate, passed, door; /* of the words, as the GPU sees them */
	uint32_t ticket;		/* not 0 */
	struct cf_sop *next;		/* dock's lock, while it is there */
	/* dock's lock; cf_dock_await_bytes waits for its kernel to leave */
	bool awaited;
	/* lock of sops.h: */
	enum cf_sop_state state;
	bool held;     /* its submitter still uses it */
	bool ferried;  /* its ferry's kernel is in the stream */
	bool belled;   /* it rings; its gate was closed at the submission */
	bool captured; /* in a graph: may be carried any number of times */
	bool busy;     /* captured once, and `run` is in use */
	bool lost;     /* its parcel ended with its context; see uncalled.h */
	unsigned more; /* its runs from malloc */
	struct cf_sop *uncalled, **uncalled_link; /* link NULL: off the list */
	struct cf_stream_ref *ref; /* of a registered stream, or NULL */
	struct cf_depth *depth;	   /* the stream's, where it counts; or NULL */
	struct cf_errand errand;
	struct cf_parcel *parcel; /* a batch instead of the errand, or NULL */
};

/* Whether it may change a file; a batch may. */
static inline bool cf_sop_may_write(const struct cf_sop *sop)
{
	return sop->parcel || sop->errand.call.op == CF_WRITE;
}

/*
 * An errand; or a parcel, which a successful submission takes over: then
 * errand.call.base is the memory of any of its entries, and nothing else of the
 * errand is looked at.
 */
struct cf_sop_call {
	struct cf_errand errand;
	CUstream stream; /* as the client calls it */
	struct cf_parcel *parcel;
};

/*
 * Puts the operation into the stream at its place, whose context is current;
 * ref may be NULL. 0, and it will happen; or a negative code, and it will not.
 */
int cf_sop_submit(const struct cf_sop_call *call, const struct cf_place *at,
		  struct cf_stream_ref *ref);

/* What its ferry calls. */
extern CF_HIDDEN const struct cf_ferry_ops cf_sop_ferry;

/*
 * Host functions, whose argument is the sop: its stream has come to it; a
 * launch of its graph has come to it.
 */
void cf_sop_reached(void *sop);
void cf_sop_replayed(void *sop);
/* The last graph that has it was destroyed. */
void cf_sop_graph_gone(void *sop);

/*
 * Three ends for the thread that took its bell. It has rung: carries it, or
 * (elsewhere) has a worker carry it.
 */
void cf_sop_rung(struct cf_sop *sop, bool elsewhere);
/*
 * Its context died: ends it without a result, because *bytes_p may be gone with
 * the context.
 */
void cf_sop_lost(struct cf_sop *sop);
/* The driver is being closed: ends it with an error. */
void cf_sop_shut(struct cf_sop *sop);

/*
 * The submitter holds the sop until it calls one of the next four. All of the
 * operation is in the stream.
 */
void cf_sop_let_go(struct cf_sop *sop);
/* Nothing of it is. */
void cf_sop_never_mind(struct cf_sop *sop);
/* Its kernel alone is, and will leave. */
void cf_sop_skip(struct cf_sop *sop);
/*
 * It was announced, but the stream will not wait for it, for the reason res. An
 * operation that has not begun is stopped: res as a code. Else waits here until
 * it is over, so that nothing that follows in the stream overtakes it: 0.
 */
int cf_sop_stop_or_wait(struct cf_sop *sop, CUresult res);
/* Its bell rings, but the stream shall not wait for it any more. */
void cf_sop_wait_no_more(struct cf_sop *sop);
/* A captured one shall do nothing when a launch comes to it. */
void cf_sop_disarm(struct cf_sop *sop);

#endif
