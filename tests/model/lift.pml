/* SPDX-License-Identifier: Apache-2.0
 *
 * lift - threads that each have bytes copied, in cars that many ride in.
 *
 * The names are those of src/core/lift.c: a thread that boards waits in line,
 * and if a car is idle takes along all that do. The first rider of a car
 * attends it: waits for its event, and sends it off with those that wait by
 * then before it lets its own riders out. What is under the lock is one step; a
 * rider is told by a semaphore. The GPU carries out copies in the order in
 * which the driver was asked for them, which need not be that of the lock.
 * Proved: each rider is let out, once, with all bytes copied, and not touched
 * after it has left; in the end all cars are idle.
 *
 * BREAK leaves out one step; each must be found (tests/model/run.py).
 */
#ifndef THREADS
#define THREADS 3
#endif
#ifndef RIDES
#define RIDES 2 /* of each */
#endif
#ifndef CARS
#define CARS 2
#endif
#ifndef FULL
#define FULL 2 /* riders */
#endif
#ifndef BREAK
#define BREAK 0
#endif

#define NO_CAR 255

/* Riders by their thread. */
byte row[THREADS], nr_waiting;
byte told[THREADS];	     /* the semaphore */
byte attends[THREADS];	     /* a car, or NO_CAR */
bool aboard[THREADS];	     /* from board to the end of its wait */
bool copied[THREADS];

/* Cars; riders are in car c where rides[c * THREADS + thread]. */
bool rides[CARS * THREADS];
byte attendant[CARS];
bool busy[CARS];
bool arrived[CARS]; /* its event */

/* The stream: cars in the order in which they were sent off. */
chan stream = [CARS] of { byte };

inline fill(c)
{
	n = 0;
	attendant[c] = row[0];
	busy[c] = true;
	do
	:: n < FULL && nr_waiting > 0 ->
		rides[c * THREADS + row[0]] = true;
		for (i : 1 .. THREADS - 1) {
			row[i - 1] = row[i]
		}
		nr_waiting--;
		n++
	:: else -> break
	od
}

/* The attendant may be another thread. */
inline send_off(c)
{
	to_tell = attendant[c];
	arrived[c] = false;
	stream ! c;
	atomic {
		assert(aboard[to_tell]);
		attends[to_tell] = c;
		if
		:: BREAK == 1 -> skip /* 1: not told to attend */
		:: else -> told[to_tell]++
		fi
	}
}

inline let_out(c)
{
	for (j : 0 .. THREADS - 1) {
		atomic {
			if
			:: mine[j] ->
				assert(aboard[j] && copied[j]);
				attends[j] = NO_CAR;
				told[j]++
			:: else
			fi
		}
	}
}

/* The next ones go first. */
inline attend(c)
{
	if
	:: BREAK != 2 -> arrived[c] /* 2: does not wait for the event */
	:: else
	fi;
	atomic {
		for (j : 0 .. THREADS - 1) {
			mine[j] = rides[c * THREADS + j];
			rides[c * THREADS + j] = false
		}
		goes_on = nr_waiting > 0;
		if
		:: BREAK == 3 -> goes_on = false /* 3: who waits is left */
		:: else
		fi;
		busy[c] = false;
		if
		:: goes_on -> fill(c)
		:: else
		fi
	};
	if
	:: BREAK == 4 -> goes_on = busy[c] /* 4: looked at without the lock */
	:: else
	fi;
	if
	:: goes_on -> send_off(c)
	:: else
	fi;
	let_out(c)
}

proctype thread(byte me)
{
	byte car, n, i, j, to_tell, lap;
	bool mine[THREADS];
	bool goes_on;

	for (lap : 1 .. RIDES) {
		atomic {
			copied[me] = false;
			attends[me] = NO_CAR;
			aboard[me] = true;
			row[nr_waiting] = me;
			nr_waiting++;
			car = 0;
			do
			:: car < CARS && busy[car] -> car++
			:: else -> break
			od;
			if
			:: car < CARS -> fill(car)
			:: else
			fi
		};
		if
		:: car < CARS -> send_off(car)
		:: else
		fi;
		atomic { told[me] > 0 -> told[me]-- };
		if
		:: attends[me] != NO_CAR ->
			car = attends[me];
			attend(car);
			atomic { told[me] > 0 -> told[me]-- }
		:: else
		fi;
		atomic {
			assert(copied[me] && told[me] == 0);
			aboard[me] = false
		}
	}
}

proctype gpu()
{
	byte c, i;

end:	do
	:: atomic {
		stream ? c;
		for (i : 0 .. THREADS - 1) {
			if
			:: rides[c * THREADS + i] ->
				assert(aboard[i] && !copied[i]);
				copied[i] = true
			:: else
			fi
		}
		arrived[c] = true;
		c = 0;
		i = 0 }
	od
}

init {
	byte t;

	atomic {
		run gpu();
		for (t : 0 .. THREADS - 1) {
			attends[t] = NO_CAR;
			run thread(t)
		}
	}
	_nr_pr == 2; /* this one and the GPU */
	for (t : 0 .. CARS - 1) {
		assert(!busy[t])
	}
	assert(nr_waiting == 0)
}
