// SPDX-License-Identifier: Apache-2.0
/* alias_test - see alias_test.h. */
#include "core/alias_test.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "core/arrival.h"
#include "core/device.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/trial.h"
#include "seam/os.h"

#define OWN_SIZE ((size_t)64 << 10) /* memory of ours, for the pattern */
#define STRIDE ((size_t)20 << 10)   /* of the chunks tried in it */
#define LOOK ((size_t)512)	    /* bytes compared at each end of a buffer */
#define TRIES 3			    /* a kernel may be writing to the buffer */
#define MAX_GPUS 64
#define MAX_PROVIDERS 4

/* By provider and GPU. good counts if its generation is the current one. */
static struct {
	unsigned generation;
	bool good;
} proven[MAX_PROVIDERS][MAX_GPUS];
static _Atomic unsigned generation = 1;

void cf_alias_forget(void)
{
	atomic_fetch_add(&generation, 1);
}

const char *cf_alias_state_name(enum cf_alias_state state)
{
	static const char *const names[] = {
		[CF_ALIAS_UNREGISTERED] = "not asked for",
		[CF_ALIAS_NOBODY] = "not to be had",
		[CF_ALIAS_WRONG] = "not the same memory",
		[CF_ALIAS_PLAIN] = "a plain mapping",
		[CF_ALIAS_PAGES] = "pages",
	};

	return names[state];
}

/* What one test holds: a pipe, and a lane in the memory's context. */
struct bench {
	int pipe[2];
	const struct cf_cuda *cuda;
	struct cf_device *dev;
	struct cf_scope scope;
	struct cf_lane *lane;
};

/* Some go to the caller's stack: none is under way, whatever it answers. */
static int copy(struct bench *b, CUresult res)
{
	if (res == CF_CU_SUCCESS)
		res = cf_lane_settle_stream(b->cuda, b->lane->stream);
	return cf_cuda_code(res);
}

static int from_gpu(struct bench *b, void *dst, CUdeviceptr src, size_t size)
{
	return copy(
		b, b->cuda->memcpy_dtoh_async(dst, src, size, b->lane->stream));
}

static int to_gpu(struct bench *b, CUdeviceptr dst, const void *src,
		  size_t size)
{
	return copy(
		b, b->cuda->memcpy_htod_async(dst, src, size, b->lane->stream));
}

/* ------------------------------------------------------------ own memory */

/* The GPU reads what the CPU wrote to a chunk, and the other way round. */
static int prove_chunk(struct bench *b, const struct cf_alias *alias, size_t at)
{
	char *cpu = (char *)alias->cpu + at;
	CUdeviceptr gpu = (CUdeviceptr)alias->device + at;
	uint64_t sent[CF_TRIAL_WORDS], got[CF_TRIAL_WORDS];
	int err;

	cf_trial_pattern(sent, at, 1);
	err = cf_trial_move(b->pipe, cpu, sent, CF_TRIAL_CHUNK);
	if (!err)
		err = cf_arrival_flush_here(b->dev->gpu->ordinal);
	if (!err)
		err = from_gpu(b, got, gpu, CF_TRIAL_CHUNK);
	if (!err && memcmp(sent, got, CF_TRIAL_CHUNK))
		err = -EILSEQ;
	if (err)
		return err;
	cf_trial_pattern(sent, at, 2);
	err = to_gpu(b, gpu, sent, CF_TRIAL_CHUNK);
	if (!err)
		err = cf_trial_move(b->pipe, got, cpu, CF_TRIAL_CHUNK);
	return err || !memcmp(sent, got, CF_TRIAL_CHUNK) ? err : -EILSEQ;
}

static int prove_mapping(struct bench *b, unsigned provider,
			 const struct cf_memory *own)
{
	struct cf_alias alias;
	int err = cf_alias_map(provider, own, OWN_SIZE, &alias);

	if (err)
		return err;
	for (size_t at = 0; !err && at < OWN_SIZE; at += STRIDE)
		err = prove_chunk(b, &alias, at);
	cf_alias_unmap(&alias);
	return err;
}

/*
 * Kept until the device ends: freeing memory waits for the kernels that run,
 * and one of them may wait for data that we are to read.
 */
static int own_memory(struct bench *b, struct cf_memory *own)
{
	CUresult res = CF_CU_SUCCESS;

	if (!b->cuda->mem_alloc || !b->cuda->mem_free)
		return -ENOTSUP;
	if (!b->dev->trial)
		res = b->cuda->mem_alloc(&b->dev->trial, OWN_SIZE);
	if (res != CF_CU_SUCCESS) {
		b->dev->trial = 0;
		return CF_ECUDA(res);
	}
	cf_memory_facts((uintptr_t)b->dev->trial, own);
	return 0;
}

