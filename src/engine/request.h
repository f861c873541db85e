// SPDX-License-Identifier: Apache-2.0
/* request - one call's worth of bytes, from entry to its result. */
#ifndef CF_ENGINE_REQUEST_H
#define CF_ENGINE_REQUEST_H

#include "core/buffer.h"
#include "engine/route.h"

/* What the driver said of a base address; base NULL: it was not asked. */
struct cf_known {
	const void *base;
	struct cf_memory mem;
};

/* What was learnt for the request before, and may serve the next one. */
struct cf_facts {
	struct cf_known known;
	struct cf_buffer_range held; /* a registration it is in, or empty */
	/* the file that was looked at last, or NULL; its stamp then */
	const struct cf_handle *looked_at;
	struct cf_stamp stamp;
};

/* What a client asks for; nothing in it has been checked. */
struct cf_call {
	enum cf_op op;
	CUfileHandle_t handle;
	/* the same, of which the caller holds a reference: then it is served
	 * also during a deregister, which waits for it; or NULL */
	struct cf_handle *held;
	const void *base;
	size_t size;
	off_t file_off;
	off_t buf_off;
	const struct cf_known *facts; /* of base, or NULL: ask the driver */
	struct cf_ferry *ferry;	      /* to move device memory with, or NULL */
	bool of_batch;		      /* one of several entries */
};

/*
 * One owner: a caller's stack, or a batch's entry. Holds references on the
 * handle, and on alias and remote, if there are any.
 */
struct cf_request {
	struct cf_piece piece;
	struct cf_route route;
	/* entries of its batch that are still to be carried; the plan counts
	 * them as if they ran already */
	unsigned behind;
	int code; /* why the path ended short, or 0 */
	/* the call's ferry, or NULL, also where piece.ferry is NULL because the
	 * ferry does not reach the memory: its stream may have to be awaited */
	struct cf_ferry *ferry;
};

/*
 * Checks the call and takes its references. 0; or what is wrong with it
 * (contract 3.8, behaviour "Reads and writes"), holding nothing.
 */
int cf_request_init(struct cf_request *req, const struct cf_call *call);

/* The same for one of many: the driver is asked only about a new base. */
int cf_request_init_next(struct cf_request *req, const struct cf_call *call,
			 struct cf_facts *last);

/*
 * The same for one of many whose call differs from the one before it in size
 * and offsets alone: the route of `before` is copied, where it depends on
 * neither. False: it may depend on them, or the call is wrong; then
 * cf_request_init_next decides.
 */
bool cf_request_init_like(struct cf_request *req, const struct cf_call *call,
			  const struct cf_request *before,
			  const struct cf_facts *last);

/*
 * As cf_request_init, but tells the log nothing: *problem says what is wrong.
 * assumed: the kind of memory to take for granted at that address, or NULL.
 */
int cf_request_check(struct cf_request *req, const struct cf_call *call,
		     const enum cf_memory_kind *assumed, const char **problem);

/*
 * To be called when the CPU could not reach what looked like host memory
 * (-EFAULT). If the driver came into the process since we last looked, and says
 * that it is a GPU's, the request gets a new route: 0. Otherwise a negative
 * code, as for memory of a GPU that the parent of a fork had.
 */
int cf_request_look_again(struct cf_request *req);

/*
 * Carries the request, on the calling thread and with helpers where that pays.
 * Bytes from the front that were moved, or a negative code.
 */
ssize_t cf_request_run(struct cf_request *req);

/*
 * The same by the path of its route alone; req->code says why it ended short.
 * For callers that know what to do then (engine/detour.h).
 */
ssize_t cf_request_travel(struct cf_request *req);
/* Its path gave up after done bytes: the next that can carries the rest. */
ssize_t cf_request_travel_on(const struct cf_request *req, size_t done);
/* What is left after done bytes; it borrows the references of the whole. */
struct cf_request cf_request_rest(const struct cf_request *req, size_t done);
/* The result of the whole: done bytes, and the rest's result n. */
ssize_t cf_request_in_all(size_t done, ssize_t n);

/* For callers that carried it in another way (a bundle): logs as run would. */
void cf_request_carried(const struct cf_request *req, ssize_t n);

/* Gives the references back. */
void cf_request_fini(struct cf_request *req);
/* All but that on the handle, for callers that return many of those at once. */
void cf_request_fini_memory(struct cf_request *req);

/* The requests of the parent's other threads do not run in the child. */
void cf_requests_fork_child(void);

#endif
