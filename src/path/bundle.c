// SPDX-License-Identifier: Apache-2.0
/*
 * bundle - fills a slot, moves it, and keeps each piece's result.
 *
 * A piece lies in the slot at the same offset from a multiple of 16 as it
 * has in device memory.
 */
#include "path/bundle.h"

#include <errno.h>
#include "core/cache.h"
#include "core/device.h"
#include "core/file.h"

#define ALIGN 16
#define MIN_SHARED 4 /* copies; fewer are quicker one by one */

struct bundle {
	const struct cf_piece *const *pieces;
	ssize_t *results;
	unsigned nr;
	bool kernel;
	const struct cf_cuda *cuda;
	struct cf_device *dev;
	struct cf_pool *pool;
	struct cf_slot *slot;
	struct cf_lane *lane;
	char *at[CF_BUNDLE_MAX]; /* in the slot */
};

bool cf_bundle_can(const struct cf_piece *piece)
{
	return piece->mem.kind != CF_MEMORY_HOST && piece->size &&
	       piece->size <= CF_BUNDLE_MAX_SIZE && !piece->handle->fs_ops &&
	       !cf_file_is_direct(piece->handle, piece->via);
}

size_t cf_bundle_need(const struct cf_piece *piece)
{
	return (piece->size + 2 * ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static size_t need_of(const struct bundle *b)
{
	size_t need = 0;

	for (unsigned i = 0; i < b->nr; i++)
		need += cf_bundle_need(b->pieces[i]);
	return need;
}

static void place(struct bundle *b)
{
	char *at = b->slot->mem;

	for (unsigned i = 0; i < b->nr; i++) {
		b->at[i] = at + (b->pieces[i]->mem.addr & (ALIGN - 1));
		at += cf_bundle_need(b->pieces[i]);
	}
}

/* --------------------------------------------------------------- files */

static ssize_t read_file(const struct cf_piece *piece, char *at)
{
	ssize_t n = cf_file_read(piece->handle, piece->via, at, piece->size,
				 piece->file_off);

	if (n > 0 && piece->demote)
		cf_cache_demote(at, (size_t)n);
	return n;
}

static void read_files(struct bundle *b)
{
	for (unsigned i = 0; i < b->nr; i++)
		b->results[i] = read_file(b->pieces[i], b->at[i]);
}

/* Those that came out of the device. */
static void write_files(struct bundle *b)
{
	for (unsigned i = 0; i < b->nr; i++)
		if (b->results[i] > 0)
			b->results[i] = cf_file_write(
				b->pieces[i]->handle, b->pieces[i]->via,
				b->at[i], b->pieces[i]->size,
				b->pieces[i]->file_off);
}

/* -------------------------------------------------------------- copies */

static CUresult copy(const struct bundle *b, unsigned i, size_t size)
{
	const struct cf_piece *piece = b->pieces[i];
	CUdeviceptr dev = (CUdeviceptr)piece->mem.addr;

	return piece->op == CF_READ ?
		       b->cuda->memcpy_htod_async(dev, b->at[i], size,
						  b->lane->stream) :
		       b->cuda->memcpy_dtoh_async(b->at[i], dev, size,
						  b->lane->stream);
}

/*
 * A kernel that strays breaks the client's context, so only plain device
 * memory of known bounds, and asked for once more: since the submit the
 * client may have freed it, which a copy would only be refused for.
 */
static bool may_share(const struct cf_piece *piece, size_t size)
{
	struct cf_memory now;

	if (piece->mem.kind != CF_MEMORY_DEVICE || piece->mem.chained)
		return false;
	cf_memory_facts(piece->mem.addr, &now);
	return now.kind == CF_MEMORY_DEVICE && now.ctx == piece->mem.ctx &&
	       now.buffer_id == piece->mem.buffer_id && !now.chained &&
	       now.addr + size <= now.end;
}

/* Copies that have shared a launch and are done are marked. */
static int share_launch(struct bundle *b, bool *moved)
{
	struct cf_copy copies[CF_BUNDLE_MAX];
	unsigned index[CF_BUNDLE_MAX];
	unsigned nr = 0;
	int err;

	for (unsigned i = 0; i < b->nr; i++) {
		size_t size = b->results[i] > 0 ? (size_t)b->results[i] : 0;

		if (!size || !may_share(b->pieces[i], size))
			continue;
		index[nr] = i;
		copies[nr++] = (struct cf_copy){
			.dev = (CUdeviceptr)b->pieces[i]->mem.addr,
			.mem = b->at[i],
			.size = size,
		};
	}
	if (nr < MIN_SHARED)
		return 0;
	err = cf_volley_move(b->dev->volleys, b->pieces[0]->op == CF_READ,
			     b->slot->mem, copies, nr);
	for (unsigned i = 0; i < nr && !err; i++)
		moved[index[i]] = copies[i].moved;
	return err == -ENOTSUP ? 0 : err;
}

static int fail_rest(struct bundle *b, const bool *moved, int err)
{
	for (unsigned i = 0; i < b->nr; i++)
		if (b->results[i] > 0 && !moved[i])
			b->results[i] = err;
	return err;
}

/* A copy that is refused fails its piece only. */
static int move_rest(struct bundle *b, const bool *moved)
{
	unsigned begun = 0;
	CUresult res;
	int err = 0;

	for (unsigned i = 0; i < b->nr; i++) {
		if (b->results[i] <= 0 || moved[i])
			continue;
		res = copy(b, i, (size_t)b->results[i]);
		begun++;
		if (res == CF_CU_SUCCESS)
			continue;
		err = CF_ECUDA(res);
		b->results[i] = err;
	}
	if (!begun)
		return 0;
	res = b->cuda->stream_synchronize(b->lane->stream);
	return res == CF_CU_SUCCESS ? err : fail_rest(b, moved, CF_ECUDA(res));
}

/* All results are sizes to move, or errors of their own. */
static int move_all(struct bundle *b)
{
	bool moved[CF_BUNDLE_MAX] = { false };
	int err = b->kernel ? share_launch(b, moved) : 0;

	return err ? fail_rest(b, moved, err) : move_rest(b, moved);
}

static int run_read(struct bundle *b)
{
	read_files(b);
	return move_all(b);
}

static int run_write(struct bundle *b)
{
	int err;

	for (unsigned i = 0; i < b->nr; i++)
		b->results[i] = (ssize_t)b->pieces[i]->size;
	err = move_all(b);
	write_files(b);
	return err;
}

/* ---------------------------------------------------------------- life */

static int bundle_begin(struct bundle *b)
{
	int err = cf_slot_lease(b->pool, &b->slot);

	if (err)
		return err;
	err = cf_lane_lease(&b->dev->lanes, &b->lane);
	if (!err)
		place(b);
	return err;
}

/* After an error the slot goes back only when no copy can touch it. */
static void bundle_end(struct bundle *b, bool failed)
{
	if (failed && b->lane)
		cf_lane_settle(b->lane);
	if (b->slot)
		cf_slot_give_back(b->pool, b->slot);
	if (b->lane)
		cf_lane_give_back(&b->dev->lanes, b->lane);
}

/* *begun: the results are told. */
static int carry_on(struct bundle *b, bool *begun)
{
	struct cf_scope scope;
	int err = cf_device_enter(b->dev, &scope);

	*begun = false;
	if (err)
		return err;
	b->cuda = cf_cuda_loaded();
	b->pool = cf_gpu_pool(b->dev->gpu, need_of(b));
	b->slot = NULL;
	b->lane = NULL;
	err = bundle_begin(b);
	*begun = !err;
	if (!err)
		err = b->pieces[0]->op == CF_READ ? run_read(b) : run_write(b);
	bundle_end(b, err);
	cf_device_leave(b->dev, &scope);
	return err;
}

void cf_bundle_run(const struct cf_piece *const *pieces, ssize_t *results,
		   unsigned nr, bool kernel)
{
	struct bundle b = {
		.pieces = pieces,
		.results = results,
		.nr = nr,
		.kernel = kernel,
	};
	bool begun = false;
	int err = cf_device_find(&pieces[0]->mem, &b.dev);

	if (!err) {
		err = carry_on(&b, &begun);
		/* one that came back under the same name gets one more try */
		if (err && cf_device_failed(b.dev, err) && !begun) {
			err = cf_device_find(&pieces[0]->mem, &b.dev);
			if (!err)
				err = carry_on(&b, &begun);
		}
	}
	for (unsigned i = 0; i < nr && err && !begun; i++)
		results[i] = err;
}
