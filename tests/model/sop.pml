/* SPDX-License-Identifier: Apache-2.0
 *
 * sop - operations of one stream: submission, bell or host function, gate,
 * mark, failures of the driver half way, the close, and a context that dies.
 *
 * The names are those of src/engine (sop, sops, submit, bell, dock). What is
 * done under sops.lock or docks.lock is one atomic step; words, bells and the
 * watch's flags have no lock, so each access is one. Proved: an operation that
 * was accepted is carried or failed, and told, once, before its stream is past
 * its gate; one that was refused is not; nobody and no stream waits for ever; a
 * page of words is given to another only when its stream is past it; nothing
 * runs once the close has returned; no stream meets words that are gone; the
 * watch is one worker's, or a task, or adrift, and never two of these; and
 * while it is adrift somebody is bound to look for it before he carries.
 *
 * What a stream waits for and is past by is a gate and a mark, or a ferry that
 * rings: its end and where it has left are the same two words here.
 *
 * BELLS 0: host functions. STREAMS 2: operations in turn in two streams, so
 * that two bells ring at once; TROUBLE 0: without a driver that says no, a
 * context that dies and a stream that comes late, which are done with one
 * stream: all at once would be too many states. How long a thread without news
 * looks is not modelled: one that lingers may leave at any time. Boards are
 * one.
 *
 * BREAK leaves out one step; each must be found (tests/model/run.py).
 */
#ifndef OPS
#define OPS 2
#endif
#ifndef BREAK
#define BREAK 0
#endif
#ifndef BELLS
#define BELLS 1
#endif
#ifndef STREAMS
#define STREAMS 1
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef TROUBLE
#define TROUBLE 1
#endif
#define SOPS 2

mtype = { QUEUED, BEGUN, DONE, GIVEN_UP };	/* enum cf_sop_state */
/* What a stream is given: a bell with its wait and mark, which is a kernel or
 * one entry; a call; a wait with its mark. */
mtype = { RING, CALL, WAIT };

/* struct cf_sop, its words and its bell */
mtype state[SOPS];
bool held[SOPS], out[SOPS], shut_gate[SOPS];
byte ticket[SOPS], passed[SOPS], expected[SOPS], rung[SOPS], op_of[SOPS];

/* operations, from the client's side */
bool accepted[OPS], over[OPS];
byte told[OPS];

/* sops, bells, workers, docks */
bool open = true, closed, words_gone, dead;
byte inside, begun, armed, watchers;
bool watched, bells_lock, adrift;
byte lingering;
byte watches;		       /* tasks: to watch */
chan runs = [SOPS] of { byte }; /* tasks: to carry */
chan stream[STREAMS] = [2 * OPS] of { mtype, byte, byte };
bool client_gone;
bool late; /* what the stream does before all this lasts until the close */

/* What no code knows: somebody has the watch; is about to know whether it is
 * taken; will look whether it is adrift before he does anything else. */
bool kept;
byte passing, lookers;
#define ALL_EMPTY (empty(stream[0]) && empty(stream[STREAMS - 1]))

/* go_home_locked, cf_dock_give_back */
inline go_home_locked(s, marked)
{
	assert(out[s]);
	if
	:: !marked -> passed[s] = ticket[s]
	:: else
	fi;
	out[s] = false
}

/* run_over_locked */
inline run_over_locked(s)
{
	if
	:: held[s] && BREAK != 3 -> state[s] = DONE
	:: else -> go_home_locked(s, true)
	fi
}

/* finish: tell, then open_gate; lost: nothing is written */
inline finish(s, is_lost)
{
	if
	:: !is_lost && BREAK != 4 -> told[op_of[s]]++
	:: else
	fi;
	atomic {
		assert(!closed || !BELLS);
		assert(!words_gone && state[s] == BEGUN);
		over[op_of[s]] = true;
		shut_gate[s] = false;
		run_over_locked(s);
		begun--
	};
	if
	:: BREAK == 4 && !is_lost -> told[op_of[s]]++ /* after the gate */
	:: else
	fi
}

/* begin: went is false where its submitter gave it up */
inline begin(s, went, was_open)
{
	atomic {
		assert(state[s] != BEGUN && state[s] != DONE);
		went = state[s] != GIVEN_UP;
		was_open = open;
		if
		:: !went -> go_home_locked(s, false)
		:: else ->
			state[s] = BEGUN;
			begun++;
			if
			:: !BELLS -> shut_gate[s] = true
			:: else
			fi
		fi
	}
}

