// SPDX-License-Identifier: Apache-2.0
/*
 * memory - asks the driver what a pointer is (about 40 ns a question).
 *
 * Asked for each request: the application may free and reuse an address at any
 * time, so a cached answer could be wrong. Most attributes matter for GPU
 * memory only: at addresses where there was none lately, the first question is
 * just whether there is some now.
 */
#include "core/memory.h"

#include <cufile.h>
#include <stdatomic.h>
#include <string.h>
#include "seam/frames.h"

struct answer {
	CUcontext ctx;
	int type;
	int managed;
	int ordinal;
	uint64_t buffer_id;
	CUdeviceptr start;
	size_t size;
	void *host;
	CUmemoryPool pool;
	size_t mapping_size;
	CUdeviceptr mapping;
};

/* The driver does not know the last two attributes (before 11.8). */
static atomic_bool no_mappings;
#define NR_MAPPING_ATTRIBUTES 2

/*
 * By part of the address space: whether the last memory seen there was a GPU's.
 * Relaxed: a wrong guess costs one more question, with the same answer.
 */
#define GUESS_BITS 6
#define ABOUT_SHIFT 30 /* a GiB of addresses */
static atomic_bool guesses[1 << GUESS_BITS];

static atomic_bool *guess_at(uintptr_t addr)
{
	uint64_t spread = (addr >> ABOUT_SHIFT) * 0x9e3779b97f4a7c15;

	return &guesses[spread >> (64 - GUESS_BITS)];
}

/* Asks only for what is needed if the memory is not a GPU's. */
static bool ask_kind(const struct cf_cuda *cuda, uintptr_t addr,
		     struct answer *a)
{
	int attributes[] = {
		CF_CU_POINTER_MEMORY_TYPE,
		CF_CU_POINTER_IS_MANAGED,
		CF_CU_POINTER_HOST_POINTER,
	};
	void *data[] = { &a->type, &a->managed, &a->host };

	a->type = a->managed = 0;
	a->host = NULL;
	return cuda->pointer_get_attributes(3, attributes, data, addr) ==
	       CF_CU_SUCCESS;
}

static CF_APART bool ask_all(const struct cf_cuda *cuda, uintptr_t addr,
			     struct answer *a)
{
	int attributes[] = {
		CF_CU_POINTER_CONTEXT,	      CF_CU_POINTER_MEMORY_TYPE,
		CF_CU_POINTER_IS_MANAGED,     CF_CU_POINTER_DEVICE_ORDINAL,
		CF_CU_POINTER_BUFFER_ID,      CF_CU_POINTER_RANGE_START_ADDR,
		CF_CU_POINTER_RANGE_SIZE,     CF_CU_POINTER_HOST_POINTER,
		CF_CU_POINTER_MEMPOOL_HANDLE, CF_CU_POINTER_MAPPING_SIZE,
		CF_CU_POINTER_MAPPING_BASE,
	};
	void *data[] = { &a->ctx,	   &a->type,	  &a->managed,
			 &a->ordinal,	   &a->buffer_id, &a->start,
			 &a->size,	   &a->host,	  &a->pool,
			 &a->mapping_size, &a->mapping };
	unsigned nr = sizeof(attributes) / sizeof(attributes[0]);

	memset(a, 0, sizeof(*a));
	if (!atomic_load_explicit(&no_mappings, memory_order_relaxed)) {
		CUresult res = cuda->pointer_get_attributes(nr, attributes,
							    data, addr);

		if (res != CF_CU_INVALID_VALUE)
			return res == CF_CU_SUCCESS;
	}
	memset(a, 0, sizeof(*a));
	if (cuda->pointer_get_attributes(nr - NR_MAPPING_ATTRIBUTES, attributes,
					 data, addr) != CF_CU_SUCCESS)
		return false;
	atomic_store_explicit(&no_mappings, true, memory_order_relaxed);
	return true;
}

static bool is_gpus(const struct answer *a)
{
	return a->managed || a->type == CF_CU_MEMORYTYPE_DEVICE;
}

/* All answers if it is a GPU's memory, else those of ask_kind. */
static bool find_out(const struct cf_cuda *cuda, uintptr_t addr,
		     struct answer *a)
{
	atomic_bool *guess = guess_at(addr);
	bool guessed = atomic_load_explicit(guess, memory_order_relaxed);

	if (!guessed && !ask_kind(cuda, addr, a))
		return false;
	if (!guessed && !is_gpus(a))
		return true;
	if (!ask_all(cuda, addr, a))
		return false;
	if (is_gpus(a) != guessed)
		atomic_store_explicit(guess, !guessed, memory_order_relaxed);
	return true;
}

/*
 * Where the memory at an address ends. For VMM memory the driver's range is the
 * whole reservation, holes included; only the mapping is memory.
 */
static uintptr_t end_of(const struct answer *a, bool chained)
{
	if (chained && a->mapping_size)
		return (uintptr_t)a->mapping + a->mapping_size;
	return a->size ? (uintptr_t)a->start + a->size : 0;
}

void cf_memory_facts(uintptr_t addr, struct cf_memory *mem)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct answer a;

	*mem = (struct cf_memory){ .kind = CF_MEMORY_HOST, .addr = addr };
	if (!cuda || !find_out(cuda, addr, &a))
		return;
	if (!is_gpus(&a)) {
		/* host memory may be named by its device address */
		if (a.type == CF_CU_MEMORYTYPE_HOST && a.host)
			mem->addr = (uintptr_t)a.host;
		return;
	}
	mem->kind = a.managed ? CF_MEMORY_MANAGED : CF_MEMORY_DEVICE;
	mem->ctx = a.ctx;
	mem->ordinal = a.ordinal;
	mem->buffer_id = a.buffer_id;
	mem->chained = !a.ctx && !a.pool;
	mem->end = end_of(&a, mem->chained);
}

/* Walks from one VMM mapping to the next, up to end. */
static CF_APART int check_chain(const struct cf_memory *mem, uintptr_t end)
{
	struct cf_memory next = *mem;

	while (next.end < end) {
		uintptr_t at = next.end;

		if (!next.chained)
			return -CU_FILE_CUDA_POINTER_RANGE_ERROR;
		cf_memory_facts(at, &next);
		if (next.kind != mem->kind || next.ordinal != mem->ordinal ||
		    next.end <= at)
			return -CU_FILE_CUDA_POINTER_RANGE_ERROR;
	}
	return 0;
}

int cf_memory_check_range(const struct cf_memory *mem, size_t size)
{
	uintptr_t end = mem->addr + size;

	if (mem->kind == CF_MEMORY_HOST || !mem->end || mem->end >= end)
		return 0;
	return check_chain(mem, end);
}

const char *cf_memory_kind_name(enum cf_memory_kind kind)
{
	static const char *const names[] = { "host", "device", "managed" };

	return names[kind];
}
