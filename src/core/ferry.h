// SPDX-License-Identifier: Apache-2.0
/*
 * ferry - a kernel in the client's own stream that moves what it is told.
 *
 * DESIGN  Streams share a few hardware queues. While some of them wait at a
 * gate, a copy in any other stream may wait behind them, and calls such as
 * cuMemFree keep the driver's lock until the gates are open. So opening a gate
 * must need neither another stream nor the driver. Therefore a ferry's kernel
 * is launched behind the gate when the operation is submitted, and no call is
 * made later: the threads that move the operation's bytes post orders on a
 * board in pinned memory, and look there whether they have been carried out.
 *
 * The hold is pinned memory that is the ferry's alone: with it an operation
 * gets on even when all slots are leased. Each look of the kernel at a word,
 * and each load of bytes, is a trip over the bus and back. So where there is an
 * aperture (core/aperture.h), state, orders and, as far as there is room, the
 * bytes of reads are put there. What the kernel writes lies in pinned memory.
 *
 * A run is one time that the operation is carried. In every run any number of
 * orders is posted, by any threads, until it ends; the kernel leaves when it
 * has carried them all out. Of n blocks, block i modulo n carries out order i;
 * where `drawn` is set each block does a part of every order, which suits few
 * large ones. In a graph the kernels of several launches may meet at one board:
 * each block's work is then claimed by a block of one of them, and the others
 * only wait for the end.
 *
 * A kernel may ring a bell when it begins (engine/bell.h). Then it stands in
 * the stream without a gate, and its run begins when it is submitted.
 *
 * A kernel that comes ahead rings while the operation before it in the stream
 * is still under way. The file is read meanwhile, but the kernel moves nothing
 * until that operation is over; then it writes the ticket to a second bell.
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

#define CF_FERRY_BLOCKS 16 /* of the kernel, at most */
#define CF_FERRY_ORDERS 16 /* posted and not yet carried out, at most */
/* a read that is as large may be drawn, path/draws.h */
#define CF_FERRY_DRAWS ((size_t)64 << 10)
#define CF_FERRY_LOANS 16
#define CF_FERRY_BEGUN 64 /* words from the first bell to the second */
/* 64 KiB, and the pages around it that an unaligned direct read takes along */
#define CF_FERRY_HOLD ((size_t)72 << 10)
/* in an aperture: a board, and a hold so many bytes behind its start */
#define CF_FERRY_NEAR_HOLD ((size_t)4 << 10)
#define CF_FERRY_NEAR (CF_FERRY_NEAR_HOLD + CF_FERRY_HOLD)

struct cf_ferry_order {
	uint64_t dst, src;
	uint32_t size, unused;
};

/* What the kernel looks at: see ferry_ptx.h before changing a place. */
struct cf_ferry_board {
	/* lower half: orders posted in this run; upper half: the run's number
	 * shifted left by one, with bit 0 set once the run has ended. One word,
	 * so that one look of the kernel tells all */
	_Atomic uint64_t state;
	_Atomic uint32_t run; /* not 0 */
	uint32_t gap[13];
	/* the GPU writes these three, a word for each block: the last order
	 * that it has carried out, counted from 1; */
	_Atomic uint32_t moved[CF_FERRY_BLOCKS];
	/* the last run that it has left; and the last run in which a kernel
	 * claimed the block's work */
	_Atomic uint32_t left[CF_FERRY_BLOCKS];
	_Atomic uint32_t claims[CF_FERRY_BLOCKS];
	struct cf_ferry_order orders[CF_FERRY_ORDERS]; /* order i at i % 16 */
	uint32_t rest[96];
};
_Static_assert(sizeof(struct cf_ferry_board) == 1024, "one is 1 KiB");

struct cf_ferry;
struct cf_gpu;

/* What the ferry's owner does for it; called on threads that move bytes. */
struct cf_ferry_ops {
	/* opens the gate, so that the stream comes to the kernel; once in a
	 * run, and never where the kernel rings */
	void (*open)(struct cf_ferry *ferry);
	/* false: the kernel will never come */
	bool (*alive)(struct cf_ferry *ferry);
	/*
	 * Around a wait of the thread for the kernel. The kernel may stand
	 * behind the gate of another operation, so another thread must be free
	 * to carry that one.
	 */
	void (*step_aside)(void);
	void (*step_back)(void);
};

/* Memory that orders name; its owner has it back when the kernel has left. */
struct cf_ferry_loan {
	/* lost: the kernel is gone, and may not have carried out its orders */
	void (*back)(const struct cf_ferry_loan *loan, bool lost);
	void *owner, *what;
};

