// SPDX-License-Identifier: Apache-2.0
/*
 * alias - the providers of addresses, in the order in which they are asked.
 *
 * Lock: provider_lock, innermost; guards the client's provider, which is
 * called without it.
 */
#include "core/alias.h"

#include <cufile.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "core/alias_test.h"
#include "core/dma_buf.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "seam/os.h"

static pthread_mutex_t provider_lock = PTHREAD_MUTEX_INITIALIZER;
static ocf_alias_provider_t the_provider; /* provider_lock; map NULL: none */

int cf_alias_set_provider(const ocf_alias_provider_t *provider)
{
	ocf_alias_provider_t ours = { 0 };

	if (provider && (provider->struct_size < sizeof(ours) ||
			 !provider->map || !provider->unmap))
		return -CU_FILE_INVALID_VALUE;
	if (provider)
		ours = *provider;
	pthread_mutex_lock(&provider_lock);
	the_provider = ours;
	pthread_mutex_unlock(&provider_lock);
	cf_alias_forget();
	return 0;
}

void cf_alias_fork_prepare(void)
{
	pthread_mutex_lock(&provider_lock);
}

void cf_alias_fork_release(void)
{
	pthread_mutex_unlock(&provider_lock);
}

/* Each fills cpu and how to unmap it, and answers 0; or why it has none. */

static int from_client(const struct cf_memory *mem, struct cf_alias *alias)
{
	ocf_alias_provider_t by;
	void *cpu = NULL;
	int err;

	pthread_mutex_lock(&provider_lock);
	by = the_provider;
	pthread_mutex_unlock(&provider_lock);
	if (!by.map)
		return -ENOENT;
	err = by.map(by.arg, mem->ordinal, (const void *)mem->addr, alias->size,
		     &cpu);
	if (err || !cpu)
		return err < 0 ? err : -ENOTSUP;
	alias->cpu = (uintptr_t)cpu;
	alias->unmap = by.unmap;
	alias->arg = by.arg;
	alias->map = cpu;
	alias->map_size = alias->size;
	return 0;
}

/* Where the CPU's access would make memory migrate, a copy is better. */
static int from_coherence(const struct cf_memory *mem, struct cf_alias *alias)
{
	int direct;

	if (mem->kind != CF_MEMORY_MANAGED ||
	    cf_cuda_attribute(mem->ordinal,
			      CF_CU_DEVICE_DIRECT_MANAGED_FROM_HOST,
			      &direct) != CF_CU_SUCCESS ||
	    !direct)
		return -ENOTSUP;
	alias->cpu = mem->addr;
	return 0;
}

static void unmap_dma_buf(void *arg, void *mem, size_t size)
{
	cf_os->unmap(mem, size);
}

static int from_dma_buf(const struct cf_memory *mem, struct cf_alias *alias)
{
	struct cf_dma_buf buf;
	int err = -ENOTSUP;

	if (mem->kind == CF_MEMORY_DEVICE)
		err = cf_dma_buf_map(mem, alias->size, &buf, &alias->map);
	if (err)
		return err;
	alias->map_size = buf.size;
	alias->unmap = unmap_dma_buf;
	alias->cpu = (uintptr_t)alias->map + (mem->addr - buf.first);
	return 0;
}

static const struct {
	const char *name;
	int (*map)(const struct cf_memory *mem, struct cf_alias *alias);
} providers[] = {
	{ "the client's provider", from_client },
	{ "coherent memory", from_coherence },
	{ "dma-buf", from_dma_buf },
};
#define NR_PROVIDERS (sizeof(providers) / sizeof(providers[0]))

int cf_alias_map(unsigned provider, const struct cf_memory *mem, size_t size,
		 struct cf_alias *alias)
{
	*alias = (struct cf_alias){
		.refs = 1,
		.device = mem->addr,
		.size = size,
	};
	return providers[provider].map(mem, alias);
}

void cf_alias_unmap(struct cf_alias *alias)
{
	if (alias->unmap)
		alias->unmap(alias->arg, alias->map, alias->map_size);
}

static enum cf_alias_state try_provider(unsigned nr,
					const struct cf_memory *mem,
					size_t size, struct cf_alias *alias)
{
	enum cf_alias_state state;

	if (cf_alias_map(nr, mem, size, alias))
		return CF_ALIAS_NOBODY;
	state = cf_alias_test(nr, mem, alias);
	cf_log(state == CF_ALIAS_WRONG ? CF_LOG_WARN : CF_LOG_INFO,
	       "alias of " CF_TAG " len %zu gpu %d: %s, %s", cf_tag(mem->addr),
	       size, mem->ordinal, providers[nr].name,
	       cf_alias_state_name(state));
	if (state == CF_ALIAS_WRONG)
		cf_alias_unmap(alias);
	return state;
}

static _Atomic unsigned nr_aliases; /* relaxed */

enum cf_alias_state cf_alias_make(const struct cf_memory *mem, size_t size,
				  struct cf_alias **alias)
{
	enum cf_alias_state state = CF_ALIAS_NOBODY;
	struct cf_alias *made;

	*alias = NULL;
	if (mem->kind == CF_MEMORY_HOST)
		return CF_ALIAS_UNREGISTERED;
	/* the alias of memory that was freed reaches other memory, or none */
	if (!cf_memory_can_be_told_apart(mem))
		return CF_ALIAS_NOBODY;
	made = malloc(sizeof(*made));
	if (!made)
		return CF_ALIAS_NOBODY;
	for (unsigned i = 0; i < NR_PROVIDERS && state == CF_ALIAS_NOBODY; i++)
		state = try_provider(i, mem, size, made);
	if (state < CF_ALIAS_PLAIN) {
		free(made);
		return state;
	}
	made->state = state;
	*alias = made;
	atomic_fetch_add_explicit(&nr_aliases, 1, memory_order_relaxed);
	return state;
}

void cf_alias_get(struct cf_alias *alias)
{
	atomic_fetch_add_explicit(&alias->refs, 1, memory_order_relaxed);
}

/* Acquire and release: all others are done with it before it is unmapped. */
void cf_alias_put(struct cf_alias *alias)
{
	if (!alias || atomic_fetch_sub_explicit(&alias->refs, 1,
						memory_order_acq_rel) > 1)
		return;
	cf_alias_unmap(alias);
	free(alias);
	atomic_fetch_sub_explicit(&nr_aliases, 1, memory_order_relaxed);
}

unsigned cf_aliases_out(void)
{
	return atomic_load_explicit(&nr_aliases, memory_order_relaxed);
}

void cf_alias_leave(struct cf_alias *alias)
{
	if (alias)
		alias->unmap = NULL;
}
