/* SPDX-License-Identifier: Apache-2.0
 *
 * shuttle - two seats and their orders, trips of a kernel with two warps, a
 * launch that fails, a GPU that is full, orders taken back, and the close.
 *
 * The names are those of src/core (shuttle.c, shuttle_board.c, shuttle_trips.c,
 * shuttle_ptx.h). A seat's owners come one after the other, each with a copy of
 * its own, so they are one process. A trip comes when the one before is over
 * and the GPU has room, or any time later. It says at any time that it leaves,
 * and looks on for any time. Each word is a step of its own, in an order that
 * all see alike: the code has a fence where it needs one. But whether a trip is
 * here is one step: a thread that sees too old a number asks again.
 *
 * Proved: an order that is called done was moved, once; one that is taken back
 * was not, and is not touched any more, nor is a copy whose owner was answered;
 * no order waits for ever, and where one cannot be taken back there is a trip
 * that will end; an owner that saw that a trip has not left is served by it,
 * unless it takes its order back; no two trips are here at once, and none once
 * the board is freed.
 *
 * An order of the first seat has two words, written one after the other and
 * read in any order; one of the other seat has one. A word has its number
 * modulo TAGS, which is enough: all words of a seat are written for each
 * number, so numbers that meet are at most two apart, and a warp looks for the
 * one after what is done. So 3 do as well as 128 (-DTAGS=3 -DCOPIES=3), and 2
 * do not.
 *
 * The shuttle rests at times: a launch may be left out at any time. A thread is
 * late when the GPU is full and, if it is hasty, at any time; one that is not
 * hasty shows what would wait for ever but for that.
 *
 * Orders that lie in the GPU's own memory arrive later: see aperture.pml.
 *
 * BREAK leaves out one step; each must be found (tests/model/run.py).
 */
#ifndef COPIES
#define COPIES 2 /* of the first seat; the other has one */
#endif
#ifndef TRIPS
#define TRIPS 2
#endif
#ifndef TAGS
#define TAGS 128
#endif
#ifndef BREAK
#define BREAK 0
#endif
#define WORD(number, copy) ((number) * 4 + (copy))
#define NUMBER(word) ((word) / 4)
#define COPY(word) ((word) % 4) /* 0: of an order that is void */
/* A warp sees a number's low bits only; 18: one of them */
#define TAG(number) ((number) % (BREAK == 18 -> 2 : TAGS))
#define FITS(word) (TAG(NUMBER(word)) == TAG(next))

/* struct cf_shuttle_board; target is source and size, too */
byte came, leaves, gone;
byte target[2], tag[2], done[2];
bool freed;

/* struct cf_trips */
byte trip;
bool launching;

/* the stream, and the block that is on the GPU */
byte launched, turn = 1; /* kernels of a stream run one after the other */
bool crowded;
byte begun, last_looks, ended;

/* What no code knows: whose copy is in a seat (0: it was answered), whether it
 * was moved, and the trip that its owner counts on. */
byte now[2], counts_on[2];
bool moved[2], hasty;
byte threads = 2, here;

/* ------------------------------------------------------------- the kernel */

/* A warp of the launch that is the nr-th of the stream. */
proctype warp(byte seat; byte number; byte nr)
{
	byte next, word;
	bool last, told;

	/* The first one lets the other begin; 14: two blocks at once. */
end:	if
	:: atomic { seat == 0 && (turn == nr || BREAK == 14) && !crowded ->
		assert(!freed);
		here++;
		assert(here == 1);
		begun = nr;
		next = done[seat] + 1;
		if
		:: BREAK != 2 -> came = number
		:: else
		fi };
		if
		:: BREAK == 2 -> came = number /* others look already */
		:: else
		fi
	:: atomic { seat == 1 && begun == nr -> next = done[seat] + 1 }
	fi;
	/* What it would see again and again is left out. */
look:	if
	:: atomic { seat == 1 && FITS(tag[seat]) ->
		assert(!freed);
		word = tag[seat];
		goto move }
	:: atomic { seat == 0 && FITS(target[seat]) ->
		assert(!freed);
		word = target[seat] };
		if
		:: atomic { FITS(tag[seat]) -> goto move }
		:: atomic { !FITS(tag[seat]) -> goto nothing }
		fi
	:: seat == 0 && FITS(tag[seat]) ->
		if
		/* 11: the last word only has a number */
		:: atomic { FITS(target[seat]) || BREAK == 11 ->
			assert(!freed);
			word = target[seat];
			goto move }
		:: atomic { !FITS(target[seat]) && BREAK != 11 ->
			goto nothing }
		fi
	:: atomic { last && (!FITS(target[seat]) || !FITS(tag[seat])) ->
		goto nothing }
	/* leaves is told (1: at the end); then, at once or later, the warps are */
	:: atomic { seat == 0 && !told ->
		told = true;
		if
		:: BREAK != 1 -> leaves = number
		:: else
		fi;
		goto look }
	:: atomic { told && !last -> last_looks = nr; last = true; goto look }
	:: atomic { seat == 1 && !last && last_looks == nr ->
		last = true;
		goto look }
	fi;
move:	if
	:: BREAK == 9 -> done[seat] = next /* no fence */
	:: else
	fi;
	/* One step: who may not meet the last byte may meet none. 17: the next
	 * order that it looks for is the same */
	atomic {
		assert(!freed);
		assert(now[seat] != 0 && now[seat] == COPY(word));
		assert(!moved[seat]);
		moved[seat] = true;
		done[seat] = next;
		counts_on[seat] = 0;
		word = 0;
		if
		:: BREAK != 17 -> next++
		:: else
		fi;
		goto look
	};
nothing:
	atomic {
		word = 0;
		if
		:: !last -> goto look
		:: else -> next = 0; last = false; told = false
		fi
	};
	/* END */
	if
	:: seat == 1 -> ended++
	:: seat == 0 ->
		if
		:: BREAK == 1 -> ended == 1; leaves = number
		:: BREAK == 7 -> gone = number /* before all have looked */
		:: else
		fi;
		atomic {
			ended == 1;
			assert(!freed);
			assert(counts_on[0] != number && counts_on[1] != number);
			gone = number;
			ended = 0;
			here--;
			turn++
		}
	fi
}

