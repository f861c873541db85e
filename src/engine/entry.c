// SPDX-License-Identifier: Apache-2.0
/* entry - see entry.h. */
#include "engine/entry.h"

#include <errno.h>
#include "core/log.h"
#include "core/log_tag.h"
#include "engine/session.h"

static struct cf_call call_of(const CUfileIOParams_t *params,
			      struct cf_handle *held, struct cf_ferry *ferry)
{
	return (struct cf_call){
		.op = params->opcode == CUFILE_WRITE ? CF_WRITE : CF_READ,
		.handle = params->fh,
		.held = held,
		.base = params->u.batch.devPtr_base,
		.size = params->u.batch.size,
		.file_off = params->u.batch.file_offset,
		.buf_off = params->u.batch.devPtr_offset,
		.ferry = ferry,
		.of_batch = true,
	};
}

int cf_entry_init(struct cf_entry *entry, const CUfileIOParams_t *params,
		  struct cf_facts *last, struct cf_handle *held,
		  struct cf_ferry *ferry, const char **why)
{
	struct cf_call call = call_of(params, held, ferry);
	int err;

	*why = "no such mode";
	if (params->mode != CUFILE_BATCH)
		return -EINVAL;
	*why = "no such opcode";
	if (params->opcode != CUFILE_READ && params->opcode != CUFILE_WRITE)
		return -EINVAL;
	*why = "not a valid request";
	err = cf_request_init_next(&entry->req, &call, last);
	if (err)
		return err;
	entry->cookie = params->cookie;
	entry->like = false;
	if (entry->req.route.path)
		return 0;
	*why = "no path may carry it";
	cf_request_fini(&entry->req);
	return -CU_FILE_IO_NOT_SUPPORTED;
}

bool cf_entry_init_like(struct cf_entry *entry, const CUfileIOParams_t *params,
			const struct cf_entry *before,
			const CUfileIOParams_t *before_params,
			const struct cf_facts *last)
{
	struct cf_call call;

	if (params->mode != before_params->mode ||
	    params->opcode != before_params->opcode ||
	    params->fh != before_params->fh ||
	    params->u.batch.devPtr_base != before_params->u.batch.devPtr_base)
		return false;
	call = call_of(params, NULL, NULL);
	if (!cf_request_init_like(&entry->req, &call, &before->req, last))
		return false;
	entry->cookie = params->cookie;
	entry->like = true;
	return true;
}

int cf_entry_refuse(int err, unsigned i, unsigned nr,
		    const CUfileIOParams_t *params, const char *why)
{
	bool strict =
		!cf_config_bool(cf_session_config(), CF_CFG_ALLOW_COMPAT_MODE);

	cf_log(CF_LOG_ERROR,
	       "batch submit: entry %u of %u (mode %d opcode %d handle %s buf " CF_TAG
	       "+%lld len %zu off %lld): %s, nothing is submitted",
	       i, nr, (int)params->mode, (int)params->opcode,
	       cf_handle_words(params->fh), cf_tag(params->u.batch.devPtr_base),
	       (long long)params->u.batch.devPtr_offset, params->u.batch.size,
	       (long long)params->u.batch.file_offset, why);
	return err == -CU_FILE_IO_NOT_SUPPORTED && strict ?
		       -CU_FILE_BATCH_NOCOMPAT_ERROR :
		       -CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
}

/* A CUDA error has no place in an event: it is told as 5011. */
CUfileIOEvents_t cf_entry_event(void *cookie, ssize_t result)
{
	if (result < 0 && cf_is_cuda_error((int)result))
		result = -CU_FILE_CUDA_DRIVER_ERROR;
	return (CUfileIOEvents_t){
		.cookie = cookie,
		.status = result < 0 ? CUFILE_FAILED : CUFILE_COMPLETE,
		.ret = (size_t)result,
	};
}
