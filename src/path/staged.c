// SPDX-License-Identifier: Apache-2.0
/*
 * staged - device memory by way of pinned slots, IO and copies overlapped.
 *
 * DESIGN  A piece is cut into steps of at most a slot. Reading: step n is
 * read from the file into a slot while the copy of step n - 1 out of another
 * slot is on its way. Writing: the copies of the next steps run while step n
 * is written. The piece waits for its first slot holding nothing and takes
 * the others only if they are free, so it always gets on.
 *
 * Bytes sit in a slot at the same offset from a block boundary as they have
 * in the file; whole blocks can then travel O_DIRECT. A direct read takes
 * the blocks around an unaligned step whole and copies what was asked.
 */
#include <cufile.h>
#include <stdatomic.h>
#include "core/device.h"
#include "core/file.h"
#include "core/log.h"
#include "path/path.h"

/* What one run of a piece holds and has reached. */
struct stage {
	const struct cf_piece *piece;
	const struct cf_cuda *cuda;
	struct cf_device *dev;
	struct cf_lane *lane;
	struct cf_slot *slots[CF_LANE_DEPTH];
	int nr_slots;
	size_t mask; /* of the handle's block size */
};

/* The part of the piece that one slot carries. */
struct step {
	size_t at; /* from the piece's start */
	size_t size;
	size_t delta; /* from the slot's start */
};

static enum cf_why staged_can(const struct cf_piece *piece,
			      const struct cf_policy *policy)
{
	if (piece->mem.kind == CF_MEMORY_HOST)
		return CF_WHY_NOT_DEVICE;
	return policy->allow_bounce ? CF_WHY_YES : CF_WHY_STRICT;
}

/* The step that begins at; the first ends where a block does. */
static struct step step_at(const struct stage *stage, size_t at)
{
	const struct cf_piece *piece = stage->piece;
	size_t slot = stage->slots[0]->size;
	struct step step = { .at = at };

	step.delta = ((size_t)piece->file_off + at) & stage->mask;
	step.size = slot - step.delta;
	if (step.size > piece->size - at)
		step.size = piece->size - at;
	return step;
}

static CUdeviceptr device_addr(const struct stage *stage,
			       const struct step *step)
{
	return (CUdeviceptr)stage->piece->mem.addr + step->at;
}

/* Bytes of the step that are in the slot now, or -errno. */
static ssize_t fill_slot(const struct stage *stage, const struct step *step,
			 struct cf_slot *slot)
{
	const struct cf_piece *piece = stage->piece;
	off_t off = piece->file_off + (off_t)step->at;
	size_t whole = (step->delta + step->size + stage->mask) & ~stage->mask;
	ssize_t n;

	if (!cf_file_is_direct(piece->handle))
		return cf_file_read(piece->handle, slot->mem + step->delta,
				    step->size, off);
	n = cf_file_read(piece->handle, slot->mem, whole,
			 off - (off_t)step->delta);
	if (n < 0)
		return n;
	n -= (ssize_t)step->delta;
	if (n < 0)
		return 0;
	return n < (ssize_t)step->size ? n : (ssize_t)step->size;
}

static int copy_in(const struct stage *stage, const struct step *step, int k,
		   size_t size)
{
	CUresult res;

	res = stage->cuda->memcpy_htod_async(device_addr(stage, step),
					     stage->slots[k]->mem + step->delta,
					     size, stage->lane->stream);
	if (res == CF_CU_SUCCESS)
		res = stage->cuda->event_record(stage->lane->done[k],
						stage->lane->stream);
	return cf_cuda_code(res);
}

static int copy_out(const struct stage *stage, const struct step *step, int k)
{
	CUresult res;

	res = stage->cuda->memcpy_dtoh_async(stage->slots[k]->mem + step->delta,
					     device_addr(stage, step),
					     step->size, stage->lane->stream);
	if (res == CF_CU_SUCCESS)
		res = stage->cuda->event_record(stage->lane->done[k],
						stage->lane->stream);
	return cf_cuda_code(res);
}

static int wait_copy(const struct stage *stage, int k)
{
	return cf_cuda_code(
		stage->cuda->event_synchronize(stage->lane->done[k]));
}

/* One more slot for the overlap, if there is one to be had. */
static void widen(struct stage *stage)
{
	if (stage->nr_slots == CF_LANE_DEPTH)
		return;
	stage->slots[stage->nr_slots] =
		cf_slot_try_lease(stage->dev->gpu->pool);
	if (stage->slots[stage->nr_slots])
		stage->nr_slots++;
}

/* Step nr of a read: its bytes are on their way to the device, or -error. */
static ssize_t read_step(struct stage *stage, const struct step *step,
			 size_t nr)
{
	int k = (int)(nr % (size_t)stage->nr_slots);
	ssize_t n = 0;
	int err = 0;

	if (nr >= (size_t)stage->nr_slots)
		err = wait_copy(stage, k);
	if (!err)
		n = fill_slot(stage, step, stage->slots[k]);
	if (n > 0)
		err = copy_in(stage, step, k, (size_t)n);
	return err ? err : n;
}

