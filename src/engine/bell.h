// SPDX-License-Identifier: Apache-2.0
/*
 * bell - how streams announce that they have come to their operations.
 *
 * An operation's stream writes the operation's ticket to a word in pinned
 * memory, its bell; a worker looks at the bells that are armed (watch.h).
 *
 * A board is the bells of a chunk, side by side, so that a look at all of them
 * is a look at few cache lines. It is listed when its chunk is added to a dock,
 * and until the dock ends.
 */
#ifndef CF_ENGINE_BELL_H
#define CF_ENGINE_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "seam/hidden.h"

#define CF_BOARD_BELLS 64

struct cf_sop;

struct cf_board {
	/* pinned words, to which streams write tickets: rung, when the stream
	 * has come to the operation or somewhat before; in the latter case
	 * begun, too, when it has come */
	_Atomic uint32_t *rung, *begun;
	_Atomic uint32_t expected[CF_BOARD_BELLS]; /* 0: not armed */
	/* 0, unless the launch has to be back first; then 1, or the time when
	 * the bell was seen to have rung before that */
	_Atomic int64_t launching[CF_BOARD_BELLS];
	_Atomic unsigned armed;
	struct cf_sop *sops; /* that the bells belong to, in their order */
	struct cf_board *next;
};

void cf_board_list(struct cf_board *board);
/* Before its chunk is freed. If it is listed, nobody looks (cf_watch_close). */
void cf_board_unlist(struct cf_board *board);

/*
 * Before the bell is armed: the ferry's kernel will ring it ahead of its
 * stream, and write the ticket to `begun` when the stream is there.
 */
void cf_bell_twice(struct cf_sop *sop);
/* Before the bell is armed: rings it now. The kernel will ring it once more. */
void cf_bell_ring(struct cf_sop *sop);
/*
 * To be called before the stream has the operation; its ticket is not 0.
 * launching: what rings is not heard before cf_bell_launched, except where that
 * does not come, because the launch waits for its kernel.
 */
void cf_bell_arm(struct cf_sop *sop, bool launching);
/* The launch is back. False: somebody has the operation already. */
bool cf_bell_launched(struct cf_sop *sop);
/* False: it has rung, or was silenced, and whoever saw it has the operation. */
bool cf_bell_disarm(struct cf_sop *sop);

/* Bells of all boards that are armed. */
extern CF_HIDDEN _Atomic unsigned cf_bells_nr_armed;
static inline unsigned cf_bells_armed(void)
{
	return atomic_load(&cf_bells_nr_armed);
}

/*
 * An operation whose bell has rung, which is the caller's; or NULL. One that
 * rang ahead is not found while there is enough to do.
 */
struct cf_sop *cf_bells_find(void);

/* Takes all operations whose bells are armed, and gives each to end. */
void cf_bells_silence(void (*end)(struct cf_sop *sop));
/*
 * Takes those whose context is dead, so that they will not ring, and gives each
 * to lost. Asks the driver: the caller holds no lock.
 */
void cf_bells_lose(void (*lost)(struct cf_sop *sop));

void cf_bells_fork_prepare(void);
void cf_bells_fork_parent(void);
/* Nothing is listed nor armed. */
void cf_bells_fork_child(void);

#endif
