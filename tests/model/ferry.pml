/* SPDX-License-Identifier: Apache-2.0
 *
 * ferry - a berth of ferries that has room in an aperture, and its operations
 * one after the other: some ring and go by the aperture, some, as in graphs, by
 * the board.
 *
 * The names are those of src/core/ferry.c, ferry_ptx.h and src/path/carrier.c.
 * A read has one or two pieces, each carried on any of the CPUs; the hold's
 * lock hands on from one to the next. A piece may come out of a slot (SLOTS),
 * which a run that goes by the aperture lends to the kernel, and the thread
 * that carried it gives back. What is stored in the aperture waits in its CPU's
 * buffer, and gets on the bus in any order, but for fences, as in aperture.pml;
 * what a block writes to host memory arrives in its order. A launch comes at
 * any time. Of two blocks (BLOCKS) each has its part of every order.
 *
 * Proved: what is moved is the piece that was ordered, and all of it had
 * arrived; each block carries out each order of a run once, and none of another
 * run; the kernel comes to its end, and so does each wait for it; no thread has
 * a hold, or a slot, that the kernel still looks at.
 *
 * BREAK leaves out one step; each must be found (tests/model/run.py).
 */
#ifndef OPS
#define OPS 4
#endif
#ifndef SLOTS
#define SLOTS 0
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef BREAK
#define BREAK 0
#endif
#define RUNS 4 /* two bits of a run: then it looks like one to come */
#define PIECE(op, piece) ((op) * 2 + (piece) + 1) /* 0: no bytes */
#define STATE(nr, ended, posted) \
	(((nr) % RUNS) * 8 + (ended) * 4 + (posted))
/* of a state: its run from this one on, modulo RUNS; 2 and 3: before it */
#define SINCE(state, nr) ((((state) / 8) + RUNS - (nr) % RUNS) % RUNS)
#define HAS_ENDED(state) (((state) / 4) % 2)
#define POSTED(state) ((state) % 4)

/* the aperture, and the board with the pinned hold. An order: where from */
mtype = { NONE, FROM_NEAR, FROM_HOLD, FROM_SLOT, HOLD, ORDER0, ORDER1, STATEWORD,
	READ };
byte near_state, near_hold, board_state, hold;
mtype near_order[2], board_order[2];
byte slot; /* 0: given back, and somebody else's */
bool lent;
byte moved[BLOCKS], left[BLOCKS]; /* as host memory has them */
byte nr_run;
#if BLOCKS == 1
#define HAVE_MOVED(nr) (moved[0] >= (nr))
#define HAVE_LEFT (left[0] == nr_run)
#else
#define HAVE_MOVED(nr) (moved[0] >= (nr) && (moved[1] >= (nr) || BREAK == 15))
#define HAVE_LEFT (left[0] == nr_run && (left[1] == nr_run || BREAK == 16))
#endif

/* a CPU's buffer, and the bus down */
byte wc_hold[2], wc_state[2];
mtype wc_order[4]; /* two of each */
bool wc_has_state[2];
chan down = [4] of { mtype, byte };
/* whose; is it left, or moved; its word */
chan up = [2 + BLOCKS] of { byte, bool, byte };
chan slow = [2] of { byte, byte }; /* 9: of what was moved */
#define IS_EMPTY(cpu) (!wc_hold[cpu] && !wc_has_state[cpu] && \
	wc_order[2 * (cpu)] == 0 && wc_order[2 * (cpu) + 1] == 0)
bool is_back;

/* the stream */
byte launched;
bool near; /* this run goes by the aperture */
byte near_run;
/* what no code knows: pieces that were ordered in this run, and moved */
byte ordered, carried[BLOCKS];

/* --------------------------------------------------------------- the wires */

inline evict(cpu)
{
	if
	:: wc_hold[cpu] != 0 -> down!HOLD, wc_hold[cpu]; wc_hold[cpu] = 0
	:: wc_order[2 * cpu] != 0 ->
		down!ORDER0, wc_order[2 * cpu]; wc_order[2 * cpu] = 0
	:: wc_order[2 * cpu + 1] != 0 ->
		down!ORDER1, wc_order[2 * cpu + 1]; wc_order[2 * cpu + 1] = 0
	:: wc_has_state[cpu] ->
		down!STATEWORD, wc_state[cpu];
		wc_has_state[cpu] = false; wc_state[cpu] = 0
	fi
}

active proctype wires()
{
	byte word, block;
	bool is_left;

end:	do
	:: atomic { !IS_EMPTY(0) && nfull(down) -> evict(0) }
	:: atomic { !IS_EMPTY(1) && nfull(down) -> evict(1) }
	:: atomic { nempty(down) ->
		if
		:: down?HOLD, word -> near_hold = word
		:: down?ORDER0, word -> near_order[0] = word
		:: down?ORDER1, word -> near_order[1] = word
		:: down?STATEWORD, word -> near_state = word
		:: down?READ, word -> is_back = true
		fi;
		word = 0 }
	:: atomic { nempty(up) ->
		up?block, is_left, word;
		if
		:: is_left -> left[block] = word
		:: else -> moved[block] = word
		fi;
		word = 0; is_left = false; block = 0 }
	:: atomic { nempty(slow) ->
		slow?block, word; moved[block] = word;
		word = 0; block = 0 }
	od
}

/* ------------------------------------------------------- those who carry */

inline fence(step)
{
	if
	:: BREAK == step
	:: else -> IS_EMPTY(cpu)
	fi
}

inline another_cpu()
{
	if
	:: cpu = 0
	:: cpu = 1
	fi
}

