// SPDX-License-Identifier: Apache-2.0
/*
 * dock_load - loads what the ferries of a context need: their kernel, and then
 * an aperture, which is ended when the context is gone, with the dock's pages.
 *
 * To load either may be to wait for the context, or for a stream of ours in it:
 * not while that waits for what the client does next.
 */
#include "core/context.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "core/quiet.h"
#include "engine/dock_internal.h"

/* What an aperture has: boards and holds, slots, and core/fresh.h's words. */
#define SLOTS CF_CHUNK_NEAR
#define WORDS (SLOTS + CF_NEAR_SLOTS * CF_NEAR_SLOT)

/*
 * How long the context may take to end what it has, and a wait that is over to
 * leave the probe, also on a busy machine; and how long the latter at a later
 * try, after the probe was held up.
 */
#define PASSED_NS (500 * 1000 * 1000)
#define PASSED_LATER_NS (1000 * 1000)

/* The first time what the context has is awaited for a while. */
static bool is_quiet(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	int64_t patience = dock->was_busy ? CF_QUIET_PATIENCE_NS : PASSED_NS;
	bool quiet = cf_quiet_after(cuda, &dock->busy, patience);

	dock->was_busy |= !quiet;
	return quiet;
}

/* Without it copies go in streams of their own, where gates may delay them. */
static bool load_kernel(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	struct cf_ferry_kernel ferry = { .module = NULL };
	int err;

	if (!is_quiet(cuda, dock))
		return false;
	err = cf_ferry_load(cuda, &ferry);
	pthread_mutex_lock(&cf_docks.lock);
	dock->ferry = ferry;
	pthread_mutex_unlock(&cf_docks.lock);
	if (err)
		cf_log(CF_LOG_WARN,
		       "stream IO: no kernel in context " CF_TAG
		       " (code %d %s), copies go in streams of their own",
		       cf_tag(dock->ctx), err, cf_cuda_name_in(err));
	return true;
}

/*
 * Whether the probe gets on. An aperture is tried in it, and awaited there, but
 * streams that wait for what the client does next may hold the probe up. So a
 * wait that is over goes through it first.
 */
static bool probe_gets_on(const struct cf_cuda *cuda, struct cf_dock *dock,
			  const struct cf_chunk *chunk)
{
	bool again = dock->held_up;

	dock->held_up =
		!cf_lane_ends_by(cuda, dock->probe, again ? 0 : PASSED_NS) ||
		cf_chunk_put_wait(cuda, chunk, dock->probe) != CF_CU_SUCCESS ||
		!cf_lane_ends_by(cuda, dock->probe,
				 again ? PASSED_LATER_NS : PASSED_NS);
	return !dock->held_up;
}

/* Another thread may add a chunk meanwhile, but leases nothing of it. */
static void end_stale(struct cf_dock *dock)
{
	pthread_mutex_lock(&cf_docks.lock);
	cf_berths_take_far(&dock->berths[true]);
	dock->stale = false;
	pthread_mutex_unlock(&cf_docks.lock);
	cf_aperture_end(&dock->aperture);
}

/* Without an aperture the kernels look at their boards over the bus. */
static void make_aperture(const struct cf_cuda *cuda, struct cf_dock *dock,
			  struct cf_chunk *chunk)
{
	struct cf_aperture *a = &dock->aperture;
	int ordinal = cf_context_ordinal(cuda);

	if (dock->stale)
		end_stale(dock);
	if (!cf_aperture_make(a, ordinal, WORDS + sizeof(struct cf_fresh_words),
			      dock->probe))
		return;
	dock->slots.mem = a->mem + SLOTS;
	dock->slots.gpu = a->gpu + SLOTS;
	cf_fresh_init(&dock->fresh, a, WORDS, dock->probe,
		      cf_chunk_answer(chunk));
	cf_chunk_bring_near(chunk, a, &dock->slots);
}

bool cf_dock_load(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	bool may, kernel, done = true;
	struct cf_chunk *chunk;

	pthread_mutex_lock(&cf_docks.lock);
	may = cf_dock_may_load_locked(dock);
	kernel = !dock->loaded;
	dock->loading |= may;
	dock->neared |= may && !kernel;
	dock->loaded |= may;
	/* another thread may add one meanwhile */
	chunk = dock->berths[true].chunks;
	pthread_mutex_unlock(&cf_docks.lock);
	if (!may)
		return true;
	if (kernel)
		done = load_kernel(cuda, dock);
	else if (probe_gets_on(cuda, dock, chunk))
		make_aperture(cuda, dock, chunk);
	else
		done = false;
	pthread_mutex_lock(&cf_docks.lock);
	dock->loading = false;
	dock->loaded &= done || !kernel;
	dock->neared &= done;
	pthread_cond_broadcast(&cf_docks.settled);
	pthread_mutex_unlock(&cf_docks.lock);
	return done;
}

/* The first dock from there on that still has all it had. */
static struct cf_dock *not_bare(struct cf_dock *after)
{
	struct cf_dock *dock;

	pthread_mutex_lock(&cf_docks.lock);
	dock = after ? after->next : cf_docks.first;
	while (dock && dock->bare)
		dock = dock->next;
	pthread_mutex_unlock(&cf_docks.lock);
	return dock;
}

static bool strip_locked(struct cf_berths *berths)
{
	bool home = cf_berths_where(berths) == CF_HOME;

	if (home) {
		cf_berths_take_far(berths);
		cf_berths_give_up_pages(berths);
	}
	return home;
}

/* With all at home nobody looks there, no kernel either; and who leases one
 * yet, of a context that goes just now, shall not. */
static struct cf_aperture take_all(struct cf_dock *dock)
{
	struct cf_aperture a = { 0 };

	pthread_mutex_lock(&cf_docks.lock);
	if (!dock->loading) {
		dock->bare = strip_locked(&dock->berths[false]);
		if (strip_locked(&dock->berths[true])) {
			a = dock->aperture;
			dock->aperture = (struct cf_aperture){ 0 };
		} else {
			dock->bare = false;
		}
	}
	pthread_mutex_unlock(&cf_docks.lock);
	return a;
}

/* A driver without ids takes a context that has the handle now for the old. */
void cf_docks_strip(const struct cf_cuda *cuda)
{
	struct cf_dock *dock = cuda->ctx_get_id ? not_bare(NULL) : NULL;

	for (; dock; dock = not_bare(dock)) {
		struct cf_aperture a;

		if (!cf_dock_is_gone(cuda, dock))
			continue;
		a = take_all(dock);
		cf_aperture_end(&a);
	}
}
