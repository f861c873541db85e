// SPDX-License-Identifier: Apache-2.0
/*
 * call_stream - operations of a stream (see lane.h). They run in order, so
 * they may overlap; the model runs them when the stream is idle.
 */
#include "lane.h"

#include <errno.h>

static void end_sop(struct sop *sop)
{
	struct io *io = &sop->io;
	ssize_t want = io_expect(io);

	if (sop->n != want)
		wrong("in a stream: %s of %zu at %lld, memory %s %zu+%lld: %zd, "
		      "not %zd",
		      io->write ? "write" : "read", io->size,
		      (long long)io->file_off, th_mem_name(io->mem->mem.kind),
		      io->base, (long long)io->buf_off, sop->n, want);
	if (want > 0)
		io_apply(io, (size_t)want);
}

void stream_settle(struct lane *lane)
{
	if (!lane->nr_sops)
		return;
	must(!cuStreamSynchronize(lane->stream));
	for (unsigned i = 0; i < lane->nr_sops; i++)
		end_sop(&lane->sops[i]);
	lane->nr_sops = 0;
}

static int expect_submit(const struct io *io)
{
	if (!io->fh)
		return CU_FILE_INVALID_VALUE;
	return io->fh == io->file->fh ? 0 : CU_FILE_HANDLE_NOT_REGISTERED;
}

void call_stream_move(struct lane *lane)
{
	struct sop *sop;
	struct io *io;
	int code, want;

	batch_settle(lane);
	if (lane->nr_sops == NR_SOPS)
		stream_settle(lane);
	sop = &lane->sops[lane->nr_sops];
	io = &sop->io;
	io_pick(lane, io);
	io_avoid_tail(io);
	sop->size = io->size;
	sop->file_off = io->file_off;
	sop->buf_off = io->buf_off;
	sop->n = -777777;
	want = expect_submit(io);
	code = (io->write ? cuFileWriteAsync(io->fh, io_pointer(io), &sop->size,
					     &sop->file_off, &sop->buf_off,
					     &sop->n, lane->stream) :
			    cuFileReadAsync(io->fh, io_pointer(io), &sop->size,
					    &sop->file_off, &sop->buf_off,
					    &sop->n, lane->stream))
		       .err;
	if (code != want)
		wrong("in a stream: submit answers %d, not %d", code, want);
	lane->nr_sops += !code;
}

void call_stream_register(struct lane *lane)
{
	unsigned flags = in_u8(&lane->in) % 20;
	int code;

	if (in_u8(&lane->in) & 1) {
		/* waits for the stream's IO */
		code = cuFileStreamDeregister(lane->stream).err;
		must(code ==
		     (lane->stream_registered ? 0 : CU_FILE_INVALID_VALUE));
		lane->stream_registered = false;
		return;
	}
	/* promises would be kept: nothing here changes after the submit */
	flags &= 0x17;
	code = cuFileStreamRegister(lane->stream, flags).err;
	if (lane->stream_registered || flags > 0xf) {
		must(code == CU_FILE_INVALID_VALUE);
		return;
	}
	must(!code);
	lane->stream_registered = true;
}
