// SPDX-License-Identifier: Apache-2.0
/* stats - what programs may ask about their IO (contract 3.14). */
#include <cufile.h>

#include <string.h>
#include "api/translate.h"
#include "core/stats.h"
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

/*
 * Each level's struct begins with the one below it, so a prefix of the
 * largest is the answer to each. The lock keeps the GPUs from being closed.
 */
static CUfileError_t get(int level, void *stats, size_t size)
{
	int err = -CU_FILE_DRIVER_NOT_INITIALIZED;
	CUfileStatsLevel3_t all;

	if (!stats)
		return cf_error(-CU_FILE_INVALID_VALUE);
	cf_session_lock();
	if (cf_session_is_open())
		err = cf_stats_get(level, &all);
	cf_session_unlock();
	if (!err)
		memcpy(stats, &all, size);
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
