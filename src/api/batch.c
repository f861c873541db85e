// SPDX-License-Identifier: Apache-2.0
/* batch - the batch calls (contract 3.12, behaviour "Batch"). */
#include <opencufile.h>

#include "api/translate.h"
#include "core/stats.h"
#include "engine/batch.h"
#include "engine/session.h"
#include "engine/stream.h"

/* Up to CF_BATCH_MAX entries, whatever properties.io_batchsize says. */
CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch_idp, unsigned nr)
{
	int err = -CU_FILE_INVALID_VALUE;

	if (batch_idp && nr && nr <= CF_BATCH_MAX) {
		cf_session_lock();
		if (cf_session_is_open())
			err = cf_batch_new(nr, batch_idp);
		cf_session_unlock();
	}
	cf_stats_call(CF_STATS_BATCH_SETUP, !err);
	return cf_error(err);
}

/* Flags are ignored: none has a meaning, but programs were seen to pass 1. */
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch_idp, unsigned nr,
				  CUfileIOParams_t *iocbp, unsigned flags)
{
	uint64_t start = cf_stats_begin();
	struct cf_batch *batch = cf_batch_get(batch_idp);
	int err = -CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;

	if (batch) {
		err = cf_batch_submit(batch, nr, iocbp);
		cf_batch_put(batch);
	}
	cf_stats_submitted(!err, start);
	return cf_error(err);
}

CUfileError_t ocf_batch_submit_stream(CUfileBatchHandle_t batch, unsigned nr,
				      const CUfileIOParams_t *params,
				      unsigned flags, CUstream stream)
{
	uint64_t start = cf_stats_begin();
	int err = -CU_FILE_INVALID_VALUE;

	if (!flags)
		err = cf_stream_submit_batch(batch, nr, params, stream);
	cf_stats_submitted(!err, start);
	return cf_error(err);
}

CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch_idp,
				     unsigned min_nr, unsigned *nr,
				     CUfileIOEvents_t *iocbp,
				     struct timespec *timeout)
{
	struct cf_batch *batch;
	int err = -CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR;

	if (!nr || !iocbp || min_nr > *nr || !cf_session_is_open())
		return cf_error(-CU_FILE_INVALID_VALUE);
	batch = cf_batch_get(batch_idp);
	if (batch) {
		err = cf_batch_status(batch, min_nr, nr, iocbp, timeout);
		cf_batch_put(batch);
	}
	return cf_error(err);
}

/* Success also if there is nothing to cancel. */
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch_idp)
{
	struct cf_batch *batch = cf_batch_get(batch_idp);

	if (batch) {
		cf_batch_cancel(batch);
		cf_batch_put(batch);
		cf_stats_call(CF_STATS_BATCH_CANCEL, true);
	}
	return cf_error(0);
}

void cuFileBatchIODestroy(CUfileBatchHandle_t batch_idp)
{
	if (!cf_batch_destroy(batch_idp))
		cf_stats_call(CF_STATS_BATCH_DESTROY, true);
}