/* ------------------------------------------------------------------ bells */

/* take: s is SOPS where it is somebody else's */
inline take(s)
{
	if
	:: BREAK == 1 -> /* seen, and cleared later */
		if
		:: expected[s] == 0 -> s = SOPS
		:: else -> atomic { expected[s] = 0; armed-- }
		fi
	:: else ->
		atomic {
			if
			:: expected[s] == 0 -> s = SOPS
			:: else -> expected[s] = 0; armed--
			fi
		}
	fi
}

/* find: any that is armed, or has rung; SOPS: none */
inline find(s, must_ring)
{
	atomic {
		s = 0;
		do
		:: s < SOPS && (expected[s] == 0 ||
				(must_ring && rung[s] != expected[s])) -> s++
		:: else -> break
		od;
		if
		:: s < SOPS && BREAK != 1 -> expected[s] = 0; armed--
		:: else
		fi
	};
	if
	:: BREAK == 1 && s < SOPS -> take(s)
	:: else
	fi
}

/* stop_if_quiet: a lock comes and goes with the first and last step under it */
inline stop_if_quiet(quiet)
{
	quiet = false;
	if
	:: armed == 0 ->
		atomic { !bells_lock -> bells_lock = true; watched = false };
		if
		:: BREAK == 6 -> quiet = true /* does not look again */
		:: else -> quiet = armed == 0
		fi;
		atomic {
			watched = !quiet;
			kept = kept && !quiet;
			bells_lock = false
		}
	:: else
	fi
}

/* Whoever gets the watch is the only one who has it. */
inline get_watch()
{
	assert(!kept && !adrift && watches == 0);
	kept = true
}

/* take_watch: it is loaded first, which makes no difference */
inline take_watch(got)
{
	if
	:: BREAK == 14 -> /* no exchange */
		got = adrift;
		if
		:: got -> atomic { adrift = false; get_watch() }
		:: else
		fi
	:: else ->
		atomic {
			got = adrift;
			adrift = false;
			if
			:: got -> get_watch()
			:: else
			fi
		}
	fi
}

/* 12: looks at who lingers before, and not after; 13: does not take it back */
inline pass_on(mine)
{
	if
	:: BREAK == 12 -> mine = lingering == 0
	:: else
	fi;
	atomic { assert(kept); kept = false; adrift = true; passing++ };
	atomic {
		if
		:: BREAK != 12 -> mine = lingering == 0
		:: else
		fi;
		if
		:: !mine -> passing--
		:: else
		fi
	};
	if
	:: mine ->
		if
		:: BREAK != 13 -> take_watch(mine)
		:: else
		fi;
		atomic {
			passing--;
			if
			:: mine -> kept = false; mine = false; watches++
			:: else
			fi
		}
	:: else
	fi
}

/* cf_bell_watch */
inline bell_watch(mine)
{
	if
	:: !watched ->
		atomic {
			!bells_lock;
			mine = !watched && armed > 0;
			if
			:: mine -> bells_lock = true; watched = true; get_watch()
			:: else
			fi
		};
		if
		:: mine -> pass_on(mine); bells_lock = false
		:: else
		fi
	:: else
	fi
}

/* post_rest */
inline post_rest(more)
{
	do
	:: find(more, true);
		if
		:: more == SOPS -> break
		:: else ->
			begin(more, went, was_open);
			if
			:: went && (was_open || BREAK == 16) -> runs!more
			:: went && !was_open && BREAK != 16 ->
				finish(more, false)
			:: else
			fi
		fi
	od
}

/* What who has the watch does with what has rung, before he carries one. */
inline hand_on(more)
{
	post_rest(more);
	stop_if_quiet(flag);
	if
	:: !flag -> pass_on(flag)
	:: else
	fi
}

/* keep_watch: s is SOPS, or has rung; the watch is not this one's any more */
inline keep_watch(s, more, asks)
{
	do
	:: find(s, true);
		if
		:: s < SOPS -> hand_on(more); break
		:: else
		fi;
		stop_if_quiet(flag);
		if
		:: flag -> break
		:: else
		fi;
		/* no news: some time goes by */
		if
		:: armed == 0
		:: dead -> asks = true; pass_on(flag); break
		:: len(runs) > 0 -> pass_on(flag); break
		:: expected[0] && rung[0] == expected[0]
		:: expected[1] && rung[1] == expected[1]
		fi
	od
}

