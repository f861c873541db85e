// SPDX-License-Identifier: Apache-2.0
/*
 * explain - a route in words: for the log, for stderr, for callers who ask.
 *
 * Routes that were told are kept as numbers in a small table that only grows
 * until the next open; when it is full, people have read enough.
 */
#include "engine/explain.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include "core/ahead.h"
#include "core/cold.h"
#include "core/file_facts.h"
#include "core/log.h"
#include "core/spread.h"
#include "core/twin.h"
#include "engine/plan.h"
#include "engine/plan_spread.h"
#include "engine/session.h"
#include "engine/worth.h"
#include "seam/frames.h"
#include "seam/os.h"

#define MAX_TOLD 64
#define LINE_SIZE 1024
#define PREFIX "cufile: "

_Static_assert(CF_MAX_PATHS <= OCF_MAX_REFUSALS + 1, "no room for refusals");
_Static_assert((int)OCF_READ == CF_READ && (int)OCF_WRITE == CF_WRITE &&
		       (int)OCF_MEMORY_HOST == CF_MEMORY_HOST &&
		       (int)OCF_MEMORY_DEVICE == CF_MEMORY_DEVICE &&
		       (int)OCF_MEMORY_MANAGED == CF_MEMORY_MANAGED,
	       "the public numbers are ours");

static const char *const cached_texts[CF_NR_CACHED] = {
	[CF_CACHED_OPENED] = "the file was opened without O_DIRECT",
	[CF_CACHED_REFUSED] = "the file system refused O_DIRECT",
	[CF_CACHED_SKEWED] = "memory and file offset lie differently in a "
			     "block",
	[CF_CACHED_EDGES] = "bytes that make no whole block",
	[CF_CACHED_HELD] = "all of the range is cached and clean",
	[CF_CACHED_USER_FS] = "a user-space file system carries the bytes",
	[CF_CACHED_NO_DIO] = "the file system has no O_DIRECT for this file",
};

static const char *const cached_remedies[CF_NR_CACHED] = {
	[CF_CACHED_OPENED] = "open the file with O_DIRECT, or set "
			     "properties.force_odirect_mode to true",
	[CF_CACHED_SKEWED] = "give host memory the same offset in a block as "
			     "the file offset has",
	[CF_CACHED_HELD] = "set opencufile.hybrid (OCF_HYBRID) to off",
	[CF_CACHED_EDGES] = "make file offset and size multiples of the "
			    "file's block size",
};

/* keys of told routes; 0: free. Relaxed: a key stands for nothing else. */
static _Atomic uint64_t told[MAX_TOLD];
static atomic_bool to_stderr;
static atomic_bool noticed; /* that GPU memory goes through host memory */

void cf_explain_configure(const struct cf_config *config)
{
	for (unsigned i = 0; i < MAX_TOLD; i++)
		atomic_store_explicit(&told[i], 0, memory_order_relaxed);
	atomic_store_explicit(&noticed, false, memory_order_relaxed);
	atomic_store_explicit(&to_stderr,
			      cf_config_bool(config, CF_CFG_EXPLAIN),
			      memory_order_relaxed);
}

static void describe_plan(const struct cf_request *req, ocf_explain_t *e)
{
	struct cf_piece piece = req->piece;
	struct cf_spread spread;
	struct cf_ahead ahead;
	struct cf_cold cold;
	struct cf_plan plan;

	piece.cold = cf_cold_begin(&cold, &piece);
	if (cf_plan_can_ask(req->route.path) && cf_ahead_begin(&ahead, &piece))
		piece.ahead = &ahead;
	if (cf_plan_may_spread(&piece, req->route.path, CF_COMPANY_NONE, 1))
		piece.spread = &spread;
	piece.unhelped = !cf_worth_helpers(&piece);
	plan = cf_plan_make(&piece, req->route.path, CF_COMPANY_NONE);
	e->part_size = plan.step;
	e->parts = (plan.skew + e->size + plan.step - 1) / plan.step;
	e->carriers = plan.helpers + 1;
	if (e->carriers > e->parts)
		e->carriers = e->parts ? (unsigned)e->parts : 1;
}

