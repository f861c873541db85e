/* SPDX-License-Identifier: Apache-2.0
 *
 * batch - a batch of NR entries: submit, tasks, status, cancel, destroy, and
 * the close of the driver, all at once.
 *
 * The names are those of src/engine (batch.c, batch_carry.c, submission.c,
 * submission_take.c, events.c, worker.c). Nothing sleeps under a lock there,
 * so a critical section is one atomic step here, and what is done without a
 * lock is one of its own. Spin tries all orders of the steps: nobody waits
 * for ever; each entry ends exactly once and leaves an event or is dropped;
 * no entry is touched once a cancel has returned, no submission once it is
 * freed, and no event is posted once the batch is gone.
 *
 * BREAK leaves out one step; each must be found (tests/model/run.py).
 */
#ifndef NR
#define NR 3
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#define CARRIERS 2 /* sub->carriers */
#ifndef BREAK
#define BREAK 0
#endif

mtype = { WAITS, TAKEN, ENDED };

mtype entry[NR];  /* on its list, off it, over */
byte ends;	  /* entries that ended */
byte events_made, events_seen, events_dropped;

/* struct cf_events */
byte pending, ready, dropping;
bool over, events_closed;

/* struct cf_submission, and live_lock's count */
bool linked, freed, submitted;
byte refs, posted, nr_live;

/* struct cf_batch */
bool live = true;
byte batch_refs;

/* workers */
byte tasks, workers_gone;
bool ending;

/* Caller has taken it off the list. */
inline end_entry(i)
{
	assert(entry[i] == TAKEN);
	assert(!events_closed);
	entry[i] = ENDED;
	ends++
}

inline submission_post()
{
	atomic {
		assert(!freed);
		if
		:: posted < CARRIERS ->
			posted++;
			if
			:: BREAK == 1 -> skip /* a task without a reference */
			:: else -> refs++
			fi;
			tasks++
		:: else
		fi
	}
}

inline submission_put()
{
	atomic {
		assert(refs > 0 && !freed);
		refs--;
		if
		:: refs == 0 ->
			freed = true;
			if
			:: BREAK == 2 -> skip /* nobody is told */
			:: else -> nr_live--
			fi
		:: else
		fi
	}
}

/* cf_submission_take: k is NR where there is none */
inline submission_take(k)
{
	atomic {
		assert(!freed);
		k = 0;
		do
		:: k < NR && entry[k] != WAITS -> k++
		:: else -> break
		od;
		if
		:: k < NR ->
			if
			:: BREAK == 3 -> skip /* it stays on the list */
			:: else -> entry[k] = TAKEN
			fi
		:: else
		fi;
		more = false;
		i = 0;
		do
		:: i < NR -> more = more || entry[i] == WAITS; i++
		:: else -> break
		od;
		linked = linked && more
	}
}

/* cf_events_post, of one entry */
inline events_post()
{
	atomic {
		assert(!events_closed && pending > 0);
		if
		:: !dropping -> ready++; events_made++
		:: else -> events_dropped++
		fi;
		if
		:: BREAK == 5 && more -> skip /* one end is not counted */
		:: else -> pending--
		fi
	}
}

/* cf_batch_carry, by the workers' loop */
proctype worker()
{
	byte k, i;
	bool first, more;

idle:	if
	:: atomic { tasks > 0 -> tasks-- }
	:: atomic { ending && tasks == 0 -> workers_gone++ } -> goto gone
	fi;
	first = true;
take:	submission_take(k);
	if
	:: k == NR ->
		submission_put();
		goto idle
	:: else
	fi;
	if
	:: first && more -> submission_post(); submission_post()
	:: else
	fi;
	first = false;
	/* cf_request_run, then end_group: references back, then the event */
	end_entry(k);
	events_post();
	if
	:: more && tasks > 0 -> tasks++; goto idle /* cf_workers_post(task) */
	:: else -> goto take
	fi;
gone:	skip
}

/* cf_batch_cancel */
inline batch_cancel()
{
	atomic { dropping++ };	/* cf_events_drop_begin */
	nr = 0;
	atomic {		/* cf_queue_strip, strip_locked */
		if
		:: linked ->
			i = 0;
			do
			:: i < NR ->
				mine[i] = entry[i] == WAITS;
				if
				:: mine[i] -> nr++
				:: else
				fi;
				if
				:: mine[i] && BREAK != 6 -> entry[i] = TAKEN
				:: else /* 6: left for a task to take too */
				fi;
				i++
			:: else -> break
			od;
			refs++;
			linked = false;
			stripped = true
		:: else
		fi
	};
	if
	:: stripped ->
		i = 0;
		do
		:: i < NR && mine[i] -> end_entry(i); mine[i] = false; i++
		:: i < NR && !mine[i] -> i++
		:: i == NR -> break
		od;
		submission_put();
		/* cf_events_forget */
		atomic {
			assert(pending >= nr);
			pending = pending - nr;
			events_dropped = events_dropped + nr
		}
	:: else
	fi;
	stripped = false;
	/* cf_events_drop_end */
	atomic {
		pending == 0 || BREAK == 7; /* 7: does not wait */
		assert(linked || ends == NR || !submitted);
		events_dropped = events_dropped + ready;
		events_made = events_made - ready;
		ready = 0;
		dropping--
	}
}

/* A thread that submits, and takes what there is until all is over. */
proctype client()
{
	bool mine_too;

	atomic {
		if
		:: live && BREAK == 4 -> skip /* without a reference */
		:: live && BREAK != 4 -> batch_refs++
		:: else -> goto gone
		fi
	};
	/* cf_submission_new, before what is pending is known */
	atomic { nr_live++; refs = 1 };
	/* cf_events_expect */
	atomic {
		dropping == 0 || over;
		if
		:: over -> refs = 0; freed = true; nr_live--; goto put
		:: else -> pending = pending + NR
		fi
	};
	atomic { linked = true; submitted = true };
	submission_post();
	submission_put();
	/* cf_events_take, until nothing is pending */
	do
	:: atomic {
		ready > 0 || pending == 0 || over;
		assert(!events_closed);
		if
		:: over -> break
		:: !over && ready > 0 -> ready--; events_seen++; events_made--
		:: !over && ready == 0 && pending == 0 -> break
		fi }
	od;
put:	if
	:: BREAK == 4 -> skip
	:: else -> batch_refs--
	fi;
gone:	skip
}

proctype canceller()
{
	byte i, nr;
	bool mine[NR], stripped;

	atomic {
		if
		:: live -> batch_refs++
		:: else -> goto gone
		fi
	};
	batch_cancel();
	atomic { batch_refs-- };
gone:	skip
}

/* The close of the driver: cf_batches_close, cf_workers_close */
active proctype closer()
{
	byte i, nr;
	bool mine[NR], stripped;

	atomic {
		i = 0;
		do
		:: i < NR -> entry[i] = WAITS; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < WORKERS -> run worker(); i++
		:: else -> break
		od;
		run client();
		run canceller()
	};
	/* retire_locked: no new references, and who sleeps is told */
	atomic { live = false };
	atomic { over = true };
	batch_cancel();
	batch_refs == 0;
	atomic { events_closed = true };
	nr_live == 0; /* cf_submissions_wait */
	atomic { ending = true };
	workers_gone == WORKERS;
	/* all of it ended, once, and there is nothing more to come */
	assert(!submitted || ends == NR);
	assert(!submitted || freed);
	assert(pending == 0 && tasks == 0 && refs == 0);
	assert(events_seen + events_made + events_dropped == ends)
}