static int prove(struct bench *b, unsigned provider,
		 const struct cf_memory *mem)
{
	struct cf_memory own;
	int err = own_memory(b, &own);

	if (!err)
		err = prove_mapping(b, provider, &own);
	cf_log(err ? CF_LOG_WARN : CF_LOG_INFO,
	       "alias test gpu %d provider %u: code %d", mem->ordinal, provider,
	       err);
	return err;
}

/* Remembers success, and bytes that differed; other errors may pass. */
static bool is_proven(struct bench *b, unsigned provider,
		      const struct cf_memory *mem)
{
	unsigned now = atomic_load(&generation);
	int err;

	if (mem->kind == CF_MEMORY_MANAGED)
		return true; /* the alias is the memory's own address */
	if (mem->ordinal >= MAX_GPUS || provider >= MAX_PROVIDERS)
		return false;
	if (proven[provider][mem->ordinal].generation == now)
		return proven[provider][mem->ordinal].good;
	err = prove(b, provider, mem);
	if (!err || err == -EILSEQ) {
		proven[provider][mem->ordinal].good = !err;
		proven[provider][mem->ordinal].generation = now;
	}
	return !err;
}

/* --------------------------------------------------- the client's memory */

static bool looks_alike(struct bench *b, const struct cf_alias *alias,
			size_t at, size_t size)
{
	char ours[LOOK], theirs[LOOK];

	for (int i = 0; i < TRIES; i++) {
		if (from_gpu(b, theirs, (CUdeviceptr)alias->device + at,
			     size) ||
		    cf_trial_move(b->pipe, ours, (char *)alias->cpu + at, size))
			return false;
		if (!memcmp(ours, theirs, size))
			return true;
	}
	return false;
}

static bool ends_look_alike(struct bench *b, const struct cf_alias *alias)
{
	size_t size = alias->size < LOOK ? alias->size : LOOK;

	return looks_alike(b, alias, 0, size) &&
	       looks_alike(b, alias, alias->size - size, size);
}

/*
 * A pipe takes pages by reference. EFAULT: the mapping has none. EREMOTEIO:
 * they are a device's, for O_DIRECT from disks that can reach it. After another
 * error the first IO shows whether O_DIRECT works.
 */
static enum cf_alias_state kind_of(struct bench *b,
				   const struct cf_alias *alias)
{
	ssize_t n = cf_os->splice_pages(b->pipe[1], (void *)alias->cpu, 1);

	return n == -EFAULT ? CF_ALIAS_PLAIN : CF_ALIAS_PAGES;
}

/* At the same place in a page: what is aligned for one is for the other. */
static bool lies_alike(const struct cf_alias *alias)
{
	return !((alias->cpu ^ alias->device) & (CF_TRIAL_CHUNK - 1));
}

static enum cf_alias_state test_in(struct bench *b, unsigned provider,
				   const struct cf_memory *mem,
				   const struct cf_alias *alias)
{
	if (!lies_alike(alias) || !is_proven(b, provider, mem) ||
	    !ends_look_alike(b, alias))
		return CF_ALIAS_WRONG;
	return kind_of(b, alias);
}

static int lane_begin(struct bench *b, const struct cf_memory *mem)
{
	int err = cf_device_find(mem, &b->dev);

	if (!err)
		err = cf_context_enter(b->dev->ctx, &b->scope);
	if (err)
		return err;
	err = cf_lane_lease(&b->dev->lanes, &b->lane);
	if (err)
		cf_context_leave(&b->scope);
	return err;
}

static void lane_end(struct bench *b)
{
	cf_lane_settle(b->lane);
	cf_lane_give_back(&b->dev->lanes, b->lane);
	cf_context_leave(&b->scope);
}

enum cf_alias_state cf_alias_test(unsigned provider,
				  const struct cf_memory *mem,
				  const struct cf_alias *alias)
{
	enum cf_alias_state state = CF_ALIAS_WRONG;
	struct bench b = { .cuda = cf_cuda_loaded() };

	if (!b.cuda || cf_os->pipe(b.pipe))
		return CF_ALIAS_WRONG;
	if (!lane_begin(&b, mem)) {
		state = test_in(&b, provider, mem, alias);
		lane_end(&b);
	}
	cf_os->close(b.pipe[0]);
	cf_os->close(b.pipe[1]);
	return state;
}
