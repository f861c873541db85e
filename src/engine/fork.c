// SPDX-License-Identifier: Apache-2.0
/*
 * fork - takes all locks before a fork; behind it the parent releases them, and
 * the child begins afresh.
 *
 * Lock: every one of the library's, in the order of docs/architecture.md; so
 * that a child finds whole what it keeps.
 */
#include "engine/fork.h"

#include <pthread.h>
#include "core/alias.h"
#include "core/buffer.h"
#include "core/device.h"
#include "core/handle.h"
#include "core/log.h"
#include "core/nic.h"
#include "core/nvfs.h"
#include "core/nvfs_map.h"
#include "core/ring.h"
#include "core/stats.h"
#include "core/twin.h"
#include "core/windows.h"
#include "engine/batch.h"
#include "engine/request.h"
#include "engine/session.h"
#include "engine/stream.h"
#include "engine/worker.h"
#include "seam/cuda.h"

static void fork_prepare(void)
{
	cf_session_lock();
	cf_streams_fork_prepare();
	cf_batches_fork_prepare();
	cf_workers_fork_prepare();
	cf_handles_fork_prepare();
	cf_rings_fork_prepare();
	cf_buffers_fork_prepare();
	cf_nvfs_maps_fork_prepare();
	cf_devices_fork_prepare();
	cf_windows_fork_prepare();
	cf_alias_fork_prepare();
	cf_nics_fork_prepare();
	cf_cuda_fork_prepare();
}

static void fork_parent(void)
{
	cf_cuda_fork_release();
	cf_nics_fork_parent();
	cf_alias_fork_release();
	cf_windows_fork_parent();
	cf_devices_fork_parent();
	cf_nvfs_maps_fork_parent();
	cf_buffers_fork_parent();
	cf_rings_fork_parent();
	cf_handles_fork_parent();
	cf_workers_fork_parent();
	cf_batches_fork_parent();
	cf_streams_fork_parent();
	cf_session_unlock();
}

/* Host memory goes on; the parent's GPU objects are not the child's. */
static void fork_child(void)
{
	cf_log_after_fork();
	cf_cuda_fork_release();
	cf_nics_fork_child();
	cf_alias_fork_release();
	cf_windows_fork_child();
	cf_devices_fork_child();
	cf_nvfs_maps_fork_child();
	cf_nvfs_fork_child();
	cf_buffers_fork_child();
	cf_rings_fork_child();
	cf_twins_fork_child();
	cf_handles_fork_child();
	cf_workers_fork_child();
	cf_batches_fork_child();
	cf_streams_fork_child();
	cf_requests_fork_child();
	cf_stats_fork_child();
	cf_session_unlock();
}

static void watch(void)
{
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void cf_forks_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
