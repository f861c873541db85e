// SPDX-License-Identifier: Apache-2.0
/*
 * request - carries what was checked (request_check.c), by the path of its
 * route, and by the next where that gives up.
 */
#include "engine/request.h"

#include <errno.h>
#include "core/ahead.h"
#include "core/cold.h"
#include "core/device.h"
#include "core/ferry.h"
#include "core/haste.h"
#include "core/log.h"
#include "core/probe.h"
#include "core/remote.h"
#include "core/spread.h"
#include "engine/company.h"
#include "engine/crew.h"
#include "engine/detour.h"
#include "engine/drawn.h"
#include "engine/explain.h"
#include "engine/plan.h"
#include "engine/plan_limits.h"
#include "engine/plan_near.h"
#include "engine/plan_spread.h"
#include "engine/settle.h"
#include "engine/turns.h"
#include "engine/worth.h"
#include "path/hops.h"
#include "seam/frames.h"
#include "seam/nvtx.h"

static void log_failure(const struct cf_request *req, int code)
{
	const struct cf_piece *piece = &req->piece;

	cf_log_limited(CF_LOG_ERROR,
		       "%s handle %u off %lld len %zu %s memory: code %d%s%s, "
		       "path %s",
		       cf_op_name(piece->op), cf_handle_number(piece->handle),
		       (long long)piece->file_off, piece->size,
		       cf_memory_kind_name(piece->mem.kind), code,
		       cf_is_cuda_error(code) ? " " : "", cf_cuda_name_in(code),
		       req->route.path ? req->route.path->name : "none");
}

/* The words that scripts look for (contract 4.4). */
static void trace(const struct cf_request *req)
{
	const struct cf_piece *piece = &req->piece;

	cf_log(CF_LOG_TRACE,
	       "cufile IO mode: %s (%s handle %u off %lld len %zu %s memory)",
	       req->route.path->compat ? "POSIX" : req->route.path->name,
	       cf_op_name(piece->op), cf_handle_number(piece->handle),
	       (long long)piece->file_off, piece->size,
	       cf_memory_kind_name(piece->mem.kind));
}

struct cf_request cf_request_rest(const struct cf_request *req, size_t done)
{
	struct cf_request rest = *req;

	rest.piece = cf_piece_cut(&req->piece, done, req->piece.size - done);
	return rest;
}

ssize_t cf_request_in_all(size_t done, ssize_t n)
{
	if (n < 0)
		return done ? (ssize_t)done : n;
	return (ssize_t)done + n;
}

ssize_t cf_request_travel_on(const struct cf_request *req, size_t done)
{
	struct cf_request rest = cf_request_rest(req, done);

	rest.route.path = cf_route_next(&req->route);
	return cf_request_in_all(done, cf_request_travel(&rest));
}

/*
 * Whether the request must wait until its stream has come. What the ferry's
 * kernel moves comes to its place in the stream's order by itself. But a run
 * that begins with its submission (at_once) is meant for reads that the kernel
 * makes itself (the mapped path): others wait.
 */
static bool comes_early(const struct cf_request *req)
{
	if (req->piece.ferry && req->route.path == &cf_path_mapped)
		return false;
	return req->ferry &&
	       (!req->piece.ferry || req->route.path != &cf_path_staged ||
		req->ferry->at_once);
}

/* One part, and no plan: cf_plan_is_alone. */
static CF_WITHIN ssize_t run_alone(struct cf_request *req)
{
	ssize_t n = cf_path_host_whole(&req->piece);

	req->code = n < 0 ? (int)n : 0;
	return n;
}

/* Whether the piece is near; then it counts as that until it is over. */
static bool begin_near(const struct cf_request *req, unsigned company)
{
	const struct cf_piece *piece = &req->piece;
	unsigned room =
		cf_plan_near_room(piece, req->route.path, company, req->behind);

	if (!cf_company_join_near(&piece->mem, room))
		return false;
	if (cf_hops_pay(&piece->mem, piece->size * company))
		return true;
	cf_company_leave_near(&piece->mem);
	return false;
}

/* Counts the entries of its batch that come next, too. */
static struct cf_company begin_company(const struct cf_request *req)
{
	struct cf_company company = cf_company_join(&req->piece.mem);

	company.here += req->behind;
	company.all += req->behind;
	company.waiting = req->behind;
	/* the operation that it waits for will be over by then */
	if (company.here > 1 && req->ferry && !cf_ferry_has_begun(req->ferry)) {
		company.here--;
		company.all--;
	}
	return company;
}

static void begin_spread(struct cf_request *req, struct cf_company company,
			 struct cf_spread *spread)
{
	unsigned writers = cf_spread_join(spread, &req->piece);

	if (cf_plan_may_spread(&req->piece, req->route.path, company,
			       writers) &&
	    cf_spread_begin(spread, &req->piece))
		req->piece.spread = spread;
}

static struct cf_haste brisk_reads;

/* Whether it comes so soon after reads like it that workers are awake. */
static bool is_brisk(const struct cf_request *req, unsigned company)
{
	return company == 1 && !req->piece.near &&
	       cf_plan_can_be_brisk(&req->piece, req->route.path) &&
	       cf_haste_note(&brisk_reads, CF_PLAN_BRISK_GAP_NS,
			     CF_PLAN_BRISK_AFTER);
}

