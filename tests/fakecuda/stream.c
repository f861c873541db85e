// SPDX-License-Identifier: Apache-2.0
/*
 * stream - streams by handle, the default ones among them, and what is asked
 * of a stream rather than done in it.
 */
#include <stdlib.h>

#include "internal.h"

struct fc_stream *fc_stream_new(struct fc_ctx *ctx, unsigned int flags)
{
	struct fc_stream *s = fc_zalloc(sizeof(*s));

	s->ctx = ctx;
	s->flags = flags;
	s->id = ++fc.next_id;
	s->place = ctx->nr_made++;
	s->tail = &s->head;
	s->refs = 1; /* the context's list */
	s->linked = true;
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->done, NULL);
	s->next = ctx->streams;
	ctx->streams = s;
	return s;
}

void fc_stream_put(struct fc_stream *s)
{
	if (--s->refs)
		return;
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->done);
	free(s);
}

/* The context forgets the stream, which nothing is queued in any more. */
void fc_stream_unlink(struct fc_stream *s)
{
	struct fc_stream **p = &s->ctx->streams;

	if (!s->linked)
		return;
	s->linked = false;
	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	if (s == s->ctx->legacy)
		s->ctx->legacy = NULL;
	fc_stream_put(s);
}

/* The stream is gone for the client; its thread finishes what is queued. */
void fc_stream_close(struct fc_stream *s)
{
	if (!s->closing && s->h) {
		fc_handle_kill(s->h);
		atomic_fetch_sub(&fc.live[LIVE_STREAM], 1);
	}
	fc_capture_abandon(s);
	s->closing = true;
	pthread_cond_signal(&s->work);
	if (s->completed == s->submitted)
		fc_stream_unlink(s);
}

/* Is it ordered with the legacy default stream? */
bool fc_stream_blocks(const struct fc_stream *s)
{
	return !(s->flags & CF_CU_STREAM_NON_BLOCKING);
}

static struct fc_stream *legacy_stream(struct fc_ctx *c)
{
	if (!c->legacy)
		c->legacy = fc_stream_new(c, 0);
	return c->legacy;
}

static struct fc_stream *own_stream(struct fc_ctx *c)
{
	struct fc_stream *s;

	for (s = c->streams; s; s = s->next)
		if (s->owner == fc_thread_id())
			return s;
	s = fc_stream_new(c, 0);
	s->owner = fc_thread_id();
	return s;
}

static int default_stream(CUstream h, struct fc_ctx *c, unsigned int how,
			  struct fc_stream **out)
{
	if (h == CF_CU_STREAM_PER_THREAD) {
		*out = own_stream(c);
		return 0;
	}
	*out = legacy_stream(c);
	if (how & STREAM_PEEK)
		return fc_capture_blocks(c) ? CF_CU_STREAM_CAPTURE_IMPLICIT : 0;
	return fc_capture_hit(c, true, CF_CU_STREAM_CAPTURE_IMPLICIT);
}

int fc_stream_get(CUstream h, unsigned int how, struct fc_stream **out)
{
	struct fc_ctx *c;
	struct fc_stream *s;
	int r = fc_current(&c);
	bool legacy = !h || h == CF_CU_STREAM_LEGACY;
	bool is_default = legacy || h == CF_CU_STREAM_PER_THREAD;

	if (r && (is_default || !(how & STREAM_ANYWHERE)))
		return r;
	if (how & STREAM_NOT_LEGACY && legacy)
		return CF_CU_INVALID_VALUE;
	if (is_default)
		return default_stream(h, c, how, out);
	s = fc_handle_find(h, FC_STREAM);
	if (!s)
		return fc_handle_was(h, FC_STREAM) ?
			       CF_CU_CONTEXT_IS_DESTROYED :
			       CF_CU_INVALID_HANDLE;
	r = fc_ctx_state(s->ctx);
	if (r)
		return r;
	if (how & STREAM_OF_CURRENT && s->ctx != c) {
		fc_complain("stream %p used while another context is current",
			    (void *)h);
		return CF_CU_INVALID_HANDLE;
	}
	*out = s;
	return 0;
}

