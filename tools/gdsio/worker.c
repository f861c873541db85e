// SPDX-License-Identifier: Apache-2.0
/*
 * worker - one thread of a job.
 *
 * It sets itself up, waits at the gate, moves requests until its walks end,
 * the time is over or somebody fails, and puts everything back.
 * Lock: pass->lock is the gate's and innermost; no call is made under it.
 */
#include "gdsio/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "gdsio/node.h"
#include "gdsio/pattern.h"
#include "gdsio/xfer.h"
#include "report.h"

#define PAGE 4096ul
#define FILL_PIECE (1ul << 20)

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

bool worker_fails(struct worker *worker)
{
	return !atomic_exchange(&worker->pass->failed, true);
}

bool worker_fails_gpu(struct worker *worker, const char *why)
{
	return worker_fails(worker) && fail("thread %d: %s", worker->tid, why);
}

/* Slots begin on pages, as O_DIRECT wants it. */
static size_t stride(const struct worker *worker)
{
	return (worker->job->io.max + PAGE - 1) / PAGE * PAGE;
}

/* CPU_ONLY has no use for a GPU; without one all memory is the host's. */
static enum memory memory_of(const struct worker *worker)
{
	enum memory kind = (enum memory)worker->job->memory;

	if (worker->pass->plan->xfer == XFER_CPU_ONLY ||
	    (memory_needs_gpu(kind) && !worker->gpu))
		return MEM_MALLOC;
	return kind;
}

static bool register_buffer(struct worker *worker)
{
	const struct plan *plan = worker->pass->plan;
	CUfileError_t status;

	if (!xfer_is_cufile(plan->xfer) || plan->skip_register)
		return true;
	status = cuFileBufRegister(worker->buffer.base, worker->buffer.size, 0);
	worker->registered = status.err == CU_FILE_SUCCESS;
	if (worker->registered)
		return true;
	return worker_fails(worker) && check(status, "cuFileBufRegister",
					     memory_name(worker->buffer.kind));
}

/* All of a request where its data is made or checked, else a piece. */
static size_t scratch_size(const struct worker *worker)
{
	size_t size = worker->job->io.max;

	if (worker->pass->verify || worker->pass->plan->refill)
		return size;
	return size < FILL_PIECE ? size : FILL_PIECE;
}

static bool fill_buffer(struct worker *worker)
{
	size_t piece = scratch_size(worker);
	const char *why = NULL;

	memset(worker->scratch, 0, piece);
	for (size_t at = 0; at < worker->buffer.size && !why; at += piece) {
		size_t left = worker->buffer.size - at;

		if (worker->pass->plan->fill_random)
			random_fill(worker->scratch, piece, &worker->random);
		why = buffer_put(&worker->buffer, at, worker->scratch,
				 left < piece ? left : piece);
	}
	return !why || worker_fails_gpu(worker, why);
}

static bool set_up(struct worker *worker)
{
	const struct xfer_way *way =
		xfer_way((enum xfer)worker->pass->plan->xfer);
	size_t size = stride(worker) * (size_t)worker->depth;
	const char *why = worker->gpu ? gpu_use(worker->gpu) : NULL;

	if (worker->job->node != UNSET && !node_bind(worker->job->node))
		return worker_fails(worker) &&
		       fail_errno("sched_setaffinity", "-n");
	worker->slots = calloc((size_t)worker->depth, sizeof(*worker->slots));
	worker->scratch = malloc(scratch_size(worker));
	if (!worker->slots || !worker->scratch)
		why = "no host memory";
	for (int i = 0; i < worker->depth && worker->slots; i++)
		worker->slots[i].at = stride(worker) * (size_t)i;
	if (!why)
		why = buffer_new(&worker->buffer, memory_of(worker), size,
				 worker->gpu);
	if (why)
		return worker_fails(worker) &&
		       fail("thread %d, %zu bytes of %s memory: %s",
			    worker->tid, size, memory_name(memory_of(worker)),
			    why);
	return fill_buffer(worker) && register_buffer(worker) &&
	       (!way->begin || way->begin(worker));
}

static void put_back(struct worker *worker)
{
	const struct xfer_way *way =
		xfer_way((enum xfer)worker->pass->plan->xfer);
	const char *why;

	if (way->end)
		way->end(worker);
	if (worker->registered)
		(void)cuFileBufDeregister(worker->buffer.base);
	why = buffer_free(&worker->buffer);
	if (why)
		(void)worker_fails_gpu(worker, why);
	free(worker->scratch);
	free(worker->slots);
}

