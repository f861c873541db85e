/* SPDX-License-Identifier: Apache-2.0
 *
 * volley - a launch of ROWS blocks, its wait, its cancel, and the next launch
 * with the same set.
 *
 * The names are those of src/core/volley.c, volleys.c and volley_ptx.h. Blocks
 * come on to the GPU whenever it has room, or only after the caller has long
 * gone on. A block's claim is a store that others see when it is fenced, or
 * earlier. Proved: once a move has returned, no block of its launch touches
 * the slot or what it was to copy; a copy that is called moved has its bytes;
 * a row that is not called moved is not touched by anybody any more; nobody
 * waits for ever; and nothing of an old launch speaks for a new one.
 *
 * BREAK leaves out one step; each must be found (tests/model/run.py).
 */
#ifndef ROWS
#define ROWS 2
#endif
#ifndef LAUNCHES
#define LAUNCHES 3
#endif
#ifndef BREAK
#define BREAK 0
#endif
#define CANCELLED 8 /* CF_VOLLEY_CANCELLED, the top bit of a report */

/* the set: flags in device memory, shared in pinned memory */
byte cancel_word, started[ROWS], seen[ROWS], done[ROWS];
byte table;	   /* the launch that the rows are of */
byte bytes[ROWS];  /* the launch that moved this row's bytes */
byte now;	   /* the launch whose slot and copies are in use; 0: none */
byte blocks;	   /* of launches before, that are not over */
byte turn = 1;	   /* kernels of a stream run one after the other */
byte turn_left = ROWS;
bool over;

inline report(what)
{
	done[row] = what
}

/* Block x of 256 threads, by what its thread 0 does. */
proctype block(byte row; byte seq)
{
	byte mine, look;
	bool claimed;

	atomic { turn == seq }; /* it comes on to the GPU */
	if
	:: BREAK == 1 -> /* no fence: the claim may be seen after the look */
		look = cancel_word;
		started[row] = seq;
		claimed = true
	:: BREAK == 2 -> /* no claim at all where it is not cancelled */
		look = cancel_word
	:: else ->
		started[row] = seq;
		/* membar.sys */
		look = cancel_word
	fi;
	if
	:: look == seq -> report(seq + CANCELLED)
	:: else ->
		/* what it copies, and into what, are its caller's */
		assert(now == seq && table == seq);
		if
		:: BREAK == 7 -> report(seq); bytes[row] = seq /* no fence */
		:: else -> bytes[row] = seq; report(seq)
		fi
	fi;
	atomic {
		blocks--;
		turn_left--;
		if
		:: turn_left == 0 -> turn++; turn_left = ROWS
		:: else
		fi
	}
}

/* cf_volley_move, one after the other, each with what the last one left. */
active proctype caller()
{
	byte seq, row, begun, launches;
	bool whole, aside;

next:	/* cf_volleys_lease: one set aside comes back when its stream is idle */
	if
	:: aside && BREAK != 5 -> blocks == 0; aside = false
	:: else /* 5: used at once */
	fi;
	/* fill_rows, launch */
	atomic {
		if
		:: BREAK == 6 && seq > 0 -> skip /* the number stays */
		:: else -> seq++
		fi;
		launches++;
		table = seq;
		now = seq;
		row = 0;
		do
		:: row < ROWS -> blocks++; run block(row, seq); row++
		:: else -> break
		od
	};
	/* all_done: it is, or takes too long */
	row = 0;
	whole = true;
	do
	:: row < ROWS ->
		if
		:: done[row] == seq -> row++
		:: whole = false; break /* STUCK_NS */
		fi
	:: else -> break
	od;
	begun = ROWS;
	if
	:: whole -> goto mark
	:: else
	fi;
	/* cancel: both copies in the order of the side stream */
	begun = 0;
	if
	:: BREAK == 3 -> /* looks first */
		row = 0;
		do
		:: row < ROWS -> seen[row] = started[row]; row++
		:: else -> break
		od;
		cancel_word = seq
	:: else ->
		cancel_word = seq;
		row = 0;
		do
		:: row < ROWS -> seen[row] = started[row]; row++
		:: else -> break
		od
	fi;
	/* cancel_and_wait, await_block */
	row = 0;
	do
	:: row < ROWS && seen[row] == seq ->
		begun++;
		done[row] == seq || done[row] == seq + CANCELLED || BREAK == 4;
		row++
	:: row < ROWS && seen[row] != seq -> row++
	:: else -> break
	od;
mark:	row = 0;
	do
	:: row < ROWS ->
		if
		:: whole || (seen[row] == seq && done[row] == seq) ->
			assert(bytes[row] == seq)
		:: else
		fi;
		row++
	:: else -> break
	od;
	/* cf_volleys_push; the slot goes back, and the caller's memory too */
	aside = begun < ROWS;
	now = 0;
	if
	:: launches < LAUNCHES -> goto next
	:: else
	fi;
	blocks == 0;
	over = true
}