struct cf_ferry {
	const struct cf_ferry_ops *ops;
	struct cf_ferry_board *board;
	char *hold;	   /* CF_FERRY_HOLD bytes on a page boundary, pinned */
	CUdeviceptr place; /* of the board for the GPU, or 0: out of reach */
	/* CF_FERRY_NEAR bytes of an aperture, or NULL: a board, whose state and
	 * orders are used where the kernel rings, and a second hold */
	struct cf_ferry_board *near;
	CUdeviceptr near_place;		  /* the same for the GPU */
	struct cf_near_slots *near_slots; /* those of its dock, if near */
	CUcontext ctx;			  /* of the stream, on this GPU: */
	int ordinal;
	const struct cf_gpu *gpu; /* whose slots it may use, or NULL */
	unsigned blocks;	  /* of the launch; 0: there is none */
	/* a block that has moved so many bytes lets the next kernel start */
	uint32_t lets;
	bool drawn;  /* its launch has the shape for path/draws.h: each block
		      * does a part of every order */
	bool far;    /* it may move to memory that is not its GPU's */
	bool shared; /* in a graph: kernels of several launches may meet */
	bool rings;  /* its kernel rings, and no gate is before it */
	bool fresh;  /* its aperture is good for this run (core/fresh.h) */
	/* its stream was idle at the submission, so the run begins at once, and
	 * reads that only its kernel carries may be ordered right away */
	bool at_once;
	bool events; /* of a batch tell when it is over, not its stream alone */
	/* holds the ticket once its stream is there; NULL: it is there when the
	 * kernel rings */
	_Atomic uint32_t *begun;
	uint32_t ticket;
	uint32_t run;
	uint32_t near_run;	   /* the last that used the aperture */
	pthread_mutex_t hold_lock; /* held by the thread that uses the hold: */
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

/* Whether state and orders of this run are in the aperture, where bytes may be,
 * too. */
static inline bool cf_ferry_is_near(const struct cf_ferry *ferry)
{
	return ferry->rings && ferry->near && ferry->fresh;
}

/*
 * To be called when its run begins. If the GPU's primary context was reset
 * since the submission, its slots are not pinned any more, and the kernel would
 * stray: the ferry then uses none (gpu is NULL). Calls cuCtxGetId, which the
 * driver answers even while streams wait.
 */
void cf_ferry_look_at_gpu(struct cf_ferry *ferry);

/* The address for orders of a byte in a hold, a slot or a near slot. */
uint64_t cf_ferry_addr(const struct cf_ferry *ferry, const char *at);

/* A new run; all orders of the one before have been carried out. */
void cf_ferry_begin(struct cf_ferry *ferry);

/*
 * Has the kernel move size bytes, less than 4 GiB, between pinned memory and
 * memory of the stream's GPU, which both stay until it has. May wait until it
 * has room. *nr: the order's number. 0, or a CUDA code: it will not.
 */
int cf_ferry_post(struct cf_ferry *ferry, uint64_t dst, uint64_t src,
		  size_t size, uint32_t *nr);

/* Whether order nr has been carried out; acquire. nr 0: there was no order. */
bool cf_ferry_has_moved(const struct cf_ferry *ferry, uint32_t nr);
/* Waits until it has been; 0, or a CUDA code. */
int cf_ferry_wait(struct cf_ferry *ferry, uint32_t nr);

/*
 * Waits until everything before the kernel in its stream is over; 0, or a CUDA
 * code. Returns at once, unless the kernel came ahead.
 */
int cf_ferry_wait_begun(struct cf_ferry *ferry);
bool cf_ferry_has_begun(const struct cf_ferry *ferry);

/* Whether posting one more order would wait. */
bool cf_ferry_is_full(struct cf_ferry *ferry);

/*
 * Whether the run of a read may end before its last orders are carried out: the
 * kernel is on the GPU already and finishes there, no other kernel shares its
 * board, and whoever wants the bytes waits for the stream. The memory that they
 * come from is lent until then, except the hold, which is the ferry's own.
 */
bool cf_ferry_may_end_early(const struct cf_ferry *ferry);
/* The same, and orders out of the hold need not be waited for either. */
bool cf_ferry_may_leave_hold(const struct cf_ferry *ferry);

/*
 * Lends memory until the kernel has left. False: the run may not end early, or
 * no loan is free; the caller must wait for its orders.
 */
bool cf_ferry_lend(struct cf_ferry *ferry, const struct cf_ferry_loan *loan);

/* For the thread that carried the run. */
static inline bool cf_ferry_has_lent(const struct cf_ferry *ferry)
{
	return ferry->nr_loans;
}

/*
 * Ends the run: the kernel leaves when it has carried out what was posted, and
 * nobody is told of the last orders. The caller has waited for all orders whose
 * memory is neither lent nor the ferry's own.
 */
void cf_ferry_end(struct cf_ferry *ferry);

/* After the end and before another run. Waits for the kernel, if it must. */
void cf_ferry_give_back(struct cf_ferry *ferry);

/* The kernel never came into the stream, or is gone with its context. */
void cf_ferry_lose(struct cf_ferry *ferry);

/* Whether the kernel has left the board for good; acquire. */
bool cf_ferry_has_left(const struct cf_ferry *ferry);

#endif
