// SPDX-License-Identifier: Apache-2.0
/*
 * copy - the memcpy and memset family.
 *
 * When a call returns is modelled on the real driver:
 *  - a plain copy of up to 64 KiB from pageable memory has taken its bytes but
 *    not delivered them: the transfer is still to come, on the legacy stream;
 *  - other plain copies with a host side are complete;
 *  - asynchronous copies from pageable memory have taken their bytes, those to
 *    pageable memory are complete;
 *  - pinned and registered memory is read and written when the copy runs;
 *  - but up to 24 KiB are put into the commands, by the CPU: a file's page must
 *    be there. What it read is not kept, so that all else is as for others.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "unseen.h"

enum { STAGED_MAX = 64 << 10, COMMAND_MAX = 24 << 10 };

enum host_side {
	PAGEABLE,
	PINNED,
	ON_DEVICE,
};

static enum host_side side(uint64_t addr)
{
	struct fc_range *r = fc_range_at(addr);

	if (!r)
		return PAGEABLE;
	return fc_is_host_kind(r) ? PINNED : ON_DEVICE;
}

/* Is all of it memory that the driver does not know? */
static bool all_pageable(uint64_t addr, size_t size)
{
	struct fc_range *next = fc_range_after(addr);

	return side(addr) == PAGEABLE && !(next && next->base - addr < size);
}

static struct fc_op *copy_op(uint64_t dst, uint64_t src, size_t size,
			     unsigned int need)
{
	struct fc_op *op = fc_op_new(OP_COPY);

	op->dst = dst;
	op->src = src;
	op->size = size;
	op->need = need;
	return op;
}

/* Pageable source bytes are taken now, by the caller's thread. */
static void take_bytes(struct fc_op *op)
{
	if (op->need & COPY_SRC_KNOWN ||
	    !FC_LOCKED(all_pageable(op->src, op->size)))
		return;
	op->snapshot = malloc(op->size);
	if (!op->snapshot)
		abort();
	copy_to_unseen(op->snapshot, (const void *)(uintptr_t)op->src,
		       op->size);
}

static bool must_wait(const struct fc_op *op, bool sync)
{
	enum host_side to = side(op->dst);

	if (!sync)
		return to == PAGEABLE;
	if (to != ON_DEVICE)
		return true;
	if (op->snapshot)
		return op->size > STAGED_MAX;
	return side(op->src) == PINNED;
}

/* Owns op. */
static int submit(struct fc_op *op, bool sync, const char *what, CUstream h)
{
	struct fc_stream *s;
	uint64_t seq;
	bool wait;
	int r = fc_stream_get(h, STREAM_OF_CURRENT, &s);

	if (!r && sync)
		r = fc_capture_unsafe(what);
	if (r || op->size == 0) {
		fc_op_free(op);
		return r;
	}
	wait = must_wait(op, sync) && !s->cap;
	r = fc_submit(s, op, &seq);
	return r || !wait ? r : fc_wait(s, seq);
}

static bool is_pages(uint64_t addr)
{
	const struct fc_range *r = fc_range_at(addr);

	return r && r->kind == MEM_REGISTERED && r->pages;
}

/* A fault that is not to come with the lock held. */
static void read_into_command(const char *src, size_t size)
{
	const char *end = src + size;

	if (!size || size > COMMAND_MAX || !FC_LOCKED(is_pages((uintptr_t)src)))
		return;
	for (; src < end; src += fc_page() - (uintptr_t)src % fc_page())
		(void)*(const volatile char *)src;
}

