// SPDX-License-Identifier: Apache-2.0
/*
 * params - the parameter calls and the four runtime setters.
 *
 * A Set stages a value for the next open and is refused while the driver is
 * open; a Get answers the running value, else the staged one, else what an
 * open would give now (contract 3.13). The runtime setters open the driver
 * and change the running value (contract 3.5).
 */
#include <cufile.h>
#include <errno.h>
#include <string.h>

#include "api/translate.h"
#include "core/config_value.h"
#include "engine/session.h"

#define EINVALID (-CU_FILE_INVALID_VALUE)

/* A value to read, and the configuration to free afterwards, or NULL. */
struct view {
	const struct cf_value *value;
	struct cf_config *own;
};

static int view_take(struct view *view, enum cf_cfg id)
{
	int err;

	*view = (struct view){ 0 };
	cf_session_lock();
	if (cf_session_is_open()) {
		view->value = cf_config_value(cf_session_config(), id);
		return 0;
	}
	view->value = cf_staged_find(cf_config_staged(), id);
	if (view->value)
		return 0;
	view->own = cf_config_new();
	err = view->own ? cf_config_load(view->own, NULL) : -ENOMEM;
	/* a broken file fails the open, not a Get: the value is there */
	if (!err || err == -CU_FILE_DRIVER_INVALID_PROPS) {
		view->value = cf_config_value(view->own, id);
		return 0;
	}
	cf_config_free(view->own);
	cf_session_unlock();
	return err;
}

static void view_drop(struct view *view)
{
	cf_config_free(view->own);
	cf_session_unlock();
}

/* 0 with the session locked, and closed: the caller may stage. Else a code. */
static int stage_begin(void)
{
	cf_session_lock();
	if (!cf_session_is_open())
		return 0;
	cf_session_unlock();
	return -CU_FILE_DRIVER_ALREADY_OPEN;
}

static CUfileError_t stage_end(int err)
{
	cf_session_unlock();
	return cf_error(err);
}

static int get_number(enum cf_param_family family, int param, uint64_t *number)
{
	int id = cf_config_by_param(family, param);
	struct view view;
	int err;

	if (id < 0)
		return EINVALID;
	err = view_take(&view, (enum cf_cfg)id);
	if (err)
		return err;
	*number = cf_value_number(view.value);
	view_drop(&view);
	return 0;
}

CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param,
				      size_t *value)
{
	uint64_t number;
	int err = value ? get_number(CF_PARAM_SIZET, (int)param, &number) :
			  EINVALID;

	if (!err)
		*value = number;
	return cf_error(err);
}

CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param,
				     bool *value)
{
	uint64_t number;
	int err = value ? get_number(CF_PARAM_BOOL, (int)param, &number) :
			  EINVALID;

	if (!err)
		*value = number != 0;
	return cf_error(err);
}

CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param,
				      size_t value)
{
	int id = cf_config_by_param(CF_PARAM_SIZET, (int)param);
	int err = id < 0 ? EINVALID : stage_begin();

	if (err)
		return cf_error(err);
	return stage_end(
		cf_staged_set_size(cf_config_staged(), (enum cf_cfg)id, value));
}

CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param,
				     bool value)
{
	int id = cf_config_by_param(CF_PARAM_BOOL, (int)param);
	int err = id < 0 ? EINVALID : stage_begin();

	if (err)
		return cf_error(err);
	return stage_end(
		cf_staged_set_bool(cf_config_staged(), (enum cf_cfg)id, value));
}

/* EINVALID, too, for the log's path unless one was set. */
static int copy_text(const struct cf_value *v, enum cf_cfg id, char *desc_str,
		     size_t size)
{
	size_t needed = strlen(v->text) + 1;

	if (needed > size || (id == CF_CFG_LOGFILE_PATH &&
			      cf_value_source(v) == CF_CFG_FROM_DEFAULT))
		return EINVALID;
	memcpy(desc_str, v->text, needed);
	return 0;
}

CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param,
				       char *desc_str, int len)
{
	int id = cf_config_by_param(CF_PARAM_STRING, (int)param);
	struct view view;
	int err;

	if (id < 0 || !desc_str || len <= 0)
		return cf_error(EINVALID);
	err = view_take(&view, (enum cf_cfg)id);
	if (err)
		return cf_error(err);
	err = copy_text(view.value, (enum cf_cfg)id, desc_str, (size_t)len);
	view_drop(&view);
	return cf_error(err);
}

static int stage_string(enum cf_cfg id, const char *text)
{
	char buf[32];

	text = cf_row_choice(&cf_config_rows[id], text, buf, sizeof(buf));
	return text ? cf_staged_set_string(cf_config_staged(), id, text) :
		      EINVALID;
}

CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param,
				       const char *desc_str)
{
	int id = cf_config_by_param(CF_PARAM_STRING, (int)param);
	int err =
		id < 0 || !desc_str || !desc_str[0] ? EINVALID : stage_begin();

	if (err)
		return cf_error(err);
	return stage_end(stage_string((enum cf_cfg)id, desc_str));
}

CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param,
					    size_t *min_value,
					    size_t *max_value)
{
	int id = cf_config_by_param(CF_PARAM_SIZET, (int)param);

	if (id < 0 || !min_value || !max_value ||
	    (cf_config_rows[id].flags & CF_CFG_NO_MINMAX))
		return cf_error(EINVALID);
	*min_value = cf_config_rows[id].min;
	*max_value = cf_config_rows[id].max;
	return cf_error(0);
}

