// SPDX-License-Identifier: Apache-2.0
/*
 * bell - how streams announce that they have come to their operations.
 *
 * An operation's stream writes the operation's ticket to a word in pinned
 * memory, its bell. While bells are armed, one worker has the watch and looks
 * at them: without a pause for a moment after the last news, then now and
 * then, ever more seldom. Whoever has just carried an operation looks, too,
 * for a moment: the stream's next one is due. Nobody looks while none is
 * armed, and no callback is needed.
 *
 * A board is the bells of a chunk, side by side, so that a look at all of
 * them is a look at few cache lines. It is listed from the publication of its
 * chunk to the end of its dock.
 */
#ifndef CF_ENGINE_BELL_H
#define CF_ENGINE_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CF_BOARD_BELLS 64

struct cf_sop;

struct cf_board {
	_Atomic uint32_t *rung; /* pinned; streams write them */
	_Atomic uint32_t expected[CF_BOARD_BELLS]; /* 0: not armed */
	_Atomic unsigned armed;
	struct cf_sop *sops; /* that the bells belong to, in their order */
	struct cf_board *next;
};

void cf_board_list(struct cf_board *board);
/* One that is not listed, or nobody looks (cf_bells_close). */
void cf_board_unlist(struct cf_board *board);

/* Before the operation is given to its stream; its ticket is not 0. */
void cf_bell_arm(struct cf_sop *sop);
/* False: it has rung, or was silenced, and whoever saw it has the operation. */
bool cf_bell_disarm(struct cf_sop *sop);
/*
 * Sees to it that a worker looks, and soon. 0 or -errno, which cannot be
 * after cf_workers_reserve.
 */
int cf_bell_watch(void);

/* Takes all that are armed; each operation is given to end. */
void cf_bells_silence(void (*end)(struct cf_sop *sop));
/* Returns when nobody looks any more; none is armed, nor will be. */
void cf_bells_close(void);

void cf_bells_fork_prepare(void);
void cf_bells_fork_parent(void);
/* Nothing is listed nor armed. */
void cf_bells_fork_child(void);

#endif
