// SPDX-License-Identifier: Apache-2.0
/*
 * ferry - a kernel in the client's own stream that moves what it is told.
 *
 * DESIGN  Streams share a few hardware queues: while some wait at a gate, a
 * copy in any other stream may wait behind them, and calls such as cuMemFree
 * keep the driver's lock until the gates are open. So nothing that opens a
 * gate may need another stream or the driver. A ferry is launched behind the
 * gate when the operation is submitted; who moves its bytes posts orders on a
 * board in pinned memory and looks there whether they have been carried out.
 * The hold is pinned memory that is the ferry's alone: with it an operation
 * gets on even if all slots are out. Each look of the kernel at a word, and
 * each load of bytes, is a trip over the bus and back; so where there is an
 * aperture (core/aperture.h) it looks at state and orders there, and finds
 * reads there, as far as there is room. What it tells itself lies in pinned
 * memory.
 *
 * A run is one time that the operation is carried. Every run posts any number
 * of orders, from any threads, and ends; the kernel leaves when it has moved
 * them all. Of n blocks, block i modulo n carries out order i; or each does its
 * part of every order, which is for few large ones. In a graph,
 * kernels of several launches may meet at one board: what a block has to do is
 * then claimed by one of theirs, and the others only wait for the end.
 *
 * A kernel may ring a bell when it begins (engine/bell.h): then it stands in
 * the stream without a gate, and its run begins when it is submitted.
 *
 * One that comes ahead rings while the operation before it is still under way,
 * moves nothing until that is over, and then writes the ticket to a second
 * bell. Its bytes are read meanwhile.
 */
#ifndef CF_CORE_FERRY_H
#define CF_CORE_FERRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/memory.h"
#include "core/near_slots.h"
#include "seam/cuda.h"

#define CF_FERRY_BLOCKS 16		  /* of the kernel, at most */
#define CF_FERRY_ORDERS 16		  /* that it has not carried out yet */
#define CF_FERRY_DRAWS ((size_t)64 << 10) /* from here on, path/draws.h */
#define CF_FERRY_LOANS 16
#define CF_FERRY_BEGUN 64 /* the second bell, words behind the first */
/* 64 KiB, and the pages around it that an unaligned direct read takes along */
#define CF_FERRY_HOLD ((size_t)72 << 10)
/* in an aperture: a board, and so far behind it a hold */
#define CF_FERRY_NEAR_HOLD ((size_t)4 << 10)
#define CF_FERRY_NEAR (CF_FERRY_NEAR_HOLD + CF_FERRY_HOLD)

struct cf_ferry_order {
	uint64_t dst, src;
	uint32_t size, unused;
};

/* What the kernel looks at: see ferry_ptx.h before changing a place. */
struct cf_ferry_board {
	/* orders posted in a run, and in the upper half twice the run, and one
	 * more when it has ended: one look tells all */
	_Atomic uint64_t state;
	_Atomic uint32_t run; /* not 0 */
	uint32_t gap[13];
	/* the block's last order, from 1; the GPU writes it */
	_Atomic uint32_t moved[CF_FERRY_BLOCKS];
	_Atomic uint32_t left[CF_FERRY_BLOCKS];	       /* the run; likewise */
	_Atomic uint32_t claims[CF_FERRY_BLOCKS];      /* the run; likewise */
	struct cf_ferry_order orders[CF_FERRY_ORDERS]; /* order i at i % 16 */
	uint32_t rest[96];
};
_Static_assert(sizeof(struct cf_ferry_board) == 1024, "one is 1 KiB");

struct cf_ferry;
struct cf_gpu;

/* What the ferry's owner does for it; called on the threads that move. */
struct cf_ferry_ops {
	/* the kernel may begin: lets the stream come to it; once in a run, and
	 * never where it rings */
	void (*open)(struct cf_ferry *ferry);
	/* false: the kernel will never come */
	bool (*alive)(struct cf_ferry *ferry);
	/*
	 * The thread begins to wait for the kernel, and has done so: which
	 * may be behind the gate of another, so that somebody must see to it
	 */
	void (*step_aside)(void);
	void (*step_back)(void);
};

/* What orders name, and its owner gets back when the kernel has left. */
struct cf_ferry_loan {
	/* lost: it may not have, and never will */
	void (*back)(const struct cf_ferry_loan *loan, bool lost);
	void *owner, *what;
};

