// SPDX-License-Identifier: Apache-2.0
/*
 * capture - streams that record instead of doing, and what that forbids.
 *
 * A capture belongs to the stream that began it; others join by waiting for an
 * event of it. The recorded operations are kept in the order of the calls,
 * which is one of the orders that the events allow.
 */
#include <stdlib.h>

#include "internal.h"

static struct fc_capture *captures; /* that have not ended */
static struct fc_capture *ended;    /* events may still name them */

static struct fc_graph *graph_new(void)
{
	struct fc_graph *g = fc_zalloc(sizeof(*g));

	g->tail = &g->head;
	return g;
}

/* Owns op. The source of a recorded copy is read at replay. */
int fc_capture_append(struct fc_stream *s, struct fc_op *op)
{
	struct fc_capture *cap = s->cap;

	if (cap->invalid) {
		fc_op_free(op);
		return CF_CU_STREAM_CAPTURE_INVALIDATED;
	}
	free(op->snapshot);
	op->snapshot = NULL;
	*cap->graph->tail = op;
	cap->graph->tail = &op->next;
	cap->graph->nr++;
	if (s != cap->origin)
		s->unjoined = true;
	return 0;
}

/* Asking a capturing stream how far it is ends the capture. */
int fc_capture_forbids(struct fc_stream *s)
{
	if (!s->cap)
		return 0;
	s->cap->invalid = true;
	return CF_CU_STREAM_CAPTURE_UNSUPPORTED;
}

/* The first from s on that captures, and perhaps blocks; or NULL. */
static struct fc_stream *next_hit(struct fc_stream *s, bool blocking_only)
{
	while (s && !(s->cap && (!blocking_only || fc_stream_blocks(s))))
		s = s->next;
	return s;
}

/* Invalidates the captures in a context; result if there were any, else 0. */
int fc_capture_hit(struct fc_ctx *ctx, bool blocking_only, int result)
{
	struct fc_stream *first = next_hit(ctx->streams, blocking_only);

	for (struct fc_stream *s = first; s;
	     s = next_hit(s->next, blocking_only))
		s->cap->invalid = true;
	return first ? result : 0;
}

bool fc_capture_blocks(const struct fc_ctx *ctx)
{
	return next_hit(ctx->streams, true);
}

/*
 * A call that could synchronise is forbidden during this thread's captures and
 * the global ones of others, as far as neither side has said "relaxed".
 */
int fc_capture_unsafe(const char *what)
{
	bool hit = false;

	if (fc_self.capture_mode == CF_CU_STREAM_CAPTURE_MODE_RELAXED)
		return 0;
	for (struct fc_capture *cap = captures; cap; cap = cap->next) {
		bool mine = cap->thread == fc_thread_id();
		bool global = cap->mode == CF_CU_STREAM_CAPTURE_MODE_GLOBAL &&
			      fc_self.capture_mode ==
				      CF_CU_STREAM_CAPTURE_MODE_GLOBAL;

		if (cap->mode == CF_CU_STREAM_CAPTURE_MODE_RELAXED ||
		    !(mine || global))
			continue;
		if (!cap->invalid)
			fc_complain("%s during a stream capture", what);
		cap->invalid = true;
		hit = true;
	}
	return hit ? CF_CU_STREAM_CAPTURE_UNSUPPORTED : 0;
}

/* The capture is over: its streams are streams again. */
static void end(struct fc_capture *cap)
{
	struct fc_capture **p = &captures;
	struct fc_ctx *c;

	while (*p != cap)
		p = &(*p)->next;
	*p = cap->next;
	cap->next = ended;
	ended = cap;
	for (c = fc_ctx_all(); c; c = c->next)
		for (struct fc_stream *s = c->streams; s; s = s->next)
			if (s->cap == cap) {
				s->cap = NULL;
				s->unjoined = false;
			}
}

static void graph_free(struct fc_graph *g)
{
	while (g->head) {
		struct fc_op *op = g->head;

		g->head = op->next;
		fc_op_free(op);
	}
	fc_users_drop(&g->users);
	if (g->h)
		fc_handle_kill(g->h);
	free(g);
}

/* A stream goes while it is captured. */
void fc_capture_abandon(struct fc_stream *s)
{
	struct fc_capture *cap = s->cap;

	if (!cap)
		return;
	cap->invalid = true;
	s->cap = NULL;
	if (s != cap->origin)
		return;
	fc_complain("stream destroyed while it captures");
	end(cap);
	graph_free(cap->graph);
	cap->graph = NULL;
}

