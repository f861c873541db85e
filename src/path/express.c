// SPDX-License-Identifier: Apache-2.0
/*
 * express - a small read with no slot, no lane and no driver call.
 *
 * Such reads go the staged way where they come seldom, where a kernel finds no
 * room on the GPU, and where kernels of ours must not touch the memory; see
 * core/shuttle.h.
 */
#include "path/express.h"

#include <errno.h>
#include "core/device.h"
#include "core/file.h"
#include "path/slot_io.h"

/* The gap for reads from a disk: a trip called first comes while it works. */
#define DISK_GAP_NS (3 * CF_SHUTTLE_GAP_NS)

/* Offset in the seat: if O_DIRECT as in the file's block, else as in memory. */
static size_t place_of(const struct cf_piece *piece, const struct cf_part *part)
{
	return cf_file_is_direct(piece->handle, piece->via) ?
		       cf_slot_delta(piece, part) :
		       (piece->mem.addr + part->at) % 16;
}

bool cf_express_suits(const struct cf_memory *mem)
{
	return mem->kind == CF_MEMORY_DEVICE && !mem->chained && mem->end;
}

static bool suits(const struct cf_piece *piece, const struct cf_part *part)
{
	const struct cf_memory *mem = &piece->mem;

	return piece->express &&
	       piece->size + 2 * CF_SLOT_ALIGN <= CF_SHUTTLE_ROOM &&
	       cf_express_suits(mem) &&
	       place_of(piece, part) % 16 == mem->addr % 16;
}

bool cf_express_has(const struct cf_memory *mem, size_t size)
{
	struct cf_memory now;

	cf_memory_facts(mem->addr, &now);
	return now.kind == mem->kind && now.ctx == mem->ctx &&
	       now.buffer_id == mem->buffer_id && !now.chained &&
	       mem->addr + size <= now.end;
}

bool cf_express_is_there(const struct cf_piece *piece)
{
	return piece->registered || cf_express_has(&piece->mem, piece->size);
}

ssize_t cf_express_fill(const struct cf_piece *piece,
			const struct cf_part *part, const struct cf_seat *seat,
			const char **from)
{
	size_t at = place_of(piece, part);

	*from = seat->mem + at;
	if (cf_file_is_direct(piece->handle, piece->via))
		return cf_slot_fill(piece, part, seat->mem);
	return cf_slot_fill_near(piece, part,
				 seat->near ? seat->near + at : NULL,
				 seat->mem + at, from);
}

/* Bytes, or -error; -ENOTSUP: nothing was moved, the staged way can do it. */
static ssize_t carry(struct cf_device *dev, const struct cf_piece *piece,
		     const struct cf_part *part, const struct cf_seat *seat)
{
	const char *from;
	ssize_t n = cf_express_fill(piece, part, seat, &from);
	int err = 0;

	if (n > 0)
		err = !cf_express_is_there(piece) ?
			      -ENOTSUP :
			      cf_shuttle_move(dev->shuttle, seat, from,
					      piece->mem.addr, (size_t)n);
	if (err)
		cf_device_failed(dev, err);
	return err ? err : n;
}

/* Empties the feed, however it was planned: the part was all of the piece. */
static void settle(struct cf_feed *feed, const struct cf_part *part, ssize_t n)
{
	struct cf_part taken;

	while (cf_feed_next(feed, &taken))
		;
	(void)cf_feed_made(feed, part, n);
}

bool cf_express_run(const struct cf_piece *piece, struct cf_feed *feed)
{
	const struct cf_part part = { 0, piece->size };
	struct cf_device *dev;
	struct cf_seat seat;
	ssize_t n;

	if (!suits(piece, &part) || cf_device_find(&piece->mem, &dev) ||
	    !cf_shuttle_pays(dev->shuttle,
			     piece->rare ? DISK_GAP_NS : CF_SHUTTLE_GAP_NS) ||
	    !cf_shuttle_take_soon(dev->shuttle, &seat))
		return false;
	if (piece->rare)
		cf_shuttle_call(dev->shuttle);
	n = carry(dev, piece, &part, &seat);
	if (cf_is_cuda_error((int)n))
		cf_shuttle_lose(dev->shuttle);
	else
		cf_shuttle_leave(dev->shuttle, &seat);
	if (n == -ENOTSUP)
		return false;
	settle(feed, &part, n);
	return true;
}
