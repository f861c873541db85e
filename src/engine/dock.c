// SPDX-License-Identifier: Apache-2.0
/*
 * dock - finds, makes and ends docks, and lends their operations.
 *
 * An operation that came back waits at the end of the line until its stream
 * has been seen past it: `passed` then holds its ticket. Only so may its page
 * be unpinned, and its word be used by another stream.
 *
 * Lock: docks.lock, innermost; no driver call under it.
 */
#include "engine/dock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "core/device.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "seam/os.h"

#define PAGE 4096
#define STRIDE 64 /* a cache line each: the GPU's writes disturb no other */
#define CHUNK_SOPS (PAGE / STRIDE)
#define CHUNK_SIZE (2 * PAGE) /* the words, then the bells */
_Static_assert(CHUNK_SOPS == CF_BOARD_BELLS, "each has a bell");
#define LOOKS 4		   /* at the head of the line, before it grows */
#define NAP_NS (50 * 1000) /* of a close that waits for late streams: */
#define ASK_AFTER 200	   /* naps, whether their context is well */
#define PATIENCE 2000	   /* naps, and then it goes on without them */

struct chunk {
	struct chunk *next;
	char *mem;
	bool pinned;
	struct cf_board board;
	struct cf_sop sops[CHUNK_SOPS];
};

struct cf_dock {
	CUcontext ctx;
	unsigned long long ctx_id;
	bool memops, bells;
	CUstream probe; /* always empty: asks whether the context is well */
	struct chunk *chunks;	      /* lock */
	struct cf_sop *first, **last; /* lock; the line of those at home */
	unsigned out;		      /* lock */
	struct cf_dock *next;	      /* lock */
};

static struct {
	pthread_mutex_t lock;
	struct cf_dock *first; /* lock */
	bool memops, bells;    /* lock */
} docks = { .lock = PTHREAD_MUTEX_INITIALIZER, .memops = true };

void cf_docks_configure(bool memops, bool bells)
{
	pthread_mutex_lock(&docks.lock);
	docks.memops = memops;
	docks.bells = bells;
	pthread_mutex_unlock(&docks.lock);
}

bool cf_dock_has_memops(const struct cf_dock *dock)
{
	return dock->memops;
}

bool cf_dock_has_bells(const struct cf_dock *dock)
{
	return dock->memops && dock->bells;
}

/* ------------------------------------------------------------- chunks */

static int pin(const struct cf_cuda *cuda, struct chunk *chunk,
	       CUdeviceptr *dev)
{
	CUresult res = cuda->mem_host_register(
		chunk->mem, CHUNK_SIZE,
		CF_CU_MEMHOSTREGISTER_PORTABLE |
			CF_CU_MEMHOSTREGISTER_DEVICEMAP);

	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	chunk->pinned = true;
	return cf_cuda_code(
		cuda->mem_host_get_device_pointer(dev, chunk->mem, 0));
}

/*
 * Memory that the driver may still hold stays mapped: whatever came to lie
 * there next would be taken for pinned.
 */
static void chunk_free(const struct cf_cuda *cuda, struct chunk *chunk)
{
	if (chunk->mem &&
	    (!chunk->pinned ||
	     (cuda && cuda->mem_host_unregister(chunk->mem) == CF_CU_SUCCESS)))
		cf_os->unmap(chunk->mem, CHUNK_SIZE);
	free(chunk);
}

static int chunk_new(const struct cf_cuda *cuda, struct cf_dock *dock,
		     struct chunk **out)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	CUdeviceptr dev = 0;
	int err = 0;

	if (!chunk)
		return -ENOMEM;
	chunk->mem = cf_os->map_anon(CHUNK_SIZE);
	if (!chunk->mem)
		err = -ENOMEM;
	else if (dock->memops)
		err = pin(cuda, chunk, &dev);
	if (err) {
		chunk_free(cuda, chunk);
		return err;
	}
	chunk->board.rung = (_Atomic uint32_t *)(chunk->mem + PAGE);
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
	*out = chunk;
	return 0;
}

static void line_up_locked(struct cf_dock *dock, struct cf_sop *sop)
{
	sop->next = NULL;
	*dock->last = sop;
	dock->last = &sop->next;
}

static struct cf_sop *take_first_locked(struct cf_dock *dock)
{
	struct cf_sop *sop = dock->first;

	if (!sop)
		return NULL;
	dock->first = sop->next;
	if (!dock->first)
		dock->last = &dock->first;
	return sop;
}