/* Without memory only the first may be staged; the open notes that lengths
 * differ. */
static CUfileError_t set_slabs(enum cf_cfg size_id, enum cf_cfg count_id,
			       const size_t *sizes, const size_t *counts,
			       int len)
{
	struct cf_config_staged *staged = cf_config_staged();
	uint64_t copies[2][CF_CFG_MAX_SLABS];
	int err;

	if (!sizes || !counts || len <= 0 || len > CF_CFG_MAX_SLABS)
		return cf_error(EINVALID);
	for (int i = 0; i < len; i++) {
		copies[0][i] = sizes[i];
		copies[1][i] = counts[i];
	}
	err = stage_begin();
	if (err)
		return cf_error(err);
	err = cf_staged_set_sizes(staged, size_id, copies[0], (size_t)len);
	if (!err)
		err = cf_staged_set_sizes(staged, count_id, copies[1],
					  (size_t)len);
	return stage_end(err);
}

static int get_slabs(enum cf_cfg id, size_t *values, int len)
{
	struct view view;
	int err;

	err = view_take(&view, id);
	if (err)
		return err;
	if (view.value->nr != (size_t)len)
		err = EINVALID;
	for (int i = 0; !err && i < len; i++)
		values[i] = view.value->sizes[i];
	view_drop(&view);
	return err;
}

static CUfileError_t get_slab_pair(enum cf_cfg size_id, enum cf_cfg count_id,
				   size_t *sizes, size_t *counts, int len)
{
	int err;

	if (!sizes || !counts || len <= 0)
		return cf_error(EINVALID);
	err = get_slabs(size_id, sizes, len);
	if (!err)
		err = get_slabs(count_id, counts, len);
	return cf_error(err);
}

CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t *size_values,
						   const size_t *count_values,
						   int len)
{
	return set_slabs(CF_CFG_POSIX_POOL_SLAB_SIZE_KB,
			 CF_CFG_POSIX_POOL_SLAB_COUNT, size_values,
			 count_values, len);
}

CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *size_values,
						   size_t *count_values,
						   int len)
{
	return get_slab_pair(CF_CFG_POSIX_POOL_SLAB_SIZE_KB,
			     CF_CFG_POSIX_POOL_SLAB_COUNT, size_values,
			     count_values, len);
}

CUfileError_t cuFileSetParameterGpuBounceBufferSlabArray(
	const size_t *size_values, const size_t *count_values, int len)
{
	return set_slabs(CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB,
			 CF_CFG_GPU_BOUNCE_SLAB_COUNT, size_values,
			 count_values, len);
}

CUfileError_t cuFileGetParameterGpuBounceBufferSlabArray(size_t *size_values,
							 size_t *count_values,
							 int len)
{
	return get_slab_pair(CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB,
			     CF_CFG_GPU_BOUNCE_SLAB_COUNT, size_values,
			     count_values, len);
}

static CUfileError_t set_runtime(enum cf_cfg id, uint64_t value)
{
	int err = cf_session_begin();

	if (err)
		return cf_error(err);
	cf_config_set_runtime_size(cf_session_config_mut(), id, value);
	cf_session_apply();
	cf_session_end();
	return cf_error(0);
}

CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size)
{
	struct cf_config *c;
	int err;

	if (!cf_row_size_ok(&cf_config_rows[CF_CFG_POLL_MODE_MAX_SIZE_KB],
			    poll_threshold_size))
		return cf_error(-CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
	err = cf_session_begin();
	if (err)
		return cf_error(err);
	c = cf_session_config_mut();
	cf_config_set_runtime_bool(c, CF_CFG_USE_POLL_MODE, poll);
	cf_config_set_runtime_size(c, CF_CFG_POLL_MODE_MAX_SIZE_KB,
				   poll_threshold_size);
	cf_session_apply();
	cf_session_end();
	return cf_error(0);
}

CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size)
{
	if (!cf_row_size_ok(&cf_config_rows[CF_CFG_MAX_DIRECT_IO_SIZE_KB],
			    max_direct_io_size))
		return cf_error(-CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
	return set_runtime(CF_CFG_MAX_DIRECT_IO_SIZE_KB, max_direct_io_size);
}

CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size)
{
	if (max_cache_size == SIZE_MAX)
		return cf_error(EINVALID);
	if (!cf_row_size_ok(&cf_config_rows[CF_CFG_MAX_DEVICE_CACHE_SIZE_KB],
			    max_cache_size))
		return cf_error(-CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
	return set_runtime(CF_CFG_MAX_DEVICE_CACHE_SIZE_KB, max_cache_size);
}

/* SIZE_MAX is CF_CFG_UNLIMITED, as documented; 0 is below the row's bound and
 * fine. */
CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size)
{
	const struct cf_config_row *row =
		&cf_config_rows[CF_CFG_MAX_DEVICE_PINNED_MEM_SIZE_KB];

	if (max_pinned_size && !cf_row_size_ok(row, max_pinned_size))
		return cf_error(-CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
	return set_runtime(CF_CFG_MAX_DEVICE_PINNED_MEM_SIZE_KB,
			   max_pinned_size);
}
