// SPDX-License-Identifier: Apache-2.0
/*
 * op - one operation of a stream: what memory it touches, and how it is done.
 *
 * Resolving happens when the operation is queued, with the lock held: every
 * address must be known and in bounds, and the ranges are held until the
 * operation is over. Running happens on the stream's thread without the lock.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"
#include "unseen.h"

enum { POLL_US = 20, WORDS_UP_TO = 4096 };

struct fc_op *fc_op_new(enum fc_opcode code)
{
	struct fc_op *op = fc_zalloc(sizeof(*op));

	op->code = code;
	return op;
}

/* A copy that has not been queued yet. */
struct fc_op *fc_op_clone(const struct fc_op *op)
{
	struct fc_op *copy = fc_zalloc(sizeof(*copy));

	*copy = *op;
	copy->next = NULL;
	copy->deps = NULL;
	copy->nr_deps = 0;
	copy->held = NULL;
	copy->nr_held = 0;
	copy->users = (struct fc_users){ 0 };
	if (op->kernel)
		copy->kernel = fc_kernel_clone(op->kernel);
	return copy;
}

void fc_op_free(struct fc_op *op)
{
	for (unsigned int i = 0; i < op->nr_deps; i++)
		fc_stream_put(op->deps[i].s);
	for (unsigned int i = 0; i < op->nr_held; i++)
		fc_range_release(op->held[i]);
	if (op->event)
		fc_event_put(op->event);
	if (op->kernel)
		fc_kernel_free(op->kernel);
	fc_users_drop(&op->users);
	free(op->deps);
	free(op->held);
	free(op->snapshot);
	free(op);
}

static void *grown(void *array, unsigned int nr, size_t each)
{
	/* powers of two: grow when nr is one, from four on */
	if (nr & (nr - 1) || (nr && nr < 4))
		return array;
	array = realloc(array, (nr ? nr * 2 : 4) * each);
	if (!array)
		abort();
	return array;
}

/* op starts only when s has completed seq. */
void fc_op_depend(struct fc_op *op, struct fc_stream *s, uint64_t seq)
{
	if (s->completed >= seq)
		return;
	op->deps = grown(op->deps, op->nr_deps, sizeof(*op->deps));
	op->deps[op->nr_deps++] = (struct fc_dep){ s, seq };
	s->refs++;
}

void fc_op_hold(struct fc_op *op, struct fc_range *r)
{
	op->held = grown(op->held, op->nr_held, sizeof(struct fc_range *));
	op->held[op->nr_held++] = r;
	fc_range_hold(r);
}

/* --- resolving */

static int refuse(const char *why, uint64_t addr, size_t size)
{
	fc_complain("0x%llx, %zu bytes: %s", (unsigned long long)addr, size,
		    why);
	return CF_CU_INVALID_VALUE;
}

/*
 * A free is queued: what its stream is given from then on comes too late. What
 * others are given may be in order, and so is a kernel that runs.
 */
static bool comes_too_late(const struct fc_op *op, const struct fc_range *r)
{
	return !r->freed_in || (op->code != OP_KERNEL &&
				(!op->stream || op->stream == r->freed_in));
}

/* Holds what [addr, addr + size) is in; known: it must be in something. */
int fc_op_cover(struct fc_op *op, uint64_t addr, size_t size, bool known,
		bool write)
{
	struct fc_range *r = fc_range_at(addr);
	struct fc_range *next = fc_range_after(addr);

	if (!r && (known || (next && next->base - addr < size)))
		return CF_CU_INVALID_VALUE;
	while (r) {
		size_t n = r->size - (addr - r->base);

		if (r->dead || (r->freeing && comes_too_late(op, r)))
			return refuse("use after free", addr, size);
		if (r->kind == MEM_VMM && !r->accessible)
			return refuse("no access was set", addr, size);
		if (write && r->kind == MEM_REGISTERED &&
		    r->flags & CF_CU_MEMHOSTREGISTER_READ_ONLY)
			return refuse("registered read-only", addr, size);
		if (write && fc_is_pinned(r))
			return refuse("imported read-only", addr, size);
		fc_op_hold(op, r);
		if (size <= n)
			return 0;
		addr += n;
		size -= n;
		/* only mappings side by side make one stretch of memory */
		r = r->kind == MEM_VMM ? fc_range_at(addr) : NULL;
		if (!r || r->kind != MEM_VMM)
			return refuse("past the end of an allocation", addr,
				      size);
	}
	return 0;
}

