/* SPDX-License-Identifier: Apache-2.0
 *
 * aperture - a seat of the shuttle, and its orders, that lie in the GPU's own
 * memory: what the CPU writes there arrives later.
 *
 * The names are those of src/core (shuttle.c, shuttle_board.c, shuttle_trips.c,
 * shuttle_ptx.h, aperture.h). The steps of a launch, and two seats beside each
 * other, are in shuttle.pml. Here two threads on two CPUs have the seat in
 * turn, or one of them again; the thread that has not got it may send for
 * trips.
 *
 * A store to the aperture waits in its CPU's buffer until the CPU puts it on
 * the bus, at any time and in any order. A fence of stores holds up the CPU's
 * next store until the buffer is empty, but not its next load. The bus is first
 * in, first out, and takes its time; so do the GPU's own writes to host memory,
 * the other way. A read goes behind what is on the bus, and its answer behind
 * what the GPU has written. A call that gives memory back goes behind that,
 * too; a launch does not. A thread that is moved to another CPU has its buffer
 * emptied, so here it stays where it is. The store of a locked instruction
 * never arrives.
 *
 * Proved: bytes that are moved are of the copy in the seat, and all of them had
 * arrived; an order that is called done was moved, once; one that is taken back
 * was not, and is not later; one that is waited for is there when nothing is
 * under way, so that the next trip finds it; no order waits for ever; a seat
 * that is lost is nobody's; nothing arrives, or is looked at, in memory that
 * was given back.
 *
 * BREAK leaves out one step; each must be found (tests/model/run.py).
 */
#ifndef COPIES
#define COPIES 2 /* 3 at most, and 3 find no more */
#endif
#ifndef TRIPS
#define TRIPS 2
#endif
#ifndef TAGS
#define TAGS 128
#endif
#ifndef DEATH
#define DEATH 0 /* the context may break; all are hasty then */
#endif
#ifndef BREAK
#define BREAK 0
#endif
#define WORD(number, copy) (1 + (number) * 4 + (copy)) /* 0: no word */
#define NUMBER(word) (((word) - 1) / 4)
#define COPY(word) (((word) - 1) % 4) /* 0: of an order that is void */
/* 15: one bit of the number */
#define TAG(number) ((number) % (BREAK == 15 -> 2 : TAGS))
#define FITS(word) (TAG(NUMBER(word)) == TAG(next))

/* the aperture; target is source and size, too. As its last owner left it */
byte data, target = WORD(1, 0), tag = WORD(1, 0);
bool freed;

/* struct cf_shuttle_board, as host memory has it */
byte came, leaves, gone, done;

/* struct cf_trips, and the seat */
byte trip;
bool ready, taken, lost;

/* a CPU's buffer, one word of an address; fenced: it goes before the next */
byte wc_data[2], wc_target[2], wc_tag[2];
bool fenced[2];
#define IS_EMPTY(cpu) (!wc_data[cpu] && !wc_target[cpu] && !wc_tag[cpu])
#define MAY_STORE(cpu) (!fenced[cpu] || IS_EMPTY(cpu))

/* the bus down, and up; 9: a bus for each CPU */
mtype = { DATA, TARGET, TAGWORD, READ, FREE,
	CAME, LEAVES, DONE, GONE, BACK };
chan down[2] = [6] of { mtype, byte };
chan up = [4] of { mtype, byte };
bool is_back[2];
#define CAN_ARRIVE(bus) (nempty(down[bus]) && \
	(nfull(up) || !(down[bus]?[READ, _])))
#define BUS(cpu) (BREAK == 9 -> (cpu) : 0)
#define QUIET (IS_EMPTY(0) && IS_EMPTY(1) && empty(down[0]) && empty(down[1]))

/* the stream: kernels come one after the other */
byte launched, turn = 1;
bool hasty, broken;

/* What no code knows: whose copy is in the seat (0: it was answered), and
 * whether it was moved. */
byte now;
bool moved;

/* the copies dealt out, and the threads at work */
byte dealt, threads = 2;

/* --------------------------------------------------------------- the wires */

inline evict(cpu)
{
	if
	:: wc_data[cpu] != 0 ->
		down[BUS(cpu)]!DATA, wc_data[cpu];
		wc_data[cpu] = 0
	:: wc_target[cpu] != 0 ->
		down[BUS(cpu)]!TARGET, wc_target[cpu];
		wc_target[cpu] = 0
	:: wc_tag[cpu] != 0 ->
		down[BUS(cpu)]!TAGWORD, wc_tag[cpu];
		wc_tag[cpu] = 0
	fi
}

