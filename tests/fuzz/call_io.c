// SPDX-License-Identifier: Apache-2.0
/* call_io - handles, buffers, and the calls that wait (see lane.h). */
#include "lane.h"

#include <errno.h>
#include <limits.h>
#include <opencufile.h>
#include <string.h>
#include <unistd.h>

#define MAX_ELEMENTS 5
#define REST_MS 21 /* a file that was not written for so long may be pinned */

static void must_answer(const char *call, CUfileError_t e, int code)
{
	if ((int)e.err != code || e.cu_err)
		wrong("%s answers %d (cu_err %d), not %d", call, (int)e.err,
		      (int)e.cu_err, code);
}

void call_register(struct lane *lane)
{
	struct model_file *f = &lane->files[in_below(&lane->in, NR_FILES)];
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = f->file.fd };
	CUfileHandle_t fh = NULL;

	must_answer("HandleRegister", cuFileHandleRegister(&fh, &descr),
		    f->fh ? CU_FILE_HANDLE_ALREADY_REGISTERED :
			    CU_FILE_SUCCESS);
	if (f->fh)
		return;
	must(fh && fh != f->stale);
	f->fh = fh;
}

/* Also while a batch is under way: it returns when the entries are done. */
void call_deregister(struct lane *lane)
{
	struct model_file *f = &lane->files[in_below(&lane->in, NR_FILES)];

	stream_settle(lane);
	cuFileHandleDeregister(f->fh ? f->fh : f->stale);
	if (f->fh)
		f->stale = f->fh;
	f->fh = NULL;
}

void call_buf_register(struct lane *lane)
{
	struct input *in = &lane->in;
	struct model_mem *m = &lane->mems[in_below(in, NR_MEMS)];
	struct model_range *free_range = NULL;
	size_t at = in_u8(in) & 1 ? (size_t)in_u16(in) * SCALE : 0;
	size_t size = 1 + (size_t)in_u16(in) * 2 * SCALE;
	int code = 0;

	stream_settle(lane);
	if (!m->ends && at + size > MEM_SIZE)
		size = MEM_SIZE - at;
	if (at + size > MEM_SIZE)
		code = CU_FILE_CUDA_POINTER_RANGE_ERROR;
	for (int i = 0; i < NR_RANGES; i++) {
		struct model_range *r = &m->ranges[i];

		if (!r->size)
			free_range = r;
		else if (r->at == at && !code)
			code = CU_FILE_MEMORY_ALREADY_REGISTERED;
	}
	if (!code && !free_range)
		return;
	must_answer("BufRegister",
		    cuFileBufRegister((char *)m->mem.ptr + at, size, 0), code);
	if (!code)
		*free_range = (struct model_range){ at, size };
}

void call_buf_deregister(struct lane *lane)
{
	struct input *in = &lane->in;
	struct model_mem *m = &lane->mems[in_below(in, NR_MEMS)];
	struct model_range *r = &m->ranges[in_below(in, NR_RANGES)];
	bool known = false;

	stream_settle(lane);
	for (int i = 0; i < NR_RANGES; i++)
		known |= m->ranges[i].size && m->ranges[i].at == r->at;
	must_answer("BufDeregister",
		    cuFileBufDeregister((char *)m->mem.ptr + r->at),
		    known ? CU_FILE_SUCCESS : CU_FILE_MEMORY_NOT_REGISTERED);
	if (r->size)
		r->size = 0;
	else
		for (int i = 0; i < NR_RANGES; i++)
			if (m->ranges[i].at == r->at)
				m->ranges[i].size = 0;
}

/* Explaining foretells the call's answer and moves nothing. */
static void explain(const struct io *io, ssize_t n)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };
	CUfileError_t err;

	err = io->write ? ocf_explain_write(io->fh, io_pointer(io), io->size,
					    io->file_off, io->buf_off, &e) :
			  ocf_explain_read(io->fh, io_pointer(io), io->size,
					   io->file_off, io->buf_off, &e);
	must_answer("explain", err, 0);
	if (e.code != (n < 0 ? -n : 0))
		wrong("explain says %d (%s), but the call answers %zd", e.code,
		      e.problem ? e.problem : "", n);
}

static void must_move(const struct io *io, ssize_t n, int err, ssize_t want)
{
	ssize_t got = n < 0 ? -(ssize_t)err : n;

	if (got != want || n < -1)
		wrong("%s of %zu at %lld, file of %zu, memory %s %zu+%lld: "
		      "%zd, not %zd",
		      io->write ? "write" : "read", io->size,
		      (long long)io->file_off, io->file->size,
		      th_mem_name(io->mem->mem.kind), io->base,
		      (long long)io->buf_off, got, want);
}

