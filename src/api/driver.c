// SPDX-License-Identifier: Apache-2.0
/* driver - open, close, count, version and properties (contract 3.1 - 3.5). */
#include <cufile.h>

#include "api/translate.h"
#include "core/nvfs.h"
#include "engine/session.h"
#include "engine/stream.h"

/* The newest API level whose calls we export: 1.19. */
#define API_VERSION 1190

CUfileError_t cuFileDriverOpen(void)
{
	return cf_error(cf_session_open());
}

CUfileError_t cuFileDriverClose_v2(void)
{
	return cf_error(cf_session_close());
}

/* Programs built before 1.4 call this name; the header maps it to _v2. */
#undef cuFileDriverClose
CUfileError_t cuFileDriverClose(void)
{
	return cf_error(cf_session_close());
}

long cuFileUseCount(void)
{
	return cf_session_uses();
}

CUfileError_t cuFileGetVersion(int *version)
{
	if (!version)
		return cf_error(-CU_FILE_INVALID_VALUE);
	*version = API_VERSION;
	return cf_error(0);
}

static unsigned size_of(const struct cf_config *config, enum cf_cfg id)
{
	uint64_t size = cf_config_size(config, id);

	return size > UINT32_MAX ? UINT32_MAX : (unsigned)size;
}

/* Without nvidia-fs: version 0.0 and no target flags. */
static void fill(const struct cf_config *config, CUfileDrvProps_t *props)
{
	*props = (CUfileDrvProps_t){ 0 };
	cf_nvfs_version(&props->nvfs.major_version, &props->nvfs.minor_version);
	props->nvfs.dstatusflags = cf_nvfs_targets();
	props->nvfs.poll_thresh_size =
		cf_config_size(config, CF_CFG_POLL_MODE_MAX_SIZE_KB);
	props->nvfs.max_direct_io_size =
		cf_config_size(config, CF_CFG_MAX_DIRECT_IO_SIZE_KB);
	if (cf_config_bool(config, CF_CFG_USE_POLL_MODE))
		props->nvfs.dcontrolflags |= 1u << CU_FILE_USE_POLL_MODE;
	if (cf_config_bool(config, CF_CFG_ALLOW_COMPAT_MODE))
		props->nvfs.dcontrolflags |= 1u << CU_FILE_ALLOW_COMPAT_MODE;
	props->fflags = 1u << CU_FILE_BATCH_IO_SUPPORTED;
	if (cf_streams_allowed(config))
		props->fflags |= 1u << CU_FILE_PARALLEL_IO_SUPPORTED |
				 1u << CU_FILE_STREAMS_SUPPORTED;
	props->max_device_cache_size =
		size_of(config, CF_CFG_MAX_DEVICE_CACHE_SIZE_KB);
	props->per_buffer_cache_size =
		size_of(config, CF_CFG_PER_BUFFER_CACHE_SIZE_KB);
	props->max_device_pinned_mem_size =
		size_of(config, CF_CFG_MAX_DEVICE_PINNED_MEM_SIZE_KB);
	props->max_batch_io_size = size_of(config, CF_CFG_IO_BATCHSIZE);
	props->max_batch_io_timeout_msecs =
		size_of(config, CF_CFG_BATCH_IO_TIMEOUT_MS);
}

CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props)
{
	int err;

	if (!props)
		return cf_error(-CU_FILE_INVALID_VALUE);
	err = cf_session_begin();
	if (err)
		return cf_error(err);
	fill(cf_session_config(), props);
	cf_session_end();
	return cf_error(0);
}