inline arrive(bus)
{
	if
	:: down[bus]?DATA, word -> assert(!freed); data = word
	:: down[bus]?TARGET, word -> assert(!freed); target = word
	:: down[bus]?TAGWORD, word -> assert(!freed); tag = word
	:: down[bus]?READ, word -> up!BACK, word
	:: down[bus]?FREE, word -> freed = true
	fi;
	word = 0
}

active proctype wires()
{
	byte word;

end:	do
	:: atomic { !IS_EMPTY(0) && nfull(down[BUS(0)]) -> evict(0) }
	:: atomic { !IS_EMPTY(1) && nfull(down[BUS(1)]) -> evict(1) }
	:: atomic { CAN_ARRIVE(0) -> arrive(0) }
	:: atomic { BREAK == 9 && CAN_ARRIVE(1) -> arrive(1) }
	:: atomic { nempty(up) ->
		if
		:: up?CAME, word -> came = word
		:: up?LEAVES, word -> leaves = word
		:: up?DONE, word -> done = word
		:: up?GONE, word -> gone = word
		:: up?BACK, word -> is_back[word] = true
		fi;
		word = 0 }
	:: atomic { DEATH && !broken -> broken = true }
	od
}

/* -------------------------------------------------------------- the kernel */

active proctype kernel()
{
	byte next, word;
	bool last, told;

end:	if
	:: atomic { turn <= launched ->
		assert(!freed);
		if
		:: BREAK != 11 -> up!CAME, turn
		:: else
		fi }
	:: atomic { broken -> goto dead }
	fi;
	/* a read does not pass what was written */
	atomic { empty(up) -> next = done + 1 };
	/* What it would see again and again is left out. */
look:	if
	:: atomic { FITS(target) -> assert(!freed); word = target };
		if
		:: atomic { FITS(tag) -> goto move }
		:: atomic { !FITS(tag) -> goto nothing }
		fi
	:: FITS(tag) ->
		if
		:: atomic { FITS(target) ->
			assert(!freed);
			word = target;
			goto move }
		:: atomic { !FITS(target) -> goto nothing }
		fi
	:: atomic { last && (!FITS(target) || !FITS(tag)) -> goto nothing }
	:: atomic { !told -> up!LEAVES, turn; told = true; goto look }
	:: atomic { told && !last -> last = true; goto look }
	:: atomic { broken -> goto dead }
	fi;
move:	atomic {
		assert(!freed);
		assert(now != 0 && now == COPY(word));
		assert(now == data);
		assert(!moved);
		moved = true;
		word = 0;
		up!DONE, next;
		next++;
		goto look
	};
nothing:
	atomic {
		word = 0;
		if
		:: !last -> goto look
		:: else
		fi
	};
	atomic {
		assert(!freed);
		if
		:: BREAK == 11 -> up!CAME, turn
		:: else
		fi;
		up!GONE, turn;
		turn++;
		next = 0;
		last = false;
		told = false;
		goto end
	};
dead:	atomic {
		next = 0;
		word = 0;
		last = false;
		told = false
	}
}

/* ------------------------------------------------------------------ trips */

/* Or it rests; or a launch fails, as it does when TRIPS are over. */
inline send_for()
{
	if
	:: atomic { leaves == trip && launched < TRIPS && !broken &&
			MAY_STORE(cpu) ->
		fenced[cpu] = false;
		trip++;
		launched++ }
	:: skip
	fi
}

/* ----------------------------------------------------------------- orders */

/* 1: no fence before; 2: none behind; 8: the last word by a locked store */
inline write_words(nr, copy)
{
	atomic {
		MAY_STORE(cpu) && (IS_EMPTY(cpu) || BREAK == 1) ->
		wc_target[cpu] = WORD(nr, copy);
		if
		:: BREAK != 8 -> wc_tag[cpu] = WORD(nr, copy)
		:: else
		fi;
		fenced[cpu] = BREAK != 2
	}
}

/* cf_aperture_settle */
inline settle()
{
	atomic { IS_EMPTY(cpu) -> down[BUS(cpu)]!READ, cpu };
	atomic { is_back[cpu] -> is_back[cpu] = false }
}

/* Where they are not, there is a trip that will end, or has just ended. */
inline all_are_gone(yes)
{
	seen = came;
	atomic {
		yes = seen == gone;
		assert(yes || seen != came || turn <= launched || nempty(up));
		seen = 0
	}
}