/* linger: looks at bells and for the watch, until something comes, or other
 * work, or the time is over */
inline linger(s, more, has)
{
	atomic { lingering++; lookers++ };
	s = SOPS;
	if
	:: find(s, true)
	:: take_watch(has)
	:: true
	fi;
	lingering--;
	/* 11: does not look once more; 15: only where no bell has rung */
	atomic {
		if
		:: !has && BREAK != 11 && (s == SOPS || BREAK != 15) ->
			take_watch(has)
		:: else
		fi;
		lookers--
	};
	if
	:: s < SOPS && has && BREAK != 17 -> has = false; hand_on(more)
	:: s < SOPS && has && BREAK == 17 -> has = false
	:: s < SOPS && !has -> post_rest(more)
	:: else
	fi
}

/* look_after_contexts */
inline look_after_contexts(more)
{
	do
	:: find(more, false);
		if
		:: more == SOPS -> break
		:: else ->
			begin(more, went, was_open);
			if
			:: went -> finish(more, true)
			:: else
			fi
		fi
	od
}

proctype worker()
{
	byte s, more;
	bool went, was_open, flag, has, asks;

end:	do
	:: atomic { runs?s -> assert(!closed) }; finish(s, false); s = 0
	:: atomic { watches > 0 -> watches--; get_watch(); has = true };
		watchers++; /* while watched is still true */
		do
		:: if
			:: has -> has = false; keep_watch(s, more, asks)
			:: else
			fi;
			if
			:: asks -> look_after_contexts(more); asks = false
			:: else
			fi;
			if
			:: s == SOPS -> break
			:: else
			fi;
			begin(s, went, was_open);
			if
			:: went -> finish(s, false)
			:: else
			fi;
			linger(s, more, has);
			if
			:: s == SOPS && !has -> break
			:: else
			fi
		od;
		atomic { watchers--; s = 0; more = 0; went = 0; was_open = 0; flag = 0 }
	od
}

/* The watch is never lost, nor adrift where nobody looks for it at once. */
active proctype witness()
{
end:	atomic {
		(watched && !kept && !adrift && watches == 0) ||
		(adrift && passing == 0 && lookers == 0) -> assert(false)
	}
}

/* ----------------------------------------------------------------- stream */

/* The GPU's side, and the driver's thread for callbacks. */
proctype gpu(byte k)
{
	mtype what;
	byte s, t;
	bool went, was_open;

	!late || closed;
end:	do
	:: dead -> break
	:: atomic {
			!dead && nempty(stream[k]) -> stream[k]?<what, s, t>;
			assert(what == CALL || !words_gone);
			if
			:: what == RING -> rung[s] = t
			:: else
			fi
		};
		if
		:: what == CALL ->
			begin(s, went, was_open);
			if
			:: went && was_open -> runs!s
			:: went && !was_open -> finish(s, false)
			:: else
			fi
		:: what != CALL ->
			if
			:: atomic { !shut_gate[s] ->
				assert(!words_gone);
				assert(ticket[s] == t || BREAK == 4);
				assert(dead || told[op_of[s]] == 1 ||
				       !accepted[op_of[s]]) }
			:: dead -> break
			fi;
			if
			:: dead -> break
			:: atomic { !dead ->
				assert(!words_gone && ticket[s] == t);
				passed[s] = t }
			fi
		fi;
		atomic { stream[k]?what, s, t; s = 0; t = 0; went = 0; was_open = 0 }
	od
}

/* ----------------------------------------------------------------- client */

/* cf_sop_stop_or_wait: the stream will not wait */
inline stop_or_wait(s)
{
	atomic {
		if
		:: state[s] == QUEUED ->
			state[s] = GIVEN_UP;
			held[s] = false;
			shut_gate[s] = false
		:: else -> accepted[op] = true
		fi
	};
	if
	:: accepted[op] ->
		atomic { state[s] == DONE -> go_home_locked(s, false) }
	:: else
	fi
}