inline show_state(ended)
{
	if
	:: near ->
		fence(1);
		atomic {
			wc_state[cpu] = STATE(nr_run, ended, posted);
			wc_has_state[cpu] = true
		};
		fence(2)
	:: else -> board_state = STATE(nr_run, ended, posted)
	fi
}

/* cf_ferry_begin, and the launch */
inline begin()
{
	atomic {
		nr_run++;
		posted = 0; hold_nr = 0; ordered = 0;
		for (block : 0 .. BLOCKS - 1) {
			carried[block] = 0; moved[block] = 0
		}
		block = 0
	};
	if
	:: near = true
	:: near = false
	fi;
	if
	:: near && (near_run == nr_run - 1 || BREAK == 3)
	:: near && near_run != nr_run - 1 && BREAK != 3 ->
		show_state(0);
		is_back = false;
		down!READ, 0;
		BREAK == 4 || is_back
	:: else -> show_state(0)
	fi;
	near_run = (near -> nr_run : near_run);
	launched = nr_run
}

/* cf_carrier_end: a slot is lent, or waited for */
inline end_carrier()
{
	if
	:: from != FROM_SLOT
	:: from == FROM_SLOT && near && BREAK != 11 -> lent = true
	:: from == FROM_SLOT && !(near && BREAK != 11) ->
		near || BREAK == 12 || HAVE_MOVED(posted);
		slot = 0
	fi
}

/* cf_carrier_read: into the hold there or here, a slot, or the file is gone */
inline carry()
{
	another_cpu();
	BREAK == 5 || HAVE_MOVED(hold_nr);
	from = NONE;
	if
	:: SLOTS && !lent -> slot = PIECE(nr_run, piece); from = FROM_SLOT
	:: near -> wc_hold[cpu] = PIECE(nr_run, piece); from = FROM_NEAR
	:: true -> hold = PIECE(nr_run, piece); from = FROM_HOLD
	:: near -> /* it was not all: once more, from its first byte */
		wc_hold[cpu] = PIECE(nr_run, piece);
		hold = PIECE(nr_run, piece); from = FROM_HOLD
	:: near -> wc_hold[cpu] = PIECE(nr_run, piece) /* gone */
	:: true
	fi;
	if
	:: from == NONE
	:: from != NONE ->
		if
		:: near -> wc_order[2 * cpu + piece] = from
		:: else -> board_order[piece] = from
		fi;
		posted++; ordered++;
		show_state(0);
		hold_nr = (from == FROM_SLOT -> hold_nr : posted)
	fi;
	fence(6);
	end_carrier()
}

/* cf_ferry_give_back: by who led, behind the end */
inline give_back()
{
	if
	:: lent ->
		BREAK == 13 || (BREAK != 14 && HAVE_LEFT) ||
			(BREAK == 14 && HAVE_MOVED(posted));
		slot = 0; lent = false
	:: else
	fi
}

active proctype owner()
{
	byte posted, hold_nr, piece, cpu, block;
	mtype from;

	do
	:: nr_run < OPS ->
		another_cpu();
		begin();
		piece = 0;
		do
		:: piece < 2 && from != NONE || piece == 0 -> carry(); piece++
		:: piece > 0 -> break
		od;
		from = 0;
		/* by who led, while bytes leave the hold */
		another_cpu();
		show_state(1);
		give_back();
		BREAK == 7 || HAVE_LEFT
	:: nr_run == OPS -> break
	od;
	HAVE_LEFT
}

/* -------------------------------------------------------------- the kernel */

#define NOW (near -> near_state : board_state)
/* an order, or the end */
#define SEES ((SINCE(NOW, me) < 2 || BREAK == 8) && \
	(POSTED(NOW) > next || SINCE(NOW, me) == 1 || HAS_ENDED(NOW)))

#define BYTES(from) \
	(from == FROM_NEAR -> near_hold : (from == FROM_HOLD -> hold : slot))

inline look()
{
	state = NOW;
	since = SINCE(state, me);
	if
	:: since >= 2 && BREAK != 8 -> told = 0; ended = false
	:: else -> told = POSTED(state);
		ended = (since == 1 || (since == 0 && HAS_ENDED(state)))
	fi
}

#define BLOCK (_pid - 2)

active [BLOCKS] proctype kernel()
{
	byte me, next, state, since, told, was;
	bool ended;

end:	do
	:: atomic { launched > me -> me = launched; next = 0 };
		assert(me == nr_run);
		do
		:: atomic { SEES -> look() };
			if
			:: told > next && !(BREAK == 10 && ended) ->
				atomic {
					was = (near -> near_order[next] :
						       board_order[next]);
					assert(was == FROM_NEAR ||
					       was == FROM_HOLD ||
					       was == FROM_SLOT)
				};
				/* the state beside the bytes, in any order */
				if
				:: atomic { true -> look() };
					was = BYTES(was)
				:: was = BYTES(was);
					atomic { true -> look() }
				fi;
				assert(was == PIECE(me, next));
				atomic { next++; carried[BLOCK]++ };
				if
				:: ended && told <= next -> break
				:: else ->
					if
					:: BREAK != 9 -> up!BLOCK, false, next
					:: BREAK == 9 -> slow!BLOCK, next
					fi
				fi
			:: told <= next || (BREAK == 10 && ended) ->
				assert(ended);
				break
			fi
		od;
		assert(me == nr_run && carried[BLOCK] == ordered);
		up!BLOCK, true, me;
		atomic { state = 0; since = 0; told = 0; was = 0; ended = false }
	od
}