/* 12: keeps its number; 10: a new number. 3: is not read back; 4: there is no
 * fence before that, so that it may be answered with what the CPU has just
 * written; 5: none behind, so that what is asked next may be asked first */
inline take_back(yes)
{
	write_words(number - (BREAK != 12), 0);
	if
	:: BREAK == 3
	:: BREAK == 4 && wc_tag[cpu] != 0
	:: BREAK == 5 -> IS_EMPTY(cpu)
	:: BREAK != 3 && BREAK != 5 -> settle()
	fi;
	all_are_gone(yes);
	if
	:: !yes ->
		if
		:: BREAK == 10 -> number++
		:: else
		fi;
		write_words(number, copy)
	:: else
	fi
}

/* 7: leaves it to whatever comes first */
inline make_aperture()
{
	atomic { wc_target[cpu] = WORD(0, 0); wc_tag[cpu] = WORD(0, 0) };
	if
	:: BREAK != 7 -> settle()
	:: else
	fi;
	ready = true
}

/* ------------------------------------------------------------------ owners */

/* It is under way, or it is there. */
#define MINE_IS_LOST (done != number && (!IS_EMPTY(cpu) && !fenced[cpu] || \
	QUIET && (target != WORD(number, copy) || tag != WORD(number, copy))))

proctype thread(bit cpu)
{
	byte copy, number, seen;
	bool yes;

	if
	:: cpu == 0 -> make_aperture()
	:: cpu == 1 -> ready
	fi;
take:	if
	:: atomic { !taken && dealt < COPIES && MAY_STORE(cpu) -> taken = true }
	:: atomic { leaves == trip && launched < TRIPS -> skip };
		send_for();
		goto take
	:: atomic { (dealt == COPIES || lost) && MAY_STORE(cpu) -> goto out }
	fi;
	/* cf_express_fill; then the memory is gone, say, or it is ordered */
fill:	atomic { MAY_STORE(cpu) ->
		dealt++;
		copy = dealt;
		now = copy;
		fenced[cpu] = false;
		wc_data[cpu] = copy };
	if
	:: goto next
	:: number = 1 + done
	fi;
	write_words(number, copy);
	/* wait_done: what it would see again and again is left out */
wait:	if
	:: done == number -> goto answer
	:: atomic { MINE_IS_LOST -> assert(false) }
	:: leaves == trip
	:: atomic { hasty || broken -> goto give_up }
	fi;
	send_for();
	if
	:: atomic { leaves != trip -> goto wait }
	:: leaves == trip
	fi;
give_up:
	if
	:: done == number -> goto answer
	:: done != number
	fi;
	take_back(yes);
	/* all are gone: what is not done now will not be; 13: does not ask */
	if
	:: atomic { !yes && !broken -> goto give_up }
	:: !yes && broken -> goto lose
	:: yes && done == number && BREAK != 13 -> goto answer
	:: yes && (done != number || BREAK == 13)
	fi;
	/* -ENOTSUP: the memory is its caller's again */
	atomic { assert(!moved); goto next };
answer:	assert(moved);
next:	atomic {
		now = 0;
		moved = false;
		yes = false;
		number = 0;
		copy = 0;
		if
		:: dealt < COPIES -> goto fill /* a hop is his for many */
		:: BREAK != 6 -> fenced[cpu] = true
		:: BREAK == 6 /* no fence as it is left */
		fi
	};
leave:	atomic { MAY_STORE(cpu) -> taken = false; goto take };
	/* a CUDA error: nobody leaves the seat; 16: he does */
lose:	atomic {
		copy = 0;
		number = 0;
		yes = false;
		if
		:: BREAK == 16 -> now = 0; goto leave
		:: else -> lost = true
		fi
	};
	MAY_STORE(cpu);
out:	threads--
}

/* ------------------------------------------------------------------ close */

/* cf_trips_fini, which ends the aperture: 14: does not wait for the stream; 17:
 * nor looks at the board, where the context is dead. To unmap it interrupts the
 * CPUs, and that empties their buffers. */
active proctype closer()
{
	atomic {
		if
		:: hasty = true
		:: !DEATH
		fi;
		run thread(0);
		run thread(1)
	};
	threads == 0;
	IS_EMPTY(0) && IS_EMPTY(1);
	if
	:: atomic { !broken && (turn > launched && empty(up) || BREAK == 14) &&
			nfull(down[0]) -> down[0]!FREE, 0 }
	:: atomic { broken && (gone == trip || BREAK == 17) && nfull(down[0]) ->
		down[0]!FREE, 0 }
	:: turn <= launched || broken /* CLOSE_NS: it stays */
	fi
}
