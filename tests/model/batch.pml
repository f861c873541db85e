/* SPDX-License-Identifier: Apache-2.0
 *
 * batch - a batch of NR entries: submit, load, status, cancel, destroy, and
 * the close of the driver, all at once.
 *
 * The names are those of src/engine (batch.c, batch_carry.c, submission.c,
 * submission_take.c, events.c, offers.c, worker.c, working.c). Nothing sleeps
 * under a lock there, so a critical section is one atomic step here, and what
 * is done without a lock, or by an atomic word, is one of its own. Other
 * batches are there by what they do to this one: they may have all offers, and
 * may want its workers at any time. Spin tries all orders of the steps: nobody
 * waits for ever; each entry ends exactly once and leaves an event or is
 * dropped; a load is over exactly once, and nobody carries it then; no entry
 * is touched once a cancel has returned, no submission once it is freed, and
 * no event is posted once the batch is gone.
 *
 * BREAK does one step wrong; each must be found (tests/model/run.py).
 */
#ifndef NR
#define NR 3
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#define CARRIERS 2 /* sub->carriers */
#define SERIAL 2   /* the first entries: a sort with one carrier at a time */
#ifndef BREAK
#define BREAK 0
#endif

mtype = { WAITS, TAKEN, ENDED };
mtype = { NONE, MORE, FULL }; /* enum cf_left */

mtype entry[NR];  /* on its list, off it, over */
byte ends;	  /* entries that ended */
byte told;	  /* those that became an event or were dropped */

/* struct cf_events */
byte pending, ready, dropping;
bool over, events_closed;

/* struct cf_submission, and live_lock's count */
bool linked, freed, submitted, busy;
byte refs, nr_live;

/* the word of the load's offer; who carries, and how often it was over */
bool offer_taken, offer_over;
byte inside, wanted;
byte carrying, overs;

/* struct cf_batch */
bool live = true;
byte batch_refs;

/* workers */
byte tasks, workers_gone;
bool ending;

/* Caller has taken it off the list. */
inline end_entry(i)
{
	atomic {
		assert(entry[i] == TAKEN);
		assert(!events_closed);
		entry[i] = ENDED;
		ends++
	}
}

inline submission_put()
{
	if
	:: atomic { refs > 1 -> refs-- }
	:: atomic {
		refs <= 1 ->
		assert(refs == 1 && !freed && !linked);
		refs = 0;
		freed = true };
		if
		:: BREAK == 2 -> skip /* nobody is told */
		:: else -> nr_live--
		fi
	fi
}