/* Before its first request nobody knows of a file opened without it. */
static bool refuses_direct(struct cf_handle *handle)
{
	return !(handle->open_flags & O_DIRECT) &&
	       !cf_twin_ready(handle, CF_VIA_DIRECT, true);
}

static struct cf_file_way way_of(const struct cf_request *req)
{
	struct cf_file_way way = req->route.path->way(&req->piece);

	if (way.direct && cf_file_lacks_dio(req->piece.handle))
		return (struct cf_file_way){ .cached = CF_CACHED_NO_DIO };
	if (way.direct && refuses_direct(req->piece.handle))
		return (struct cf_file_way){ .cached = CF_CACHED_REFUSED };
	return way;
}

static void describe_way(const struct cf_request *req, ocf_explain_t *e)
{
	struct cf_file_way way = way_of(req);

	e->page_cache = cached_texts[way.cached];
	e->page_cache_remedy = cached_remedies[way.cached];
	e->direct_bytes = way.direct;
	if (way.cached != CF_CACHED_NONE)
		e->buffered_bytes = e->size - way.direct;
}

static void describe_refusals(const struct cf_route *route, ocf_explain_t *e)
{
	for (unsigned i = 0; cf_path_at(i); i++)
		if (cf_path_at(i) != route->path)
			e->refusals[e->nr_refusals++] = (ocf_refusal_t){
				cf_path_at(i)->name,
				/* a yes that comes after the one taken */
				route->why[i] == CF_WHY_YES ?
					"a better path can carry it" :
					cf_why_text(route->why[i]),
				cf_why_remedy(route->why[i]),
			};
}

static void describe(const struct cf_request *req, ocf_explain_t *e)
{
	const struct cf_piece *piece = &req->piece;
	unsigned block = (unsigned)cf_handle_block(piece->handle);

	*e = (ocf_explain_t){
		.struct_size = sizeof(*e),
		.op = (ocf_op_t)piece->op,
		.memory = (ocf_memory_t)piece->mem.kind,
		.gpu = piece->mem.kind == CF_MEMORY_HOST ? -1 :
							   piece->mem.ordinal,
		.handle = cf_handle_number(piece->handle),
		.block = block,
		.aligned = !(((size_t)piece->file_off | piece->size |
			      piece->mem.addr) &
			     (block - 1)),
		.registered = piece->registered,
		.size = piece->size,
		.cached_bytes = OCF_UNKNOWN,
	};
	describe_refusals(&req->route, e);
	if (!req->route.path) {
		e->code = CU_FILE_IO_NOT_SUPPORTED;
		return;
	}
	e->path = req->route.path->name;
	describe_way(req, e);
}

/* Has the answers, too, that nobody needed to carry the request. */
static struct cf_request with_all_answers(const struct cf_request *req)
{
	struct cf_request all = *req;

	cf_route_ask_rest(&all.piece, cf_session_rules(), &all.route);
	return all;
}

void cf_explain_request(const struct cf_request *req, ocf_explain_t *e)
{
	ssize_t cached = cf_file_cached(req->piece.handle, req->piece.size,
					req->piece.file_off);
	struct cf_request all = with_all_answers(req);

	describe(&all, e);
	if (cached >= 0)
		e->cached_bytes = (uint64_t)cached;
	if (e->path)
		describe_plan(req, e);
}

void cf_explain_refusal(const struct cf_call *call, int code,
			const char *problem, ocf_explain_t *e)
{
	*e = (ocf_explain_t){
		.struct_size = sizeof(*e),
		.code = -code,
		.op = (ocf_op_t)call->op,
		.gpu = -1,
		.problem = problem,
		.size = call->size,
		.cached_bytes = OCF_UNKNOWN,
	};
}

/* printf at the end of what is there; counts what did not fit too. */
__attribute__((format(printf, 4, 5))) static void add(char *text, size_t len,
						      size_t *at,
						      const char *fmt, ...)
{
	size_t room = *at < len ? len - *at : 0;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(room ? text + *at : NULL, room, fmt, args);
	va_end(args);
	*at += n > 0 ? (size_t)n : 0;
}

