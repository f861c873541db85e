// SPDX-License-Identifier: Apache-2.0
/*
 * idle - calls that wait until their context has nothing to do, and what they
 * keep out meanwhile.
 *
 * A context is shut while ctx->shut calls are in fc_idle_await. Who has come
 * in before it was shut goes on, as who waits for a stream does. Everything
 * runs with fc.lock held.
 */
#include "internal.h"

static bool has_work(const struct fc_ctx *ctx)
{
	for (const struct fc_stream *s = ctx->streams; s; s = s->next)
		if (s->completed < s->submitted)
			return true;
	return false;
}

/* Returns when the context is idle or broken; shut: others stay out. */
void fc_idle_await(struct fc_ctx *ctx, bool shut)
{
	ctx->shut += shut;
	while (has_work(ctx) && !fc_ctx_state(ctx))
		fc_ctx_drain(ctx);
	ctx->shut -= shut;
	if (!ctx->shut)
		pthread_cond_broadcast(&ctx->opened);
}

/* Waits until the current context, if any, lets a call in. */
int fc_idle_door(void)
{
	struct fc_ctx *c;

	if (fc_current(&c))
		return 0; /* the call itself says why */
	while (c->shut && atomic_load(&fc.idle_calls) && !fc_ctx_state(c) &&
	       !atomic_load(&fc.gone))
		pthread_cond_wait(&c->opened, &fc.lock);
	return atomic_load(&fc.gone) ? CF_CU_DEINITIALIZED : 0;
}