/* Acquire: what the stream did before it passed is over. */
static bool has_passed(const struct cf_sop *sop)
{
	return atomic_load_explicit(&sop->words->passed,
				    memory_order_acquire) == sop->ticket;
}

/* One whose stream lags behind goes to the end and keeps nobody waiting. */
static struct cf_sop *take_locked(struct cf_dock *dock)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		struct cf_sop *sop = take_first_locked(dock);

		if (!sop)
			return NULL;
		if (has_passed(sop)) {
			dock->out++;
			return sop;
		}
		line_up_locked(dock, sop);
	}
	return NULL;
}

/* New ones go to the front, where the next look finds them. */
static void add_chunk_locked(struct cf_dock *dock, struct chunk *chunk)
{
	chunk->next = dock->chunks;
	dock->chunks = chunk;
	for (size_t i = 0; i < CHUNK_SOPS; i++) {
		if (!dock->first)
			dock->last = &chunk->sops[i].next;
		chunk->sops[i].next = dock->first;
		dock->first = &chunk->sops[i];
	}
}

/* -------------------------------------------------------------- docks */

static bool knows_memops(const struct cf_cuda *cuda)
{
	return cuda->stream_wait_value32 && cuda->stream_write_value32 &&
	       cuda->mem_host_get_device_pointer;
}

/* A wait that is over at once tells whether this device can wait at all. */
static int try_memops(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	CUresult res = cuda->stream_wait_value32(dock->probe,
						 dock->chunks->sops[0].gate, 0,
						 CF_CU_STREAM_WAIT_VALUE_GEQ);

	if (res == CF_CU_NOT_SUPPORTED) {
		cf_log(CF_LOG_WARN,
		       "stream IO: no memory operations here, host functions "
		       "wait instead");
		dock->memops = false;
		return 0;
	}
	/* the answer is known; only the page must not be looked at any more */
	if (res == CF_CU_SUCCESS)
		cf_lane_settle_stream(cuda, dock->probe);
	return cf_cuda_code(res);
}

/* Its context is current, unless cuda is NULL. */
static void dock_free(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	if (dock->probe && cuda)
		cuda->stream_destroy(dock->probe);
	while (dock->chunks) {
		struct chunk *chunk = dock->chunks;

		dock->chunks = chunk->next;
		cf_board_unlist(&chunk->board);
		chunk_free(cuda, chunk);
	}
	free(dock);
}

static int dock_fill(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	struct chunk *chunk;
	CUresult res =
		cuda->stream_create(&dock->probe, CF_CU_STREAM_NON_BLOCKING);
	int err;

	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	err = chunk_new(cuda, dock, &chunk);
	if (err)
		return err;
	add_chunk_locked(dock, chunk); /* nobody else knows the dock yet */
	return dock->memops ? try_memops(cuda, dock) : 0;
}

static struct cf_dock *find_locked(CUcontext ctx, unsigned long long ctx_id)
{
	struct cf_dock *dock = docks.first;

	while (dock && (dock->ctx != ctx || dock->ctx_id != ctx_id))
		dock = dock->next;
	return dock;
}

static int dock_make(const struct cf_cuda *cuda, CUcontext ctx,
		     unsigned long long ctx_id)
{
	struct cf_dock *dock = calloc(1, sizeof(*dock));
	bool first;
	int err;

	if (!dock)
		return -ENOMEM;
	dock->ctx = ctx;
	dock->ctx_id = ctx_id;
	dock->last = &dock->first;
	pthread_mutex_lock(&docks.lock);
	dock->memops = docks.memops && knows_memops(cuda);
	dock->bells = docks.bells && cuda->stream_batch_mem_op;
	pthread_mutex_unlock(&docks.lock);
	err = dock_fill(cuda, dock);
	if (err) {
		dock_free(cuda, dock);
		return err;
	}
	pthread_mutex_lock(&docks.lock);
	first = !find_locked(ctx, ctx_id);
	if (first) {
		dock->next = docks.first;
		docks.first = dock;
		cf_board_list(&dock->chunks->board);
	}
	pthread_mutex_unlock(&docks.lock);
	if (!first)
		dock_free(cuda, dock);
	return 0;
}

static int dock_grow(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	struct chunk *chunk;
	int err = chunk_new(cuda, dock, &chunk);

	if (err)
		return err;
	pthread_mutex_lock(&docks.lock);
	add_chunk_locked(dock, chunk);
	cf_board_list(&chunk->board);
	pthread_mutex_unlock(&docks.lock);
	return 0;
}