static ssize_t run_read(struct stage *stage)
{
	size_t size = stage->piece->size, at = 0;
	ssize_t n = 0;
	CUresult res;

	/* step nr lives in slot nr % nr_slots, so widen only on a lap's end */
	for (size_t nr = 0; at < size; nr++) {
		struct step step = step_at(stage, at);

		if (nr == (size_t)stage->nr_slots)
			widen(stage);
		n = read_step(stage, &step, nr);
		if (n > 0)
			at += (size_t)n;
		if (n < (ssize_t)step.size)
			break;
	}
	if (!at || (n < 0 && cf_is_cuda_error((int)n)))
		return n;
	/* Seen by every stream once the copies are done. */
	res = stage->cuda->stream_synchronize(stage->lane->stream);
	return res == CF_CU_SUCCESS ? (ssize_t)at : CF_ECUDA(res);
}

static ssize_t drain_slot(const struct stage *stage, const struct step *step,
			  struct cf_slot *slot)
{
	const struct cf_piece *piece = stage->piece;

	return cf_file_write(piece->handle, slot->mem + step->delta, step->size,
			     piece->file_off + (off_t)step->at);
}

/* How far a write has come; steps begun live in slots, ended ones are out. */
struct cursor {
	size_t copied, written; /* bytes */
	size_t begun, ended;	/* steps */
};

/* Begins copies into all slots that are free. */
static int copy_ahead(struct stage *stage, struct cursor *c)
{
	size_t nr_slots = (size_t)stage->nr_slots;
	int err = 0;

	while (!err && c->copied < stage->piece->size &&
	       c->begun - c->ended < nr_slots) {
		struct step step = step_at(stage, c->copied);

		err = copy_out(stage, &step, (int)(c->begun % nr_slots));
		c->copied += step.size;
		c->begun++;
	}
	return err;
}

static ssize_t write_step(struct stage *stage, const struct cursor *c,
			  const struct step *step)
{
	int k = (int)(c->ended % (size_t)stage->nr_slots);
	int err = wait_copy(stage, k);

	return err ? err : drain_slot(stage, step, stage->slots[k]);
}

static ssize_t run_write(struct stage *stage)
{
	size_t size = stage->piece->size;
	struct cursor c = { 0 };
	ssize_t n = 0;

	for (int i = 1;
	     (size_t)i * stage->slots[0]->size < size && i < CF_LANE_DEPTH; i++)
		widen(stage);
	while (c.written < size) {
		struct step step = step_at(stage, c.written);

		n = copy_ahead(stage, &c);
		if (!n)
			n = write_step(stage, &c, &step);
		if (n > 0)
			c.written += (size_t)n;
		if (n < (ssize_t)step.size)
			break;
		c.ended++;
	}
	return c.written ? (ssize_t)c.written : n;
}

/*
 * The driver may still be reading or filling the slots after an error; they
 * go back only when the lane is quiet. A lane that cannot be waited for has
 * lost its context, and with it every copy.
 */
static void settle(struct stage *stage)
{
	if (stage->lane)
		(void)stage->cuda->stream_synchronize(stage->lane->stream);
}

static int stage_begin(struct stage *stage)
{
	int err = cf_slot_lease(stage->dev->gpu->pool, &stage->slots[0]);

	if (err)
		return err;
	stage->nr_slots = 1;
	err = cf_lane_lease(&stage->dev->lanes, &stage->lane);
	if (!err && stage->piece->op == CF_WRITE && stage->piece->ordered)
		err = cf_lane_order(stage->lane);
	return err;
}

static void stage_end(struct stage *stage, bool failed)
{
	if (failed)
		settle(stage);
	for (int i = 0; i < stage->nr_slots; i++)
		cf_slot_give_back(stage->dev->gpu->pool, stage->slots[i]);
	if (stage->lane)
		cf_lane_give_back(&stage->dev->lanes, stage->lane);
}

static ssize_t run_on(struct cf_device *dev, const struct cf_piece *piece)
{
	struct stage stage = {
		.piece = piece,
		.cuda = cf_cuda_loaded(),
		.dev = dev,
		.mask = piece->handle->dio_align - 1,
	};
	struct cf_scope scope;
	ssize_t n = cf_device_enter(dev, &scope);

	if (n)
		return n;
	n = stage_begin(&stage);
	if (!n)
		n = piece->op == CF_READ ? run_read(&stage) : run_write(&stage);
	stage_end(&stage, n != (ssize_t)piece->size);
	cf_device_leave(dev, &scope);
	return n;
}

static ssize_t staged_run(const struct cf_piece *piece)
{
	struct cf_device *dev;
	ssize_t n = cf_device_find(&piece->mem, &dev);

	if (n)
		return n;
	n = run_on(dev, piece);
	/* A context that came back under the same name gets one more try. */
	if (n < 0 && cf_device_failed(dev, (int)n)) {
		n = cf_device_find(&piece->mem, &dev);
		if (!n)
			n = run_on(dev, piece);
	}
	return n;
}

const struct cf_path_ops cf_path_staged = {
	.name = "staged",
	.can = staged_can,
	.run = staged_run,
};
