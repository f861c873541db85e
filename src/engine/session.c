// SPDX-License-Identifier: Apache-2.0
/*
 * session - opens, counts and ends the driver.
 *
 * Requests do not count on the session: each holds its handle, and the close
 * waits for every handle before it takes anything away.
 *
 * Lock order of the library:
 *     OK:  session_lock, batch table_lock, live_lock
 *     OK:  session_lock, handle table_lock
 *     OK:  session_lock, buffer stripes
 *     OK:  session_lock, devices make_lock
 *     OK:  session_lock, sops.lock, docks.lock
 *     OK:  session_lock, workers.lock
 *     OK:  handle table_lock, cf_windows_lock
 *     OK:  lanes->lock, pool->lock, feed->lock, a batch's locks or the log's
 *          after any
 *  ERROR:  any of them, session_lock
 *   NEVER: any but session_lock and make_lock across a driver call, any
 *          but session_lock and, for sysfs, make_lock across file IO
 */
#include "engine/session.h"

#include <cufile.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "core/alias.h"
#include "core/aperture.h"
#include "core/arrival.h"
#include "core/buffer.h"
#include "core/denylist.h"
#include "core/device.h"
#include "core/file.h"
#include "core/handle.h"
#include "core/log.h"
#include "core/nic.h"
#include "core/numbers.h"
#include "core/nvfs.h"
#include "core/nvfs_io.h"
#include "core/p2p.h"
#include "core/pins.h"
#include "core/reach.h"
#include "core/ring.h"
#include "core/stats.h"
#include "core/topology.h"
#include "core/windows.h"
#include "engine/batch.h"
#include "engine/explain.h"
#include "engine/fork.h"
#include "engine/plan_limits.h"
#include "engine/stream.h"
#include "engine/worker.h"
#include "engine/worth.h"
#include "path/nvfs.h"
#include "seam/loaded.h"
#include "seam/nvtx.h"

static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_long uses; /* written under session_lock */
/*
 * A caller that counts no use may have left something in the session, which a
 * failed registration must not shut then. Written under session_lock.
 */
static atomic_bool in_use;
/* NULL: closed. Written under session_lock; released complete, so that a
 * request that acquires it reads whole values. */
static struct cf_config *_Atomic running;
static struct cf_rules rules; /* of `running`; written before it is */

static size_t kib(const struct cf_config *config, enum cf_cfg id)
{
	return cf_config_size(config, id) << 10;
}

static enum cf_windows_mode windows_mode(const struct cf_config *config)
{
	const char *mode = cf_config_string(config, CF_CFG_MAPPED);

	if (!strcmp(mode, "always"))
		return CF_WINDOWS_ALWAYS;
	if (!strcmp(mode, "kept"))
		return CF_WINDOWS_KEPT;
	/* what is smaller cannot be pinned */
	return !strcmp(mode, "auto") && kib(config, CF_CFG_MAPPED_CHUNK_KB) >=
						CF_PIN_GRANULE ?
		       CF_WINDOWS_AUTO :
		       CF_WINDOWS_OFF;
}

static void configure_windows(const struct cf_config *config)
{
	size_t chunk = kib(config, CF_CFG_MAPPED_CHUNK_KB);

	cf_windows_configure(&(struct cf_windows_limits){
		.mode = windows_mode(config),
		.max_bytes = kib(config, CF_CFG_MAPPED_CACHE_KB),
		.chunk = cf_power_below(chunk),
		.open_from = kib(config, CF_CFG_MAPPED_MIN_KB),
		.use_from = kib(config, CF_CFG_MAPPED_USE_KB),
		.settle_ns = cf_config_size(config, CF_CFG_MAPPED_SETTLE_MS) *
			     1000000,
		.idle_ms =
			(unsigned)cf_config_size(config, CF_CFG_MAPPED_IDLE_MS),
	});
}

static uint64_t pinned_limit(const struct cf_config *config)
{
	uint64_t kib =
		cf_config_size(config, CF_CFG_MAX_DEVICE_PINNED_MEM_SIZE_KB);

	return kib == CF_CFG_UNLIMITED ? UINT64_MAX : kib << 10;
}

void cf_session_apply(void)
{
	const struct cf_config *config = cf_session_config();

	cf_topology_configure(
		cf_config_bool(config, CF_CFG_SKIP_TOPOLOGY_DETECTION));
	cf_aperture_allow(cf_config_bool(config, CF_CFG_APERTURE));
	cf_devices_configure(cf_plan_slot_size(config),
			     cf_plan_staging_bytes(config));
	cf_plan_configure(config);
	cf_worth_allow(cf_config_bool(config, CF_CFG_HELPERS_REST));
	configure_windows(config);
	cf_path_nvfs_configure(config);
	cf_nvfs_limit(pinned_limit(config));
	cf_file_limit(cf_config_size(config, CF_CFG_MAX_DIRECT_IO_SIZE_KB)
		      << 10);
}

/* Where there are two the wrong one may get the calls, and nobody notices. */
static void warn_of_another(void)
{
	char path[1024];

	if (cf_loaded_other_cufile(path, sizeof(path)))
		cf_log(CF_LOG_WARN,
		       "driver open: %s is in this process too: handles and "
		       "buffers of the one are unknown to the other",
		       path);
}

/* Asks the loader without any lock: it may call anything. */
static void unlock_and_settle(void)
{
	char text[512];
	enum cf_nvtx_news news;

	pthread_mutex_unlock(&session_lock);
	if (cf_nics_settle())
		cf_reach_all();
	news = cf_nvtx_settle(text, sizeof(text));
	if (news == CF_NVTX_LOADED)
		cf_log(CF_LOG_INFO, "nvtx: ranges go to %s", text);
	if (news == CF_NVTX_FAILED)
		cf_log(CF_LOG_WARN, "nvtx: no ranges: %s", text);
}

