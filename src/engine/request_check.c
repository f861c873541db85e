// SPDX-License-Identifier: Apache-2.0
/*
 * request_check - checks a call once, and decides its route.
 *
 * What is checked here is what can be checked before a byte moves; the rest
 * (a bad host address, a full disk) is found out by the path.
 */
#include "engine/request.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include "core/buffer.h"
#include "core/device.h"
#include "core/ferry.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "core/probe.h"
#include "engine/session.h"
#include "engine/via.h"
#include "seam/os.h"

static int refuse(const char **problem, int code, const char *why)
{
	*problem = why;
	return code;
}

/* Checks all that needs no table and no driver. */
static int check_numbers(const struct cf_call *call, const char **problem)
{
	uintptr_t start = (uintptr_t)call->base;

	if (!call->base)
		return refuse(problem, -EINVAL, "no buffer");
	if (call->file_off < 0)
		return refuse(problem, -EINVAL, "negative file offset");
	if (call->buf_off < 0)
		return refuse(problem, -EINVAL, "negative buffer offset");
	if (call->size > SSIZE_MAX ||
	    call->size > (size_t)(LLONG_MAX - call->file_off))
		return refuse(problem, -EINVAL,
			      "range leaves the file's numbers");
	if (start + (size_t)call->buf_off < start ||
	    start + (size_t)call->buf_off + call->size < start)
		return refuse(problem, -EINVAL,
			      "range leaves the address space");
	return 0;
}

static int check_access(const struct cf_call *call,
			const struct cf_handle *handle, const char **problem)
{
	int mode = handle->open_flags & O_ACCMODE;

	if (call->op == CF_READ && mode == O_WRONLY)
		return refuse(problem, -EBADF, "file is open for writing only");
	if (call->op == CF_WRITE && mode == O_RDONLY)
		return refuse(problem, -EBADF, "file is open for reading only");
	return 0;
}

static struct cf_ferry *ferry_for(const struct cf_call *call,
				  const struct cf_memory *mem)
{
	struct cf_ferry *ferry = call->ferry;

	return ferry && cf_ferry_reaches(ferry->ctx, ferry->ordinal, mem) ?
		       ferry :
		       NULL;
}

static bool cpu_reaches(uintptr_t addr)
{
	int fds[2];
	ssize_t n;

	if (cf_os->pipe(fds))
		return true;
	n = cf_os->write(fds[1], (const void *)addr, 1);
	cf_os->close(fds[0]);
	cf_os->close(fds[1]);
	return n != -EFAULT;
}

/*
 * A GPU's memory of the parent of a fork looks like the host's. The kernel says
 * EFAULT of it, see cf_request_look_again; but a client's callback would crash.
 */
static int check_callback(const struct cf_piece *piece, const char **problem)
{
	if (piece->mem.kind != CF_MEMORY_HOST || !piece->size ||
	    !cf_devices_lost_in_fork() || cpu_reaches(piece->mem.addr))
		return 0;
	return refuse(problem, CF_ECUDA(CF_CU_NOT_INITIALIZED),
		      "GPU memory of the process that forked this one");
}

/* last: what was learnt for the request before, or NULL. */
static void learn(const struct cf_call *call, struct cf_facts *last,
		  struct cf_memory *mem)
{
	if (!last || last->known.base != call->base)
		cf_memory_facts((uintptr_t)call->base, mem);
	else
		*mem = last->known.mem;
	if (last && last->known.base != call->base) {
		last->known = (struct cf_known){ call->base, *mem };
		last->held = (struct cf_buffer_range){ 0 };
	}
}

/* Most calls with one base are in the registration that the last one was in. */
static enum cf_cover cover_of(const struct cf_call *call,
			      const struct cf_memory *mem,
			      struct cf_facts *last)
{
	uintptr_t start = mem->addr + (size_t)call->buf_off;
	struct cf_buffer_range held;

	if (last && start >= last->held.base &&
	    start + call->size <= last->held.end)
		return CF_COVER_WHOLE;
	return cf_buffer_cover(mem, mem->addr, start, call->size,
			       last ? &last->held : &held);
}

static void forget_registration(struct cf_piece *piece)
{
	piece->registered = false;
	piece->alias = NULL;
	piece->alias_state = CF_ALIAS_UNREGISTERED;
	piece->remote = NULL;
}