struct cf_ferry {
	const struct cf_ferry_ops *ops;
	struct cf_ferry_board *board;
	char *hold;	   /* CF_FERRY_HOLD bytes on a page boundary, pinned */
	CUdeviceptr place; /* of the board for the GPU, or 0: out of reach */
	/* in an aperture, of CF_FERRY_NEAR bytes: state and orders, where its
	 * kernel rings, and a second hold; or NULL */
	struct cf_ferry_board *near;
	CUdeviceptr near_place;		  /* the same for the GPU */
	struct cf_near_slots *near_slots; /* those of its dock, if near */
	CUcontext ctx;			  /* of the stream, on this GPU: */
	int ordinal;
	const struct cf_gpu *gpu; /* whose slots it may use, or NULL */
	unsigned blocks;	  /* of the launch; 0: there is none */
	/* a block that has moved so much lets the next ferry come */
	uint32_t lets;
	bool drawn;  /* its launch has the shape for that, path/draws.h: each
		      * block has a part of every order */
	bool far;    /* it may move to memory that is not its GPU's */
	bool shared; /* in a graph: kernels of several launches may meet */
	bool rings;  /* its kernel rings, and no gate is before it */
	/* what is carried by its kernel alone may be ordered at once: its run
	 * begins with its submission, its stream being idle */
	bool at_once;
	bool events; /* tell when it is over, and not its stream alone */
	/* gets the ticket when its stream is there; NULL: it is at the ring */
	_Atomic uint32_t *begun;
	uint32_t ticket;
	uint32_t run;
	uint32_t near_run;	   /* the last that went by the aperture */
	pthread_mutex_t hold_lock; /* held by who uses the hold: */
	uint32_t hold_nr;     /* the last order of it that was not waited for */
	pthread_mutex_t lock; /* before workers.lock, to step aside */
	uint32_t posted;      /* lock */
	bool opened;	      /* lock */
	unsigned nr_loans;    /* lock */
	struct cf_ferry_loan loans[CF_FERRY_LOANS]; /* lock */
	atomic_bool lost;
};

/* A ferry with nothing but its locks. */
void cf_ferry_init(struct cf_ferry *ferry, const struct cf_ferry_ops *ops);

/*
 * Whether a kernel of that context, on that GPU, can be trusted with the
 * memory: one that strays breaks the client's context. Memory without a
 * context of its own (of a pool, or mapped) is reached from any on its GPU.
 */
bool cf_ferry_reaches(CUcontext ctx, int ordinal, const struct cf_memory *mem);

/* Whether this run's orders go by the aperture, and bytes may. */
static inline bool cf_ferry_is_near(const struct cf_ferry *ferry)
{
	return ferry->rings && ferry->near;
}

/*
 * As its run begins: slots of a GPU whose primary context was reset since the
 * submission are not pinned any more, and a kernel would stray. The driver
 * answers cuCtxGetId while streams wait.
 */
void cf_ferry_look_at_gpu(struct cf_ferry *ferry);

/* What orders call a byte of a hold, of the aperture's, or of a slot, which
 * may be a near one. */
uint64_t cf_ferry_addr(const struct cf_ferry *ferry, const char *at);

/* A new run; all orders of the one before have been carried out. */
void cf_ferry_begin(struct cf_ferry *ferry);

/*
 * Has the kernel move size bytes, up to 4 GiB, between pinned memory and
 * memory of the stream's GPU, which both stay until it has. May wait until it
 * has room. *nr: the order's number. 0, or a CUDA code: it will not.
 */
int cf_ferry_post(struct cf_ferry *ferry, uint64_t dst, uint64_t src,
		  size_t size, uint32_t *nr);

/*
 * The same in several orders, of step bytes each but for the last; *nr: of the
 * last one.
 */
int cf_ferry_post_in_steps(struct cf_ferry *ferry, uint64_t dst, uint64_t src,
			   size_t size, size_t step, uint32_t *nr);

/* Whether order nr has been carried out; acquire. nr 0: there was no order. */
bool cf_ferry_has_moved(const struct cf_ferry *ferry, uint32_t nr);
/* Waits until it has; 0, or a CUDA code. */
int cf_ferry_wait(struct cf_ferry *ferry, uint32_t nr);

/*
 * Waits until all that is before it in the stream is over; 0, or a CUDA code.
 * At once, unless it came ahead.
 */
int cf_ferry_wait_begun(struct cf_ferry *ferry);
bool cf_ferry_has_begun(const struct cf_ferry *ferry);

/* To post one more would be to wait. */
bool cf_ferry_is_full(struct cf_ferry *ferry);

/*
 * Whether the run may end while bytes of a read are on their way: the kernel is
 * on the GPU and comes to its end there, no other meets it, and who wants the
 * bytes waits for the stream. What they come out of is lent until then, but for
 * the hold, which is the ferry's own.
 */
bool cf_ferry_may_end_early(const struct cf_ferry *ferry);
/* And what comes out of the hold need not be waited for in the run either. */
bool cf_ferry_may_leave_hold(const struct cf_ferry *ferry);

/* False: the run may not end early, or there are loans enough; so wait. */
bool cf_ferry_lend(struct cf_ferry *ferry, const struct cf_ferry_loan *loan);

/* For who carried the run. */
static inline bool cf_ferry_has_lent(const struct cf_ferry *ferry)
{
	return ferry->nr_loans;
}

/*
 * The kernel leaves when it has moved what was posted, and of its last orders
 * nobody is told. What comes from or goes to memory that is neither lent nor
 * the ferry's was waited for.
 */
void cf_ferry_end(struct cf_ferry *ferry);

/* Behind the end, and before another run: waits if there are loans. */
void cf_ferry_give_back(struct cf_ferry *ferry);

/* The kernel is not in the stream after all, or gone with its context. */
void cf_ferry_lose(struct cf_ferry *ferry);

/* Nobody looks at the board any more; acquire. */
bool cf_ferry_has_left(const struct cf_ferry *ferry);

#endif
