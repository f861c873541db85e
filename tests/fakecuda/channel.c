// SPDX-License-Identifier: Apache-2.0
/*
 * channel - the few hardware queues that the streams of a context share.
 *
 * Nothing is moved between queues here: an operation that is about to run
 * looks at what the other streams of its channel have come to. Operations wait
 * for older ones only, so that nobody waits in a circle but through values.
 * Everything runs with fc.lock held.
 */
#include "internal.h"

/*
 * Is it a wait that is not over? A value that has come counts as not yet
 * there until the thread of its stream has seen it too, which is soon.
 */
static bool is_shut(const struct fc_op *op)
{
	return op->code == OP_WAIT_VALUE || fc_op_unmet(op);
}

/* A stream that holds up op, of s. */
static struct fc_stream *holder(const struct fc_stream *s,
				const struct fc_op *op)
{
	unsigned int nr = atomic_load(&fc.channels);
	struct fc_stream *o;

	for (o = nr ? s->ctx->streams : NULL; o; o = o->next)
		if (o != s && o->place % nr == s->place % nr && o->head &&
		    o->head->order < op->order && is_shut(o->head))
			return o;
	return NULL;
}

/* Waits until no stream of the channel holds up op, the next of s. */
void fc_channel_await(struct fc_stream *s, const struct fc_op *op)
{
	struct fc_stream *o;

	if (op->nr_deps) /* who waited for us to have them met looks again */
		pthread_cond_broadcast(&s->done);
	while (!fc_ctx_state(op->ctx) && (o = holder(s, op))) {
		o->refs++;
		pthread_cond_wait(&o->done, &fc.lock);
		fc_stream_put(o);
	}
}