static int begin(CUstream h, int mode)
{
	struct fc_stream *s;
	struct fc_capture *cap;
	int r;

	if (mode < 0 || mode > 2)
		return CF_CU_INVALID_VALUE;
	if (!h || h == CF_CU_STREAM_LEGACY)
		return CF_CU_STREAM_CAPTURE_UNSUPPORTED;
	r = fc_stream_get(h, STREAM_ANY, &s);
	if (r)
		return r;
	if (s->cap)
		return CF_CU_INVALID_VALUE;
	/* events keep pointers to captures, so they are never freed */
	cap = fc_zalloc(sizeof(*cap));
	cap->origin = s;
	cap->graph = graph_new();
	cap->mode = mode;
	cap->thread = fc_thread_id();
	cap->id = ++fc.next_id;
	cap->next = captures;
	captures = cap;
	s->cap = cap;
	return 0;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(begin(stream, mode));
}

static bool has_unjoined(const struct fc_capture *cap)
{
	for (struct fc_ctx *c = fc_ctx_all(); c; c = c->next)
		for (struct fc_stream *s = c->streams; s; s = s->next)
			if (s->cap == cap && s->unjoined)
				return true;
	return false;
}

static int end_capture(CUstream h, CUgraph *out)
{
	struct fc_stream *s;
	struct fc_capture *cap;
	int r = fc_stream_get(h, STREAM_ANY, &s);

	if (r)
		return r;
	if (!out)
		return CF_CU_INVALID_VALUE;
	cap = s->cap;
	if (!cap)
		return CF_CU_INVALID_VALUE;
	if (cap->origin != s)
		return CF_CU_STREAM_CAPTURE_UNMATCHED;
	if (cap->mode != CF_CU_STREAM_CAPTURE_MODE_RELAXED &&
	    cap->thread != fc_thread_id())
		return CF_CU_STREAM_CAPTURE_WRONG_THREAD;
	*out = NULL;
	if (cap->invalid)
		r = CF_CU_STREAM_CAPTURE_INVALIDATED;
	else if (has_unjoined(cap))
		r = CF_CU_STREAM_CAPTURE_UNJOINED;
	end(cap);
	if (r) {
		graph_free(cap->graph);
		return r;
	}
	if (!cap->graph->h)
		cap->graph->h = fc_handle_new(FC_GRAPH, cap->graph);
	atomic_fetch_add(&fc.live[LIVE_GRAPH], 1);
	*out = (CUgraph)cap->graph->h;
	return 0;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(end_capture(stream, graph));
}

static int capture_info(CUstream h, int *status, uint64_t *id)
{
	struct fc_stream *s;
	int r = fc_stream_get(h, STREAM_PEEK, &s);

	if (r)
		return r;
	if (!status)
		return CF_CU_INVALID_VALUE;
	*status = !s->cap	  ? CF_CU_STREAM_CAPTURE_STATUS_NONE :
		  s->cap->invalid ? CF_CU_STREAM_CAPTURE_STATUS_INVALIDATED :
				    CF_CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (id && s->cap)
		*id = s->cap->id;
	return 0;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(capture_info(stream, status, NULL));
}

/* The graph that is being recorded: may be given user objects. */
static CUgraph graph_so_far(CUstream h)
{
	struct fc_stream *s;
	struct fc_graph *g;

	if (fc_stream_get(h, STREAM_ANY, &s) || !s->cap)
		return NULL;
	g = s->cap->graph;
	if (!g->h)
		g->h = fc_handle_new(FC_GRAPH, g);
	return (CUgraph)g->h;
}

#pragma GCC visibility push(default)
CUresult cuStreamGetCaptureInfo(CUstream stream, int *status, uint64_t *id);
CUresult cuStreamGetCaptureInfo(CUstream stream, int *status, uint64_t *id)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(capture_info(stream, status, id));
}

/* The dependencies are answered as "none yet". */
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id,
				   CUgraph *graph, void ***deps, size_t *nr);
#pragma GCC visibility pop
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id,
				   CUgraph *graph, void ***deps, size_t *nr)
{
	int r;

	FC_ENTER(FC_NORMAL);
	if (graph)
		*graph = NULL;
	if (deps)
		*deps = NULL;
	if (nr)
		*nr = 0;
	fc_lock();
	r = capture_info(stream, status, id);
	if (!r && graph && *status == CF_CU_STREAM_CAPTURE_STATUS_ACTIVE)
		*graph = graph_so_far(stream);
	fc_unlock();
	return r;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	int old;

	FC_ENTER(FC_NORMAL);
	if (!mode || *mode < 0 || *mode > 2)
		return (int)CF_CU_INVALID_VALUE;
	old = fc_self.capture_mode;
	fc_self.capture_mode = *mode;
	*mode = old;
	return 0;
}