/* How the bytes reach the file; for requests that move bytes. */
static void add_way(const ocf_explain_t *e, char *text, size_t len, size_t *at)
{
	if (e->direct_bytes && !e->page_cache)
		add(text, len, at, ", O_DIRECT");
	else if (e->direct_bytes)
		add(text, len, at, ", O_DIRECT but for %s", e->page_cache);
	else if (e->page_cache)
		add(text, len, at, ", page cache: %s", e->page_cache);
}

size_t cf_explain_text(const ocf_explain_t *e, char *text, size_t len)
{
	size_t at = 0;

	if (len)
		*text = '\0';
	if (e->problem) {
		add(text, len, &at, "%s: error %d: %s",
		    cf_op_name((enum cf_op)e->op), e->code, e->problem);
		return at;
	}
	add(text, len, &at, "%s %s memory, handle %u: path %s",
	    cf_op_name((enum cf_op)e->op),
	    cf_memory_kind_name((enum cf_memory_kind)e->memory), e->handle,
	    e->path ? e->path : "none");
	add_way(e, text, len, &at);
	for (unsigned i = 0; i < e->nr_refusals && i < OCF_MAX_REFUSALS; i++)
		add(text, len, &at, "%s%s: %s", i ? "; " : " (",
		    e->refusals[i].path, e->refusals[i].reason);
	if (e->nr_refusals)
		add(text, len, &at, ")");
	return at;
}

/* The same number for the same text, handle aside; never 0. */
static uint64_t key_of(const struct cf_request *req)
{
	const struct cf_route *route = &req->route;
	uint64_t key = 1;

	key = key * 4 + req->piece.mem.kind;
	key = key * 2 + req->piece.op;
	for (unsigned i = 0; cf_path_at(i); i++)
		key = key * CF_NR_WHYS + route->why[i];
	if (!route->path)
		return key * 2;
	key = key * CF_NR_CACHED + way_of(req).cached;
	return key * 2 + 1;
}

/* True once for each key, while there is room. */
static bool is_new(uint64_t key)
{
	for (unsigned n = 0; n < MAX_TOLD; n++) {
		_Atomic uint64_t *place = &told[(key + n) % MAX_TOLD];
		uint64_t there =
			atomic_load_explicit(place, memory_order_relaxed);

		if (!there && atomic_compare_exchange_strong_explicit(
				      place, &there, key, memory_order_relaxed,
				      memory_order_relaxed))
			return true;
		if (there == key)
			return false;
	}
	return false;
}

static void tell(const ocf_explain_t *e)
{
	char line[LINE_SIZE] = PREFIX;
	size_t start = sizeof(PREFIX) - 1, room = sizeof(line) - start - 1;
	size_t n = cf_explain_text(e, line + start, room);

	cf_log(e->path ? CF_LOG_INFO : CF_LOG_ERROR, "route: %s", line + start);
	if (!atomic_load_explicit(&to_stderr, memory_order_relaxed))
		return;
	n = start + (n < room ? n : room - 1);
	line[n++] = '\n';
	/* whether anybody reads it is no concern of the request */
	(void)cf_os->write(STDERR_FILENO, line, n);
}

/* Once a session, to every log there is (contract 4.4). */
static void notice_compat(const struct cf_request *req)
{
	if (req->piece.mem.kind == CF_MEMORY_HOST ||
	    !cf_log_takes(CF_LOG_NOTICE) || !req->route.path ||
	    !req->route.path->compat)
		return;
	if (atomic_load_explicit(&noticed, memory_order_relaxed) ||
	    atomic_exchange_explicit(&noticed, true, memory_order_relaxed))
		return;
	cf_log(CF_LOG_NOTICE,
	       "running in compatible mode: GPU memory goes through host "
	       "memory, path %s",
	       req->route.path->name);
}

static CF_APART void tell_new_route(const struct cf_request *req)
{
	struct cf_request all = with_all_answers(req);
	ocf_explain_t e;

	if (!is_new(key_of(&all)))
		return;
	describe(&all, &e);
	tell(&e);
}

void cf_explain_new_route(const struct cf_request *req)
{
	notice_compat(req);
	if (cf_log_takes(req->route.path ? CF_LOG_INFO : CF_LOG_ERROR) ||
	    atomic_load_explicit(&to_stderr, memory_order_relaxed))
		tell_new_route(req);
}
