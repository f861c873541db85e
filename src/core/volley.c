// SPDX-License-Identifier: Apache-2.0
/*
 * volley - launches a kernel, waits, and cancels a launch that is stuck.
 *
 * DESIGN  Each block claims its row before it touches anything: it writes
 * its claim, fences, then reads the word that cancels. We cancel by writing
 * that word, and then read the claims. Both words are in device memory, and
 * we reach them through a copy engine, which needs no room on the GPU. In
 * whatever order these four accesses happen, either the block sees the cancel,
 * or we see its claim. So a row without a claim will never be touched, and one
 * with a claim belongs to a block that is on the GPU already and will report.
 *
 * The kernel of a cancelled launch is still in its stream. The set (stream,
 * table, flags), which it will read to learn that it is cancelled, is put aside
 * until the stream is idle; the memory that it would have copied is free at
 * once. After a cancel there are no launches for a while.
 */
#include "core/volley.h"

#include <errno.h>
#include <sched.h>
#include "core/clock.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/pause.h"
#include "core/pinned.h"
#include "core/volleys.h"

#define BLOCK_THREADS 256      /* as the kernel has it */
#define SPIN_NS (100 * 1000)   /* no row done for so long: yield */
#define STUCK_NS (1000 * 1000) /* no row done for so long: cancel */

/* ------------------------------------------------------------ launching */

static unsigned rows_of(const struct cf_copy *copy)
{
	return (unsigned)((copy->size + CF_VOLLEY_BLOCK - 1) / CF_VOLLEY_BLOCK);
}

static unsigned count_rows(const struct cf_copy *copies, unsigned nr)
{
	unsigned rows = 0;

	for (unsigned i = 0; i < nr && rows <= CF_VOLLEY_ROWS; i++)
		rows += rows_of(&copies[i]);
	return rows;
}

/* slot and addr: the CPU's and the GPU's address of the slot. */
static void fill_rows(struct cf_volley_set *set, bool in, const char *slot,
		      uint64_t addr, const struct cf_copy *copies, unsigned nr)
{
	struct cf_volley_row *row = set->shared->rows;

	for (unsigned i = 0; i < nr; i++) {
		const struct cf_copy *copy = &copies[i];
		uint64_t mem = addr + (uint64_t)(copy->mem - slot);

		for (size_t at = 0; at < copy->size; at += CF_VOLLEY_BLOCK) {
			size_t left = copy->size - at;

			*row++ = (struct cf_volley_row){
				.dst = (in ? copy->dev : mem) + at,
				.src = (in ? mem : copy->dev) + at,
				.size = left < CF_VOLLEY_BLOCK ?
						(uint32_t)left :
						CF_VOLLEY_BLOCK,
			};
		}
	}
}

static CUresult launch(const struct cf_cuda *cuda, struct cf_volleys *volleys,
		       struct cf_volley_set *set, unsigned nr_rows)
{
	uint64_t table =
		set->pinned.gpu_addr + offsetof(struct cf_volley_shared, rows);
	uint64_t done =
		set->pinned.gpu_addr + offsetof(struct cf_volley_shared, done);
	void *params[] = { &table, &done, &set->flags, &set->seq };

	set->seq = set->seq + 1 < CF_VOLLEY_CANCELLED ? set->seq + 1 : 1;
	return cuda->launch_kernel(cf_volleys_kernel(volleys), nr_rows, 1, 1,
				   BLOCK_THREADS, 1, 1, 0, set->stream, params,
				   NULL);
}

/* -------------------------------------------------------------- waiting */

/*
 * The acquire pairs with the kernel's fence before its report: a thread that
 * sees the report sees the bytes.
 */
static uint32_t report_of(const struct cf_volley_set *set, unsigned row)
{
	return atomic_load_explicit(&set->shared->done[row],
				    memory_order_acquire);
}

/* Rows begin in their order, so it waits for the first that is missing. */
static bool all_done(const struct cf_volley_set *set, unsigned nr_rows)
{
	int64_t since = cf_clock_ns();
	unsigned row = 0, seen = 0;

	for (unsigned spins = 1; row < nr_rows; spins++) {
		while (row < nr_rows && report_of(set, row) == set->seq)
			row++;
		if (spins % 32) {
			cf_pause();
			continue;
		}
		if (row != seen)
			since = cf_clock_ns();
		else if (cf_clock_ns() - since > STUCK_NS)
			return false;
		else if (cf_clock_ns() - since > SPIN_NS)
			sched_yield();
		seen = row;
	}
	return true;
}