static int create(CUstream *out, unsigned int flags, int priority)
{
	struct fc_ctx *c;
	struct fc_stream *s;
	int r = fc_current(&c);

	if (r)
		return r;
	if (!out || flags > 1)
		return CF_CU_INVALID_VALUE;
	s = fc_stream_new(c, flags);
	s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	s->h = fc_handle_new(FC_STREAM, s);
	atomic_fetch_add(&fc.live[LIVE_STREAM], 1);
	*out = (CUstream)s->h;
	return 0;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(create(stream, flags, 0));
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags,
				    int priority)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(create(stream, flags, priority));
}

/* Works without a current context; a broken one says so, and yet frees. */
static int destroy(CUstream h)
{
	struct fc_stream *s;
	int r;

	if (!h || h == CF_CU_STREAM_LEGACY || h == CF_CU_STREAM_PER_THREAD)
		return CF_CU_INVALID_HANDLE;
	s = fc_handle_find(h, FC_STREAM);
	if (!s)
		return fc_handle_was(h, FC_STREAM) ?
			       CF_CU_CONTEXT_IS_DESTROYED :
			       CF_CU_INVALID_HANDLE;
	r = fc_ctx_state(s->ctx);
	fc_stream_close(s);
	return r;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(destroy(stream));
}

static int query(CUstream h)
{
	struct fc_stream *s;
	int r = fc_stream_get(h, STREAM_ANY, &s);

	if (!r)
		r = fc_capture_forbids(s);
	if (!r)
		r = fc_capture_unsafe("cuStreamQuery");
	if (r)
		return r;
	return fc_stream_idle(s) ? 0 : CF_CU_NOT_READY;
}

CUresult cuStreamQuery(CUstream stream)
{
	FC_ENTER(FC_PASS);
	return FC_LOCKED(query(stream));
}

static int synchronize(CUstream h)
{
	struct fc_stream *s;
	int r = fc_stream_get(h, STREAM_ANY, &s);

	if (!r)
		r = fc_capture_forbids(s);
	if (!r)
		r = fc_capture_unsafe("cuStreamSynchronize");
	return r ? r : fc_wait_all_of(s);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(synchronize(stream));
}

struct facts {
	CUcontext ctx;
	unsigned int flags;
	int priority;
};

static int facts_of(CUstream h, unsigned int how, struct facts *f)
{
	struct fc_stream *s;
	int r = fc_stream_get(h, how, &s);

	if (r)
		return r;
	f->ctx = (CUcontext)s->ctx->h;
	f->flags = s->flags;
	f->priority = s->priority;
	return 0;
}

#define RETURN_FACT(stream, how, field, out) \
	do { \
		struct facts f_ = { 0 }; \
		int r_ = (out) ? FC_LOCKED(facts_of(stream, how, &f_)) : \
				 CF_CU_INVALID_VALUE; \
		if (!r_) \
			*(out) = f_.field; \
		return r_; \
	} while (0)

CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	FC_ENTER(FC_PASS);
	RETURN_FACT(stream, STREAM_ANYWHERE, ctx, ctx);
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	FC_ENTER(FC_NORMAL);
	RETURN_FACT(stream, STREAM_ANY, flags, flags);
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	FC_ENTER(FC_NORMAL);
	RETURN_FACT(stream, STREAM_ANY, priority, priority);
}

/* Stricter than the driver's text: on an H200 a capture ended around it. */
static int id_of(CUstream h, unsigned long long *id)
{
	struct fc_stream *s;
	int r = fc_stream_get(h, STREAM_ANY, &s);

	if (!r)
		r = fc_capture_forbids(s);
	if (!r)
		*id = s->id;
	return r;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	FC_ENTER(FC_NORMAL);
	return id ? FC_LOCKED(id_of(stream, id)) : CF_CU_INVALID_VALUE;
}
