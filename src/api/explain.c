// SPDX-License-Identifier: Apache-2.0
/* explain - which way bytes would travel (opencufile.h). */
#include <opencufile.h>

#include "api/sized.h"
#include "api/translate.h"
#include "engine/explain.h"

/* No allocation begins at 0, and every block size divides this. */
#define SOME_ADDRESS ((const void *)(1ul << 30))

static bool has_room(const ocf_explain_t *explain)
{
	return explain && explain->struct_size >= CF_EXPLAIN_MIN_SIZE;
}

static void give(const ocf_explain_t *ours, ocf_explain_t *theirs)
{
	theirs->struct_size =
		cf_give_sized(theirs, theirs->struct_size, ours, sizeof(*ours));
}

/* assumed: the kind of memory to believe in, or NULL for what is there. */
static CUfileError_t explain_call(const struct cf_call *call,
				  const enum cf_memory_kind *assumed,
				  ocf_explain_t *explain)
{
	const char *problem = NULL;
	struct cf_request req;
	ocf_explain_t answer;
	int err;

	if (!has_room(explain))
		return cf_error(-CU_FILE_INVALID_VALUE);
	err = cf_request_check(&req, call, assumed, &problem);
	if (err) {
		cf_explain_refusal(call, err, problem, &answer);
	} else {
		cf_explain_request(&req, &answer);
		cf_request_fini(&req);
	}
	give(&answer, explain);
	return cf_error(0);
}

CUfileError_t ocf_explain_read(CUfileHandle_t fh, const void *bufPtr_base,
			       size_t size, off_t file_offset,
			       off_t bufPtr_offset, ocf_explain_t *explain)
{
	struct cf_call call = {
		.op = CF_READ,
		.handle = fh,
		.base = bufPtr_base,
		.size = size,
		.file_off = file_offset,
		.buf_off = bufPtr_offset,
	};

	return explain_call(&call, NULL, explain);
}

CUfileError_t ocf_explain_write(CUfileHandle_t fh, const void *bufPtr_base,
				size_t size, off_t file_offset,
				off_t bufPtr_offset, ocf_explain_t *explain)
{
	struct cf_call call = {
		.op = CF_WRITE,
		.handle = fh,
		.base = bufPtr_base,
		.size = size,
		.file_off = file_offset,
		.buf_off = bufPtr_offset,
	};

	return explain_call(&call, NULL, explain);
}

CUfileError_t ocf_explain_memory(CUfileHandle_t fh, ocf_op_t op,
				 ocf_memory_t memory, size_t size,
				 off_t file_offset, off_t bufPtr_offset,
				 ocf_explain_t *explain)
{
	enum cf_memory_kind kind = (enum cf_memory_kind)memory;
	struct cf_call call = {
		.op = (enum cf_op)op,
		.handle = fh,
		.base = SOME_ADDRESS,
		.size = size,
		.file_off = file_offset,
		.buf_off = bufPtr_offset,
	};

	if ((op != OCF_READ && op != OCF_WRITE) ||
	    (unsigned)memory > OCF_MEMORY_MANAGED)
		return cf_error(-CU_FILE_INVALID_VALUE);
	return explain_call(&call, &kind, explain);
}

size_t ocf_explain_text(const ocf_explain_t *explain, char *text, size_t len)
{
	return has_room(explain) ? cf_explain_text(explain, text, len) : 0;
}