/* Sets the word that cancels, then looks at the claims. */
static CUresult cancel(const struct cf_cuda *cuda, struct cf_volley_set *set,
		       unsigned nr_rows)
{
	struct cf_volley_shared *shared = set->shared;
	CUresult res;

	shared->cancel = set->seq;
	res = cuda->memcpy_htod_async(set->flags, &shared->cancel,
				      sizeof(shared->cancel), set->side);
	if (res == CF_CU_SUCCESS)
		res = cuda->memcpy_dtoh_async(
			shared->started, set->flags + sizeof(shared->cancel),
			nr_rows * sizeof(shared->started[0]), set->side);
	return res == CF_CU_SUCCESS ? cuda->stream_synchronize(set->side) : res;
}

/* Waits for a block that is on the GPU; it ends, unless the context breaks. */
static CUresult await_block(const struct cf_cuda *cuda,
			    const struct cf_volley_set *set, unsigned row)
{
	CUresult res;

	while ((report_of(set, row) & ~CF_VOLLEY_CANCELLED) != set->seq) {
		res = cuda->stream_query(set->stream);
		/* the block may have reported just before its stream ended */
		if (res != CF_CU_NOT_READY &&
		    (report_of(set, row) & ~CF_VOLLEY_CANCELLED) != set->seq)
			return res == CF_CU_SUCCESS ? CF_CU_LAUNCH_FAILED : res;
		sched_yield();
	}
	return CF_CU_SUCCESS;
}

/* *begun: how many rows have a block on the GPU; all others never will. */
static CUresult cancel_and_wait(const struct cf_cuda *cuda,
				struct cf_volley_set *set, unsigned nr_rows,
				unsigned *begun)
{
	CUresult res = cancel(cuda, set, nr_rows);

	*begun = 0;
	for (unsigned row = 0; row < nr_rows && res == CF_CU_SUCCESS; row++) {
		if (set->shared->started[row] != set->seq)
			continue;
		++*begun;
		res = await_block(cuda, set, row);
	}
	/* the cancel failed, or a block is lost: wait for the streams to end */
	if (res != CF_CU_SUCCESS) {
		cf_lane_settle_stream(cuda, set->side);
		cf_lane_settle_stream(cuda, set->stream);
	}
	return res;
}

static bool is_moved(const struct cf_volley_set *set, unsigned row, bool whole)
{
	return whole || (set->shared->started[row] == set->seq &&
			 report_of(set, row) == set->seq);
}

/* Sets moved of the copies. whole: all rows are done, no claims were read. */
static void mark(const struct cf_volley_set *set, struct cf_copy *copies,
		 unsigned nr, bool whole)
{
	unsigned row = 0;

	for (unsigned i = 0; i < nr; i++) {
		unsigned end = row + rows_of(&copies[i]);

		copies[i].moved = true;
		for (; row < end; row++)
			copies[i].moved &= is_moved(set, row, whole);
	}
}

/* ------------------------------------------------------------- the whole */

/* Waits, or cancels; then puts the set back, or aside. 0 or a CUDA code. */
static int finish(const struct cf_cuda *cuda, struct cf_volleys *volleys,
		  struct cf_volley_set *set, struct cf_copy *copies,
		  unsigned nr, unsigned nr_rows)
{
	unsigned begun = nr_rows;
	bool whole = all_done(set, nr_rows);
	CUresult res = CF_CU_SUCCESS;

	if (!whole)
		res = cancel_and_wait(cuda, set, nr_rows, &begun);
	if (res == CF_CU_SUCCESS)
		mark(set, copies, nr, whole);
	if (whole) {
		cf_volleys_note_good(volleys);
	} else {
		cf_log(CF_LOG_INFO,
		       "volley of %u rows: the GPU had room for %u (%s), the "
		       "others are copied",
		       nr_rows, begun, cf_cuda_error_name((int)res));
		cf_volleys_rest(volleys);
	}
	cf_volleys_push(volleys, set, res != CF_CU_SUCCESS || begun < nr_rows);
	return cf_cuda_code(res);
}

int cf_volley_move(struct cf_volleys *volleys, bool in, const char *slot,
		   struct cf_copy *copies, unsigned nr)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	unsigned nr_rows = count_rows(copies, nr);
	struct cf_volley_set *set;
	uint64_t addr;

	if (!cuda || !nr_rows || nr_rows > CF_VOLLEY_ROWS ||
	    cf_volleys_are_resting(volleys) || !cf_volleys_are_ready(volleys))
		return -ENOTSUP;
	/* a kernel that touches unpinned memory breaks the whole context */
	addr = cf_pinned_gpu_addr(slot);
	set = addr ? cf_volleys_lease(cuda, volleys) : NULL;
	if (!set)
		return -ENOTSUP;
	fill_rows(set, in, slot, addr, copies, nr);
	if (launch(cuda, volleys, set, nr_rows) != CF_CU_SUCCESS) {
		cf_volleys_push(volleys, set, false);
		cf_volleys_rest(volleys);
		return -ENOTSUP;
	}
	return finish(cuda, volleys, set, copies, nr, nr_rows);
}
