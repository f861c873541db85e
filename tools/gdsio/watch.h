// SPDX-License-Identifier: Apache-2.0
/*
 * watch - looks on while threads work: a line of progress on a terminal, and
 * samples of what was moved when.
 *
 * When there is no room for one more sample, every second one is dropped, and
 * from then on samples are taken half as often.
 */
#ifndef GDSIO_WATCH_H
#define GDSIO_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define WATCH_ROOM 400

struct sample {
	double at;	/* seconds since the start */
	uint64_t bytes; /* moved by then */
};

struct watch {
	struct sample samples[WATCH_ROOM];
	int nr;
	double every;	  /* seconds between two samples */
	double shown;	  /* when the line was last drawn */
	bool show;	  /* stderr is a terminal */
	const char *what; /* in the line of progress */
	uint64_t total;	  /* bytes; 0: unknown */
	double seconds;	  /* of a timed run, or 0 */
};

void watch_begin(struct watch *watch);

/* Seconds to wait before the next look. */
double watch_tick(const struct watch *watch);
/* bytes have been moved at this time, in seconds since the start. */
void watch_look(struct watch *watch, double at, uint64_t bytes);
void watch_end(struct watch *watch, double at, uint64_t bytes);

#endif
