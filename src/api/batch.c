// SPDX-License-Identifier: Apache-2.0
/*
 * batch - the batch calls (contract 3.12). Their engine is not built yet:
 * what can be checked is checked, and the rest answers the documented error
 * (docs/status.md).
 */
#include <cufile.h>

#include "api/translate.h"

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch_idp, unsigned nr)
{
	if (!batch_idp || !nr)
		return cf_error(-CU_FILE_INVALID_VALUE);
	return cf_error(-CU_FILE_INTERNAL_BATCH_SETUP_ERROR);
}

CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch_idp, unsigned nr,
				  CUfileIOParams_t *iocbp, unsigned flags)
{
	return cf_error(-CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
}

CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch_idp,
				     unsigned min_nr, unsigned *nr,
				     CUfileIOEvents_t *iocbp,
				     struct timespec *timeout)
{
	if (!nr || !iocbp || min_nr > *nr)
		return cf_error(-CU_FILE_INVALID_VALUE);
	return cf_error(-CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
}

/* There is never a batch in flight: nothing to cancel is success. */
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch_idp)
{
	return cf_error(0);
}

void cuFileBatchIODestroy(CUfileBatchHandle_t batch_idp)
{
}
