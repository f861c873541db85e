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
 * runs once the close has returned; and no stream meets words that are gone.
 *
 * BELLS 0: host functions. BREAK leaves out one step; each must be found
 * (tests/model/run.py).
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
#define SOPS 2
#define WORKERS 2

mtype = { QUEUED, BEGUN, DONE, GIVEN_UP };	/* enum cf_sop_state */
mtype = { RING, CALL, WAIT, MARK };		/* what a stream is given */

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
bool watched, bells_lock;
byte watches;		       /* tasks: to watch */
chan runs = [SOPS] of { byte }; /* tasks: to carry */
chan stream = [8] of { mtype, byte, byte };
bool stream_idle = true, client_gone;
bool late; /* what the stream does before all this lasts until the close */

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

/* stop_if_quiet */
inline stop_if_quiet(quiet)
{
	quiet = false;
	if
	:: armed == 0 ->
		atomic { !bells_lock -> bells_lock = true };
		watched = false;
		if
		:: BREAK == 6 -> quiet = true /* does not look again */
		:: else -> quiet = armed == 0
		fi;
		watched = !quiet;
		bells_lock = false
	:: else
	fi
}

/* cf_bell_watch */
inline bell_watch()
{
	if
	:: !watched ->
		atomic { !bells_lock -> bells_lock = true };
		if
		:: !watched && armed > 0 -> watched = true; watches++
		:: else
		fi;
		bells_lock = false
	:: else
	fi
}

proctype worker()
{
	byte s, more;
	bool went, was_open, quiet;

end:	do
	:: runs?s -> assert(!closed); finish(s, false)
	:: atomic { watches > 0 -> watches-- };
		watchers++; /* while watched is still true */
		do
		:: find(s, true);
			if
			:: s < SOPS -> break
			:: else
			fi;
			stop_if_quiet(quiet);
			if
			:: quiet -> watchers--; goto end
			:: else
			fi;
			if
			:: dead -> /* look_after_contexts */
				find(s, false);
				if
				:: s < SOPS ->
					begin(s, went, was_open);
					if
					:: went -> finish(s, true)
					:: else
					fi
				:: else
				fi
			:: else
			fi;
			/* no news: some time goes by */
			if
			:: armed == 0
			:: dead
			:: len(runs) > 0 -> watches++; watchers--; goto end
			:: expected[0] && rung[0] == expected[0]
			:: expected[1] && rung[1] == expected[1]
			fi
		od;
		/* hand_on */
		do
		:: find(more, true);
			if
			:: more == SOPS -> break
			:: else ->
				begin(more, went, was_open);
				if
				:: went -> runs!more
				:: else
				fi
			fi
		od;
		stop_if_quiet(quiet);
		if
		:: !quiet -> watches++
		:: else
		fi;
		begin(s, went, was_open);
		if
		:: went -> finish(s, false)
		:: else
		fi;
		watchers--
	od
}

/* ----------------------------------------------------------------- stream */

/* The GPU's side, and the driver's thread for callbacks. */
proctype gpu()
{
	mtype what;
	byte s, t;
	bool went, was_open;

	!late || closed;
end:	do
	:: dead -> break
	:: atomic { !dead && nempty(stream) ->
			stream?what, s, t; stream_idle = false };
		if
		:: what == RING -> assert(!words_gone); rung[s] = t
		:: what == CALL ->
			begin(s, went, was_open);
			if
			:: went && was_open -> runs!s
			:: went && !was_open -> finish(s, false)
			:: else
			fi
		:: what == WAIT ->
			assert(!words_gone);
			if
			:: !shut_gate[s] ->
				assert(ticket[s] == t || BREAK == 4);
				assert(dead || told[op_of[s]] == 1 || !accepted[op_of[s]])
			:: dead -> break
			fi
		:: what == MARK ->
			assert(!words_gone && ticket[s] == t);
			passed[s] = t
		fi;
		stream_idle = true
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
	shut_gate[s] = true;
	atomic { armed++; expected[s] = ticket[s] };
	if
	:: atomic { accepted[op] = true;
			stream!RING, s, ticket[s]; stream!WAIT, s, ticket[s];
			stream!MARK, s, ticket[s] };
		bell_watch();
		let_go(s)
	:: /* the driver says no: take_back */
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
	:: stream!CALL, s, ticket[s];
		if
		:: atomic { accepted[op] = true;
				stream!WAIT, s, ticket[s];
				stream!MARK, s, ticket[s] };
			let_go(s)
		:: true -> stop_or_wait(s) /* no wait behind it */
		fi
	:: atomic { go_home_locked(s, false) } /* cf_sop_never_mind */
	fi
}

proctype client()
{
	byte op, s, k;

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
		run gpu();
		run client()
	};
	/* at once, or when all is done, or while the stream is elsewhere, or the
	 * context dies, at any time */
	if
	:: true
	:: true -> client_gone && empty(stream) && stream_idle && begun == 0
	:: late = true
	:: dead = true
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
	client_gone && (dead || (empty(stream) && stream_idle && begun == 0));
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
