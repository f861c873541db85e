// SPDX-License-Identifier: Apache-2.0
/* request - one call's worth of bytes, from entry to its result. */
#ifndef CF_ENGINE_REQUEST_H
#define CF_ENGINE_REQUEST_H

#include "core/buffer.h"
#include "engine/route.h"

/* What is known of a base address; base NULL: nothing. */
struct cf_known {
	const void *base;
	struct cf_memory mem;
};

/* What was learnt for the request before. */
struct cf_facts {
	struct cf_known known;
	struct cf_buffer_range held; /* a registration it is in, or empty */
	/* the file that was looked at last, and how it was then; or NULL */
	const struct cf_handle *looked_at;
	struct cf_stamp stamp;
};

/* What a client asks for; nothing in it has been checked. */
struct cf_call {
	enum cf_op op;
	CUfileHandle_t handle;
	const void *base;
	size_t size;
	off_t file_off;
	off_t buf_off;
	const struct cf_known *facts; /* of base, where they are known */
	struct cf_ferry *ferry;	      /* that moves it if it is device memory */
	bool of_batch;		      /* others come with it */
};

/* One owner: the caller's stack. Holds references on handle and alias. */
struct cf_request {
	struct cf_piece piece;
	struct cf_route route;
	/* others of its batch that wait: as good as running, for the plan */
	unsigned behind;
	int code; /* why the path ended short, or 0 */
	/* of the call, whose stream may not be there yet; or NULL */
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
 * and place alone, and whose request there is: what was decided of that holds
 * of this, too, as far as nothing hangs on size and place. False: it may hang
 * on them, or is wrong, which cf_request_init_next will say.
 */
bool cf_request_init_like(struct cf_request *req, const struct cf_call *call,
			  const struct cf_request *before,
			  const struct cf_facts *last);

/*
 * The same without a word in the log: *problem says what is wrong. assumed:
 * the kind of memory to take for granted at that address, or NULL.
 */
int cf_request_check(struct cf_request *req, const struct cf_call *call,
		     const enum cf_memory_kind *assumed, const char **problem);

/*
 * The CPU could not reach what looked like host memory. Either the driver came
 * into the process since we last looked, and it is a GPU's: 0, and it has the
 * route of such; or it was the parent's before a fork, and is nobody's here.
 */
int cf_request_look_again(struct cf_request *req);

/*
 * Carries it, on the calling thread and with helpers where that pays. Bytes
 * from the front that made it, or a negative code.
 */
ssize_t cf_request_run(struct cf_request *req);

/*
 * By the path that its route has, and no other; req->code says why it ended
 * short. For who knows what to do then (engine/detour.h).
 */
ssize_t cf_request_travel(struct cf_request *req);
/* Its path gave up after done bytes: the next that can carries the rest. */
ssize_t cf_request_travel_on(const struct cf_request *req, size_t done);
/* What is left after done bytes, with the references of the whole. */
struct cf_request cf_request_rest(const struct cf_request *req, size_t done);
/* Of the whole: done bytes, and then n, or a negative code. */
ssize_t cf_request_in_all(size_t done, ssize_t n);

/* Who carries it otherwise tells how it went, and what is logged of it is. */
void cf_request_carried(const struct cf_request *req, ssize_t n);

/* Gives the references back. */
void cf_request_fini(struct cf_request *req);
/* But for that on the handle: for who gives back those of many at once. */
void cf_request_fini_memory(struct cf_request *req);

/* The requests of the parent's other threads do not run in the child. */
void cf_requests_fork_child(void);

#endif
