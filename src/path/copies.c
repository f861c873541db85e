// SPDX-License-Identifier: Apache-2.0
/* copies - joins neighbours, shares a launch, copies what is left. */
#include "path/copies.h"

#include <errno.h>
#include "core/copy_in.h"
#include "path/express.h"

#define MIN_SHARED 4 /* copies of a launch; fewer are quicker one by one */
#define MAX_SHARED ((size_t)64 << 10)

static CUresult copy(const struct cf_cuda *cuda, const struct cf_copies *c,
		     unsigned i, size_t size)
{
	const struct cf_memory *mem = &c->pieces[i]->mem;

	return c->pieces[i]->op == CF_READ ?
		       cf_copy_in(cuda, mem, 0, c->at[i], size,
				  c->lane->stream) :
		       cuda->memcpy_dtoh_async(c->at[i], (CUdeviceptr)mem->addr,
					       size, c->lane->stream);
}

/* ---------------------------------------------------------------- runs */

/* b lies behind a in both memories, and on the device in one allocation; slots
 * that touch were pinned by one call (core/pinned.c). */
static bool follows(const struct cf_copies *c, unsigned a, unsigned b)
{
	const struct cf_memory *mem = &c->pieces[a]->mem;
	const struct cf_memory *next = &c->pieces[b]->mem;
	size_t size = c->pieces[a]->size;

	return c->results[a] == (ssize_t)size && c->results[b] > 0 &&
	       mem->kind == CF_MEMORY_DEVICE && next->kind == mem->kind &&
	       !mem->chained && !next->chained &&
	       mem->buffer_id == next->buffer_id && mem->end == next->end &&
	       mem->addr + size == next->addr && c->at[a] + size == c->at[b];
}

/* How many pieces from i on are one copy, none moved; *size: its bytes. */
static unsigned run_from(const struct cf_copies *c, const bool *moved,
			 unsigned i, size_t *size)
{
	unsigned end = i + 1;

	*size = (size_t)c->results[i];
	while (end < c->nr && !moved[end] && follows(c, end - 1, end))
		*size += (size_t)c->results[end++];
	return end - i;
}

/* Whether sharing a launch pays: enough copies, and none of a large piece. */
static bool are_many_small(const struct cf_copies *c, const bool *moved)
{
	unsigned runs = 0;
	size_t size;

	for (unsigned i = 0; i < c->nr; runs++) {
		if (c->results[i] <= 0) {
			i++;
			continue;
		}
		if (c->pieces[i]->size > MAX_SHARED)
			return false;
		i += run_from(c, moved, i, &size);
	}
	return runs >= MIN_SHARED;
}

/* ------------------------------------------------------------- sharing */

/* Plain device memory only; it may have been freed since the submit. */
static bool may_share(const struct cf_piece *piece, size_t size)
{
	return piece->mem.kind == CF_MEMORY_DEVICE && !piece->mem.chained &&
	       cf_express_has(&piece->mem, size);
}

/* Sets moved for what the launch has copied. 0 or a CUDA code. */
static int share_launch(const struct cf_copies *c, bool *moved)
{
	struct cf_copy copies[CF_COPIES_MAX];
	unsigned index[CF_COPIES_MAX];
	unsigned nr = 0;
	int err;

	for (unsigned i = 0; i < c->nr; i++) {
		size_t size = c->results[i] > 0 ? (size_t)c->results[i] : 0;

		if (!size || !may_share(c->pieces[i], size))
			continue;
		index[nr] = i;
		copies[nr++] = (struct cf_copy){
			.dev = (CUdeviceptr)c->pieces[i]->mem.addr,
			.mem = c->at[i],
			.size = size,
		};
	}
	if (nr < MIN_SHARED)
		return 0;
	err = cf_volley_move(c->dev->volleys, c->pieces[0]->op == CF_READ,
			     c->slot, copies, nr);
	for (unsigned i = 0; i < nr && !err; i++)
		moved[index[i]] = copies[i].moved;
	return err == -ENOTSUP ? 0 : err;
}

/* ------------------------------------------------------------- the rest */

static int fail_rest(const struct cf_copies *c, const bool *moved, int err)
{
	for (unsigned i = 0; i < c->nr; i++)
		if (c->results[i] > 0 && !moved[i])
			c->results[i] = err;
	return err;
}

/* One by one, so that a copy that is refused fails its own piece only. */
static void copy_each(const struct cf_cuda *cuda, const struct cf_copies *c,
		      unsigned first, unsigned nr, int *err)
{
	for (unsigned i = first; i < first + nr; i++) {
		CUresult res = copy(cuda, c, i, (size_t)c->results[i]);

		if (res != CF_CU_SUCCESS)
			*err = c->results[i] = CF_ECUDA(res);
	}
}

static int move_rest(const struct cf_copies *c, const bool *moved)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	unsigned nr, begun = 0;
	CUresult res;
	size_t size;
	int err = 0;

	if (!cuda) /* the process began to end after the lane was leased */
		return fail_rest(c, moved, CF_ECUDA(CF_CU_DEINITIALIZED));
	for (unsigned i = 0; i < c->nr; i += nr) {
		nr = 1;
		if (c->results[i] <= 0 || moved[i])
			continue;
		nr = run_from(c, moved, i, &size);
		res = copy(cuda, c, i, size);
		begun++;
		if (res != CF_CU_SUCCESS && nr == 1)
			err = c->results[i] = CF_ECUDA(res);
		else if (res != CF_CU_SUCCESS)
			copy_each(cuda, c, i, nr, &err);
	}
	if (!begun || c->no_wait)
		return err;
	res = cuda->stream_synchronize(c->lane->stream);
	return res == CF_CU_SUCCESS ? err : fail_rest(c, moved, CF_ECUDA(res));
}

int cf_copies_move(const struct cf_copies *c)
{
	bool moved[CF_COPIES_MAX] = { false };
	int err = c->slot && are_many_small(c, moved) ? share_launch(c, moved) :
							0;

	return err ? fail_rest(c, moved, err) : move_rest(c, moved);
}