/* Opens when everybody waits; the main thread sees who has come. */
static void wait_at_gate(struct pass *pass)
{
	pthread_mutex_lock(&pass->lock);
	pass->waiting++;
	pthread_cond_broadcast(&pass->change);
	while (!pass->open)
		pthread_cond_wait(&pass->change, &pass->lock);
	pthread_mutex_unlock(&pass->lock);
}

static void finish(struct pass *pass)
{
	pthread_mutex_lock(&pass->lock);
	pass->finished++;
	pthread_cond_broadcast(&pass->change);
	pthread_mutex_unlock(&pass->lock);
}

/* Puts into a slot what is to be written, or what no read would leave. */
static bool prepare(struct worker *worker, struct slot *slot)
{
	const struct pass *pass = worker->pass;
	const struct request *r = &slot->request;
	const char *why;

	slot->moved = 0;
	if (pass->verify) {
		pattern_fill(worker->scratch, r->size, r->off,
			     pass->plan->seed);
		for (size_t i = 0; !r->write && i < r->size; i++)
			((unsigned char *)worker->scratch)[i] ^= 0xff;
	} else if (r->write && pass->plan->refill) {
		random_fill(worker->scratch, r->size, &worker->random);
	} else {
		return true;
	}
	why = buffer_put(&worker->buffer, slot->at, worker->scratch, r->size);
	return !why || worker_fails_gpu(worker, why);
}

static bool check_data(struct worker *worker, const struct slot *slot)
{
	const struct request *r = &slot->request;
	uint64_t seed = worker->pass->plan->seed;
	unsigned char *data = worker->scratch;
	size_t bad;
	const char *why = buffer_get(&worker->buffer, slot->at, data, r->size);

	if (why)
		return worker_fails_gpu(worker, why);
	bad = pattern_check(data, r->size, r->off, seed);
	if (bad == PATTERN_MATCHES)
		return true;
	return worker_fails(worker) &&
	       fail("%s: wrong data at offset %lld: 0x%02x in place of "
		    "0x%02x (written with -V and the same -k?)",
		    r->target->name, (long long)r->off + (long long)bad,
		    data[bad], pattern_at(r->off + (off_t)bad, seed));
}

/* What came of a slot; the time of a batch is the time of its entries. */
static bool account(struct worker *worker, const struct slot *slot, uint64_t ns)
{
	const struct request *r = &slot->request;
	struct tally *tally = &worker->tally;

	tally_add(tally, ns);
	*(r->write ? &tally->written_bytes : &tally->read_bytes) +=
		(uint64_t)slot->moved;
	atomic_store_explicit(&worker->done, tally_bytes(tally),
			      memory_order_relaxed);
	if (slot->moved < (ssize_t)r->size)
		return worker_fails(worker) &&
		       fail("Tid: %d incomplete %s, done = %zd issued = %zu, "
			    "%s at offset %lld",
			    worker->tid, r->write ? "Write" : "Read",
			    slot->moved, r->size, r->target->name,
			    (long long)r->off);
	return !worker->pass->verify || r->write || check_data(worker, slot);
}

/* How many slots there is work for. */
static int deal(struct worker *worker)
{
	int nr = 0;

	for (int i = 0; i < worker->depth; i++) {
		struct walk *walk = &worker->walks[i % worker->nr_walks];

		nr += walk_next(walk, &worker->slots[nr].request);
	}
	return nr;
}

static bool is_over(const struct pass *pass)
{
	return atomic_load_explicit(&pass->failed, memory_order_relaxed) ||
	       atomic_load_explicit(&pass->interrupted, memory_order_relaxed) ||
	       (pass->deadline > 0 && now() >= pass->deadline);
}

static bool move_once(struct worker *worker, const struct xfer_way *way, int nr)
{
	double start;
	uint64_t ns;

	for (int i = 0; i < nr; i++) {
		if (!prepare(worker, &worker->slots[i]))
			return false;
	}
	start = now();
	if (!way->move(worker, nr))
		return false;
	ns = (uint64_t)((now() - start) * 1e9);
	for (int i = 0; i < nr; i++) {
		if (!account(worker, &worker->slots[i], ns))
			return false;
	}
	return true;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	const struct xfer_way *way =
		xfer_way((enum xfer)worker->pass->plan->xfer);
	bool ok = set_up(worker);

	wait_at_gate(worker->pass);
	while (ok && !is_over(worker->pass)) {
		int nr = deal(worker);

		if (!nr || !move_once(worker, way, nr))
			break;
	}
	worker->end = now();
	finish(worker->pass);
	put_back(worker);
	return NULL;
}

bool worker_start(struct worker *worker)
{
	errno = pthread_create(&worker->thread, NULL, work, worker);
	return !errno ||
	       (worker_fails(worker) && fail_errno("pthread_create", "thread"));
}
