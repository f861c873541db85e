// SPDX-License-Identifier: Apache-2.0
/* io - synchronous reads and writes (contract 3.8, 3.9). */
#include <cufile.h>

#include <errno.h>
#include <limits.h>
#include "api/translate.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "core/stats.h"
#include "engine/call.h"

/* The most elements a vectored call takes, as readv(2) does. */
#define MAX_IOVCNT 1024

ssize_t cuFileRead(CUfileHandle_t fh, void *bufPtr_base, size_t size,
		   off_t file_offset, off_t bufPtr_offset)
{
	struct cf_call call = {
		.op = CF_READ,
		.handle = fh,
		.base = bufPtr_base,
		.size = size,
		.file_off = file_offset,
		.buf_off = bufPtr_offset,
	};

	return cf_result(cf_call_serve(&call, CF_DOOR_SYNC));
}

ssize_t cuFileWrite(CUfileHandle_t fh, const void *bufPtr_base, size_t size,
		    off_t file_offset, off_t bufPtr_offset)
{
	struct cf_call call = {
		.op = CF_WRITE,
		.handle = fh,
		.base = bufPtr_base,
		.size = size,
		.file_off = file_offset,
		.buf_off = bufPtr_offset,
	};

	return cf_result(cf_call_serve(&call, CF_DOOR_SYNC));
}

/* Bad vectors are refused whole, before any element moves. */
static int check_vector(const CUfileIOVec_t *iov, size_t iovcnt,
			off_t file_offset, unsigned flags)
{
	size_t total = 0;

	if (flags || iovcnt > MAX_IOVCNT || (!iov && iovcnt) || file_offset < 0)
		return -EINVAL;
	for (size_t i = 0; i < iovcnt; i++) {
		if (!iov[i].base && iov[i].len)
			return -EINVAL;
		if (iov[i].len > SSIZE_MAX - total)
			return -EINVAL;
		total += iov[i].len;
	}
	return total > (size_t)(LLONG_MAX - file_offset) ? -EINVAL : 0;
}

static bool has_length(const CUfileIOVec_t *iov, size_t iovcnt)
{
	for (size_t i = 0; i < iovcnt; i++)
		if (iov[i].len)
			return true;
	return false;
}

/* A call without elements is checked as a read of 0 bytes: handle and all. */
static int check_nothing(struct cf_call *call)
{
	static char nowhere;
	struct cf_request req;
	int err;

	call->base = &nowhere;
	call->size = 0;
	err = cf_request_init(&req, call);
	if (!err)
		cf_request_fini(&req);
	return err;
}

/* Makes each element's request for the sake of its checks, and drops it. */
static int check_elements(struct cf_call *call, const CUfileIOVec_t *iov,
			  size_t iovcnt)
{
	off_t start = call->file_off;

	for (size_t i = 0; i < iovcnt; i++) {
		struct cf_request req;
		int err;

		if (!iov[i].len)
			continue;
		call->base = iov[i].base;
		call->size = iov[i].len;
		err = cf_request_init(&req, call);
		if (err)
			return err;
		cf_request_fini(&req);
		call->file_off += (off_t)iov[i].len;
	}
	call->file_off = start;
	return 0;
}

/* Runs elements in order, up to the first that moves fewer bytes. */
static ssize_t run_elements(struct cf_call *call, const CUfileIOVec_t *iov,
			    size_t iovcnt)
{
	ssize_t total = 0;

	for (size_t i = 0; i < iovcnt; i++) {
		ssize_t n;

		if (!iov[i].len)
			continue;
		call->base = iov[i].base;
		call->size = iov[i].len;
		n = cf_call_serve(call, CF_DOOR_VECTOR);
		if (n < 0)
			return total ? total : n;
		total += n;
		call->file_off += n;
		if ((size_t)n < iov[i].len)
			break;
	}
	return total;
}

static ssize_t try_vector(struct cf_call *call, const CUfileIOVec_t *iov,
			  size_t iovcnt, unsigned flags)
{
	int err = check_vector(iov, iovcnt, call->file_off, flags);

	if (err) {
		cf_log_limited(
			CF_LOG_ERROR,
			"%sv handle %s iov " CF_TAG " count %zu off %lld "
			"flags %u: not a valid vector",
			cf_op_name(call->op), cf_handle_words(call->handle),
			cf_tag(iov), iovcnt, (long long)call->file_off, flags);
		return err;
	}
	err = has_length(iov, iovcnt) ? check_elements(call, iov, iovcnt) :
					check_nothing(call);
	return err ? err : run_elements(call, iov, iovcnt);
}

static ssize_t run_vector(struct cf_call *call, const CUfileIOVec_t *iov,
			  size_t iovcnt, unsigned flags)
{
	uint64_t start = cf_stats_begin();
	ssize_t n;

	cf_stats_break_pace(call->op);
	n = try_vector(call, iov, iovcnt, flags);
	if (start)
		cf_stats_vector(call->op, n, start);
	return n;
}

ssize_t cuFileReadv(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt,
		    off_t file_offset, unsigned flags)
{
	struct cf_call call = { .op = CF_READ,
				.handle = fh,
				.file_off = file_offset };

	return cf_result(run_vector(&call, iov, iovcnt, flags));
}

ssize_t cuFileWritev(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt,
		     off_t file_offset, unsigned flags)
{
	struct cf_call call = { .op = CF_WRITE,
				.handle = fh,
				.file_off = file_offset };

	return cf_result(run_vector(&call, iov, iovcnt, flags));
}
