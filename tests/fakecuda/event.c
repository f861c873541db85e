// SPDX-License-Identifier: Apache-2.0
/*
 * event - a place in the order of a stream, or of all of a context.
 *
 * A recorded event is a stream and a number in it; it has happened when the
 * stream has completed that number.
 */
#include <stdlib.h>

#include "internal.h"

void fc_event_put(struct fc_event *e)
{
	if (--e->refs)
		return;
	if (e->stream)
		fc_stream_put(e->stream);
	if (e->all)
		fc_op_free(e->all);
	free(e);
}

void fc_event_kill(struct fc_event *e)
{
	fc_handle_kill(e->h);
	atomic_fetch_sub(&fc.live[LIVE_EVENT], 1);
	fc_event_put(e);
}

static int create(CUevent *out, unsigned int flags)
{
	struct fc_ctx *c;
	struct fc_event *e;
	int r = fc_current(&c);

	if (r)
		return r;
	if (!out || flags > 7 || (flags & 4 && !(flags & 2)))
		return CF_CU_INVALID_VALUE;
	e = fc_zalloc(sizeof(*e));
	e->ctx = c;
	e->flags = flags;
	e->refs = 1;
	e->h = fc_handle_new(FC_EVENT, e);
	atomic_fetch_add(&fc.live[LIVE_EVENT], 1);
	*out = (CUevent)e->h;
	return 0;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(create(event, flags));
}

/* *out is also set where the context of the event is lost. */
static int find(CUevent h, struct fc_event **out)
{
	struct fc_event *e = h ? fc_handle_find(h, FC_EVENT) : NULL;

	if (!e)
		return h && fc_handle_was(h, FC_EVENT) ?
			       CF_CU_CONTEXT_IS_DESTROYED :
			       CF_CU_INVALID_HANDLE;
	*out = e;
	return fc_ctx_state(e->ctx);
}

static int destroy(CUevent h)
{
	struct fc_event *e = NULL;
	int r = find(h, &e);

	if (e)
		fc_event_kill(e);
	return r;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(destroy(event));
}

static bool happened(const struct fc_event *e)
{
	if (e->all) {
		for (unsigned int i = 0; i < e->all->nr_deps; i++)
			if (e->all->deps[i].s->completed < e->all->deps[i].seq)
				return false;
		return true;
	}
	return !e->stream || e->stream->completed >= e->seq;
}

/* s, seq: or all, of a context. */
static void set_place(struct fc_event *e, struct fc_stream *s, uint64_t seq,
		      struct fc_op *all)
{
	if (s)
		s->refs++;
	if (e->stream)
		fc_stream_put(e->stream);
	if (e->all)
		fc_op_free(e->all);
	e->all = all;
	e->stream = s;
	e->seq = seq;
	e->cap = NULL;
}

static int record_captured(struct fc_event *e, struct fc_stream *s)
{
	if (s->cap->invalid)
		return CF_CU_STREAM_CAPTURE_INVALIDATED;
	e->cap = s->cap;
	e->cap_stream = s;
	return 0;
}

static int record(CUevent h, CUstream sh)
{
	struct fc_stream *s;
	struct fc_event *e = NULL;
	struct fc_op *op;
	uint64_t seq;
	int r = fc_stream_get(sh, STREAM_ANY, &s);

	if (!r)
		r = find(h, &e);
	if (!r && e->ctx != s->ctx) {
		fc_complain("event %p recorded in another context", (void *)h);
		r = CF_CU_INVALID_HANDLE;
	}
	if (r)
		return r;
	if (s->cap)
		return record_captured(e, s);
	if (!fc_self.op_delay_us && fc_stream_idle(s)) {
		set_place(e, s, s->submitted, NULL);
		e->done_ns = fc_now_ns();
		return 0;
	}
	op = fc_op_new(OP_MARK);
	op->event = e;
	e->refs++;
	r = fc_submit(s, op, &seq);
	if (!r)
		set_place(e, s, seq, NULL);
	return r;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(record(event, stream));
}

