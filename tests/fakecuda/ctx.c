// SPDX-License-Identifier: Apache-2.0
/*
 * ctx - contexts, and which one is current to a thread.
 *
 * A context that dies takes its streams, events, modules and memory with it.
 * Its struct stays, so that late users find it dead instead of gone.
 */
#include <string.h>

#include "internal.h"

static struct fc_ctx *all_ctx;

struct fc_ctx *fc_ctx_all(void)
{
	return all_ctx;
}

/* A context; reuse is the handle of a primary context that returns. */
struct fc_ctx *fc_ctx_new(int dev, unsigned int flags, struct fc_handle *reuse)
{
	struct fc_ctx *c = fc_zalloc(sizeof(*c));

	c->dev = dev;
	c->flags = flags;
	c->id = ++fc.next_id;
	pthread_mutex_init(&c->host_fn_lock, NULL);
	pthread_cond_init(&c->opened, NULL);
	c->h = reuse ? reuse : fc_handle_new(FC_CTX, c);
	c->h->obj = c;
	c->next = all_ctx;
	all_ctx = c;
	return c;
}

/* What calls in this context answer: 0, or why it is of no use any more. */
int fc_ctx_state(const struct fc_ctx *ctx)
{
	if (atomic_load(&ctx->dead))
		return CF_CU_CONTEXT_IS_DESTROYED;
	return atomic_load(&ctx->lost);
}

/* All of them: streams of other contexts may wait for ours. */
void fc_ctx_wake_all(void)
{
	for (struct fc_ctx *c = all_ctx; c; c = c->next) {
		pthread_cond_broadcast(&c->opened);
		for (struct fc_stream *s = c->streams; s; s = s->next) {
			pthread_cond_broadcast(&s->work);
			pthread_cond_broadcast(&s->done);
		}
	}
}

/* Every later call in the context answers result, as after a fault. */
void fc_ctx_break(struct fc_ctx *ctx, int result)
{
	int fine = 0;

	atomic_compare_exchange_strong(&ctx->lost, &fine, result);
	fc_ctx_wake_all();
}

/* Waits for all work that the context has now; a broken one has none. */
void fc_ctx_drain(struct fc_ctx *ctx)
{
	struct fc_op *all = fc_op_new(OP_MARK);

	for (struct fc_stream *s = ctx->streams; s; s = s->next)
		fc_op_depend(all, s, s->submitted);
	for (unsigned int i = 0; i < all->nr_deps; i++)
		fc_wait(all->deps[i].s, all->deps[i].seq);
	fc_op_free(all);
}

static void kill_event_of(void *obj, void *arg)
{
	struct fc_event *e = obj;

	if (e->ctx == arg)
		fc_event_kill(e);
}

static void drain_dead(struct fc_ctx *ctx)
{
	struct fc_stream *s;

again:
	for (s = ctx->streams; s; s = s->next) {
		if (s->completed == s->submitted)
			continue;
		s->refs++;
		while (s->completed != s->submitted)
			pthread_cond_wait(&s->done, &fc.lock);
		fc_stream_put(s);
		goto again;
	}
}

void fc_ctx_kill(struct fc_ctx *ctx)
{
	atomic_store(&ctx->dead, true);
	fc_ctx_wake_all();
	drain_dead(ctx);
	fc_handle_each(FC_EVENT, kill_event_of, ctx);
	fc_module_kill_of(ctx);
	while (ctx->streams)
		fc_stream_close(ctx->streams);
	fc_range_retire_of(ctx);
	if (ctx->primary) {
		if (ctx->h->obj == ctx)
			ctx->h->obj = NULL; /* until the next retain */
		return;
	}
	fc_handle_kill(ctx->h);
	atomic_fetch_sub(&fc.live[LIVE_CTX], 1);
}

/* The live, unbroken context of a handle. */
int fc_ctx_find(CUcontext h, struct fc_ctx **out)
{
	struct fc_ctx *c;

	if (!h || !fc_handle_was(h, FC_CTX))
		return CF_CU_INVALID_CONTEXT;
	c = ((struct fc_handle *)h)->obj;
	if (!c)
		return CF_CU_CONTEXT_IS_DESTROYED;
	*out = c;
	return fc_ctx_state(c);
}

int fc_current(struct fc_ctx **out)
{
	if (fc_self.depth == 0)
		return CF_CU_INVALID_CONTEXT;
	return fc_ctx_find(fc_self.stack[fc_self.depth - 1], out);
}

void fakecuda_lose_context(CUcontext h)
{
	struct fc_ctx *c;

	fc_lock();
	for (c = all_ctx; c; c = c->next)
		if (!atomic_load(&c->dead) && (!h || (CUcontext)c->h == h))
			fc_ctx_break(c, CF_CU_LAUNCH_FAILED);
	fc_unlock();
}

static int push(CUcontext h)
{
	if (fc_self.depth == FC_STACK)
		return CF_CU_OUT_OF_MEMORY;
	fc_self.stack[fc_self.depth++] = h;
	return 0;
}

static int create(CUcontext *out, unsigned int flags, CUdevice dev)
{
	if (!out || flags > 0xff)
		return CF_CU_INVALID_VALUE;
	if (fc_device(dev))
		return CF_CU_INVALID_DEVICE;
	if (fc_self.depth == FC_STACK)
		return CF_CU_OUT_OF_MEMORY;
	*out = (CUcontext)fc_ctx_new(dev, flags, NULL)->h;
	atomic_fetch_add(&fc.live[LIVE_CTX], 1);
	return push(*out);
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(create(ctx, flags, dev));
}

