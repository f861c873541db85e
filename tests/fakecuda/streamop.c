// SPDX-License-Identifier: Apache-2.0
/*
 * streamop - what is done in a stream besides moving bytes: host functions,
 * waiting for values and writing them, one by one or in a batch.
 */
#include "internal.h"

static int host_func(CUstream h, CUhostFn fn, void *arg)
{
	struct fc_stream *s;
	struct fc_op *op;
	int r = fc_stream_get(h, STREAM_OF_CURRENT, &s);

	if (!r && !fn)
		r = CF_CU_INVALID_VALUE;
	if (r)
		return r;
	op = fc_op_new(OP_HOST);
	op->host_fn = fn;
	op->host_arg = arg;
	return fc_submit(s, op, NULL);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user_data)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(host_func(stream, fn, user_data));
}

static int value_op(enum fc_opcode code, CUstream h, CUdeviceptr addr,
		    uint64_t value, unsigned int width, unsigned int flags)
{
	struct fc_stream *s;
	struct fc_op *op;
	int r = fc_stream_get(h, STREAM_OF_CURRENT, &s);

	/* newer devices know no write without its barrier */
	if (!r && (flags & ~3u || (code == OP_WRITE_VALUE && flags)))
		r = CF_CU_INVALID_VALUE;
	if (r)
		return r;
	op = fc_op_new(code);
	op->dst = addr;
	op->value = value;
	op->width = width;
	op->flags = flags;
	return fc_submit(s, op, NULL);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr,
				uint32_t value, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(
		value_op(OP_WAIT_VALUE, stream, addr, value, 4, flags));
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr,
				uint64_t value, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(
		value_op(OP_WAIT_VALUE, stream, addr, value, 8, flags));
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr,
				 uint32_t value, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(
		value_op(OP_WRITE_VALUE, stream, addr, value, 4, flags));
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr,
				 uint64_t value, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(
		value_op(OP_WRITE_VALUE, stream, addr, value, 8, flags));
}

/* All or nothing, as far as the arguments go. */
static int batch(CUstream h, unsigned int nr, const CUstreamBatchMemOpParams *p)
{
	int r = 0;

	for (unsigned int i = 0; i < nr; i++)
		if (p[i].operation != CF_CU_STREAM_MEM_OP_WAIT_VALUE_32 &&
		    p[i].operation != CF_CU_STREAM_MEM_OP_WRITE_VALUE_32)
			return CF_CU_INVALID_VALUE;
	for (unsigned int i = 0; i < nr && !r; i++)
		r = p[i].operation == CF_CU_STREAM_MEM_OP_WAIT_VALUE_32 ?
			    value_op(OP_WAIT_VALUE, h, p[i].waitValue.address,
				     p[i].waitValue.value, 4,
				     p[i].waitValue.flags) :
			    value_op(OP_WRITE_VALUE, h, p[i].writeValue.address,
				     p[i].writeValue.value, 4,
				     p[i].writeValue.flags);
	return r;
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int nr,
			       CUstreamBatchMemOpParams *ops,
			       unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	if (!ops || !nr || nr >= 256 || flags)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(batch(stream, nr, ops));
}
