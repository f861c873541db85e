// SPDX-License-Identifier: Apache-2.0
/*
 * sop - a stream operation, from its submission to the release of its stream.
 *
 * The stream rings the operation's bell (bell.h) and waits for its gate. The
 * worker that finds it rung reads the parameters, moves the bytes, writes
 * *bytes_p and opens the gate. With a ferry (core/ferry.h) the kernel rings and
 * is what the stream waits for: it is ended after *bytes_p. So the stream's
 * order is the order of everything; a read whose numbers were fixed may ring
 * ahead of it, and then the file is read before, and nothing else is done. In a
 * graph, or without bells, a host function closes the gate and posts the
 * operation instead, the same nodes at every launch; a ferry's gate is opened
 * for the first bytes. Nobody ever waits in a callback.
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

struct cf_depth;
struct cf_parcel;
struct cf_place;
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
	bool awaited; /* lock of sops.h; who waits for done cleans up */
	bool done;    /* lock of sops.h */
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
	struct cf_ferry ferry;
	struct cf_board *board; /* and its bell there */
	unsigned bell;
	CUdeviceptr gate, passed, door; /* of the words, as the GPU sees them */
	uint32_t ticket;		/* not 0 */
	struct cf_sop *next;		/* dock's lock, while it is there */
	bool awaited;			/* likewise: until its kernel is gone */
	/* lock of sops.h: */
	enum cf_sop_state state;
	bool held;     /* by its submitter */
	bool ferried;  /* its ferry is behind the gate, or alone */
	bool belled;   /* it rings; its gate was closed when it was submitted */
	bool captured; /* in a graph: may be carried any number of times */
	bool busy;     /* captured: run is in use */
	struct cf_stream_ref *ref; /* the registration, or NULL */
	struct cf_depth *depth;	   /* where it is counted, or NULL */
	struct cf_errand errand;
	struct cf_parcel *parcel; /* a batch instead, or NULL */
};

/* A batch may. */
static inline bool cf_sop_may_write(const struct cf_sop *sop)
{
	return sop->parcel || sop->errand.call.op == CF_WRITE;
}

/*
 * An errand; or a parcel, which is the stream's as soon as the submission
 * succeeds: then errand.call.base is any memory of its entries, and the rest
 * is not looked at.
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

/* What its ferry needs of it. */
extern const struct cf_ferry_ops cf_sop_ferry;

/* What streams call; user data: the sop. A stream, or a launch, comes to it. */
void cf_sop_reached(void *sop);
void cf_sop_replayed(void *sop);
/* The last graph that knew it is gone. */
void cf_sop_graph_gone(void *sop);

/* For who took its bell. It has rung: carries it here, or has it carried; */
void cf_sop_rung(struct cf_sop *sop, bool elsewhere);
/*
 * its context died: nothing is written, because what is left of the operation
 * may be gone with the context.
 */
void cf_sop_lost(struct cf_sop *sop);
/* the driver is closed: it ends with an error. */
void cf_sop_shut(struct cf_sop *sop);

/* For the submitter, who holds the sop until it calls one of these: */
/* all is in the stream; */
void cf_sop_let_go(struct cf_sop *sop);
/* nothing is; */
void cf_sop_never_mind(struct cf_sop *sop);
/*
 * the stream will not wait, for the reason res. Stops what has not begun and
 * answers res as a code; else waits here, so that the operation is over before
 * anything that follows is submitted, and answers 0.
 */
int cf_sop_stop_or_wait(struct cf_sop *sop, CUresult res);
/* It rings, but its stream shall not wait for it any more. */
void cf_sop_wait_no_more(struct cf_sop *sop);
/* A captured one will do nothing when a launch comes to it. */
void cf_sop_disarm(struct cf_sop *sop);

#endif