/* What the piece's carriers need to know. */
static void take_over(struct cf_piece *piece, const struct cf_plan *plan)
{
	piece->demote = plan->demote;
	piece->flagged = plan->flagged;
	piece->express = plan->express;
	piece->rare = plan->rare;
	piece->flights = plan->flights;
	piece->past = plan->past;
	piece->near_slots = plan->near_slots;
}

/* Cuts the piece into parts, and has the path carry them. */
static ssize_t carry(struct cf_request *req, struct cf_company company,
		     int node)
{
	struct cf_plan plan =
		cf_plan_make(&req->piece, req->route.path, company);
	struct cf_lent lent;
	struct cf_feed feed;
	int64_t begun;
	ssize_t n;

	take_over(&req->piece, &plan);
	cf_crew_lend(&lent, plan.helpers, node);
	cf_feed_init(&feed, req->piece.size, plan.skew, plan.step);
	begun = cf_worth_begin(&req->piece, plan.helpers, company.all);
	req->route.path->run(&req->piece, &feed, &lent.crew);
	req->code = feed.code;
	n = cf_feed_result(&feed);
	cf_worth_end(begun, &req->piece, n);
	return n;
}

static CF_APART ssize_t run_planned(struct cf_request *req)
{
	int node = cf_device_node(&req->piece.mem);
	struct cf_cold cold;
	struct cf_ahead ahead;
	struct cf_spread spread;
	struct cf_company company;
	unsigned turn;
	ssize_t n;

	cf_settle(node); /* the thread may be a worker, with a task */
	cf_plan_note_gpu(req->ferry ? CF_TEAM_STREAM : CF_TEAM_IO,
			 &req->piece.mem);
	company = begin_company(req);
	/* after begin_company: reads that wait for a turn make a crowd, too */
	turn = req->ferry ? 0 : cf_turns_begin(&req->piece, req->route.path);
	req->piece.cold = cf_cold_begin(&cold, &req->piece);
	if (cf_plan_can_ask(req->route.path) &&
	    cf_ahead_begin(&ahead, &req->piece))
		req->piece.ahead = &ahead;
	begin_spread(req, company, &spread);
	req->piece.near = begin_near(req, company.here);
	req->piece.brisk = is_brisk(req, company.here);
	req->piece.unhelped = !cf_worth_helpers(&req->piece);
	n = carry(req, company, node);
	cf_turns_end(turn);
	cf_spread_end(&spread);
	req->piece.spread = NULL;
	cf_company_leave(&req->piece.mem);
	if (req->piece.near)
		cf_company_leave_near(&req->piece.mem);
	cf_cold_end(&cold, &req->piece, n, company.all);
	cf_ahead_end(&req->piece, n);
	req->piece.ahead = NULL;
	return n;
}

static CF_WITHIN ssize_t run(struct cf_request *req)
{
	const struct cf_path_ops *path = req->route.path;
	const struct cf_piece *piece = &req->piece;
	bool range;
	ssize_t n;

	cf_probe_piece_begin(path->name, cf_op_name(piece->op), piece->size,
			     piece->file_off);
	range = cf_nvtx_begin(cf_op_name(piece->op), path->name, piece->size);
	n = cf_plan_is_alone(piece, path) ? run_alone(req) : run_planned(req);
	cf_nvtx_end(range);
	cf_probe_piece_end(path->name, n);
	return n;
}

static CF_WITHIN ssize_t travel(struct cf_request *req)
{
	ssize_t n;

	req->code = 0;
	cf_explain_new_route(req);
	if (!req->route.path)
		return -CU_FILE_IO_NOT_SUPPORTED;
	if (comes_early(req)) {
		int err = cf_ferry_wait_begun(req->ferry);

		if (err)
			return err;
	}
	trace(req);
	n = run(req);
	if (req->code == CF_PATH_GIVES_UP)
		return cf_request_travel_on(req, n < 0 ? 0 : (size_t)n);
	return n;
}

ssize_t cf_request_travel(struct cf_request *req)
{
	return travel(req);
}

void cf_requests_fork_child(void)
{
	cf_company_fork_child();
	cf_spreads_fork_child();
	cf_turns_fork_child();
}

/* The memory may be a GPU's, see cf_request_look_again. */
static ssize_t second_try(struct cf_request *req)
{
	int err = cf_request_look_again(req);

	return err ? err : cf_request_travel(req);
}

ssize_t cf_request_run(struct cf_request *req)
{
	ssize_t n;

	cf_windows_note(&req->piece);
	if (req->piece.ferry)
		cf_drawn_note(&req->piece);
	cf_detour_early(req);
	n = travel(req);
	if (cf_detour_is_due(req, req->code))
		n = cf_detour(req, n, req->code);
	if (n == -EFAULT && req->piece.mem.kind == CF_MEMORY_HOST)
		n = second_try(req);
	if (n < 0)
		log_failure(req, (int)n);
	return n;
}

void cf_request_carried(const struct cf_request *req, ssize_t n)
{
	cf_explain_new_route(req);
	if (req->route.path) /* none where a detour found no other */
		trace(req);
	if (n < 0)
		log_failure(req, (int)n);
}

void cf_request_fini_memory(struct cf_request *req)
{
	cf_alias_put(req->piece.alias);
	cf_remote_put(req->piece.remote);
}

void cf_request_fini(struct cf_request *req)
{
	cf_request_fini_memory(req);
	cf_handle_put(req->piece.handle);
}