/* cf_submission_take: k is NR where there is none */
inline submission_take(k)
{
	atomic {
		assert(!freed && overs == 0);
		k = 0;
		do
		:: k < NR && entry[k] != WAITS -> k++
		:: k < SERIAL && entry[k] == WAITS && busy -> k++
		:: else -> break
		od;
		if
		:: k < NR ->
			busy = busy || k < SERIAL;
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

/* cf_submission_done */
inline submission_done(k)
{
	atomic {
		assert(!freed && overs == 0);
		busy = busy && (k >= SERIAL || BREAK == 17); /* keeps its place */
		k = 0
	}
}

/* cf_events_post, of one entry */
inline events_post()
{
	atomic {
		assert(!events_closed && pending > 0);
		if
		:: !dropping -> ready++
		:: else
		fi;
		told++;
		if
		:: BREAK == 5 && more -> skip /* one end is not counted */
		:: else -> pending--
		fi
	}
}

/* cf_offer_leave_load: last is what it returns */
inline offer_leave_load()
{
	atomic {
		assert(inside > 0);
		inside--;
		carrying--;
		if
		:: left == NONE ->
			offer_over = true;
			if
			:: BREAK == 12 -> skip /* others may still join */
			:: else -> wanted = 0
			fi
		:: left == MORE && BREAK != 13 && /* 13: its place is lost */
		   (!offer_over || BREAK == 8) -> /* 8: wanted again */
			wanted++
		:: else
		fi;
		assert(inside + wanted <= CARRIERS);
		/* 9: over by each who leaves */
		last = offer_over && (inside == 0 || BREAK == 9)
	};
	if
	:: BREAK == 11 -> last = offer_over && inside == 0 /* looks later */
	:: else
	fi
}

/* cf_offer_end */
inline offer_end()
{
	atomic {
		if
		:: BREAK == 16 -> skip /* nobody may have it */
		:: else ->
			offer_taken = false;
			offer_over = false;
			inside = 0;
			wanted = 0
		fi
	}
}

/* cf_batch_over */
inline batch_over()
{
	atomic { overs++; assert(overs == 1 && carrying == 0) };
	if
	:: BREAK == 10 -> skip /* keeps the reference */
	:: else -> submission_put()
	fi
}

/* carry_load and run_task, by the workers' loop */
proctype worker()
{
	byte k, i;
	bool more, alone, last;
	mtype left = NONE;

idle:	if
	:: atomic {
		wanted > 0 -> /* cf_offers_join */
		wanted--;
		inside++;
		carrying++ }
	:: atomic {
		tasks > 0 -> /* take_task */
		tasks--;
		alone = true;
		carrying++ }
	:: atomic { ending -> workers_gone++ } -> goto gone
	fi;
	/* cf_batch_carry */
take:	submission_take(k);
	if
	:: k == NR ->
		k = 0;
		/* 14: what waits for a place is forgotten */
		left = (more && BREAK != 14 -> FULL : NONE);
		goto leave
	:: else
	fi;
	/* cf_request_run, then cf_batch_end: references back, then the event */
	end_entry(k);
	events_post();
	submission_done(k);
	if
	:: more -> left = MORE /* cf_workers_are_wanted, for another batch */
	:: goto take
	fi;
leave:	if
	:: !alone ->
		offer_leave_load();
		if
		:: last -> offer_end()
		:: else
		fi
	:: alone -> /* cf_batch_carry_alone */
		atomic {
			assert(left != FULL);
			last = left != MORE || BREAK == 15; /* not again */
			carrying--;
			tasks = tasks + !last /* cf_workers_post */
		}
	fi;
	if
	:: last -> batch_over()
	:: else
	fi;
	atomic { more = false; alone = false; last = false; left = NONE };
	goto idle;
gone:	skip
}

/* cf_batch_cancel */
inline batch_cancel()
{
	atomic { dropping++ };	/* cf_events_drop_begin */
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
				:: else /* 6: left for a worker to take too */
				fi;
				i++
			:: else -> break
			od;
			assert(!freed);
			refs++;
			linked = false;
			stripped = true;
			i = 0
		:: else
		fi
	};
	if
	:: stripped ->
		do
		:: i < NR && mine[i] -> end_entry(i); mine[i] = false; i++
		:: i < NR && !mine[i] -> i++
		:: i == NR -> i = 0; break
		od;
		/* cf_events_forget */
		atomic {
			assert(pending >= nr);
			pending = pending - nr;
			told = told + nr;
			nr = 0;
			stripped = false
		};
		submission_put()
	:: else
	fi;
	/* cf_events_drop_end */
	atomic {
		pending == 0 || BREAK == 7; /* 7: does not wait */
		assert(linked || ends == NR || !submitted);
		ready = 0;
		dropping--
	}
}

/* A thread that submits, and takes what there is until all is over. */
proctype client()
{
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
	/* cf_submission_start */
	atomic { linked = true; submitted = true };
	if
	:: BREAK == 1 -> skip /* a load without a reference */
	:: else -> refs++
	fi;
	if
	:: offer_taken = true;	 /* cf_offer_take */
	   wanted = wanted + CARRIERS /* cf_offer_open */
	:: tasks++ /* too many loads: cf_workers_post */
	fi;
	submission_put();
	/* cf_events_take, until nothing is pending */
	do
	:: atomic {
		ready > 0 || pending == 0 || over;
		assert(!events_closed);
		if
		:: over -> break
		:: !over && ready > 0 -> ready--
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
	assert(!submitted || overs == 1);
	assert(pending == 0 && tasks == 0 && refs == 0);
	assert(!offer_taken && inside == 0 && wanted == 0 && carrying == 0);
	assert(told == ends)
}