/* ------------------------------------------------------------------ trips */

inline launch()
{
	atomic {
		launched++;
		if
		:: !hasty -> crowded = true
		:: skip
		fi;
		run warp(0, seen + 1, launched);
		run warp(1, seen + 1, launched)
	}
}

/* Or it rests. A launch may fail, and does when TRIPS are over; 12: its number
 * stays then. */
inline launch_next()
{
	if
	:: skip
	:: atomic { leaves == trip -> seen = trip };
		trip = seen + 1;
		if
		:: launched < TRIPS -> launch()
		:: BREAK != 12 -> trip = seen
		:: BREAK == 12 -> skip
		fi
	fi;
	seen = 0
}

/* ----------------------------------------------------------------- orders */

inline write_words(nr, copy)
{
	atomic {
		target[seat] = WORD(nr, copy);
		if
		:: seat == 1 -> tag[seat] = WORD(nr, copy)
		:: else
		fi
	};
	if
	:: seat == 0 -> tag[seat] = WORD(nr, copy)
	:: else
	fi
}

inline make_void()
{
	/* 6: it keeps the number that it had */
	write_words(number - (BREAK != 6), 0)
}

/* Where they are not, there is a trip that will end, or was as we looked. 4:
 * asks who leaves */
inline all_are_gone(yes)
{
	seen = came;
	atomic {
		yes = seen == (BREAK == 4 -> leaves : gone);
		assert(yes || seen != came || turn <= launched);
		seen = 0
	}
}

/* 3: does not ask who is here; 13: asks before it is void; 5: a new number */
inline take_back(yes)
{
	if
	:: BREAK == 3 -> make_void(); yes = true
	:: BREAK == 13 -> all_are_gone(yes); make_void()
	:: else -> make_void(); all_are_gone(yes)
	fi;
	if
	:: !yes ->
		if
		:: BREAK == 5 -> number++
		:: else
		fi;
		write_words(number, copy)
	:: else
	fi
}

proctype thread(byte seat)
{
	byte copy, number, seen;
	bool is_back;

	/* cf_shuttle_order */
order:	atomic {
		copy++;
		now[seat] = copy;
		/* 8: from the order that was there */
		number = 1 + (BREAK == 8 -> NUMBER(tag[seat]) : done[seat])
	};
	write_words(number, copy);
	/* wait_done: what it would see again and again is left out */
wait:	if
	:: done[seat] == number -> goto answer
	:: atomic { !hasty && leaves < trip && counts_on[seat] != trip &&
			done[seat] != number ->
		counts_on[seat] = trip;
		goto wait }
	:: leaves == trip && (!launching || BREAK == 10)
	:: atomic { hasty || crowded -> goto give_up }
	fi;
	/* send_for; 10: several launch at once */
	if
	:: atomic { launching && BREAK != 10 -> goto wait }
	:: atomic { !launching || BREAK == 10 -> launching = true }
	fi;
	launch_next();
	launching = false;
	if
	:: atomic { leaves != trip -> goto wait }
	:: leaves == trip
	fi;
give_up:
	if
	:: done[seat] == number -> goto answer
	:: atomic { done[seat] != number -> counts_on[seat] = 0 }
	fi;
	take_back(is_back);
	/* all are gone: what is not done now will not be; 16: does not ask */
	if
	:: !is_back -> goto give_up
	:: is_back && done[seat] == number && BREAK != 16 -> goto answer
	:: is_back && (done[seat] != number || BREAK == 16)
	fi;
	/* -ENOTSUP: the memory is its caller's again */
	atomic { assert(!moved[seat]); goto next };
answer:	atomic { assert(moved[seat]); goto next };
next:	atomic {
		now[seat] = 0;
		moved[seat] = false;
		counts_on[seat] = 0;
		is_back = false;
		number = 0;
		if
		:: seat == 0 && copy < COPIES -> goto order
		:: else -> threads--
		fi
	}
}

/* ------------------------------------------------------------------ close */

/* cf_shuttle_free, when no seat is taken; 15: does not wait for the stream */
active proctype closer()
{
	atomic {
		if
		:: hasty = true
		:: skip
		fi;
		run thread(0);
		run thread(1)
	};
	/* what fills the GPU has waited for these bytes, or goes on */
	atomic {
		threads == 0;
		if
		:: crowded = false
		:: skip
		fi
	};
	if
	:: turn > launched || BREAK == 15 -> freed = true
	:: turn <= launched /* CLOSE_NS: the board stays */
	fi
}
