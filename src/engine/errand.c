// SPDX-License-Identifier: Apache-2.0
/* errand - reads the numbers, serves the call, writes the result. */
#include "engine/errand.h"

#include <errno.h>
#include <fcntl.h>
#include "core/ferry.h"
#include "core/handle.h"
#include "core/log.h"
#include "engine/call.h"

static void read_numbers(const struct cf_errand *errand, unsigned fixed,
			 struct cf_call *call)
{
	if (!(fixed & CU_FILE_STREAM_FIXED_FILE_SIZE))
		call->size = *errand->size_p;
	if (!(fixed & CU_FILE_STREAM_FIXED_FILE_OFFSET))
		call->file_off = *errand->file_off_p;
	if (!(fixed & CU_FILE_STREAM_FIXED_BUF_OFFSET))
		call->buf_off = *errand->buf_off_p;
}

void cf_errand_accept(struct cf_errand *errand)
{
	read_numbers(errand, 0, &errand->call);
}

/*
 * A read of a file that is open for writing only. KvikIO's users read the text
 * of a negative count, and cuFile has a code for this.
 */
static bool is_unreadable(const struct cf_handle *handle, enum cf_op op)
{
	return op == CF_READ && (handle->open_flags & O_ACCMODE) == O_WRONLY;
}

ssize_t cf_errand_run(const struct cf_errand *errand)
{
	struct cf_call call = errand->call;
	struct cf_handle *handle = cf_handle_get(call.handle);
	ssize_t n;

	if (!handle) {
		cf_log(CF_LOG_ERROR,
		       "%s in stream: handle %s was deregistered before the "
		       "stream came to it",
		       cf_op_name(call.op), cf_handle_words(call.handle));
		return -CU_FILE_HANDLE_NOT_REGISTERED;
	}
	call.held = handle;
	read_numbers(errand, errand->fixed, &call);
	call.facts = &errand->facts;
	call.ferry = errand->ferry;
	if (call.ferry)
		cf_ferry_look_at_gpu(call.ferry);
	if (errand->int_p && call.size > CF_ERRAND_INT_MAX)
		call.size = CF_ERRAND_INT_MAX;
	n = cf_call_serve(&call, CF_DOOR_STREAM);
	if (n == -EBADF && is_unreadable(handle, call.op))
		n = -CU_FILE_INVALID_FILE_OPEN_FLAG;
	cf_handle_put(handle);
	return n;
}

/*
 * An int has room for the codes of cuFile alone; all else is -1. Release: a
 * client that looks at the count instead of waiting for the stream finds the
 * bytes there; but not those that a ferry has yet to move out of its hold.
 */
void cf_errand_tell(const struct cf_errand *errand, ssize_t n)
{
	if (n < 0 && cf_is_cuda_error((int)n))
		n = -CU_FILE_CUDA_DRIVER_ERROR;
	if (!errand->int_p)
		__atomic_store_n(errand->bytes_p, n, __ATOMIC_RELEASE);
	else
		__atomic_store_n(errand->int_p,
				 n < 0 && n > -CUFILEOP_BASE_ERR ? -1 : (int)n,
				 __ATOMIC_RELEASE);
}
