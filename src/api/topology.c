// SPDX-License-Identifier: Apache-2.0
/*
 * topology - BAR sizes, peer-to-peer flags, PCIe topology (contract 3.11,
 * 3.15, 3.16).
 */
#include <cufile.h>

#include "api/translate.h"
#include "core/nvfs.h"
#include "core/p2p.h"
#include "core/topology.h"
#include "core/topology_file.h"
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

/* Opens the driver. Flags stay set until the last close. */
CUfileError_t cuFileDriverSetP2PFlags(CUfileDriverStatusFlags_t status_flag,
				      CUfileP2PFlags_t p2p_flags)
{
	int err = cf_session_open_implicit();

	if (!err)
		err = cf_p2p_allow((int)status_flag, (unsigned)p2p_flags);
	return cf_error(err);
}

CUfileError_t cuFileDriverGetP2PFlags(CUfileDriverStatusFlags_t status_flag,
				      CUfileP2PFlags_t *p2p_flags)
{
	unsigned flags;
	int err;

	if (!p2p_flags)
		return cf_error(-CU_FILE_INVALID_VALUE);
	err = cf_session_open_implicit();
	if (!err)
		err = cf_p2p_allowed((int)status_flag, &flags);
	/* this flag is found out, and cannot be set */
	if (!err && cf_nvfs_targets() & 1u << status_flag)
		flags |= CU_FILE_P2P_FLAG_NVFS;
	if (!err)
		*p2p_flags = (CUfileP2PFlags_t)flags;
	return cf_error(err);
}

/* The flags are forgotten, as the reference does. */
CUfileError_t cuFileExportPCIeTopology(const char *filename)
{
	int err;

	if (!filename || !*filename)
		return cf_error(-CU_FILE_INVALID_VALUE);
	err = cf_session_open_implicit();
	if (!err)
		err = cf_topology_write(filename);
	if (!err)
		cf_p2p_forget();
	return cf_error(err);
}