static int lease(CUcontext ctx, unsigned long long ctx_id, struct cf_sop **sop)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int err = 0;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	while (!err) {
		struct cf_dock *dock;

		pthread_mutex_lock(&docks.lock);
		dock = find_locked(ctx, ctx_id);
		*sop = dock ? take_locked(dock) : NULL;
		pthread_mutex_unlock(&docks.lock);
		if (*sop)
			return 0;
		err = dock ? dock_grow(cuda, dock) :
			     dock_make(cuda, ctx, ctx_id);
	}
	return err;
}

int cf_dock_lease(CUcontext ctx, unsigned long long ctx_id, struct cf_sop **sop)
{
	int err = lease(ctx, ctx_id, sop);

	if (err)
		return err;
	if (++(*sop)->ticket == 0)
		(*sop)->ticket++;
	return 0;
}

/* To look is enough: what is taken is given back as if it had been used. */
int cf_dock_warm(CUcontext ctx, unsigned long long ctx_id)
{
	struct cf_sop *sop;
	int err = lease(ctx, ctx_id, &sop);

	if (!err)
		cf_dock_give_back(sop);
	return err;
}

void cf_dock_give_back(struct cf_sop *sop)
{
	struct cf_dock *dock = sop->dock;

	pthread_mutex_lock(&docks.lock);
	line_up_locked(dock, sop);
	dock->out--;
	pthread_mutex_unlock(&docks.lock);
}

bool cf_dock_alive(const struct cf_dock *dock)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct cf_scope scope;
	CUresult res;

	if (!cuda || cf_context_id(cuda, dock->ctx) != dock->ctx_id ||
	    cf_context_enter(dock->ctx, &scope))
		return false;
	res = cuda->stream_query(dock->probe);
	cf_context_leave(&scope);
	return res == CF_CU_SUCCESS;
}

/* -------------------------------------------------------------- the end */

enum whereabouts {
	HOME,
	LATE, /* let go, but their streams have not been seen past them */
	OUT,
};

static enum whereabouts where_are(const struct cf_dock *dock)
{
	enum whereabouts where = HOME;

	pthread_mutex_lock(&docks.lock);
	for (const struct cf_sop *sop = dock->first; sop; sop = sop->next)
		if (!has_passed(sop))
			where = LATE;
	if (dock->out)
		where = OUT;
	pthread_mutex_unlock(&docks.lock);
	return where;
}

static bool is_gone(const struct cf_dock *dock)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	return !cuda || cf_context_id(cuda, dock->ctx) != dock->ctx_id;
}

/*
 * True if the dock may go. A stream that was let go is past its wait in no
 * time, unless its GPU is busy elsewhere or its context is lost.
 */
static bool wait_home(const struct cf_dock *dock)
{
	const struct timespec nap = { 0, NAP_NS };
	unsigned naps = 0;

	while (where_are(dock) == LATE && naps++ < PATIENCE) {
		if (naps > ASK_AFTER && is_gone(dock))
			return true;
		if (naps > ASK_AFTER && !cf_dock_alive(dock))
			return false;
		nanosleep(&nap, NULL);
	}
	return where_are(dock) == HOME;
}

static struct cf_dock *unlink_locked(struct cf_dock **at)
{
	struct cf_dock *dock = *at;

	*at = dock->next;
	return dock;
}

/* A context that is gone took its pins and its probe with it. */
static void dock_end(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	struct cf_scope scope;
	bool alive = cuda && cf_context_id(cuda, dock->ctx) == dock->ctx_id &&
		     !cf_context_enter(dock->ctx, &scope);

	dock_free(alive ? cuda : NULL, dock);
	if (alive)
		cf_context_leave(&scope);
}

void cf_docks_close(void)
{
	const struct cf_cuda *cuda = docks.first ? cf_cuda_loaded() : NULL;
	struct cf_dock **at = &docks.first;

	while (*at) {
		struct cf_dock *dock = *at;

		if (!wait_home(dock)) {
			cf_log(CF_LOG_WARN,
			       "driver close: a stream of context " CF_TAG
			       " has not "
			       "come to all of its operations",
			       cf_tag(dock->ctx));
			at = &dock->next;
			continue;
		}
		pthread_mutex_lock(&docks.lock);
		unlink_locked(at);
		pthread_mutex_unlock(&docks.lock);
		dock_end(cuda, dock);
	}
}

void cf_docks_fork_prepare(void)
{
	pthread_mutex_lock(&docks.lock);
}

void cf_docks_fork_parent(void)
{
	pthread_mutex_unlock(&docks.lock);
}

void cf_docks_fork_child(void)
{
	docks.first = NULL;
	pthread_mutex_unlock(&docks.lock);
}
