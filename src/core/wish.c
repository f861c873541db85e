// SPDX-License-Identifier: Apache-2.0
/* wish - one piece, for the reaper's thread to open windows of. */
#include "core/wish.h"

#include <stdatomic.h>
#include "core/device.h"
#include "core/handle.h"
#include "core/pins.h"
#include "core/reaper.h"
#include "core/windows.h"

static atomic_bool pending; /* the thread that set it owns wish */
static struct cf_piece wish;

/* The device is entered. */
static void try_pins(struct cf_device *dev)
{
	struct cf_lane *lane;

	if (cf_pins_state() != CF_PINS_UNTRIED ||
	    cf_lane_lease(&dev->lanes, &lane))
		return;
	cf_pins_try(dev->gpu->ordinal, lane->stream);
	cf_lane_give_back(&dev->lanes, lane);
}

static void open_all(const struct cf_gpu *gpu)
{
	uint64_t chunk_size = cf_windows_chunk();
	uint64_t at = (uint64_t)wish.file_off;
	uint64_t end = at + wish.size;

	for (at -= at % chunk_size; at < end; at += chunk_size)
		if (cf_windows_open(&wish, at / chunk_size, gpu))
			return;
}

static void grant(void)
{
	struct cf_scope scope;
	struct cf_device *dev;

	if (!cf_device_find(&wish.mem, &dev) &&
	    !cf_context_enter(dev->ctx, &scope)) {
		try_pins(dev);
		open_all(dev->gpu);
		cf_context_leave(&scope);
	}
	cf_handle_put(wish.handle);
	atomic_store_explicit(&pending, false, memory_order_release);
}

void cf_wish(const struct cf_piece *piece)
{
	if (atomic_exchange_explicit(&pending, true, memory_order_acquire))
		return;
	wish = *piece;
	cf_handle_get_more(wish.handle);
	if (cf_reaper_ask(grant))
		return;
	cf_handle_put(wish.handle);
	atomic_store_explicit(&pending, false, memory_order_release);
}

void cf_wish_fork_child(void)
{
	atomic_store_explicit(&pending, false, memory_order_relaxed);
}
