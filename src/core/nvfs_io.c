// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_io - requests to nvidia-fs.
 *
 * The fence page is shared with the kernel: it stores the result first and the
 * fence value last, and we read the value with acquire. A mapping never uses a
 * value twice, so the value of an earlier request is not taken for this one's.
 */
#include "core/nvfs_io.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "core/clock.h"
#include "core/log.h"
#include "core/pause.h"
#include "seam/os.h"

#define SPINS 2000
#define YIELDS 200
#define NAP_NS 50000
#define GIVE_UP_NS 2000000000ll

int cf_nvfs_file_facts(int fd, struct cf_nvfs_file *file)
{
	struct stat st;
	int err = cf_os->fstat(fd, &st);
	dev_t dev;

	if (err)
		return err;
	dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	*file = (struct cf_nvfs_file){
		.fd = fd,
		.ino = st.st_ino,
		.major = major(dev),
		.minor = minor(dev),
	};
	return 0;
}

size_t cf_nvfs_op_size(const struct cf_nvfs_mapping *map, uintptr_t gpu,
		       size_t size)
{
	size_t in_page = gpu % CF_NVFS_PAGE;
	size_t most = in_page ? CF_NVFS_PAGE - in_page : map->shadow_size;

	if (most > map->shadow_size)
		most = map->shadow_size;
	return size < most ? size : most;
}

/* Clears the fence, and answers the value that will end this request. */
static uint64_t arm(struct cf_nvfs_op *op)
{
	struct cf_nvfs_fence *fence = op->map->fence;

	__atomic_store_n(&fence->state, CF_NVFS_CLEAN, __ATOMIC_RELAXED);
	__atomic_store_n(&fence->result, 0, __ATOMIC_RELAXED);
	op->err = 0;
	op->give_up_ns = 0;
	return ++op->map->serial;
}

static void fill(struct cf_nvfs_io_arg *io, const struct cf_nvfs_file *file,
		 struct cf_nvfs_op *op, bool sync)
{
	uint64_t value = arm(op);

	*io = (struct cf_nvfs_io_arg){
		.shadow = (uintptr_t)op->map->shadow,
		.off = op->off,
		.size = op->size,
		.fence_value = sync ? 0 : value,
		.ino = file->ino,
		.major = file->major,
		.minor = file->minor,
		.gpu_off = op->gpu - op->map->base,
		.fd = file->fd,
		.bits = (uint8_t)((sync ? CF_NVFS_SYNC : 0) |
				  (op->write ? CF_NVFS_OP_WRITE : 0)),
	};
}

/*
 * EPERM: the true error is in result. EBUSY: the driver has given the mapping
 * up; no other mistake of ours is answered so.
 */
static int true_error(struct cf_nvfs_op *op, int err, int64_t result)
{
	if (err == -EPERM && result < 0 && result >= -4095)
		err = (int)result;
	if (err == -EBUSY)
		op->map->broken = true;
	return err;
}

static int call(const struct cf_nvfs_file *file, struct cf_nvfs_op *op,
		bool sync, int64_t *result)
{
	union cf_nvfs_arg arg = { .room = { 0 } };
	int err;

	fill(&arg.io, file, op, sync);
	/* the command says what it is; the bit is for entries of a batch */
	arg.io.bits &= (uint8_t)~CF_NVFS_OP_WRITE;
	err = cf_os->ioctl(op->map->fd,
			   op->write ? CF_NVFS_WRITE : CF_NVFS_READ, &arg);
	*result = arg.io.result;
	return err < 0 ? true_error(op, err, arg.io.result) : 0;
}

/* -EIO for a number that is neither a possible count nor an -errno. */
static ssize_t checked(const struct cf_nvfs_op *op, int64_t result)
{
	if (result > (int64_t)op->size || result < -4095)
		return -EIO;
	return (ssize_t)result;
}

ssize_t cf_nvfs_sync(const struct cf_nvfs_file *file, struct cf_nvfs_op *op)
{
	int64_t result;
	int err = call(file, op, true, &result);

	return err ? err : checked(op, result);
}

/* A batch has failed, so no further one is tried. Relaxed: a hint. */
static atomic_bool no_batches;

void cf_nvfs_allow_batches(void)
{
	atomic_store_explicit(&no_batches, false, memory_order_relaxed);
}

static void start_one(const struct cf_nvfs_file *file, struct cf_nvfs_op *op)
{
	int64_t result;

	op->err = call(file, op, false, &result);
}

/*
 * After EPERM entries before a bad one may have begun, and only their fences
 * tell which, in time. After another error of the call none has begun.
 */
static void doubt(struct cf_nvfs_op *op, int err)
{
	if (err != -EPERM) {
		op->err = err;
		return;
	}
	op->map->broken = true;
	op->give_up_ns = cf_clock_ns() + GIVE_UP_NS;
}

