/* SPDX-License-Identifier: Apache-2.0
 *
 * feed - one piece, its feed, and a crew that comes and goes.
 *
 * The names are those of src/core/feed.c, cf_workers_run (src/engine/worker.c)
 * and src/engine/offers.c: parts are claimed by one atomic add, a part that
 * fails sets the limit, helpers join while the job wants some, and the caller
 * withdraws the job and waits for the helpers that joined. To join, to leave
 * and to withdraw are one step each, for one word of the offer has how many
 * helpers are wanted and how many are in; no helper looks at the job before it
 * has joined. Proved: every part before the first missing byte is carried once,
 * the result is that byte, and no helper touches the job after the caller has
 * returned.
 */
#ifndef PARTS
#define PARTS 4
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef BREAK
#define BREAK 0
#endif

byte next, limit = PARTS; /* of the feed, in parts */
byte carried[PARTS];
bool failed[PARTS];
byte wanted, helpers;
bool queued, returned;

inline carry_parts()
{
	do
	:: atomic {
		/* cf_feed_next */
		n = next;
		if
		:: BREAK != 1 -> next++
		:: else /* 1: read, and added later */
		fi };
		if
		:: BREAK == 1 -> next = n + 1
		:: else
		fi;
		if
		:: n >= limit -> break
		:: else
		fi;
		assert(!returned);
		atomic { carried[n]++; assert(carried[n] == 1) };
		if
		:: skip /* it made it */
		:: atomic {
			/* cf_feed_short */
			failed[n] = true;
			if
			:: n < limit || BREAK == 2 -> limit = n
			:: else
			fi }
		fi
	od
}

proctype worker()
{
	byte n;

	if
	:: atomic {
		/* cf_offers_join; queued: opened and not withdrawn */
		queued && wanted > 0 ->
		wanted--;
		helpers++;
		queued = wanted > 0 };
		carry_parts();
		atomic { helpers-- } /* cf_offer_leave */
	:: returned -> skip
	fi
}

active proctype caller()
{
	byte n, i;

	atomic {
		run worker();
		run worker();
		wanted = WORKERS;
		queued = true
	};
	carry_parts();
	/* cf_offer_withdraw; then it waits for those who joined */
	atomic {
		queued = false;
		wanted = 0
	};
	helpers == 0 || BREAK == 3;
	returned = true;
	/* cf_feed_result */
	i = 0;
	do
	:: i < limit -> assert(carried[i] == 1 && !failed[i]); i++
	:: i >= limit -> break
	od;
	assert(limit == PARTS || failed[limit])
}
