// SPDX-License-Identifier: Apache-2.0
/* lane - see lane.h. */
#include "lane.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So that operations are begun ahead. */
#define ALL_FIXED \
	(CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET | \
	 CU_FILE_STREAM_FIXED_FILE_SIZE)

static const enum th_mem_kind mem_kinds[NR_MEMS] = MEM_KINDS;
static const enum th_file_kind file_kinds[NR_FILES] = FILE_KINDS;

uint64_t lane_random(struct lane *lane)
{
	uint64_t z = lane->random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void lane_random_bytes(struct lane *lane, unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
		uint64_t word = lane_random(lane);

		memcpy(bytes + i, &word,
		       size - i < sizeof(word) ? size - i : sizeof(word));
	}
}

static unsigned char *bytes_of(size_t size)
{
	unsigned char *bytes = calloc(1, size);

	must(bytes);
	return bytes;
}

void lane_make(struct lane *lane, unsigned nr)
{
	lane->nr = nr;
	lane->got = bytes_of(FILE_MAX);
	lane->block = aligned_alloc(BLOCK, BLOCK);
	must(lane->block);
	for (int i = 0; i < NR_FILES; i++) {
		struct model_file *f = &lane->files[i];

		/* every second lane may not write to its last file */
		f->read_only = i == NR_FILES - 1 && nr % 2;
		th_file_make(&f->file, file_kinds[i],
			     f->read_only ? O_RDONLY : O_RDWR, NULL, 0);
		f->bytes = bytes_of(FILE_MAX);
	}
	for (int i = 0; i < NR_MEMS; i++) {
		struct model_mem *m = &lane->mems[i];

		th_mem_alloc(&m->mem, mem_kinds[i], MEM_SIZE);
		m->ends = mem_kinds[i] != TH_VMM && mem_kinds[i] != TH_MALLOC;
		m->bytes = bytes_of(MEM_SIZE);
	}
	must(!cuStreamCreate(&lane->stream, CF_CU_STREAM_NON_BLOCKING));
}

static void fill_file(struct lane *lane, struct model_file *f)
{
	f->fh = f->stale = NULL;
	f->size = MIN_SIZE + lane_random(lane) % (FILE_MAX * 3 / 4 - MIN_SIZE);
	memset(f->bytes, 0, FILE_MAX);
	lane_random_bytes(lane, f->bytes, f->size);
	must(!ftruncate(f->file.plain, 0));
	th_file_put(&f->file, 0, f->bytes, f->size);
}

void lane_fill(struct lane *lane, struct input in)
{
	lane->in = in;
	lane->random = 0;
	/* the bytes depend on the input alone */
	for (size_t i = 0; i < in.left; i++)
		lane->random = lane->random * 31 + in.at[i];
	for (int i = 0; i < NR_FILES; i++)
		fill_file(lane, &lane->files[i]);
	for (int i = 0; i < NR_MEMS; i++) {
		struct model_mem *m = &lane->mems[i];

		memset(m->ranges, 0, sizeof(m->ranges));
		lane_random_bytes(lane, m->bytes, MEM_SIZE);
		th_mem_put(&m->mem, 0, m->bytes, MEM_SIZE);
	}
	lane->batch = lane->old_batch = NULL;
	lane->stream_registered = false;
}

void lane_register(struct lane *lane)
{
	for (int i = 0; i < NR_FILES; i++)
		lane->files[i].fh = th_handle(lane->files[i].file.fd);
	must(!cuFileStreamRegister(lane->stream, ALL_FIXED).err);
	lane->stream_registered = true;
}

void lane_settle(struct lane *lane)
{
	batch_settle(lane);
	stream_settle(lane);
}