/* 0, or why the operation cannot be queued; holds are undone by op_free. */
int fc_op_resolve(struct fc_op *op)
{
	int r;

	switch (op->code) {
	case OP_COPY:
		r = fc_op_cover(op, op->dst, op->size,
				op->need & COPY_DST_KNOWN, true);
		if (r || op->snapshot)
			return r;
		return fc_op_cover(op, op->src, op->size,
				   op->need & COPY_SRC_KNOWN, false);
	case OP_FILL:
		return fc_op_cover(op, op->dst, op->size, true, true);
	case OP_WAIT_VALUE:
	case OP_WRITE_VALUE:
		if (op->dst % op->width)
			return CF_CU_INVALID_VALUE;
		return fc_op_cover(op, op->dst, op->width, true,
				   op->code == OP_WRITE_VALUE);
	default:
		return 0;
	}
}

/* --- running */

/* Where addr is for us; n shrinks to what lies in one piece from there. */
static char *at(const struct fc_op *op, uint64_t addr, size_t *n)
{
	for (unsigned int i = 0; i < op->nr_held; i++) {
		struct fc_range *r = op->held[i];
		uint64_t off = addr - r->base;

		if (off >= r->size)
			continue;
		if (*n > r->size - off)
			*n = r->size - off;
		return r->data + off;
	}
	return (char *)(uintptr_t)addr;
}

static bool is_small_and_of_words(const char *to, const char *from, size_t n)
{
	return n <= WORDS_UP_TO && !(((uintptr_t)to | (uintptr_t)from | n) & 3);
}

/*
 * A small copy of words moves each of them whole, as a copy engine does: a
 * kernel may look at them meanwhile.
 */
static void move(char *to, const char *from, size_t n)
{
	if (!is_small_and_of_words(to, from, n)) {
		memmove(to, from, n);
		return;
	}
	for (size_t i = 0; i < n; i += 4)
		__atomic_store_n((uint32_t *)(to + i),
				 __atomic_load_n((const uint32_t *)(from + i),
						 __ATOMIC_SEQ_CST),
				 __ATOMIC_SEQ_CST);
}

/*
 * No race detector sees a GPU look at its own memory; and who asks it to look
 * while others write there may know it. Nor can anybody else know of bytes
 * that were taken. What is put elsewhere is seen.
 */
static void move_unseen(char *to, const char *from, size_t n)
{
	uint32_t words[WORDS_UP_TO / 4];

	if (!is_small_and_of_words(to, from, n)) {
		copy_from_unseen(to, from, n);
		return;
	}
	unseen_begin();
	move((char *)words, from, n);
	unseen_end();
	move(to, (const char *)words, n);
}

static bool is_device_memory(const struct fc_op *op, uint64_t addr)
{
	for (unsigned int i = 0; i < op->nr_held; i++) {
		const struct fc_range *r = op->held[i];

		if (addr - r->base < r->size)
			return r->kind == MEM_DEVICE || r->kind == MEM_POOL ||
			       r->kind == MEM_VMM;
	}
	return false;
}

/* Pages that were registered read-only may be gone from their addresses. */
static const struct fc_pages *pages_at(const struct fc_op *op, uint64_t addr)
{
	for (unsigned int i = 0; i < op->nr_held; i++) {
		const struct fc_range *r = op->held[i];

		if (addr - r->base < r->size)
			return fc_is_pinned(r) ? r->phys->pages : r->pages;
	}
	return NULL;
}