/* params: affinity and graphics sharing, neither of which a fake has. */
CUresult cuCtxCreate_v4(CUcontext *ctx, void *params, unsigned int flags,
			CUdevice dev)
{
	FC_ENTER(FC_NORMAL);
	if (params)
		return (int)CF_CU_NOT_SUPPORTED;
	return FC_LOCKED(create(ctx, flags, dev));
}

static int destroy(CUcontext h)
{
	struct fc_ctx *c;
	int r = fc_ctx_find(h, &c);

	if (r == CF_CU_INVALID_CONTEXT || r == CF_CU_CONTEXT_IS_DESTROYED) {
		if (r == CF_CU_CONTEXT_IS_DESTROYED)
			fc_complain("context %p destroyed twice", (void *)h);
		return r;
	}
	if (c->primary)
		return CF_CU_INVALID_CONTEXT;
	fc_ctx_kill(c);
	if (fc_self.depth && fc_self.stack[fc_self.depth - 1] == h)
		fc_self.depth--;
	return 0;
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(destroy(ctx));
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	struct fc_ctx *c;
	int r;

	FC_ENTER(FC_PASS);
	r = FC_LOCKED(fc_ctx_find(ctx, &c));
	/* A broken context can still be made current; its calls then fail. */
	if (r == CF_CU_INVALID_CONTEXT || r == CF_CU_CONTEXT_IS_DESTROYED)
		return r;
	return push(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	FC_ENTER(FC_PASS);
	if (fc_self.depth == 0)
		return (int)CF_CU_INVALID_CONTEXT;
	fc_self.depth--;
	if (ctx)
		*ctx = fc_self.stack[fc_self.depth];
	return 0;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	struct fc_ctx *c;
	int r;

	FC_ENTER(FC_PASS);
	if (!ctx) {
		fc_self.depth -= fc_self.depth > 0;
		return 0;
	}
	r = FC_LOCKED(fc_ctx_find(ctx, &c));
	if (r == CF_CU_INVALID_CONTEXT || r == CF_CU_CONTEXT_IS_DESTROYED)
		return r;
	fc_self.depth -= fc_self.depth > 0;
	return push(ctx);
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	FC_ENTER(FC_PASS);
	if (!ctx)
		return (int)CF_CU_INVALID_VALUE;
	*ctx = fc_self.depth ? fc_self.stack[fc_self.depth - 1] : NULL;
	return 0;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
	struct fc_ctx *c;
	int r;

	FC_ENTER(FC_NORMAL);
	r = FC_LOCKED(fc_current(&c));
	if (r)
		return r;
	if (!dev)
		return (int)CF_CU_INVALID_VALUE;
	*dev = c->dev;
	return 0;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct fc_ctx *c;
	int r;

	FC_ENTER(FC_NORMAL);
	r = FC_LOCKED(fc_current(&c));
	if (r)
		return r;
	if (!flags)
		return (int)CF_CU_INVALID_VALUE;
	*flags = c->flags;
	return 0;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	struct fc_ctx *c;
	int r;

	FC_ENTER(FC_PASS);
	r = FC_LOCKED(ctx ? fc_ctx_find(ctx, &c) : fc_current(&c));
	if (r)
		return r;
	if (!id)
		return (int)CF_CU_INVALID_VALUE;
	*id = c->id;
	return 0;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct fc_ctx *c;
	int r;

	FC_ENTER(FC_NORMAL);
	r = FC_LOCKED(ctx ? fc_ctx_find(ctx, &c) : fc_current(&c));
	if (r)
		return r;
	if (!version)
		return (int)CF_CU_INVALID_VALUE;
	*version = 3020;
	return 0;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct fc_ctx *c;
	int r;

	FC_ENTER(FC_NORMAL);
	r = FC_LOCKED(fc_current(&c));
	if (r)
		return r;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return 0;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	struct fc_ctx *c;
	int r;

	FC_ENTER(FC_NORMAL);
	r = FC_LOCKED(fc_current(&c));
	if (!r)
		r = FC_LOCKED(fc_ctx_find(peer, &c));
	if (!r && flags)
		r = CF_CU_INVALID_VALUE;
	return r;
}

static int synchronize(void)
{
	struct fc_ctx *c;
	int r = fc_current(&c);

	if (!r)
		r = fc_capture_unsafe("cuCtxSynchronize");
	if (!r)
		r = fc_capture_hit(c, false, CF_CU_STREAM_CAPTURE_UNSUPPORTED);
	if (r)
		return r;
	fc_ctx_drain(c);
	return fc_ctx_state(c);
}

/* Nothing is held back here; a call where it is not offered is a mistake. */
CUresult cuFlushGPUDirectRDMAWrites(int target, int scope)
{
	struct fc_ctx *c;
	int r;

	FC_ENTER(FC_NORMAL);
	if (target != CF_CU_FLUSH_CURRENT_CTX || (scope != 100 && scope != 200))
		return (int)CF_CU_INVALID_VALUE;
	if (!(atomic_load(&fc.flush_options) & CF_CU_FLUSH_OPTION_HOST))
		return (int)CF_CU_NOT_SUPPORTED;
	r = FC_LOCKED(fc_current(&c));
	return r;
}

CUresult cuCtxSynchronize(void)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(synchronize());
}