/* session_lock held */
static int open_locked(void)
{
	struct cf_config_staged *staged = cf_config_staged();
	struct cf_config *config;
	int err;

	if (atomic_load_explicit(&running, memory_order_relaxed))
		return 0;
	cf_forks_watch();
	config = cf_config_new();
	if (!config)
		return -CU_FILE_NOMEM_ERROR;
	err = cf_config_load(config, staged);
	cf_log_configure(config);
	cf_config_report(config);
	if (err) {
		cf_log_reset();
		cf_config_free(config);
		return err;
	}
	cf_stats_open((int)cf_config_size(config, CF_CFG_STATS_LEVEL));
	cf_rings_configure(cf_config_bool(config, CF_CFG_IO_URING));
	cf_explain_configure(config);
	cf_denylist_configure(config);
	cf_nvfs_allow_batches();
	cf_nvfs_open(cf_config_bool(config, CF_CFG_NVFS));
	cf_rules_read(config, &rules);
	atomic_store_explicit(&running, config, memory_order_release);
	cf_session_apply();
	cf_streams_open(config);
	cf_nvtx_want(cf_config_bool(config, CF_CFG_NVTX));
	cf_nics_want(config);
	cf_log(CF_LOG_INFO, "driver open: configuration %s",
	       cf_config_file(config) ? cf_config_file(config) : "built in");
	warn_of_another();
	return 0;
}

/* session_lock held. Parameters that were set stay, for an open to come. */
static void shut_locked(void)
{
	struct cf_config *config =
		atomic_load_explicit(&running, memory_order_relaxed);

	atomic_store_explicit(&in_use, false, memory_order_relaxed);
	cf_streams_close();
	cf_batches_close();
	cf_handles_close();
	cf_workers_close();
	cf_rings_close();
	cf_stats_close();
	cf_nvfs_forget_all();
	cf_nvfs_close();
	cf_buffers_close();
	cf_nics_close();
	cf_alias_refused_close();
	cf_alias_forget();
	cf_arrival_forget();
	cf_windows_close();
	cf_devices_close();
	cf_denylist_configure(NULL);
	cf_nvtx_want(false);
	cf_p2p_forget();
	cf_log(CF_LOG_INFO, "driver close");
	cf_log_reset();
	atomic_store_explicit(&running, NULL, memory_order_release);
	cf_config_free(config);
}

/* session_lock held */
static void close_locked(void)
{
	shut_locked();
	cf_staged_clear(cf_config_staged());
}

int cf_session_open(void)
{
	int err;

	pthread_mutex_lock(&session_lock);
	err = open_locked();
	if (!err)
		atomic_fetch_add_explicit(&uses, 1, memory_order_relaxed);
	unlock_and_settle();
	return err;
}

/* uses_it: sets in_use under the lock, where a failed registration reads it. */
static int lock_and_open(bool uses_it)
{
	int err;

	pthread_mutex_lock(&session_lock);
	err = open_locked();
	if (!err && uses_it)
		atomic_store_explicit(&in_use, true, memory_order_release);
	return err;
}

static int open_implicitly(bool uses_it)
{
	int err = lock_and_open(uses_it);

	unlock_and_settle();
	return err;
}

int cf_session_open_implicit(void)
{
	if (atomic_load_explicit(&in_use, memory_order_acquire))
		return 0;
	return open_implicitly(true);
}

int cf_session_begin(void)
{
	int err = lock_and_open(true);

	if (err)
		unlock_and_settle();
	return err;
}

void cf_session_end(void)
{
	unlock_and_settle();
}

int cf_session_open_to_register(void)
{
	return cf_session_is_open() ? 0 : open_implicitly(false);
}

int cf_session_begin_register(bool *counted)
{
	int err;

	pthread_mutex_lock(&session_lock);
	err = open_locked();
	*counted = !err && !atomic_load_explicit(&uses, memory_order_relaxed);
	if (*counted)
		atomic_store_explicit(&uses, 1, memory_order_relaxed);
	if (err)
		pthread_mutex_unlock(&session_lock);
	return err;
}

/* session_lock held */
static int close_use_locked(void)
{
	if (atomic_load_explicit(&uses, memory_order_relaxed) < 1)
		return -CU_FILE_DRIVER_NOT_INITIALIZED;
	if (atomic_fetch_sub_explicit(&uses, 1, memory_order_relaxed) == 1)
		close_locked();
	return 0;
}

void cf_session_end_register(bool counted, bool failed)
{
	if (counted && failed) {
		atomic_store_explicit(&uses, 0, memory_order_relaxed);
		if (!atomic_load_explicit(&in_use, memory_order_relaxed))
			shut_locked();
	}
	unlock_and_settle();
}

int cf_session_close(void)
{
	int err;

	pthread_mutex_lock(&session_lock);
	err = close_use_locked();
	pthread_mutex_unlock(&session_lock);
	return err;
}

bool cf_session_is_open(void)
{
	return atomic_load_explicit(&running, memory_order_acquire);
}

long cf_session_uses(void)
{
	return atomic_load_explicit(&uses, memory_order_relaxed);
}

const struct cf_config *cf_session_config(void)
{
	return atomic_load_explicit(&running, memory_order_acquire);
}

const struct cf_rules *cf_session_rules(void)
{
	return &rules;
}

struct cf_config *cf_session_config_mut(void)
{
	return atomic_load_explicit(&running, memory_order_acquire);
}

void cf_session_lock(void)
{
	pthread_mutex_lock(&session_lock);
}

void cf_session_unlock(void)
{
	pthread_mutex_unlock(&session_lock);
}