void call_move(struct lane *lane)
{
	struct io io;
	ssize_t n, want;

	lane_settle(lane);
	io_pick(lane, &io);
	want = io_expect(&io);
	if (in_u8(&lane->in) % 4 == 0)
		explain(&io, want);
	errno = 0;
	n = io.write ? cuFileWrite(io.fh, io_pointer(&io), io.size, io.file_off,
				   io.buf_off) :
		       cuFileRead(io.fh, io_pointer(&io), io.size, io.file_off,
				  io.buf_off);
	must_move(&io, n, errno, want);
	if (want >= 0)
		io_apply(&io, (size_t)want);
	if (want >= 0)
		io_learn_tail(&io, (size_t)want);
}

/* Elements go one behind the other in the file that the first one names. */
static size_t pick_elements(struct lane *lane, struct io *ios)
{
	size_t nr = in_below(&lane->in, MAX_ELEMENTS + 1);
	off_t at = 0;

	for (size_t i = 0; i < nr; i++) {
		io_pick(lane, &ios[i]);
		ios[i].base += ios[i].buf_off > 0 ? (size_t)ios[i].buf_off : 0;
		ios[i].buf_off = 0;
		/* a pointer past the end is somebody else's memory */
		if (ios[i].base >= MEM_SIZE)
			ios[i].base = 0;
		if (i) {
			ios[i].write = ios[0].write;
			ios[i].file = ios[0].file;
			ios[i].fh = ios[0].fh;
		} else {
			at = ios[0].file_off;
		}
		ios[i].file_off = at;
		io_clamp(&ios[i]);
		io_avoid_tail(&ios[i]);
		if (ios[i].file_off != at)
			ios[i].size = 0;
		ios[i].file_off = at;
		if (at >= 0 && ios[i].size <= (size_t)(LLONG_MAX - at))
			at += (off_t)ios[i].size;
	}
	return nr;
}

/* 0, or the code with which the whole vector is refused. */
static ssize_t expect_vector(const struct io *ios, size_t nr)
{
	struct io none = nr ? ios[0] : (struct io){ 0 };
	ssize_t first = 0;

	for (size_t i = 0; i < nr; i++) {
		ssize_t n = io_expect(&ios[i]);

		if (ios[i].file_off < 0 ||
		    ios[i].size > (size_t)(LLONG_MAX - ios[i].file_off))
			return -EINVAL;
		if (n < 0 && ios[i].size && !first)
			first = n;
	}
	if (first || !nr)
		return first;
	/* handle and access count for nothing, too */
	none.size = 0;
	none.base = 0;
	none.buf_off = 0;
	return io_expect(&none);
}

void call_vector(struct lane *lane)
{
	struct io ios[MAX_ELEMENTS] = { 0 };
	CUfileIOVec_t iov[MAX_ELEMENTS];
	size_t nr = pick_elements(lane, ios);
	ssize_t n, want;

	lane_settle(lane);
	if (!nr)
		return;
	for (size_t i = 0; i < nr; i++)
		iov[i] = (CUfileIOVec_t){ io_pointer(&ios[i]), ios[i].size };
	want = expect_vector(ios, nr);
	if (!want) {
		for (size_t i = 0; i < nr; i++) {
			ssize_t part = io_expect(&ios[i]);

			io_apply(&ios[i], (size_t)part);
			want += part;
			if ((size_t)part < ios[i].size)
				break;
		}
	}
	errno = 0;
	n = ios[0].write ?
		    cuFileWritev(ios[0].fh, iov, nr, ios[0].file_off, 0) :
		    cuFileReadv(ios[0].fh, iov, nr, ios[0].file_off, 0);
	must_move(&ios[0], n, errno, want);
}

void call_truncate(struct lane *lane)
{
	struct model_file *f = &lane->files[in_below(&lane->in, NR_FILES)];
	size_t size = (size_t)in_u16(&lane->in) * 2 * SCALE;

	lane_settle(lane);
	must(!ftruncate(f->file.plain, (off_t)size));
	if (size < f->size)
		memset(f->bytes + size, 0, f->size - size);
	f->size = size;
}

/* If the file is open with O_DIRECT the write takes pages from the cache. */
static void write_block(struct lane *lane, struct model_file *f)
{
	size_t at = in_u16(&lane->in) * BLOCK;

	if (f->size < BLOCK || f->read_only)
		return;
	at %= f->size / BLOCK * BLOCK;
	lane_random_bytes(lane, lane->block, BLOCK);
	must(pwrite(f->file.fd, lane->block, BLOCK, (off_t)at) ==
	     (ssize_t)BLOCK);
	memcpy(f->bytes + at, lane->block, BLOCK);
}

void call_outside(struct lane *lane)
{
	unsigned what = in_u8(&lane->in);

	lane_settle(lane);
	if (what & 1)
		write_block(lane, &lane->files[in_below(&lane->in, NR_FILES)]);
	if (what & 6)
		th_sleep_ms(REST_MS);
}