static void copy(const struct fc_op *op)
{
	uint64_t dst = op->dst, src = op->src;
	const char *snapshot = op->snapshot;
	size_t left = op->size;

	while (left) {
		size_t n = left;
		char *to = at(op, dst, &n);
		const char *from = snapshot ? snapshot : at(op, src, &n);
		const struct fc_pages *pages;

		pages = snapshot ? NULL : pages_at(op, src);
		if (pages)
			fc_pages_copy(pages, to, from, n);
		else if (snapshot || is_device_memory(op, src))
			move_unseen(to, from, n);
		else
			move(to, from, n);
		dst += n;
		src += n;
		if (snapshot)
			snapshot += n;
		left -= n;
	}
}

static void fill(const struct fc_op *op)
{
	uint64_t dst = op->dst;
	size_t left = op->size;

	while (left) {
		size_t n = left;
		char *to = at(op, dst, &n);

		if (op->width == 1)
			memset(to, (int)op->value, n);
		else
			for (size_t i = 0; i + 4 <= n; i += 4)
				memcpy(to + i, &op->value, 4);
		dst += n;
		left -= n;
	}
}

static bool value_reached(const struct fc_op *op, const void *p)
{
	bool wide = op->width == 8;
	uint64_t now =
		wide ? __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE) :
		       __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
	uint64_t mask = wide ? UINT64_MAX : UINT32_MAX;

	switch (op->flags & 3) {
	case CF_CU_STREAM_WAIT_VALUE_GEQ: /* cyclic */
		return wide ? (int64_t)(now - op->value) >= 0 :
			      (int32_t)(uint32_t)(now - op->value) >= 0;
	case CF_CU_STREAM_WAIT_VALUE_EQ:
		return now == op->value;
	case CF_CU_STREAM_WAIT_VALUE_AND:
		return now & op->value;
	default:
		return ~(now | op->value) & mask;
	}
}

static void nap(unsigned int us)
{
	struct timespec ts = { us / 1000000, (long)(us % 1000000) * 1000 };

	nanosleep(&ts, NULL);
}

static void wait_value(const struct fc_op *op)
{
	size_t n = op->width;
	const void *p = at(op, op->dst, &n);

	while (!value_reached(op, p) && !fc_ctx_state(op->ctx))
		nap(POLL_US);
}

/*
 * The value is the last that is seen of the operation: who finds it there may
 * take the memory away.
 */
void fc_op_land(struct fc_op *op)
{
	size_t n = op->width;
	void *p = at(op, op->dst, &n);

	if (op->width == 8)
		__atomic_store_n((uint64_t *)p, op->value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)p, (uint32_t)op->value,
				 __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < op->nr_held; i++)
		fc_range_release(op->held[i]);
	op->nr_held = 0;
}

/*
 * A real driver has one thread for host functions, so a function that waits
 * for another one waits for ever. The lock gives us that.
 */
static void host_function(const struct fc_op *op)
{
	pthread_mutex_lock(&op->ctx->host_fn_lock);
	fc_self.in_host_fn = true;
	op->host_fn(op->host_arg);
	fc_self.in_host_fn = false;
	pthread_mutex_unlock(&op->ctx->host_fn_lock);
}

static void delay(const struct fc_op *op)
{
	uint64_t end = fc_now_ns() + (uint64_t)op->delay_us * 1000;
	uint64_t now;

	while (op->delay_us && (now = fc_now_ns()) < end &&
	       !fc_ctx_state(op->ctx))
		nap(end - now < 1000000 ? (unsigned int)(end - now) / 1000 + 1 :
					  1000);
}

/* Returns 0 or the CUresult that breaks the context. */
int fc_op_run(struct fc_op *op)
{
	delay(op);
	if (fc_ctx_state(op->ctx))
		return 0;
	switch (op->code) {
	case OP_COPY:
		copy(op);
		return 0;
	case OP_FILL:
		fill(op);
		return 0;
	case OP_WAIT_VALUE:
		wait_value(op);
		return 0;
	case OP_HOST:
		host_function(op);
		return 0;
	case OP_KERNEL:
		return fc_kernel_run(op);
	default: /* marks, frees and values are done under the lock */
		return 0;
	}
}