static void same(const struct lane *lane, const char *kind, int nr,
		 const unsigned char *want, size_t size)
{
	const unsigned char *got = lane->got;
	size_t i = 0, nr_wrong = 0;

	if (!memcmp(got, want, size))
		return;
	while (got[i] == want[i])
		i++;
	for (size_t k = i; k < size; k++)
		nr_wrong += got[k] != want[k];
	wrong("lane %u, %s %d: byte %zu of %zu is %02x, not %02x; %zu are "
	      "wrong",
	      lane->nr, kind, nr, i, size, got[i], want[i], nr_wrong);
}

void lane_check(struct lane *lane)
{
	for (int i = 0; i < NR_FILES; i++) {
		struct model_file *f = &lane->files[i];

		if (th_file_size(&f->file) != (off_t)f->size)
			wrong("lane %u, file %d has %lld bytes, not %zu",
			      lane->nr, i, (long long)th_file_size(&f->file),
			      f->size);
		th_file_get(&f->file, 0, lane->got, f->size);
		same(lane, "file", i, f->bytes, f->size);
	}
	for (int i = 0; i < NR_MEMS; i++) {
		th_mem_get(&lane->mems[i].mem, 0, lane->got, MEM_SIZE);
		same(lane, "memory", i, lane->mems[i].bytes, MEM_SIZE);
	}
}

void lane_forget(struct lane *lane)
{
	for (int i = 0; i < NR_FILES; i++) {
		struct model_file *f = &lane->files[i];

		f->stale = f->fh ? f->fh : f->stale;
		f->fh = NULL;
	}
	for (int i = 0; i < NR_MEMS; i++)
		memset(lane->mems[i].ranges, 0, sizeof(lane->mems[i].ranges));
	lane->old_batch = lane->batch ? lane->batch : lane->old_batch;
	lane->batch = NULL;
	lane->stream_registered = false;
}

void lane_finish(struct lane *lane)
{
	lane_settle(lane);
	lane_check(lane);
	cuFileBatchIODestroy(lane->batch);
	if (lane->stream_registered)
		must(!cuFileStreamDeregister(lane->stream).err);
	for (int i = 0; i < NR_FILES; i++)
		cuFileHandleDeregister(lane->files[i].fh);
	for (int i = 0; i < NR_MEMS; i++)
		for (int k = 0; k < NR_RANGES; k++) {
			struct model_mem *m = &lane->mems[i];

			if (m->ranges[k].size)
				must(!cuFileBufDeregister((char *)m->mem.ptr +
							  m->ranges[k].at)
					      .err);
		}
	lane_forget(lane);
}

/* ------------------------------------------------------------------ one io */

void *io_pointer(const struct io *io)
{
	return (char *)io->mem->mem.ptr + io->base;
}

/* 0, or why the range may not be touched. */
static int range_code(const struct io *io)
{
	size_t start = io->base + (size_t)io->buf_off;
	bool beyond = false;

	for (int i = 0; i < NR_RANGES; i++) {
		const struct model_range *r = &io->mem->ranges[i];

		if (io->base < r->at || io->base >= r->at + r->size)
			continue;
		if (start + io->size <= r->at + r->size)
			return 0;
		beyond = true;
	}
	if (beyond)
		return -CU_FILE_INVALID_MAPPING_RANGE;
	return io->mem->ends && start + io->size > MEM_SIZE ?
		       -CU_FILE_CUDA_POINTER_RANGE_ERROR :
		       0;
}

ssize_t io_expect(const struct io *io)
{
	size_t left;
	int err;

	if (!io->fh || io->fh != io->file->fh)
		return -EINVAL;
	if (io->file_off < 0 || io->buf_off < 0)
		return -EINVAL;
	if (io->size > (size_t)(LLONG_MAX - io->file_off))
		return -EINVAL;
	if (io->write && io->file->read_only)
		return -EBADF;
	err = range_code(io);
	if (err || io->write)
		return err ? err : (ssize_t)io->size;
	left = (size_t)io->file_off < io->file->size ?
		       io->file->size - (size_t)io->file_off :
		       0;
	return (ssize_t)(io->size < left ? io->size : left);
}

