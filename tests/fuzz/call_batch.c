// SPDX-License-Identifier: Apache-2.0
/*
 * call_batch - batches (see lane.h).
 *
 * Each entry has a window of its own, the same in its file and its memory,
 * so that entries may end in any order. Windows need not be whole blocks.
 */
#include "lane.h"

#include <stdlib.h>
#include <string.h>

static unsigned nr_out(const struct lane *lane)
{
	unsigned nr = 0;

	for (int i = 0; i < NR_WINDOWS; i++)
		nr += lane->entries[i].out;
	return nr;
}

void call_batch_setup(struct lane *lane)
{
	static const size_t windows[] = { 4096, 5000, MAX_WINDOW, 777 };
	unsigned nr = 1 + in_below(&lane->in, NR_WINDOWS + 4);

	must(cuFileBatchIOSetUp(NULL, nr).err == CU_FILE_INVALID_VALUE);
	if (lane->batch)
		return;
	must(!cuFileBatchIOSetUp(&lane->batch, nr).err);
	must(lane->batch && lane->batch != lane->old_batch);
	lane->room = nr;
	lane->window = windows[in_below(&lane->in, 4)];
}

/* Within the window, and for a write within the file as it is. */
static void pick_entry(struct lane *lane, struct io *io, size_t k)
{
	struct input *in = &lane->in;
	size_t size = in_u16(in) * SCALE % (lane->window + 1);
	size_t slack = lane->window - size + 1;

	*io = (struct io){
		.write = IS_WRITE(in_u8(in)),
		.file = &lane->files[in_below(in, NR_FILES)],
		.mem = &lane->mems[in_below(in, NR_MEMS)],
		.size = size,
	};
	io->buf_off = (off_t)(k * lane->window + in_u16(in) * SCALE % slack);
	io->file_off = (off_t)(k * lane->window + in_u16(in) * SCALE % slack);
	io->fh = io->file->fh;
	io_avoid_tail(io);
	if (!io->write)
		return;
	if ((size_t)io->file_off > io->file->size)
		io->size = 0;
	else if (io->size > io->file->size - (size_t)io->file_off)
		io->size = io->file->size - (size_t)io->file_off;
}

static CUfileIOParams_t params_of(const struct io *io, size_t k)
{
	CUfileIOParams_t p = { .mode = CUFILE_BATCH,
			       .fh = io->fh,
			       .opcode = io->write ? CUFILE_WRITE : CUFILE_READ,
			       .cookie = (void *)k };

	p.u.batch.devPtr_base = io_pointer(io);
	p.u.batch.devPtr_offset = io->buf_off;
	p.u.batch.file_offset = io->file_off;
	p.u.batch.size = io->size;
	return p;
}

/* True: this entry is made wrong, so the batch must refuse all entries. */
static bool spoil(struct input *in, CUfileIOParams_t *p)
{
	switch (in_u8(in)) {
	case 1:
		p->mode = (CUfileBatchMode_t)7;
		return true;
	case 2:
		p->opcode = (CUfileOpcode_t)2;
		return true;
	case 3:
		p->fh = NULL;
		return true;
	case 4:
		p->u.batch.devPtr_base = NULL;
		return true;
	case 5:
		p->u.batch.file_offset = -1;
		return true;
	case 6:
		p->u.batch.devPtr_offset = -4096;
		return true;
	default:
		return false;
	}
}

