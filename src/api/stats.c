// SPDX-License-Identifier: Apache-2.0
/* stats - what programs may ask about their IO (contract 3.14, opencufile.h).
 */
#include <cufile.h>
#include <opencufile.h>

#include <stdlib.h>
#include <string.h>
#include "api/sized.h"
#include "api/translate.h"
#include "core/numbers.h"
#include "core/stats.h"
#include "core/stats_119.h"
#include "engine/session.h"

CUfileError_t cuFileSetStatsLevel(int level)
{
	int err;

	cf_session_lock();
	err = cf_stats_set_level(level);
	cf_session_unlock();
	return cf_error(err);
}

CUfileError_t cuFileGetStatsLevel(int *level)
{
	if (!level)
		return cf_error(-CU_FILE_INVALID_VALUE);
	cf_session_lock();
	*level = cf_stats_level();
	cf_session_unlock();
	return cf_error(0);
}

static CUfileError_t when_open(void (*act)(void))
{
	int err = -CU_FILE_DRIVER_NOT_INITIALIZED;

	cf_session_lock();
	if (cf_session_is_open()) {
		act();
		err = 0;
	}
	cf_session_unlock();
	return cf_error(err);
}

CUfileError_t cuFileStatsStart(void)
{
	return when_open(cf_stats_start);
}

CUfileError_t cuFileStatsStop(void)
{
	return when_open(cf_stats_stop);
}

CUfileError_t cuFileStatsReset(void)
{
	return when_open(cf_stats_reset);
}

/* The structs of cufile.h, or those of 1.19. */
union numbers {
	CUfileStatsLevel3_t usual;
	struct cf_stats_119 longer;
};

/*
 * The size up to the last GPU counted: num_gpus says where callers stop, and
 * some have no more room than that, as a test of cuda-python's.
 */
static size_t up_to_gpus(size_t gpus_at, uint32_t nr)
{
	return gpus_at + nr * sizeof(CUfilePerGpuStats_t);
}

static int look_usual(int level, CUfileStatsLevel3_t *stats, size_t *most)
{
	int err = cf_stats_get(level, stats);

	if (!err)
		*most = up_to_gpus(offsetof(CUfileStatsLevel3_t, per_gpu_stats),
				   stats->num_gpus);
	return err;
}

static int look_longer(int level, struct cf_stats_119 *stats, size_t *most)
{
	int err = cf_stats_get_119(level, stats);

	if (!err)
		*most = up_to_gpus(offsetof(struct cf_stats_119, per_gpu_stats),
				   stats->num_gpus);
	return err;
}

static bool is_for_119(void)
{
	return !strcmp(
		cf_config_string(cf_session_config(), CF_CFG_STATS_LAYOUT),
		"1.19");
}

/*
 * Each level's struct begins with the one below it, so a prefix of the largest
 * answers each level. The session lock, held, keeps the GPUs from being closed.
 * *size: of the caller's struct; then how much of `all` is for it.
 */
static int look_locked(int level, union numbers *all, size_t *size)
{
	size_t most = 0;
	int err;

	if (!cf_session_is_open())
		return -CU_FILE_DRIVER_NOT_INITIALIZED;
	if (is_for_119()) {
		err = look_longer(level, &all->longer, &most);
		*size += sizeof(all->longer.vectored);
	} else {
		err = look_usual(level, &all->usual, &most);
	}
	*size = cf_least(*size, most);
	return err;
}

/*
 * Not copied under the lock, if there is memory: who writes to the caller's may
 * wait, as where it maps a file whose server is away.
 */
static CUfileError_t get(int level, void *stats, size_t size)
{
	static union numbers spare; /* session lock; stacks may be small */
	union numbers *own = NULL;
	int err;

	if (!stats)
		return cf_error(-CU_FILE_INVALID_VALUE);
	own = malloc(sizeof(*own));
	cf_session_lock();
	err = look_locked(level, own ? own : &spare, &size);
	if (!err && !own)
		memcpy(stats, &spare, size);
	cf_session_unlock();
	if (!err && own)
		memcpy(stats, own, size);
	free(own);
	return cf_error(err);
}

CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats)
{
	return get(1, stats, sizeof(*stats));
}

CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats)
{
	return get(2, stats, sizeof(*stats));
}

CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats)
{
	return get(3, stats, sizeof(*stats));
}

/* The size of the first version of the struct. */
#define MIN_STATS_SIZE (offsetof(ocf_stats_t, batch_write) + sizeof(ocf_flow_t))

CUfileError_t ocf_stats_get(ocf_stats_t *stats)
{
	int err = -CU_FILE_DRIVER_NOT_INITIALIZED;
	size_t size = stats ? stats->struct_size : 0;
	ocf_stats_t all = { .struct_size = size };

	if (size < MIN_STATS_SIZE)
		return cf_error(-CU_FILE_INVALID_VALUE);
	cf_session_lock();
	if (cf_session_is_open())
		err = cf_stats_get_more(&all);
	cf_session_unlock();
	if (!err)
		(void)cf_give_sized(stats, size, &all, sizeof(all));
	return cf_error(err);
}