void io_apply(const struct io *io, size_t n)
{
	struct model_file *f = io->file;
	unsigned char *mem;

	if (!n)
		return;
	mem = io->mem->bytes + io->base + io->buf_off;
	if (!io->write) {
		memcpy(mem, f->bytes + io->file_off, n);
		return;
	}
	memcpy(f->bytes + io->file_off, mem, n);
	if ((size_t)io->file_off + n > f->size)
		f->size = (size_t)io->file_off + n;
}

static bool has_tail(const struct io *io)
{
	return !io->write && io->mem->mem.kind == TH_MALLOC;
}

void io_learn_tail(const struct io *io, size_t n)
{
	size_t at = io->base + (size_t)io->buf_off + n;

	if (has_tail(io) && n < io->size)
		th_mem_get(&io->mem->mem, at, io->mem->bytes + at,
			   io->size - n);
}

void io_avoid_tail(struct io *io)
{
	if (has_tail(io) && io->file_off >= 0 &&
	    ((size_t)io->file_off > io->file->size ||
	     io->size > io->file->size - (size_t)io->file_off))
		io->size = 0;
}

static size_t pick_number(struct input *in, size_t limit)
{
	switch (in_u8(in) % 6) {
	case 0:
		return in_u8(in);
	case 1:
		return (size_t)in_u8(in) * 512 * SCALE % (limit + 1);
	case 2:
		return (size_t)in_u8(in) * 4096 * SCALE % (limit + 1);
	case 3:
		return limit - in_u8(in);
	default:
		return (size_t)in_u16(in) * SPREAD % (limit + 1);
	}
}

/* Arguments that must be refused. */
static void pick_odd(struct input *in, struct io *io)
{
	switch (in_u8(in) % 7) {
	case 0:
		io->file_off = -1 - (off_t)in_u8(in);
		break;
	case 1:
		io->buf_off = -1 - (off_t)in_u8(in);
		break;
	case 2:
		/* never just short of the end: blocks may not fit there */
		io->file_off = LLONG_MAX - (off_t)in_u8(in);
		io->size += 256;
		break;
	case 3:
		io->fh = NULL;
		break;
	case 4:
		io->fh = io->file->stale;
		break;
	case 5:
		io->fh = (CUfileHandle_t)(uintptr_t)in_u16(in);
		break;
	default:
		io->buf_off = (off_t)(MEM_SIZE + in_u8(in));
	}
}

void io_clamp(struct io *io)
{
	size_t start;

	if (io_expect(io) < 0)
		return;
	start = io->base + (size_t)io->buf_off;
	if (start > MEM_SIZE) {
		io->buf_off = 0;
		start = io->base;
	}
	if (io->size > MEM_SIZE - start)
		io->size = MEM_SIZE - start;
	if (!io->write)
		return;
	if (io->file_off > (off_t)FILE_MAX)
		io->file_off %= FILE_MAX;
	if (io->size > FILE_MAX - (size_t)io->file_off)
		io->size = FILE_MAX - (size_t)io->file_off;
}

void io_pick(struct lane *lane, struct io *io)
{
	struct input *in = &lane->in;
	unsigned what = in_u8(in);

	*io = (struct io){
		.write = IS_WRITE(what),
		.file = &lane->files[in_below(in, NR_FILES)],
		.mem = &lane->mems[in_below(in, NR_MEMS)],
	};
	io->fh = io->file->fh;
	if (what & 2)
		io->base = pick_number(in, MEM_SIZE - 1);
	if (what & 4)
		io->buf_off = (off_t)pick_number(in, MEM_SIZE - io->base);
	io->file_off = (off_t)pick_number(in, FILE_MAX);
	io->size = pick_number(in, MEM_SIZE);
	/* most of the time the range fits */
	if (what & 0x38 && io->size > MEM_SIZE - io->base - io->buf_off)
		io->size = MEM_SIZE - io->base - io->buf_off;
	if (what >= 0xf0)
		pick_odd(in, io);
	io_clamp(io);
}