void call_batch_submit(struct lane *lane)
{
	CUfileIOParams_t params[NR_WINDOWS];
	struct io ios[NR_WINDOWS];
	size_t at[NR_WINDOWS];
	unsigned nr = 1 + in_below(&lane->in, NR_WINDOWS), n = 0;
	int code = 0, got;

	stream_settle(lane);
	if (!lane->batch) {
		memset(params, 0, sizeof(params));
		got = cuFileBatchIOSubmit(lane->old_batch, 1, params, 0).err;
		must(got == CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
		return;
	}
	for (size_t k = 0; k < NR_WINDOWS && n < nr; k++) {
		if (lane->entries[k].out)
			continue;
		pick_entry(lane, &ios[n], k);
		at[n] = k;
		params[n] = params_of(&ios[n], k);
		if (spoil(&lane->in, &params[n]) || io_expect(&ios[n]) < 0)
			code = CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
		n++;
	}
	if (!n)
		return;
	if (n > lane->room)
		code = CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
	if (!code && n > lane->room - nr_out(lane))
		code = CU_FILE_BATCH_FULL;
	got = cuFileBatchIOSubmit(lane->batch, n, params, 0).err;
	if (got != code)
		wrong("submit of %u, %u out, room for %u: %d, not %d", n,
		      nr_out(lane), lane->room, got, code);
	for (unsigned i = 0; i < n && !code; i++)
		lane->entries[at[i]] = (struct entry){ true, ios[i] };
}

/*
 * The handle may be deregistered by now, so the file alone says how much:
 * nothing changed its size since the submit.
 */
static size_t moved_by(const struct io *io)
{
	struct io then = *io;

	then.fh = then.file->fh = (CUfileHandle_t)1;
	return (size_t)io_expect(&then);
}

static void end_entry(struct lane *lane, const CUfileIOEvents_t *event)
{
	size_t k = (size_t)event->cookie;
	struct io *io;
	CUfileHandle_t fh;
	struct model_range ranges[NR_RANGES];
	size_t want;

	must(k < NR_WINDOWS && lane->entries[k].out);
	io = &lane->entries[k].io;
	/* a registration since the submit makes no difference */
	fh = io->file->fh;
	memcpy(ranges, io->mem->ranges, sizeof(ranges));
	memset(io->mem->ranges, 0, sizeof(ranges));
	want = moved_by(io);
	io->file->fh = fh;
	memcpy(io->mem->ranges, ranges, sizeof(ranges));
	if (event->status != CUFILE_COMPLETE || event->ret != want)
		wrong("entry %zu, %s of %zu at %lld: status %d, %zd, not %zu",
		      k, io->write ? "write" : "read", io->size,
		      (long long)io->file_off, (int)event->status,
		      (ssize_t)event->ret, want);
	io_apply(io, want);
	lane->entries[k].out = false;
}

static unsigned take_events(struct lane *lane, unsigned min_nr, unsigned nr,
			    struct timespec *timeout)
{
	CUfileIOEvents_t events[NR_WINDOWS + 4];
	unsigned out = nr_out(lane), got = nr;

	must(!cuFileBatchIOGetStatus(lane->batch, min_nr, &got, events, timeout)
		      .err);
	must(got <= nr && got <= out);
	if (!timeout && got < min_nr && got < out)
		wrong("%u events of %u, at least %u were waited for", got, out,
		      min_nr);
	for (unsigned i = 0; i < got; i++)
		end_entry(lane, &events[i]);
	return got;
}

void batch_settle(struct lane *lane)
{
	while (lane->batch && nr_out(lane))
		must(take_events(lane, 1, NR_WINDOWS + 4, NULL));
}

void call_batch_status(struct lane *lane)
{
	struct timespec timeout = { 0, (long)in_u16(&lane->in) };
	unsigned nr = in_below(&lane->in, NR_WINDOWS + 4);
	unsigned min_nr = in_below(&lane->in, NR_WINDOWS);
	CUfileIOEvents_t event;
	unsigned one = 1;
	int code;

	if (min_nr > nr)
		min_nr = nr;
	if (lane->batch) {
		(void)take_events(lane, min_nr, nr,
				  in_u8(&lane->in) & 1 ? &timeout : NULL);
		return;
	}
	code = cuFileBatchIOGetStatus(lane->old_batch, 0, &one, &event, NULL)
		       .err;
	must(code == CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
}

/*
 * Each entry has moved all its bytes or none. The bytes that are there now say
 * which, and the model learns it; others are found by lane_check.
 */
static void learn(struct lane *lane, struct entry *entry)
{
	struct io *io = &entry->io;
	struct io at = *io;
	CUfileHandle_t fh = io->file->fh;
	struct model_range ranges[NR_RANGES];
	unsigned char *want;
	size_t n;

	memcpy(ranges, io->mem->ranges, sizeof(ranges));
	memset(io->mem->ranges, 0, sizeof(ranges));
	n = moved_by(&at);
	io->file->fh = fh;
	memcpy(io->mem->ranges, ranges, sizeof(ranges));
	entry->out = false;
	if (!n)
		return;
	if (io->write) {
		th_file_get(&io->file->file, io->file_off, lane->got, n);
		want = io->mem->bytes + io->buf_off;
	} else {
		th_mem_get(&io->mem->mem, (size_t)io->buf_off, lane->got, n);
		want = io->file->bytes + io->file_off;
	}
	if (!memcmp(lane->got, want, n))
		io_apply(io, n);
}

void call_batch_cancel(struct lane *lane, bool destroy)
{
	CUfileIOEvents_t event;
	unsigned one = 1;

	if (destroy) {
		cuFileBatchIODestroy(lane->batch ? lane->batch :
						   lane->old_batch);
	} else {
		must(!cuFileBatchIOCancel(lane->batch ? lane->batch :
							lane->old_batch)
			      .err);
		if (lane->batch) {
			must(!cuFileBatchIOGetStatus(lane->batch, 0, &one,
						     &event, NULL)
				      .err);
			must(one == 0);
		}
	}
	if (!lane->batch)
		return;
	for (int i = 0; i < NR_WINDOWS; i++)
		if (lane->entries[i].out)
			learn(lane, &lane->entries[i]);
	if (!destroy)
		return;
	lane->old_batch = lane->batch;
	lane->batch = NULL;
}
