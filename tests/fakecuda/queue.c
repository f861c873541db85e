// SPDX-License-Identifier: Apache-2.0
/*
 * queue - operations in stream order: queued here, executed by a thread of
 * the stream, awaited by number.
 *
 * Every stream counts what was submitted and what is completed. "Wait for"
 * means everywhere the same: until that stream has completed that number.
 * Everything but worker() runs with fc.lock held.
 */
#include <signal.h>
#include <stdlib.h>

#include "internal.h"

enum { WORKER_STACK = 1 << 20 };

/* The first that op still waits for, or NULL. */
const struct fc_dep *fc_op_unmet(const struct fc_op *op)
{
	for (unsigned int i = 0; i < op->nr_deps; i++)
		if (op->deps[i].s->completed < op->deps[i].seq &&
		    !fc_ctx_state(op->deps[i].s->ctx))
			return &op->deps[i];
	return NULL;
}

static void await_deps(const struct fc_op *op)
{
	const struct fc_dep *d;

	while ((d = fc_op_unmet(op)) && !fc_ctx_state(op->ctx))
		pthread_cond_wait(&d->s->done, &fc.lock);
}

/* Memory that went while the operation was on its way here. */
static bool held_memory_is_gone(const struct fc_op *op)
{
	for (unsigned int i = 0; i < op->nr_held; i++)
		if (op->code != OP_FREE && op->held[i]->dead) {
			fc_complain("0x%llx was freed before a queued "
				    "operation used it",
				    (unsigned long long)op->held[i]->base);
			return true;
		}
	return false;
}

static void execute(struct fc_stream *s, struct fc_op *op)
{
	int r = 0;

	await_deps(op);
	fc_channel_await(s, op);
	if (!fc_ctx_state(op->ctx) && !held_memory_is_gone(op)) {
		fc_unlock();
		r = fc_op_run(op);
		fc_lock();
		if (op->code == OP_WRITE_VALUE && !held_memory_is_gone(op))
			fc_op_land(op);
	}
	if (op->code == OP_FREE)
		fc_range_retire(op->held[0]);
	if (op->event)
		op->event->done_ns = fc_now_ns();
	if (r)
		fc_ctx_break(op->ctx, r);
}

static void *worker(void *arg)
{
	struct fc_stream *s = arg;

	fc_lock();
	for (;;) {
		struct fc_op *op;
		uint64_t seq;

		while (!s->head && !s->closing)
			pthread_cond_wait(&s->work, &fc.lock);
		op = s->head;
		if (!op)
			break;
		execute(s, op);
		s->head = op->next;
		if (!s->head)
			s->tail = &s->head;
		seq = op->seq;
		fc_op_free(op); /* before anyone may see it complete */
		s->completed = seq;
		pthread_cond_broadcast(&s->done);
	}
	fc_stream_unlink(s);
	fc_stream_put(s);
	fc_unlock();
	return NULL;
}

/* The thread handles no signal of the process and ends with its stream. */
static int spawn(struct fc_stream *s)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, WORKER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, worker, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (err)
		return CF_CU_OUT_OF_MEMORY;
	s->spawned = true;
	s->refs++;
	return 0;
}

/* The order between the legacy default stream and the blocking ones. */
static void depend_implicitly(struct fc_op *op, struct fc_stream *s)
{
	struct fc_ctx *c = s->ctx;

	if (s == c->legacy) {
		for (struct fc_stream *o = c->streams; o; o = o->next)
			if (o != s && fc_stream_blocks(o))
				fc_op_depend(op, o, o->submitted);
	} else if (c->legacy && fc_stream_blocks(s)) {
		fc_op_depend(op, c->legacy, c->legacy->submitted);
	}
}

static unsigned int planned_delay(const struct fc_op *op,
				  const struct fc_stream *s)
{
	unsigned int us = op->delay_us;

	if (op->code == OP_COPY || op->code == OP_FILL)
		us += atomic_load(&fc.copy_delay_us);
	if (s == s->ctx->legacy && op->code != OP_MARK)
		us += atomic_load(&fc.legacy_delay_us);
	return us;
}

/* Queues a resolved operation; owns it, also where it fails. */
int fc_enqueue(struct fc_stream *s, struct fc_op *op)
{
	int r = s->spawned ? 0 : spawn(s);

	if (r) {
		fc_op_free(op);
		return r;
	}
	op->ctx = s->ctx;
	op->delay_us = planned_delay(op, s);
	depend_implicitly(op, s);
	op->seq = ++s->submitted;
	op->order = ++fc.next_order;
	*s->tail = op;
	s->tail = &op->next;
	pthread_cond_signal(&s->work);
	return 0;
}

/* Returns when the stream has room, or nothing will end in it any more. */
static void await_room(struct fc_stream *s)
{
	unsigned int most = atomic_load(&fc.stream_depth);

	if (!most || s->submitted - s->completed < most)
		return;
	atomic_fetch_add(&fc.stream_full, 1);
	while (s->submitted - s->completed >= most && !fc_ctx_state(s->ctx))
		pthread_cond_wait(&s->done, &fc.lock);
}

/* The stream, or its context, may have gone while there was no room. */
static int submit_in_turn(struct fc_stream *s, struct fc_op *op)
{
	int r;

	await_room(s);
	r = s->closing ? CF_CU_CONTEXT_IS_DESTROYED : fc_ctx_state(s->ctx);
	op->stream = s;
	if (!r)
		r = fc_op_resolve(op);
	if (!r)
		return fc_enqueue(s, op);
	fc_op_free(op);
	return r;
}

/*
 * Records the operation where the stream is captured, else checks and queues
 * it. Owns op, also where it fails. *seq, if wanted: its number, or 0.
 */
int fc_submit(struct fc_stream *s, struct fc_op *op, uint64_t *seq)
{
	int r;

	if (seq)
		*seq = 0;
	op->delay_us = fc_self.op_delay_us;
	if (s->cap)
		return fc_capture_append(s, op);
	s->refs++;
	r = submit_in_turn(s, op);
	if (!r && seq)
		*seq = s->submitted;
	fc_stream_put(s);
	return r;
}

/* Waits; 0, or what became of the context meanwhile. */
int fc_wait(struct fc_stream *s, uint64_t seq)
{
	int r;

	s->refs++;
	while (s->completed < seq && !fc_ctx_state(s->ctx))
		pthread_cond_wait(&s->done, &fc.lock);
	r = fc_ctx_state(s->ctx);
	fc_stream_put(s);
	return r;
}

/* All that the stream has now; for the legacy one, what it would wait for. */
int fc_wait_all_of(struct fc_stream *s)
{
	struct fc_op *mark = fc_op_new(OP_MARK);
	struct fc_ctx *ctx = s->ctx; /* the stream may go while it is awaited */

	if (s == ctx->legacy)
		depend_implicitly(mark, s);
	fc_op_depend(mark, s, s->submitted);
	for (unsigned int i = 0; i < mark->nr_deps; i++)
		fc_wait(mark->deps[i].s, mark->deps[i].seq);
	fc_op_free(mark);
	return fc_ctx_state(ctx);
}

bool fc_stream_idle(struct fc_stream *s)
{
	struct fc_op *mark = fc_op_new(OP_MARK);
	bool idle;

	depend_implicitly(mark, s);
	fc_op_depend(mark, s, s->submitted);
	idle = mark->nr_deps == 0;
	fc_op_free(mark);
	return idle;
}
