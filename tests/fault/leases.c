// SPDX-License-Identifier: Apache-2.0
/* leases - see leases.h. */
#include "leases.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/alias.h"
#include "core/device.h"
#include "core/ring.h"
#include "core/spread.h"
#include "core/volleys.h"
#include "core/windows.h"
#include "engine/batch.h"
#include "engine/bell.h"
#include "engine/company.h"
#include "engine/depth.h"
#include "engine/dock_internal.h"
#include "engine/turns.h"
#include "engine/uncalled.h"
#include "engine/worker.h"
#include "harness.h"
#include "path/draws.h"

#define PATIENCE_MS (TH_SANITIZED ? 120000u : 60000u)

static void put(char *text, size_t nr, const char *name)
{
	size_t used = strlen(text);

	if (nr)
		snprintf(text + used, LEASES_TEXT - used, "%s%zu %s",
			 used ? ", " : "", nr, name);
}

/* Answers how many are lost. */
static size_t look_at_pool(char *text, struct cf_pool *pool, const char *name)
{
	size_t bytes, leased, lost = cf_pool_lost(pool);

	cf_pool_usage(pool, &bytes, &leased);
	put(text, leased - lost, name);
	return lost;
}

static size_t look_at_gpus(char *text)
{
	const struct cf_gpu *gpu;
	size_t lost = 0;

	for (unsigned i = 0; (gpu = cf_gpu_at(i)); i++) {
		lost += look_at_pool(text, gpu->pool, "slots");
		if (gpu->small != gpu->pool)
			lost += look_at_pool(text, gpu->small, "small slots");
	}
	return lost;
}

/* A lift keeps its lane, and a device that is retired its seats. */
static void look_at_device(char *text, struct cf_device *dev)
{
	size_t lanes;

	pthread_mutex_lock(&dev->lanes.lock);
	lanes = dev->lanes.out;
	pthread_mutex_unlock(&dev->lanes.lock);
	put(text, lanes - (atomic_load(&dev->lift.lane) ? 1 : 0), "lanes");
	if (!dev->retired)
		put(text, cf_shuttle_seats_out(dev->shuttle), "seats");
	put(text, cf_volleys_out(dev->volleys), "sets of volleys");
}

/* Who loses a slot may lose a near one with it. */
static void look_at_docks(char *text, size_t lost)
{
	size_t sops = 0, near = 0;

	pthread_mutex_lock(&cf_docks.lock);
	for (struct cf_dock *dock = cf_docks.first; dock; dock = dock->next) {
		sops += dock->berths[false].out + dock->berths[true].out;
		near += (size_t)__builtin_popcount(
			atomic_load(&dock->slots.taken));
	}
	pthread_mutex_unlock(&cf_docks.lock);
	put(text, sops, "operations of docks");
	put(text, near > lost ? near - lost : 0, "near slots");
}

static void look_at_windows(char *text)
{
	struct cf_windows_counts windows;

	cf_windows_count(&windows);
	put(text, windows.holds, "holds of windows");
	put(text, windows.open, "windows");
	put(text, windows.bytes, "bytes of windows");
}

static void look(char *text)
{
	struct cf_device *dev;

	text[0] = '\0';
	look_at_docks(text, look_at_gpus(text));
	for (unsigned i = 0; (dev = cf_device_at(i)); i++)
		look_at_device(text, dev);
	look_at_windows(text);
	put(text, cf_aliases_out(), "aliases");
	put(text, cf_rings_out(), "rings");
	put(text, cf_spreads_out(), "writers of spreads");
	put(text, cf_draws_out(), "draws");
	put(text, cf_turns_out(), "tickets of turns");
	put(text, cf_company_out(), "requests in company");
	put(text, cf_depths_out(), "operations of streams");
	put(text, atomic_load(&cf_bells_nr_armed), "bells");
	put(text, atomic_load(&cf_uncalled_nr), "uncalled");
	put(text, cf_batches_out(), "batches");
	put(text, cf_workers_offered(), "offers");
	put(text, (size_t)cf_workers_spared(), "spare workers");
}

void leases_await(char text[LEASES_TEXT])
{
	unsigned ms = 0;

	for (look(text); text[0] && ms < PATIENCE_MS; look(text)) {
		th_sleep_ms(1);
		ms++;
	}
}

void leases_check(const char *what)
{
	char text[LEASES_TEXT];

	leases_await(text);
	if (text[0])
		fail_msg("%s: not given back: %s", what, text);
}