/* cf_sop_let_go */
inline let_go(s)
{
	atomic {
		held[s] = false;
		if
		:: state[s] == DONE && BREAK != 2 -> go_home_locked(s, true)
		:: else
		fi
	}
}

/* ring_in_stream */
inline ring_in_stream(s)
{
	atomic { shut_gate[s] = true; armed++; expected[s] = ticket[s] };
	if
	:: atomic { accepted[op] = true;
			stream[op % STREAMS]!RING, s, ticket[s] };
		bell_watch(mine);
		let_go(s)
	:: TROUBLE -> /* the driver says no: take_back */
		k = s;
		take(k);
		if
		:: k == SOPS -> stop_or_wait(s)
		:: else ->
			shut_gate[s] = false;
			atomic { go_home_locked(s, false) }
		fi
	fi
}

/* put_in_stream */
inline put_in_stream(s)
{
	if
	:: stream[op % STREAMS]!CALL, s, ticket[s];
		if
		:: atomic { accepted[op] = true;
				stream[op % STREAMS]!WAIT, s, ticket[s] };
			let_go(s)
		:: true -> stop_or_wait(s) /* no wait behind it */
		fi
	:: atomic { go_home_locked(s, false) } /* cf_sop_never_mind */
	fi
}

proctype client()
{
	byte op, s, k;
	bool mine;

	do
	:: op == OPS -> break
	:: op < OPS ->
		/* cf_sops_enter */
		if
		:: atomic { open -> inside++ }
		:: !open -> break
		fi;
		/* cf_dock_lease, fill */
		atomic {
			s = 0;
			do
			:: s < SOPS && (out[s] || (passed[s] != ticket[s] &&
						   BREAK != 5)) -> s++
			:: else -> break
			od;
			if
			:: s < SOPS ->
				out[s] = true;
				ticket[s]++;
				state[s] = QUEUED;
				held[s] = true;
				op_of[s] = op
			:: else
			fi
		};
		if
		:: s == SOPS -> skip
		:: s < SOPS && BELLS -> ring_in_stream(s)
		:: s < SOPS && !BELLS -> put_in_stream(s)
		fi;
		atomic { inside--; op++ } /* cf_sops_leave */
	od;
	client_gone = true
}

/* ------------------------------------------------------------------ close */

/* cf_streams_close: cf_sops_close, cf_docks_close */
active proctype closer()
{
	byte s;
	bool went, was_open;

	atomic {
		s = 0;
		do
		:: s < SOPS -> state[s] = DONE; s++
		:: else -> break
		od;
		run worker();
		run worker();
		if
		:: WORKERS > 2 -> run worker()
		:: else
		fi;
		run gpu(0);
		if
		:: STREAMS > 1 -> run gpu(1)
		:: else
		fi;
		run client()
	};
	/* at once, or when all is done, or while the stream is elsewhere, or the
	 * context dies, at any time */
	if
	:: true
	:: true -> client_gone && ALL_EMPTY && begun == 0
	:: TROUBLE -> late = true
	:: TROUBLE -> dead = true
	fi;
	open = false;
	inside == 0;
	/* cf_bells_silence(shut) */
	do
	:: BREAK == 7 -> break
	:: else ->
		find(s, false);
		if
		:: s == SOPS -> break
		:: else ->
			begin(s, went, was_open);
			if
			:: went -> finish(s, dead)
			:: else
			fi
		fi
	od;
	begun == 0 || BREAK == 9;
	/* cf_bells_close; 10: may miss who has taken a bell and not begun */
	!watched && (watchers == 0 || BREAK == 10);
	closed = true;
	/* wait_home: the docks go if all are home and passed, else they stay */
	atomic {
		if
		:: BREAK != 8 && (out[0] || out[1] || passed[0] != ticket[0] ||
				  passed[1] != ticket[1])
		:: else -> words_gone = true
		fi
	};
	/* and when the stream has come to its end, dead or not: */
	client_gone && (dead || (ALL_EMPTY && begun == 0));
	s = 0;
	do
	:: s < OPS ->
		assert(told[s] <= 1);
		assert(accepted[s] || told[s] == 0);
		assert(!accepted[s] || told[s] == 1 || dead);
		s++
	:: else -> break
	od;
	assert(dead || (!out[0] && !out[1] && passed[0] == ticket[0] &&
			passed[1] == ticket[1]))
}
