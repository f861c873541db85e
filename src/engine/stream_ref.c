// SPDX-License-Identifier: Apache-2.0
/* stream_ref - the list, by handle, and its counts. */
#include "engine/stream_ref.h"

#include <cufile.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include "engine/dock.h"
#include "engine/sops.h"

#define BUCKETS 64

struct cf_stream_ref {
	struct cf_place at;
	unsigned flags;
	unsigned out; /* operations that are not over, and references */
	bool listed;
	struct cf_dock *dock; /* of the last that joined; NULL: none did */
	struct cf_stream_ref *next;
};

static struct cf_stream_ref *buckets[BUCKETS];
static _Atomic unsigned nr_refs; /* listed; relaxed: 0 spares a question */

static struct cf_stream_ref **bucket_of(CUstream stream)
{
	uintptr_t bits = (uintptr_t)stream;

	return &buckets[(bits >> 4 ^ bits >> 12) % BUCKETS];
}

static bool is_at(const struct cf_stream_ref *ref, const struct cf_place *at)
{
	return ref->at.stream == at->stream && ref->at.ctx == at->ctx &&
	       ref->at.id == at->id;
}

static struct cf_stream_ref *find_locked(const struct cf_place *at)
{
	struct cf_stream_ref *ref = *bucket_of(at->stream);

	while (ref && (ref->at.stream != at->stream || ref->at.ctx != at->ctx ||
		       (at->id && ref->at.id != at->id)))
		ref = ref->next;
	return ref;
}

/* ------------------------------------------------------------- the list */

static void unlist_locked(struct cf_stream_ref *ref)
{
	struct cf_stream_ref **p = bucket_of(ref->at.stream);

	while (*p != ref)
		p = &(*p)->next;
	*p = ref->next;
	ref->listed = false;
	atomic_fetch_sub_explicit(&nr_refs, 1, memory_order_relaxed);
}

static void forget_locked(struct cf_stream_ref *ref)
{
	unlist_locked(ref);
	if (!ref->out)
		free(ref);
}

/* Forgets a stream that has the same handle and another id: it is gone. */
static void drop_namesake_locked(const struct cf_place *at)
{
	struct cf_stream_ref *ref = *bucket_of(at->stream);

	if (cf_is_default_stream(at->stream))
		return;
	while (ref && (ref->at.stream != at->stream || is_at(ref, at)))
		ref = ref->next;
	if (ref)
		forget_locked(ref);
}

int cf_stream_ref_list(const struct cf_place *at, unsigned flags)
{
	struct cf_stream_ref **bucket = bucket_of(at->stream);
	struct cf_stream_ref *ref = calloc(1, sizeof(*ref));
	bool known;

	if (!ref)
		return -ENOMEM;
	ref->at = *at;
	ref->flags = flags;
	cf_sops_lock();
	drop_namesake_locked(at);
	known = find_locked(at);
	if (!known) {
		ref->listed = true;
		ref->next = *bucket;
		*bucket = ref;
		atomic_fetch_add_explicit(&nr_refs, 1, memory_order_relaxed);
	}
	cf_sops_unlock();
	if (known)
		free(ref);
	return known ? -CU_FILE_INVALID_VALUE : 0;
}

struct cf_stream_ref *cf_stream_ref_unlist(const struct cf_place *at)
{
	bool by_name = !cf_is_default_stream(at->stream);
	struct cf_stream_ref *ref;

	cf_sops_lock();
	ref = *bucket_of(at->stream);
	while (ref &&
	       (by_name ? ref->at.stream != at->stream : !is_at(ref, at)))
		ref = ref->next;
	if (ref) {
		unlist_locked(ref);
		ref->out++; /* a reference: nobody frees it while we wait */
	}
	cf_sops_unlock();
	return ref;
}

bool cf_stream_refs_any(void)
{
	return atomic_load_explicit(&nr_refs, memory_order_relaxed);
}

void cf_stream_refs_close(void)
{
	cf_sops_lock();
	for (size_t i = 0; i < BUCKETS; i++)
		while (buckets[i])
			forget_locked(buckets[i]);
	cf_sops_unlock();
}

void cf_stream_refs_fork_child(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		buckets[i] = NULL;
	atomic_store(&nr_refs, 0);
}

/* ----------------------------------------------------------- the counts */

struct cf_stream_ref *cf_stream_ref_get(const struct cf_place *at)
{
	struct cf_stream_ref *ref;

	cf_sops_lock();
	ref = find_locked(at);
	if (ref)
		ref->out++;
	cf_sops_unlock();
	return ref;
}

void cf_stream_ref_leave(struct cf_stream_ref *ref)
{
	if (--ref->out == 0 && !ref->listed)
		free(ref);
	cf_sops_tell();
}

void cf_stream_ref_put(struct cf_stream_ref *ref)
{
	cf_sops_lock();
	cf_stream_ref_leave(ref);
	cf_sops_unlock();
}

void cf_stream_ref_join(struct cf_stream_ref *ref, struct cf_dock *dock)
{
	cf_sops_lock();
	ref->out++;
	ref->dock = dock;
	cf_sops_unlock();
}

unsigned cf_stream_ref_flags(const struct cf_stream_ref *ref)
{
	return ref->flags;
}

/* Asks about the context now and then: one that died ends no operation. */
void cf_stream_ref_wait(struct cf_stream_ref *ref)
{
	struct cf_dock *dock;
	bool alive = true;

	cf_sops_lock();
	while (ref->out > 1 && alive && cf_sops_are_open())
		alive = cf_sops_wait_beside(ref->dock);
	dock = alive && cf_sops_are_open() ? ref->dock : NULL;
	cf_stream_ref_leave(ref);
	cf_sops_unlock();
	if (dock)
		cf_dock_await_bytes(dock);
}
