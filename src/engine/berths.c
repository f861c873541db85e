// SPDX-License-Identifier: Apache-2.0
/* berths - makes, fills and ends chunks, and keeps the line. */
#include "engine/berths.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "engine/sop.h"
#include "seam/os.h"

#define PAGE 4096
#define STRIDE 64 /* a cache line each: the GPU's writes disturb no other */
#define CHUNK_SOPS (PAGE / STRIDE)
/* the words, then the bells; then perhaps the boards and the holds */
#define PLAIN_SIZE (2 * (size_t)PAGE)
#define BOARDS_SIZE (CHUNK_SOPS * sizeof(struct cf_ferry_board))
#define WHOLE_SIZE (PLAIN_SIZE + BOARDS_SIZE + CHUNK_SOPS * CF_FERRY_HOLD)
_Static_assert(CHUNK_SOPS == CF_BOARD_BELLS, "each has a bell");
#define LOOKS 4 /* operations that a take looks at before the dock grows */

struct cf_chunk {
	struct cf_chunk *next;
	char *mem;
	size_t size;
	bool pinned;
	struct cf_board board;
	struct cf_sop sops[CHUNK_SOPS];
};

/* ------------------------------------------------------------- chunks */

/* As core/pinned.c says, not for children. */
static int pin(const struct cf_cuda *cuda, struct cf_chunk *chunk,
	       CUdeviceptr *dev)
{
	CUresult res;

	(void)cf_os->madvise(chunk->mem, chunk->size, MADV_DONTFORK);
	res = cuda->mem_host_register(chunk->mem, chunk->size,
				      CF_CU_MEMHOSTREGISTER_PORTABLE |
					      CF_CU_MEMHOSTREGISTER_DEVICEMAP);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	chunk->pinned = true;
	return cf_cuda_code(
		cuda->mem_host_get_device_pointer(dev, chunk->mem, 0));
}

static void give_up_pages(const struct cf_chunk *chunk)
{
	(void)cf_os->madvise(chunk->mem, chunk->size, MADV_DONTNEED);
}

/*
 * Memory that the driver may still hold stays mapped: whatever came to lie
 * there next would be taken for pinned. Its pages need not stay.
 */
static void chunk_free(const struct cf_cuda *cuda, struct cf_chunk *chunk)
{
	if (chunk->mem &&
	    (!chunk->pinned ||
	     (cuda && cuda->mem_host_unregister(chunk->mem) == CF_CU_SUCCESS)))
		cf_os->unmap(chunk->mem, chunk->size);
	else if (chunk->mem)
		give_up_pages(chunk);
	free(chunk);
}

/*
 * Orders name memory by the CPU's address. Where the GPU has the pages at
 * another one the ferries' boards are out of its reach.
 */
static void fit_out(struct cf_chunk *chunk, CUdeviceptr dev)
{
	char *boards = chunk->mem + PLAIN_SIZE;
	char *holds = boards + BOARDS_SIZE;

	for (size_t i = 0; i < CHUNK_SOPS; i++) {
		struct cf_ferry *ferry = &chunk->sops[i].ferry;

		cf_ferry_init(ferry, &cf_sop_ferry);
		if (chunk->size != WHOLE_SIZE)
			continue;
		ferry->board = (struct cf_ferry_board *)boards + i;
		ferry->hold = holds + i * CF_FERRY_HOLD;
		if (dev == (uintptr_t)chunk->mem)
			ferry->place = (uintptr_t)ferry->board;
	}
}

/* dev: where the pages lie for the GPU. */
static void fill(struct cf_chunk *chunk, struct cf_dock *dock, CUdeviceptr dev)
{
	chunk->board.rung = (_Atomic uint32_t *)(chunk->mem + PAGE);
	chunk->board.begun = chunk->board.rung + CF_FERRY_BEGUN;
	chunk->board.sops = chunk->sops;
	for (size_t i = 0; i < CHUNK_SOPS; i++) {
		struct cf_sop *sop = &chunk->sops[i];

		sop->dock = dock;
		sop->board = &chunk->board;
		sop->bell = (unsigned)i;
		sop->door = dev + PAGE + i * sizeof(uint32_t);
		sop->words = (struct cf_words *)(chunk->mem + i * STRIDE);
		sop->gate = dev + i * STRIDE + offsetof(struct cf_words, gate);
		sop->passed =
			dev + i * STRIDE + offsetof(struct cf_words, passed);
	}
}

int cf_chunk_new(const struct cf_cuda *cuda, struct cf_dock *dock, bool ferries,
		 struct cf_chunk **out)
{
	struct cf_chunk *chunk = calloc(1, sizeof(*chunk));
	CUdeviceptr dev = 0;
	int err = 0;

	if (!chunk)
		return -ENOMEM;
	chunk->size = ferries ? WHOLE_SIZE : PLAIN_SIZE;
	chunk->mem = cf_os->map_anon(chunk->size);
	if (!chunk->mem)
		err = -ENOMEM;
	else if (ferries || cf_dock_has_memops(dock))
		err = pin(cuda, chunk, &dev);
	if (err) {
		chunk_free(cuda, chunk);
		return err;
	}
	fill(chunk, dock, dev);
	fit_out(chunk, dev);
	*out = chunk;
	return 0;
}