static int transfer(uint64_t dst, uint64_t src, size_t size, unsigned int need,
		    bool sync, const char *what, CUstream h)
{
	struct fc_op *op = copy_op(dst, src, size, need);

	take_bytes(op);
	return FC_LOCKED(submit(op, sync, what, h));
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
	FC_ENTER(FC_NORMAL);
	return transfer(dst, (uintptr_t)src, size, COPY_DST_KNOWN, true,
			__func__, NULL);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size)
{
	FC_ENTER(FC_NORMAL);
	return transfer((uintptr_t)dst, src, size, COPY_SRC_KNOWN, true,
			__func__, NULL);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	FC_ENTER(FC_NORMAL);
	return transfer(dst, src, size, COPY_DST_KNOWN | COPY_SRC_KNOWN, true,
			__func__, NULL);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	FC_ENTER(FC_NORMAL);
	return transfer(dst, src, size, 0, true, __func__, NULL);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size,
		       CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return transfer(dst, src, size, 0, false, __func__, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size,
			      CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	read_into_command(src, size);
	return transfer(dst, (uintptr_t)src, size, COPY_DST_KNOWN, false,
			__func__, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size,
			      CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return transfer((uintptr_t)dst, src, size, COPY_SRC_KNOWN, false,
			__func__, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size,
			      CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return transfer(dst, src, size, COPY_DST_KNOWN | COPY_SRC_KNOWN, false,
			__func__, stream);
}

/* Of rows the library knows those that lie together, from host to device. */
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	if (c->srcPitch < c->WidthInBytes || c->dstPitch < c->WidthInBytes)
		return CF_CU_INVALID_VALUE;
	if (c->srcMemoryType != CF_CU_MEMORYTYPE_HOST ||
	    c->dstMemoryType != CF_CU_MEMORYTYPE_DEVICE || c->srcXInBytes ||
	    c->srcY || c->dstXInBytes || c->dstY ||
	    c->srcPitch != c->WidthInBytes || c->dstPitch != c->WidthInBytes) {
		fc_complain("%s: rows of another kind are not built", __func__);
		return CF_CU_NOT_SUPPORTED;
	}
	return transfer(c->dstDevice, (uintptr_t)c->srcHost,
			c->WidthInBytes * c->Height, COPY_DST_KNOWN, false,
			__func__, stream);
}

/* --- batches */

struct batch {
	const CUdeviceptr *dsts;
	const CUdeviceptr *srcs;
	const size_t *sizes;
	size_t count;
	const CUmemcpyAttributes *attrs;
	const size_t *attr_idxs; /* attrs[i] holds from copy attr_idxs[i] on */
	size_t nr_attrs;
};

/* The index of the first bad copy, or -1 where the whole is bad, or count. */
static size_t batch_check(const struct batch *b)
{
	if (!b->dsts || !b->srcs || !b->sizes || b->count == 0 || !b->attrs ||
	    !b->attr_idxs || b->nr_attrs == 0 || b->nr_attrs > b->count ||
	    b->attr_idxs[0] != 0)
		return SIZE_MAX;
	for (size_t i = 0; i < b->nr_attrs; i++)
		if (b->attrs[i].srcAccessOrder < 1 ||
		    b->attrs[i].srcAccessOrder > 3 ||
		    (i && b->attr_idxs[i] <= b->attr_idxs[i - 1]))
			return SIZE_MAX;
	for (size_t i = 0; i < b->count; i++)
		if (b->sizes[i] == 0)
			return i;
	return b->count;
}

static struct fc_op **batch_ops(const struct batch *b)
{
	struct fc_op **ops = fc_zalloc(b->count * sizeof(struct fc_op *));
	size_t attr = 0;

	for (size_t i = 0; i < b->count; i++) {
		while (attr + 1 < b->nr_attrs && b->attr_idxs[attr + 1] <= i)
			attr++;
		ops[i] = copy_op(b->dsts[i], b->srcs[i], b->sizes[i], 0);
		if (b->attrs[attr].srcAccessOrder ==
		    CF_CU_MEMCPY_SRC_ORDER_DURING_CALL)
			take_bytes(ops[i]);
	}
	return ops;
}

/* All copies or none. *bad: the copy that stands in the way. */
static int batch_submit(struct fc_op **ops, size_t count, CUstream h,
			size_t *bad)
{
	struct fc_stream *s;
	int r = fc_stream_get(h, STREAM_OF_CURRENT | STREAM_NOT_LEGACY, &s);

	for (size_t i = 0; !r && !s->cap && i < count; i++) {
		struct fc_op *probe = fc_op_clone(ops[i]);

		/* the snapshot stays the original's */
		r = fc_op_resolve(probe);
		probe->snapshot = NULL;
		fc_op_free(probe);
		if (r)
			*bad = i;
	}
	for (size_t i = 0; i < count; i++) {
		if (r)
			fc_op_free(ops[i]);
		else
			r = fc_submit(s, ops[i], NULL);
	}
	return r;
}

static int batch(const struct batch *b, size_t *fail_idx, CUstream h)
{
	size_t bad = batch_check(b);
	struct fc_op **ops;
	int r;

	if (fail_idx)
		*fail_idx = bad;
	if (bad != b->count)
		return CF_CU_INVALID_VALUE;
	bad = SIZE_MAX;
	for (size_t i = 0; i < b->count; i++)
		read_into_command((const char *)(uintptr_t)b->srcs[i],
				  b->sizes[i]);
	ops = batch_ops(b);
	r = FC_LOCKED(batch_submit(ops, b->count, h, &bad));
	free(ops);
	if (fail_idx)
		*fail_idx = bad;
	return r;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs,
			       size_t *sizes, size_t count,
			       CUmemcpyAttributes *attrs, size_t *attr_idxs,
			       size_t nr_attrs, CUstream stream)
{
	struct batch b = {
		dsts, srcs, sizes, count, attrs, attr_idxs, nr_attrs
	};

	FC_ENTER(FC_NORMAL);
	return batch(&b, NULL, stream);
}

/* The form of CUDA 12.8, which says where it failed. */
#undef cuMemcpyBatchAsync
#pragma GCC visibility push(default)
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
			    size_t count, CUmemcpyAttributes *attrs,
			    size_t *attr_idxs, size_t nr_attrs,
			    size_t *fail_idx, CUstream stream);
#pragma GCC visibility pop
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
			    size_t count, CUmemcpyAttributes *attrs,
			    size_t *attr_idxs, size_t nr_attrs,
			    size_t *fail_idx, CUstream stream)
{
	struct batch b = {
		dsts, srcs, sizes, count, attrs, attr_idxs, nr_attrs
	};

	FC_ENTER(FC_NORMAL);
	return batch(&b, fail_idx, stream);
}