/* A registration holds the size bytes of the piece's memory. */
static void use_registration(struct cf_piece *piece, size_t size)
{
	piece->registered = true;
	if (piece->mem.kind == CF_MEMORY_DEVICE)
		piece->remote = cf_buffer_remote(&piece->mem, size);
	if (piece->mem.kind != CF_MEMORY_HOST)
		piece->alias =
			cf_buffer_alias(&piece->mem, size, &piece->alias_state);
}

/* The memory of the request, and whether the range may be touched. */
static int check_memory(struct cf_request *req, const struct cf_call *call,
			struct cf_facts *last, const char **problem)
{
	struct cf_memory *mem = &req->piece.mem;
	enum cf_cover cover;
	uintptr_t base;

	learn(call, last, mem);
	req->piece.ferry = ferry_for(call, mem);
	base = mem->addr;
	cover = cover_of(call, mem, last);
	if (cover == CF_COVER_BEYOND)
		return refuse(problem, -CU_FILE_INVALID_MAPPING_RANGE,
			      "range leaves the registered buffer");
	if (cf_memory_check_range(mem, (size_t)call->buf_off + call->size))
		return refuse(problem, -CU_FILE_CUDA_POINTER_RANGE_ERROR,
			      "range leaves the allocation");
	mem->addr = base + (size_t)call->buf_off;
	if (cover == CF_COVER_WHOLE)
		use_registration(&req->piece, call->size);
	return 0;
}

/* Plain memory of that kind, on GPU 0 if it is a GPU's. */
static int assume_memory(struct cf_request *req, const struct cf_call *call,
			 enum cf_memory_kind kind)
{
	req->piece.mem = (struct cf_memory){
		.kind = kind,
		.addr = (uintptr_t)call->base + (size_t)call->buf_off,
	};
	req->piece.ferry = NULL;
	return 0;
}

static void fill_in(struct cf_request *req, const struct cf_call *call,
		    struct cf_handle *handle)
{
	const struct cf_rules *rules = cf_session_rules();
	struct cf_piece *piece = &req->piece;

	req->behind = 0;
	req->ferry = call->ferry;
	piece->op = call->op;
	piece->through_alias = false;
	piece->ahead = NULL;
	piece->spread = NULL;
	piece->handle = handle;
	piece->file_off = call->file_off;
	piece->via = cf_via_choose(piece, rules->hybrid);
	piece->combine = rules->combine;
	piece->brisk = false;
	piece->near = false;
	piece->ordered = rules->ordered & (call->op == CF_WRITE);
}

/* With a reference of the request's own; NULL: no live handle. */
static struct cf_handle *handle_of(const struct cf_call *call)
{
	if (!call->held)
		return cf_handle_get(call->handle);
	cf_handle_get_more(call->held);
	return call->held;
}

/* assumed: the kind of memory to take for granted, or NULL. */
static int check(struct cf_request *req, const struct cf_call *call,
		 struct cf_facts *last, const enum cf_memory_kind *assumed,
		 const char **problem)
{
	struct cf_handle *handle = handle_of(call);
	int err;

	if (!handle)
		return refuse(problem, -EINVAL, "no such handle");
	if (handle->fs_ops) /* it must be known which memory is a GPU's */
		(void)cf_cuda_look_again();
	forget_registration(&req->piece);
	err = check_numbers(call, problem);
	if (!err)
		err = check_access(call, handle, problem);
	if (!err)
		err = assumed ? assume_memory(req, call, *assumed) :
				check_memory(req, call, last, problem);
	req->piece.size = call->size;
	if (!err && handle->fs_ops && !assumed)
		err = check_callback(&req->piece, problem);
	if (err)
		cf_handle_put(handle);
	else
		fill_in(req, call, handle);
	return err;
}

/*
 * A ferry reads out of pinned windows alone, and moves single bytes where file
 * and memory differ modulo 16. A smaller read is over sooner than its pages are
 * looked at.
 */
static bool may_be_drawn(const struct cf_piece *piece)
{
	return !piece->ferry ||
	       (piece->size >= CF_FERRY_DRAWS && piece->ferry->gpu &&
		!piece->ferry->events && cf_windows_may_be_pinned() &&
		((uint64_t)piece->file_off ^ piece->mem.addr) % 16 == 0);
}

/* All entries of a submit have one look at a file. */
static void look(struct cf_piece *piece, enum cf_among among,
		 struct cf_facts *last)
{
	bool known = last && last->looked_at == piece->handle;

	if (!may_be_drawn(piece)) {
		piece->view.sight = CF_SIGHT_NONE;
		piece->view.stamped = false;
		return;
	}
	cf_windows_look(piece, among, known ? &last->stamp : NULL);
	if (last && piece->view.stamped) {
		last->looked_at = piece->handle;
		last->stamp = piece->view.stamp;
	}
}

