// SPDX-License-Identifier: Apache-2.0
/*
 * topology - BAR sizes, peer-to-peer flags, PCIe topology (contract 3.11,
 * 3.15, 3.16). Flags and export come with the direct paths; until then they
 * answer their documented error (docs/status.md).
 */
#include <cufile.h>

#include "api/translate.h"
#include "core/topology.h"
#include "engine/session.h"

CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize)
{
	uint64_t kib;
	int err;

	if (!barSize)
		return cf_error(-CU_FILE_INVALID_VALUE);
	err = cf_session_open_implicit();
	if (!err)
		err = cf_gpu_bar_kib(gpuIndex, &kib);
	if (!err)
		*barSize = kib;
	return cf_error(err);
}

CUfileError_t cuFileDriverSetP2PFlags(CUfileDriverStatusFlags_t status_flag,
				      CUfileP2PFlags_t p2p_flags)
{
	return cf_error(-CU_FILE_PLATFORM_NOT_SUPPORTED);
}

CUfileError_t cuFileDriverGetP2PFlags(CUfileDriverStatusFlags_t status_flag,
				      CUfileP2PFlags_t *p2p_flags)
{
	return cf_error(p2p_flags ? -CU_FILE_PLATFORM_NOT_SUPPORTED :
				    -CU_FILE_INVALID_VALUE);
}

CUfileError_t cuFileExportPCIeTopology(const char *filename)
{
	return cf_error(filename && *filename ?
				-CU_FILE_PLATFORM_NOT_SUPPORTED :
				-CU_FILE_INVALID_VALUE);
}
