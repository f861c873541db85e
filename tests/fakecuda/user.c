// SPDX-License-Identifier: Apache-2.0
/*
 * user - objects of the client that live as long as the graphs that use them.
 *
 * A graph, each exec made of it and each launch under way hold references.
 * The destructor runs on a thread of the driver's, some time later, and may
 * make no driver call. All but run_destructor wants fc.lock.
 */
#include <stdlib.h>

#include "internal.h"

struct fc_user {
	struct fc_handle *h;
	unsigned int refs;
	CUhostFn destroy;
	void *ptr;
};

static void *run_destructor(void *arg)
{
	struct fc_user *u = arg;

	fc_self.in_host_fn = true;
	u->destroy(u->ptr);
	atomic_fetch_sub(&fc.live[LIVE_USER], 1);
	free(u);
	return NULL;
}

static void user_put(struct fc_user *u, unsigned int nr)
{
	pthread_t thread;

	u->refs -= nr;
	if (u->refs)
		return;
	fc_handle_kill(u->h);
	if (pthread_create(&thread, NULL, run_destructor, u))
		abort(); /* a test machine without threads has no answer */
	pthread_detach(thread);
}

void fc_users_add(struct fc_users *users, struct fc_user *user)
{
	users->objs = realloc(users->objs,
			      (users->nr + 1) * sizeof(struct fc_user *));
	if (!users->objs)
		abort();
	users->objs[users->nr++] = user;
}

struct fc_users fc_users_copy(const struct fc_users *users)
{
	struct fc_users copy = { 0 };

	for (unsigned int i = 0; i < users->nr; i++) {
		users->objs[i]->refs++;
		fc_users_add(&copy, users->objs[i]);
	}
	return copy;
}

void fc_users_drop(struct fc_users *users)
{
	for (unsigned int i = 0; i < users->nr; i++)
		user_put(users->objs[i], 1);
	free(users->objs);
	*users = (struct fc_users){ 0 };
}

CUresult cuUserObjectCreate(CUuserObject *object, void *ptr, CUhostFn destroy,
			    unsigned int refs, unsigned int flags)
{
	struct fc_user *u;

	FC_ENTER(FC_NORMAL);
	if (!object || !destroy || !refs ||
	    flags != CF_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return (int)CF_CU_INVALID_VALUE;
	u = fc_zalloc(sizeof(*u));
	u->refs = refs;
	u->destroy = destroy;
	u->ptr = ptr;
	fc_lock();
	u->h = fc_handle_new(FC_USER, u);
	fc_unlock();
	atomic_fetch_add(&fc.live[LIVE_USER], 1);
	*object = (CUuserObject)u->h;
	return 0;
}

static int retain(CUuserObject h, unsigned int nr)
{
	struct fc_user *u = fc_handle_find(h, FC_USER);

	if (!u || !nr)
		return CF_CU_INVALID_VALUE;
	u->refs += nr;
	return 0;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(retain(object, count));
}

static int release(CUuserObject h, unsigned int nr)
{
	struct fc_user *u = fc_handle_find(h, FC_USER);

	if (!u || !nr || nr > u->refs)
		return CF_CU_INVALID_VALUE;
	user_put(u, nr);
	return 0;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(release(object, count));
}

static int give_graph(CUgraph gh, CUuserObject h, unsigned int nr,
		      unsigned int flags)
{
	struct fc_graph *g = fc_handle_find(gh, FC_GRAPH);
	struct fc_user *u = fc_handle_find(h, FC_USER);

	if (!g || !u || !nr || flags & ~1u)
		return CF_CU_INVALID_VALUE;
	if (!(flags & CF_CU_GRAPH_USER_OBJECT_MOVE))
		u->refs += nr;
	while (nr--)
		fc_users_add(&g->users, u);
	return 0;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object,
				 unsigned int count, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(give_graph(graph, object, count, flags));
}

static void forget(void *obj, void *arg)
{
	struct fc_user *u = obj;

	(void)arg;
	fc_handle_kill(u->h);
	atomic_fetch_sub(&fc.live[LIVE_USER], 1);
	free(u);
}

/* Those that the client still holds; graphs are gone already. */
void fc_user_reset(void)
{
	fc_handle_each(FC_USER, forget, NULL);
}