/* Invalidates captures in any mode, as an H100 does (driver 580). */
static int record_context(CUcontext h, CUevent event)
{
	struct fc_event *e = NULL;
	struct fc_ctx *c;
	struct fc_op *all;
	int r = fc_ctx_find(h, &c);

	if (!r)
		r = find(event, &e);
	if (!r && e->ctx != c)
		r = CF_CU_INVALID_HANDLE;
	if (!r)
		r = fc_capture_hit(c, false, CF_CU_STREAM_CAPTURE_UNSUPPORTED);
	if (r)
		return r;
	all = fc_op_new(OP_MARK);
	for (struct fc_stream *s = c->streams; s; s = s->next)
		fc_op_depend(all, s, s->submitted);
	set_place(e, NULL, 0, all);
	return 0;
}

CUresult cuCtxRecordEvent(CUcontext ctx, CUevent event)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(record_context(ctx, event));
}

/* An event that was last recorded in a capture has no place in time. */
static int outside_capture(const struct fc_event *e, const char *what)
{
	if (e->cap)
		return CF_CU_CAPTURED_EVENT;
	return fc_capture_unsafe(what);
}

static int query(CUevent h)
{
	struct fc_event *e = NULL;
	int r = find(h, &e);

	if (!r)
		r = outside_capture(e, "cuEventQuery");
	if (r)
		return r;
	return happened(e) ? 0 : CF_CU_NOT_READY;
}

CUresult cuEventQuery(CUevent event)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(query(event));
}

static int synchronize(CUevent h)
{
	struct fc_event *e = NULL;
	int r = find(h, &e);

	if (!r)
		r = outside_capture(e, "cuEventSynchronize");
	if (r || happened(e))
		return r;
	if (e->all)
		return CF_CU_NOT_SUPPORTED; /* nobody asked for it yet */
	return fc_wait(e->stream, e->seq);
}

CUresult cuEventSynchronize(CUevent event)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(synchronize(event));
}

static int elapsed(float *ms, CUevent start, CUevent end)
{
	struct fc_event *a = NULL, *b = NULL;
	int r = find(start, &a);

	if (!r)
		r = find(end, &b);
	if (r)
		return r;
	if (!ms)
		return CF_CU_INVALID_VALUE;
	if ((a->flags | b->flags) & CF_CU_EVENT_DISABLE_TIMING || !a->stream ||
	    !b->stream)
		return CF_CU_INVALID_HANDLE;
	if (!happened(a) || !happened(b))
		return CF_CU_NOT_READY;
	*ms = (float)((double)(int64_t)(b->done_ns - a->done_ns) / 1e6);
	return 0;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(elapsed(ms, start, end));
}

/* A wait for a captured event draws the stream into that capture. */
static int join_capture(struct fc_stream *s, struct fc_event *e)
{
	if (s->cap && s->cap != e->cap)
		return CF_CU_STREAM_CAPTURE_ISOLATION;
	if (e->cap->invalid)
		return CF_CU_STREAM_CAPTURE_INVALIDATED;
	if (s->ctx->legacy == s)
		return CF_CU_STREAM_CAPTURE_IMPLICIT;
	s->cap = e->cap;
	if (s == e->cap->origin)
		e->cap_stream->unjoined = false;
	return 0;
}

static int wait_event(CUstream sh, CUevent h, unsigned int flags)
{
	struct fc_stream *s;
	struct fc_event *e = NULL;
	struct fc_op *op;
	int r = fc_stream_get(sh, STREAM_ANY, &s);

	if (!r)
		r = find(h, &e);
	if (!r && flags > 1)
		r = CF_CU_INVALID_VALUE;
	if (r)
		return r;
	if (e->cap)
		return join_capture(s, e);
	if (s->cap) {
		s->cap->invalid = true;
		return CF_CU_STREAM_CAPTURE_ISOLATION;
	}
	if (happened(e))
		return 0;
	op = fc_op_new(OP_MARK);
	for (unsigned int i = 0; e->all && i < e->all->nr_deps; i++)
		fc_op_depend(op, e->all->deps[i].s, e->all->deps[i].seq);
	if (e->stream)
		fc_op_depend(op, e->stream, e->seq);
	return fc_submit(s, op, NULL);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(wait_event(stream, event, flags));
}
