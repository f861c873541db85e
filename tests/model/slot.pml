/* SPDX-License-Identifier: Apache-2.0
 *
 * slot - a pool of slots: leases that wait, growth that may fail, a bound that
 * moves, and the close.
 *
 * The names are those of src/core/slot.c. What is done under pool->lock is one
 * atomic step here; a chunk is made without the lock. A condition variable is
 * its sleepers and the wakes they were given, so that a wake too few is found.
 * Proved: no carrier waits for ever, a slot has one leaser, there are never
 * more slots than the highest bound allows, ENOMEM is answered only where there
 * is no slot at all, and the pool is not touched once it is freed.
 *
 * BREAK leaves out one step; each must be found (tests/model/run.py).
 */
#ifndef CARRIERS
#define CARRIERS 3
#endif
#ifndef BREAK
#define BREAK 0
#endif
#define SLOTS 3 /* the highest bound, in slots */
#define CHUNK 2 /* chunk_slots */

mtype = { NOT_MADE, FREE, LEASED };

mtype slot[SLOTS];
byte max_slots = 2, nr_slots, nr_made, nr_leased;
byte sleepers, wakes;	/* of pool->freed */
byte requests, waiting; /* carriers at work; holding nothing, in a lease */
bool freed, closing;

inline cond_signal()
{
	if
	:: wakes < sleepers -> wakes++
	:: else
	fi
}

inline cond_broadcast()
{
	wakes = sleepers
}

/* The lock comes back with the wake; what is true then is looked at again. */
inline cond_sleep()
{
	atomic { wakes > 0 -> wakes--; sleepers-- }
}

/* take_locked: k is SLOTS where none is free */
inline take_locked(k, may_add)
{
	assert(!freed);
	may_add = 0;
	k = 0;
	do
	:: k < SLOTS && slot[k] != FREE -> k++
	:: else -> break
	od;
	if
	:: k < SLOTS ->
		nr_leased++;
		assert(nr_leased <= SLOTS);
		if
		:: BREAK == 5 -> skip /* it stays on the list */
		:: else -> slot[k] = LEASED
		fi
	:: k == SLOTS && max_slots > nr_slots ->
		may_add = max_slots - nr_slots;
		if
		:: may_add > CHUNK -> may_add = CHUNK
		:: else
		fi;
		if
		:: BREAK == 4 -> skip /* announced when it is there */
		:: else -> nr_slots = nr_slots + may_add
		fi
	:: else
	fi
}

/* grow: nr announced slots; k is SLOTS where there was no memory */
inline grow(k, nr)
{
	if
	:: atomic { /* no chunk */
		assert(!freed);
		k = SLOTS;
		if
		:: BREAK == 4 -> skip
		:: else -> nr_slots = nr_slots - nr
		fi;
		if
		:: BREAK == 2 -> skip /* nobody is told */
		:: else -> cond_broadcast()
		fi }
	:: atomic {
		assert(!freed);
		assert(nr_made + nr <= SLOTS);
		k = nr_made;
		nr_made = nr_made + nr;
		if
		:: BREAK == 4 -> nr_slots = nr_slots + nr
		:: else
		fi;
		slot[k] = LEASED;
		nr_leased++;
		i = 1;
		do
		:: i < nr -> slot[k + i] = FREE; i++
		:: else -> break
		od;
		cond_broadcast() }
	fi
}

/* cf_slot_lease */
inline slot_lease(k)
{
	do
	:: atomic {
		take_locked(k, nr);
		if
		:: k < SLOTS || nr > 0 -> break
		:: else -> sleepers++
		fi };
		cond_sleep()
	od;
	if
	:: k == SLOTS -> grow(k, nr)
	:: else
	fi;
	if
	:: k == SLOTS -> /* make do with what others give back */
		do
		:: atomic {
			assert(!freed);
			k = 0;
			do
			:: k < SLOTS && slot[k] != FREE -> k++
			:: else -> break
			od;
			if
			:: k < SLOTS ->
				take_locked(k, nr);
				break
			:: k == SLOTS && nr_slots == 0 && BREAK != 7 ->
				break /* -ENOMEM */
			:: else -> sleepers++ /* 7: not looked at */
			fi };
			cond_sleep()
		od
	:: else
	fi
}

/* cf_slot_try_lease */
inline slot_try_lease(k)
{
	atomic { take_locked(k, nr) };
	if
	:: k == SLOTS && nr > 0 -> grow(k, nr)
	:: else
	fi
}

inline slot_give_back(k)
{
	atomic {
		assert(!freed && slot[k] == LEASED && nr_leased > 0);
		slot[k] = FREE;
		nr_leased--;
		if
		:: BREAK == 1 -> skip /* nobody is told */
		:: else -> cond_signal()
		fi
	}
}

/* A request: its first slot, a second if it is free, and the way back. */
proctype carrier()
{
	byte a, b, nr, i;

	b = SLOTS;
	if
	:: atomic { !closing -> requests++ }
	:: closing -> goto gone
	fi;
	slot_lease(a);
	if
	:: a == SLOTS -> goto over
	:: else
	fi;
	if
	:: BREAK == 3 -> slot_lease(b) /* waits while it holds one */
	:: BREAK != 3 -> slot_try_lease(b)
	:: BREAK != 3 -> skip
	fi;
	slot_give_back(a);
	if
	:: b < SLOTS -> slot_give_back(b)
	:: else
	fi;
over:	atomic { requests-- };
gone:	skip
}

/* cf_pool_limit, from the setter of the configuration */
proctype setter()
{
	if
	:: atomic { !closing -> requests++ };
		if
		:: atomic { max_slots = 1; cond_broadcast() }
		:: atomic { max_slots = SLOTS; cond_broadcast() }
		fi;
		atomic { requests-- }
	:: closing -> skip
	fi
}

/* The close: no new requests, then none at all, then cf_pool_free. */
active proctype closer()
{
	byte i;

	atomic {
		i = 0;
		do
		:: i < SLOTS -> slot[i] = NOT_MADE; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < CARRIERS -> run carrier(); i++
		:: else -> break
		od;
		run setter()
	};
	closing = true;
	requests == 0 || BREAK == 6; /* 6: does not wait */
	atomic {
		freed = true;
		assert(nr_leased == 0 && sleepers == 0);
		assert(nr_made == nr_slots && nr_slots <= SLOTS);
		i = 0;
		do
		:: i < SLOTS -> assert(slot[i] == (i < nr_made -> FREE : NOT_MADE)); i++
		:: else -> break
		od
	}
}