void cf_berths_add(struct cf_berths *berths, struct cf_chunk *chunk)
{
	chunk->next = berths->chunks;
	berths->chunks = chunk;
	for (size_t i = 0; i < CHUNK_SOPS; i++) {
		if (!berths->first)
			berths->last = &chunk->sops[i].next;
		chunk->sops[i].next = berths->first;
		berths->first = &chunk->sops[i];
	}
	cf_board_list(&chunk->board);
}

/*
 * State 0 is that of run 0, which there never is. The ferries are told so: what
 * their last run left was in another aperture (begin_near in core/ferry.c).
 */
void cf_chunk_bring_near(struct cf_chunk *chunk,
			 const struct cf_aperture *aperture,
			 struct cf_near_slots *slots)
{
	struct cf_sop *sops = chunk->sops;

	for (size_t i = 0; i < CHUNK_SOPS; i++) {
		struct cf_ferry *ferry = &sops[i].ferry;
		size_t at = i * CF_FERRY_NEAR;

		ferry->near = (struct cf_ferry_board *)(aperture->mem + at);
		ferry->near_place = aperture->gpu + at;
		ferry->near_slots = slots;
		ferry->near_run = 0;
		atomic_init(&ferry->near->state, 0);
	}
	cf_aperture_settle(&sops[0].ferry.near->state);
}

void cf_berths_take_far(struct cf_berths *berths)
{
	for (struct cf_chunk *chunk = berths->chunks; chunk;
	     chunk = chunk->next)
		for (size_t i = 0; i < CHUNK_SOPS; i++)
			chunk->sops[i].ferry.near = NULL;
}

/* As `passed` and `left` will be, which are in those pages. */
void cf_berths_give_up_pages(struct cf_berths *berths)
{
	for (struct cf_chunk *chunk = berths->chunks; chunk;
	     chunk = chunk->next) {
		for (size_t i = 0; i < CHUNK_SOPS; i++) {
			chunk->sops[i].ferried = false;
			chunk->sops[i].ticket = 0;
		}
		give_up_pages(chunk);
	}
}

#define ANSWER 1024 /* of the bells' page, far behind them */

struct cf_fresh_words *cf_chunk_answer(const struct cf_chunk *chunk)
{
	return (struct cf_fresh_words *)(chunk->mem + PAGE + ANSWER);
}

/* The wait is for a word behind the bells, which stays 0. */
CUresult cf_chunk_put_wait(const struct cf_cuda *cuda,
			   const struct cf_chunk *chunk, CUstream stream)
{
	CUdeviceptr none =
		chunk->sops[0].door + 2 * CF_BOARD_BELLS * sizeof(uint32_t);

	return cuda->stream_wait_value32(stream, none, 0,
					 CF_CU_STREAM_WAIT_VALUE_GEQ);
}

/* -------------------------------------------------------------- the line */

void cf_berths_init(struct cf_berths *berths)
{
	*berths = (struct cf_berths){ .last = &berths->first };
}

static void line_up(struct cf_berths *berths, struct cf_sop *sop)
{
	sop->next = NULL;
	*berths->last = sop;
	berths->last = &sop->next;
}

static struct cf_sop *take_first(struct cf_berths *berths)
{
	struct cf_sop *sop = berths->first;

	if (!sop)
		return NULL;
	berths->first = sop->next;
	if (!berths->first)
		berths->last = &berths->first;
	return sop;
}

/* Acquire: what the stream did before it passed is over. */
static bool has_passed(const struct cf_sop *sop)
{
	return sop->ferried ? cf_ferry_has_left(&sop->ferry) :
			      atomic_load_explicit(&sop->words->passed,
						   memory_order_acquire) ==
				      sop->ticket;
}

/* An operation whose stream lags behind goes to the end of the line. */
struct cf_sop *cf_berths_take(struct cf_berths *berths)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		struct cf_sop *sop = take_first(berths);

		if (!sop)
			return NULL;
		if (has_passed(sop)) {
			berths->out++;
			sop->awaited = false;
			return sop;
		}
		line_up(berths, sop);
	}
	return NULL;
}

void cf_berths_put(struct cf_berths *berths, struct cf_sop *sop)
{
	line_up(berths, sop);
	berths->out--;
}

void cf_berths_note_late(struct cf_berths *berths)
{
	for (struct cf_sop *sop = berths->first; sop; sop = sop->next)
		sop->awaited =
			sop->ferried && sop->ferry.hold_nr && !has_passed(sop);
}

bool cf_berths_late_are_gone(const struct cf_berths *berths)
{
	for (const struct cf_sop *sop = berths->first; sop; sop = sop->next)
		if (sop->awaited && !has_passed(sop))
			return false;
	return true;
}

enum cf_whereabouts cf_berths_where(const struct cf_berths *berths)
{
	if (berths->out)
		return CF_OUT;
	for (const struct cf_sop *sop = berths->first; sop; sop = sop->next)
		if (!has_passed(sop))
			return CF_LATE;
	return CF_HOME;
}

/* The line is a part of the chunks, and goes with them. */
void cf_berths_fini(const struct cf_cuda *cuda, struct cf_berths *berths)
{
	while (berths->chunks) {
		struct cf_chunk *chunk = berths->chunks;

		berths->chunks = chunk->next;
		cf_board_unlist(&chunk->board);
		chunk_free(cuda, chunk);
	}
}
