// SPDX-License-Identifier: Apache-2.0
/* watch - progress on a terminal, and samples of what was moved when. */
#include "gdsio/watch.h"

#include <stdio.h>
#include <unistd.h>
#include "report.h"

#define FIRST_TICK 0.002
#define SHOW_EVERY 0.1
#define SHOW_AFTER 0.3
#define BAR 30

void watch_begin(struct watch *watch)
{
	watch->nr = 0;
	watch->every = FIRST_TICK;
	watch->shown = 0;
	watch->show = isatty(STDERR_FILENO);
}

double watch_tick(const struct watch *watch)
{
	return watch->every < SHOW_EVERY ? watch->every : SHOW_EVERY;
}

static double part_done(const struct watch *watch, double at, uint64_t bytes)
{
	double part = 0;

	if (watch->seconds > 0)
		part = at / watch->seconds;
	else if (watch->total)
		part = (double)bytes / (double)watch->total;
	return part > 1 ? 1 : part;
}

/* The rate of the last second or so, which is what a person wants to see. */
static double recent_rate(const struct watch *watch, double at, uint64_t bytes)
{
	struct sample from = { 0 };

	for (int i = watch->nr - 1; i >= 0; i--) {
		from = watch->samples[i];
		if (at - from.at > 1)
			break;
	}
	if (at - from.at < SHOW_EVERY)
		from = (struct sample){ 0 };
	return at > from.at ? (double)(bytes - from.bytes) / (at - from.at) /
				      (1 << 30) :
			      0;
}

static void show(struct watch *watch, double at, uint64_t bytes)
{
	double part = part_done(watch, at, bytes);

	if (!watch->show || at < SHOW_AFTER || at - watch->shown < SHOW_EVERY)
		return;
	watch->shown = at;
	fprintf(stderr, "\r\033[K%s [%-*.*s] %3d %%  %.2f GiB/s  %.0f s",
		watch->what, BAR, (int)(part * BAR),
		"##############################", (int)(part * 100),
		recent_rate(watch, at, bytes), at);
}

static void thin_out(struct watch *watch)
{
	for (int i = 0; i < WATCH_ROOM / 2; i++)
		watch->samples[i] = watch->samples[2 * i + 1];
	watch->nr = WATCH_ROOM / 2;
	watch->every *= 2;
}

static void keep(struct watch *watch, double at, uint64_t bytes)
{
	if (watch->nr == WATCH_ROOM)
		thin_out(watch);
	watch->samples[watch->nr++] = (struct sample){ at, bytes };
}

void watch_look(struct watch *watch, double at, uint64_t bytes)
{
	double last = watch->nr ? watch->samples[watch->nr - 1].at : 0;

	if (at - last >= watch->every)
		keep(watch, at, bytes);
	show(watch, at, bytes);
}

/* A last sample too near to the one before would be noise. */
void watch_end(struct watch *watch, double at, uint64_t bytes)
{
	int last = watch->nr - 1;

	if (last >= 0 && at - watch->samples[last].at < watch->every / 2)
		watch->nr--;
	keep(watch, at, bytes);
	if (watch->shown > 0)
		fputs(CLEAR_LINE, stderr);
}
