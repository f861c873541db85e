// SPDX-License-Identifier: Apache-2.0
/*
 * handle - the opaque values that clients hold.
 *
 * A handle is an address in one table that never shrinks, so any value that a
 * client passes can be judged without touching it: never ours, dead, or alive.
 * Dead handles are kept for ever unless fakecuda_reuse_handles asked for the
 * address to come back with a new object behind it.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "internal.h"

enum { MAX_HANDLES = 1 << 22 };

static struct fc_handle *table;
static size_t nr_used;
static struct fc_handle *dead[FC_USER + 1];

static const char *const kind_names[] = {
	[FC_CTX] = "context",	     [FC_STREAM] = "stream",
	[FC_EVENT] = "event",	     [FC_MODULE] = "module",
	[FC_FUNCTION] = "function",  [FC_GRAPH] = "graph",
	[FC_EXEC] = "graph exec",    [FC_POOL] = "pool",
	[FC_PHYS] = "memory handle", [FC_USER] = "user object",
};

struct fc_handle *fc_handle_new(enum fc_kind kind, void *obj)
{
	struct fc_handle *h = NULL;

	if (!table) {
		table = mmap(NULL, MAX_HANDLES * sizeof(*table),
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			     0);
		if (table == MAP_FAILED)
			abort();
	}
	if (fc.reuse_handles && dead[kind]) {
		h = dead[kind];
		dead[kind] = h->next_dead;
	} else {
		if (nr_used == MAX_HANDLES)
			abort();
		h = &table[nr_used++];
	}
	h->kind = kind;
	h->obj = obj;
	return h;
}

static struct fc_handle *ours(const void *handle, enum fc_kind kind)
{
	uintptr_t at = (uintptr_t)handle;
	uintptr_t base = (uintptr_t)table;
	struct fc_handle *h;

	if (at < base || at >= base + nr_used * sizeof(*h) ||
	    (at - base) % sizeof(*h))
		return NULL;
	h = &table[(at - base) / sizeof(*h)];
	return h->kind == kind ? h : NULL;
}

/* Was this ever a handle of that kind? */
bool fc_handle_was(const void *handle, enum fc_kind kind)
{
	return ours(handle, kind) != NULL;
}

void *fc_handle_find(const void *handle, enum fc_kind kind)
{
	struct fc_handle *h = ours(handle, kind);

	if (!h)
		return NULL;
	if (!h->obj)
		fc_complain("use of destroyed %s %p", kind_names[kind], handle);
	return h->obj;
}

void fc_handle_kill(struct fc_handle *h)
{
	h->obj = NULL;
	h->next_dead = dead[h->kind];
	dead[h->kind] = h;
}

void fc_handle_each(enum fc_kind kind, void (*fn)(void *obj, void *arg),
		    void *arg)
{
	for (size_t i = 0; i < nr_used; i++)
		if (table[i].kind == kind && table[i].obj)
			fn(table[i].obj, arg);
}
