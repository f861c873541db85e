// SPDX-License-Identifier: Apache-2.0
/*
 * watch - looks on while threads work: a line of progress on a terminal, and
 * samples of what was moved when.
 *
 * When there is no room for another sample every second one goes, and from
 * then on they are taken half as often.
 */
#ifndef GDSIO_WATCH_H
#define GDSIO_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define WATCH_ROOM 400

struct sample {
	double at; /* seconds since the start */
	uint64_t bytes;
};

struct watch {
	struct sample samples[WATCH_ROOM];
	int nr;
	double every;
	double shown;
	bool show;
	const char *what; /* in the line of progress */
	uint64_t total;	  /* bytes; 0: unknown */
	double seconds;	  /* of a timed run, or 0 */
};

void watch_begin(struct watch *watch);

/* How long to sleep, seconds; and what there is after it. */
double watch_tick(const struct watch *watch);
void watch_look(struct watch *watch, double at, uint64_t bytes);
void watch_end(struct watch *watch, double at, uint64_t bytes);

#endif