/* --- fills: waited for where a CPU may look, as on the real driver */

static bool fill_must_wait(uint64_t dst, bool sync)
{
	const struct fc_range *r = fc_range_at(dst);

	return sync && r && (fc_is_host_kind(r) || r->kind == MEM_MANAGED);
}

static int fill(uint64_t dst, uint64_t value, unsigned int width, size_t count,
		const char *sync, CUstream h)
{
	struct fc_stream *s;
	struct fc_op *op;
	uint64_t seq;
	bool wait;
	int r = fc_stream_get(h, STREAM_OF_CURRENT, &s);

	if (!r && sync)
		r = fc_capture_unsafe(sync);
	if (!r && (dst % width || count > SIZE_MAX / width))
		r = CF_CU_INVALID_VALUE;
	if (r || count == 0)
		return r;
	op = fc_op_new(OP_FILL);
	op->dst = dst;
	op->value = value;
	op->width = width;
	op->size = count * width;
	wait = fill_must_wait(dst, sync != NULL);
	r = fc_submit(s, op, &seq);
	return r || !wait ? r : fc_wait(s, seq);
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(fill(dst, value, 1, count, __func__, NULL));
}

CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t count)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(fill(dst, value, 4, count, __func__, NULL));
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count,
			 CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(fill(dst, value, 1, count, NULL, stream));
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count,
			  CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(fill(dst, value, 4, count, NULL, stream));
}