static void decide(struct cf_request *req, bool of_batch, struct cf_facts *last)
{
	enum cf_among among = of_batch ? CF_AMONG_BATCH : CF_AMONG_NONE;

	look(&req->piece, req->piece.ferry ? CF_AMONG_STREAM : among, last);
	cf_route_choose(&req->piece, cf_session_rules(), &req->route);
}

int cf_request_check(struct cf_request *req, const struct cf_call *call,
		     const enum cf_memory_kind *assumed, const char **problem)
{
	int err = check(req, call, NULL, assumed, problem);

	if (!err)
		decide(req, call->of_batch, NULL);
	return err;
}

int cf_request_init_next(struct cf_request *req, const struct cf_call *call,
			 struct cf_facts *last)
{
	const char *problem;
	int err = check(req, call, last, NULL, &problem);

	if (!err)
		decide(req, call->of_batch, last);
	else
		cf_log_limited(
			CF_LOG_ERROR,
			"%s handle %s buf " CF_TAG "+%lld len %zu off %lld: %s",
			cf_op_name(call->op), cf_handle_words(call->handle),
			cf_tag(call->base), (long long)call->buf_off,
			call->size, (long long)call->file_off, problem);
	return err;
}

/*
 * Whether size and offsets do not matter for the route: the request is
 * buffered, with no alias and no windows.
 */
static bool is_alike_everywhere(const struct cf_request *req)
{
	const struct cf_piece *piece = &req->piece;
	const struct cf_handle *handle = piece->handle;

	return !handle->fs_ops && !handle->direct &&
	       piece->via == CF_VIA_CACHE && handle->nvfs != CF_NVFS_PASS &&
	       !req->ferry && !piece->ferry && !piece->alias &&
	       !piece->remote &&
	       cf_windows_are_no_matter(piece->size, CF_AMONG_BATCH) &&
	       (!piece->registered || !cf_buffer_may_have_alias());
}

/*
 * Whether the registration that holds the request before, if one does, holds
 * this one, too.
 */
static bool is_held(const struct cf_call *call, const struct cf_request *before,
		    const struct cf_facts *last)
{
	uintptr_t start = last->known.mem.addr + (size_t)call->buf_off;

	return !before->piece.registered ||
	       (start >= last->held.base &&
		start + call->size <= last->held.end);
}

bool cf_request_init_like(struct cf_request *req, const struct cf_call *call,
			  const struct cf_request *before,
			  const struct cf_facts *last)
{
	const char *problem;

	if (!is_alike_everywhere(before) || call->size >= CF_VIA_DIRECT_FROM ||
	    !cf_windows_are_no_matter(call->size, CF_AMONG_BATCH) ||
	    check_numbers(call, &problem) || !is_held(call, before, last) ||
	    cf_memory_check_range(&last->known.mem,
				  (size_t)call->buf_off + call->size))
		return false;
	*req = *before;
	req->piece.mem.addr = last->known.mem.addr + (size_t)call->buf_off;
	req->piece.size = call->size;
	req->piece.file_off = call->file_off;
	cf_handle_get_more(req->piece.handle);
	cf_probe_route(cf_op_name(call->op),
		       req->route.path ? req->route.path->name : "none",
		       call->size, call->file_off);
	return true;
}

int cf_request_init(struct cf_request *req, const struct cf_call *call)
{
	struct cf_facts last;

	if (!call->facts)
		return cf_request_init_next(req, call, NULL);
	last = (struct cf_facts){ .known = *call->facts };
	return cf_request_init_next(req, call, &last);
}

int cf_request_look_again(struct cf_request *req)
{
	const struct cf_cuda *cuda = cf_cuda_look_again();
	struct cf_memory mem;

	/* no child of a fork can begin with a driver that its parent used */
	if (cf_devices_lost_in_fork() ||
	    (cuda && cuda->init(0) == CF_CU_NOT_INITIALIZED))
		return CF_ECUDA(CF_CU_NOT_INITIALIZED);
	if (!cuda)
		return -EFAULT;
	cf_memory_facts(req->piece.mem.addr, &mem);
	if (mem.kind == CF_MEMORY_HOST)
		return -EFAULT;
	req->piece.mem = mem;
	if (cf_memory_check_range(&mem, req->piece.size))
		return -CU_FILE_CUDA_POINTER_RANGE_ERROR;
	decide(req, false, NULL);
	return 0;
}