void cf_nvfs_start(const struct cf_nvfs_file *file,
		   struct cf_nvfs_op *const *ops, unsigned nr)
{
	struct cf_nvfs_io_arg entries[CF_NVFS_MAX_BATCH];
	union cf_nvfs_arg arg = { .room = { 0 } };
	int err;

	if (nr == 1) {
		start_one(file, ops[0]);
		return;
	}
	if (atomic_load_explicit(&no_batches, memory_order_relaxed)) {
		for (unsigned i = 0; i < nr; i++)
			start_one(file, ops[i]);
		return;
	}
	for (unsigned i = 0; i < nr; i++)
		fill(&entries[i], file, ops[i], false);
	arg.batch.nr = nr;
	arg.batch.entries = (uintptr_t)entries;
	err = cf_os->ioctl(ops[0]->map->fd, CF_NVFS_BATCH, &arg);
	if (err >= 0)
		return;
	atomic_store_explicit(&no_batches, true, memory_order_relaxed);
	cf_log_limited(CF_LOG_WARN, "nvidia-fs: batch of %u: %s", nr,
		       strerror(-err));
	for (unsigned i = 0; i < nr; i++)
		doubt(ops[i], err);
}

static void wait_a_while(unsigned turn)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (turn < SPINS)
		cf_pause();
	else if (turn < SPINS + YIELDS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

/* Whether the wait has a limit: not all entries of a failed batch have begun,
 * and a GPU's memory may go. Other fences are sure to come. */
static bool may_never_come(struct cf_nvfs_op *op)
{
	if (!op->give_up_ns &&
	    __atomic_load_n(&op->map->fence->state, __ATOMIC_RELAXED) ==
		    CF_NVFS_DIED)
		op->give_up_ns = cf_clock_ns() + GIVE_UP_NS;
	return op->give_up_ns;
}

static bool wait_for_fence(struct cf_nvfs_op *op)
{
	const struct cf_nvfs_fence *fence = op->map->fence;

	for (unsigned turn = 0;; turn++) {
		/* acquire: pairs with the driver's store after the result */
		if (__atomic_load_n(&fence->value, __ATOMIC_ACQUIRE) ==
		    op->map->serial)
			return true;
		wait_a_while(turn);
		if (turn < SPINS + YIELDS || !may_never_come(op))
			continue;
		/* the count of turns is for a clock that stands still */
		if (cf_clock_ns() > op->give_up_ns ||
		    turn > SPINS + YIELDS + GIVE_UP_NS / NAP_NS)
			return false;
	}
}

ssize_t cf_nvfs_end(struct cf_nvfs_op *op)
{
	const struct cf_nvfs_fence *fence = op->map->fence;

	if (op->err)
		return op->err;
	if (!wait_for_fence(op)) {
		op->map->broken = true;
		return -EIO;
	}
	if (__atomic_load_n(&fence->state, __ATOMIC_RELAXED) == CF_NVFS_DIED) {
		op->map->broken = true;
		return -EIO;
	}
	return checked(op, __atomic_load_n(&fence->result, __ATOMIC_RELAXED));
}

/* Which bytes of the operation hole i covers; none if *from >= *end. */
static void hole_range(const struct cf_nvfs_op *op, size_t n, unsigned i,
		       size_t *from, size_t *end)
{
	const struct cf_nvfs_fence *fence = op->map->fence;
	int64_t first = fence->start +
			(int64_t)(fence->holes[i].first * CF_NVFS_BLOCK) -
			op->off;
	int64_t last = first + (int64_t)(fence->holes[i].nr * CF_NVFS_BLOCK);

	*from = first < 0 ? 0 : (size_t)first;
	*end = last < 0 ? 0 : (size_t)last < n ? (size_t)last : n;
}

/* Whether the page, which says that there are holes, says where. */
static bool is_understood(const struct cf_nvfs_op *op, size_t n)
{
	const struct cf_nvfs_fence *fence = op->map->fence;

	return fence->magic == CF_NVFS_FENCE_MAGIC &&
	       fence->version == CF_NVFS_FENCE_VERSION && fence->nr_holes &&
	       fence->nr_holes <= CF_NVFS_MAX_HOLES && fence->start >= 0 &&
	       fence->start <= op->off + (int64_t)n;
}

bool cf_nvfs_next_hole(const struct cf_nvfs_op *op, size_t n, size_t *at,
		       size_t *size)
{
	const struct cf_nvfs_fence *fence = op->map->fence;
	size_t best = n, best_end = n;

	if (op->write || *at >= n || fence->state != CF_NVFS_SPARSE)
		return false;
	if (!is_understood(op, n)) { /* all bytes may be holes */
		*size = n - *at;
		return true;
	}
	for (unsigned i = 0; i < fence->nr_holes; i++) {
		size_t from, end;

		hole_range(op, n, i, &from, &end);
		if (from < *at)
			from = *at;
		if (from < end && from < best) {
			best = from;
			best_end = end;
		}
	}
	*at = best;
	*size = best_end - best;
	return best < n;
}
