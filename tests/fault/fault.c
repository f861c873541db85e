// SPDX-License-Identifier: Apache-2.0
/* fault - see fault.h. Each row asks should_fail, then does the real thing. */
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/ring.h"
#include "engine/worker.h"
#include "harness.h"
#include "seam/os.h"
#include "seam/uring.h"

static const struct cf_os *behind = &cf_os_real;
static struct fault rule;
static atomic_uint calls[FAULT_NR_CALLS];
static atomic_uint fired;
static atomic_ulong injected; /* in the life of the program */

/* ./dev faults adds these lines up. */
static void print_injected(void)
{
	printf("%lu faults injected\n", atomic_load(&injected));
}

void fault_count(unsigned nr)
{
	if (!atomic_fetch_add(&injected, nr))
		atexit(print_injected);
}

unsigned fault_rounds(unsigned nr)
{
	const char *asked = getenv("TEST_ROUNDS");

	return asked ? (unsigned)strtoul(asked, NULL, 10) : nr;
}

int fault_finish(int failed)
{
	if (!th_fake())
		return failed;
	failed += th_fake()->complaints(stderr) != 0;
	th_fake()->reset();
	return failed;
}

const char *fault_name(enum fault_call call)
{
	static const char *const names[] = {
		[FAULT_OPEN] = "open",
		[FAULT_CLOSE] = "close",
		[FAULT_READ] = "read",
		[FAULT_WRITE] = "write",
		[FAULT_PREAD] = "pread",
		[FAULT_PWRITE] = "pwrite",
		[FAULT_FSTAT] = "fstat",
		[FAULT_STATX] = "statx",
		[FAULT_FILE_TYPE] = "file_type",
		[FAULT_FILE_ID] = "file_id",
		[FAULT_FSTATFS] = "fstatfs",
		[FAULT_GET_FLAGS] = "get_flags",
		[FAULT_GET_LEASE] = "get_lease",
		[FAULT_RECORD_LOCKS] = "record_locks",
		[FAULT_IOCTL] = "ioctl",
		[FAULT_CACHESTAT] = "cachestat",
		[FAULT_READ_AHEAD] = "read_ahead",
		[FAULT_DUP_ABOVE] = "dup_above",
		[FAULT_FD_TABLE] = "fd_table",
		[FAULT_MAP_ANON] = "map_anon",
		[FAULT_MAP_SHARED] = "map_shared",
		[FAULT_MAP_FILE] = "map_file",
		[FAULT_MAP_TO_WRITE] = "map_to_write",
		[FAULT_COPY_TO] = "copy_to",
		[FAULT_COPY_OUT] = "copy_out",
		[FAULT_MAP_NOTHING] = "map_nothing",
		[FAULT_FORBID] = "forbid",
		[FAULT_MADVISE] = "madvise",
		[FAULT_UNMAP] = "unmap",
		[FAULT_PREFER_NODE] = "prefer_node",
		[FAULT_MEMORY_POLICY] = "memory_policy",
		[FAULT_GET_AFFINITY] = "get_affinity",
		[FAULT_SET_AFFINITY] = "set_affinity",
		[FAULT_SET_TIMER_SLACK] = "set_timer_slack",
		[FAULT_GET_DENTS] = "get_dents",
		[FAULT_READ_LINK] = "read_link",
		[FAULT_PIPE] = "pipe",
		[FAULT_SPLICE_PAGES] = "splice_pages",
		[FAULT_MEMFD] = "memfd",
		[FAULT_SET_MODE] = "set_mode",
		[FAULT_RESIZE] = "resize",
		[FAULT_SEAL] = "seal",
		[FAULT_MAP_FILE_AT] = "map_file_at",
		[FAULT_MAP_ANON_AT] = "map_anon_at",
		[FAULT_CLOCK] = "clock_gettime",
		[FAULT_GETENV] = "getenv",
		[FAULT_ENVIRONMENT] = "environment",
		[FAULT_RING_MAKE] = "ring make",
		[FAULT_RING_SUBMIT] = "ring submit",
		[FAULT_RING_WAIT] = "ring wait",
		[FAULT_RING_DONE] = "ring result",
	};

	return names[call];
}

static bool should_fail(enum fault_call call)
{
	unsigned nr = atomic_fetch_add(&calls[call], 1) + 1;

	if (rule.call != call || !rule.nth || nr < rule.nth ||
	    (nr > rule.nth && !rule.persist))
		return false;
	atomic_fetch_add(&fired, 1);
	fault_count(1);
	return true;
}

static int fault_open(const char *path, int flags, mode_t mode)
{
	if (should_fail(FAULT_OPEN))
		return -rule.err;
	if (rule.no_direct_open && flags & O_DIRECT)
		return -EINVAL;
	return behind->open(path, flags, mode);
}

/* As on Linux, the descriptor is gone whatever close answers. */
static int fault_close(int fd)
{
	int err = behind->close(fd);

	return should_fail(FAULT_CLOSE) ? -rule.err : err;
}

static ssize_t fault_read(int fd, void *buf, size_t size)
{
	return should_fail(FAULT_READ) ? -rule.err :
					 behind->read(fd, buf, size);
}

static ssize_t fault_write(int fd, const void *buf, size_t size)
{
	return should_fail(FAULT_WRITE) ? -rule.err :
					  behind->write(fd, buf, size);
}

/* What pread and pwrite share: 0 to go on, or -errno; *size may shrink. */
static int hinder(enum fault_call call, int fd, size_t *size)
{
	bool fails = should_fail(call);
	unsigned nr = atomic_load(&calls[call]);

	if (rule.slow_ms)
		th_sleep_ms(rule.slow_ms);
	if (fails)
		return -rule.err;
	if (rule.eintr_every && nr % rule.eintr_every == 0) {
		fault_count(1);
		return -EINTR;
	}
	if (rule.no_direct && behind->get_flags(fd) & O_DIRECT) {
		fault_count(1);
		return -EINVAL;
	}
	if (rule.portion && *size > rule.portion) {
		fault_count(1);
		*size = rule.portion;
	}
	return 0;
}

/* Direct IO wants whole blocks, but may well answer less than was moved. */
static size_t asked_of(int fd, size_t size, size_t allowed)
{
	size_t whole = (allowed + 4095) & ~(size_t)4095;

	if (!(behind->get_flags(fd) & O_DIRECT))
		return allowed;
	return whole < size ? whole : size;
}

static ssize_t fault_pread(int fd, void *buf, size_t size, off_t off)
{
	size_t allowed = size;
	ssize_t n = hinder(FAULT_PREAD, fd, &allowed);

	if (n)
		return n;
	n = behind->pread(fd, buf, asked_of(fd, size, allowed), off);
	return n < (ssize_t)allowed ? n : (ssize_t)allowed;
}

static ssize_t fault_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	size_t allowed = size;
	ssize_t n = hinder(FAULT_PWRITE, fd, &allowed);

	if (n)
		return n;
	n = behind->pwrite(fd, buf, asked_of(fd, size, allowed), off);
	return n < (ssize_t)allowed ? n : (ssize_t)allowed;
}

static int fault_fstat(int fd, struct stat *st)
{
	return should_fail(FAULT_FSTAT) ? -rule.err : behind->fstat(fd, st);
}

static int fault_statx(int fd, unsigned mask, struct statx *stx)
{
	return should_fail(FAULT_STATX) ? -rule.err :
					  behind->statx(fd, mask, stx);
}

static int fault_file_type(int fd)
{
	return should_fail(FAULT_FILE_TYPE) ? -rule.err : behind->file_type(fd);
}

static int fault_file_id(int fd, dev_t *dev, ino_t *ino)
{
	return should_fail(FAULT_FILE_ID) ? -rule.err :
					    behind->file_id(fd, dev, ino);
}

static int fault_fstatfs(int fd, struct statfs *fs)
{
	return should_fail(FAULT_FSTATFS) ? -rule.err : behind->fstatfs(fd, fs);
}

static int fault_get_flags(int fd)
{
	return should_fail(FAULT_GET_FLAGS) ? -rule.err : behind->get_flags(fd);
}

static int fault_get_lease(int fd)
{
	return should_fail(FAULT_GET_LEASE) ? -rule.err : behind->get_lease(fd);
}

static int fault_cachestat(int fd, off_t off, size_t len,
			   struct cf_cachestat *out)
{
	return should_fail(FAULT_CACHESTAT) ?
		       -rule.err :
		       behind->cachestat(fd, off, len, out);
}

static int fault_read_ahead(int fd, off_t off, size_t size)
{
	return should_fail(FAULT_READ_AHEAD) ?
		       -rule.err :
		       behind->read_ahead(fd, off, size);
}

static int fault_dup_above(int fd, int lowest)
{
	return should_fail(FAULT_DUP_ABOVE) ? -rule.err :
					      behind->dup_above(fd, lowest);
}

static int fault_fd_table(void)
{
	return should_fail(FAULT_FD_TABLE) ? -rule.err : behind->fd_table();
}

static void *fault_map_anon(size_t size)
{
	return should_fail(FAULT_MAP_ANON) ? NULL : behind->map_anon(size);
}

static int fault_map_shared(int fd, size_t size, void **mem)
{
	return should_fail(FAULT_MAP_SHARED) ?
		       -rule.err :
		       behind->map_shared(fd, size, mem);
}

static int fault_map_file(int fd, off_t off, size_t size, void **mem)
{
	return should_fail(FAULT_MAP_FILE) ?
		       -rule.err :
		       behind->map_file(fd, off, size, mem);
}

static int fault_map_to_write(int fd, off_t off, size_t size, void **mem)
{
	return should_fail(FAULT_MAP_TO_WRITE) ?
		       -rule.err :
		       behind->map_to_write(fd, off, size, mem);
}

static ssize_t fault_copy_to(void *mem, const void *buf, size_t size)
{
	return should_fail(FAULT_COPY_TO) ? -rule.err :
					    behind->copy_to(mem, buf, size);
}

static ssize_t fault_copy_out(void *mem, const void *buf, size_t size)
{
	return should_fail(FAULT_COPY_OUT) ? -rule.err :
					     behind->copy_out(mem, buf, size);
}

static int fault_map_nothing(void *mem, size_t size)
{
	return should_fail(FAULT_MAP_NOTHING) ? -rule.err :
						behind->map_nothing(mem, size);
}

static int fault_forbid(void *mem, size_t size)
{
	return should_fail(FAULT_FORBID) ? -rule.err :
					   behind->forbid(mem, size);
}

static int fault_madvise(void *mem, size_t size, int advice)
{
	return should_fail(FAULT_MADVISE) ? -rule.err :
					    behind->madvise(mem, size, advice);
}

static int fault_record_locks(int fd)
{
	return should_fail(FAULT_RECORD_LOCKS) ? -rule.err :
						 behind->record_locks(fd);
}

static int fault_ioctl(int fd, unsigned long request, void *arg)
{
	return should_fail(FAULT_IOCTL) ? -rule.err :
					  behind->ioctl(fd, request, arg);
}

static int fault_unmap(void *mem, size_t size)
{
	return should_fail(FAULT_UNMAP) ? -rule.err : behind->unmap(mem, size);
}

static int fault_prefer_node(void *mem, size_t size, unsigned node)
{
	return should_fail(FAULT_PREFER_NODE) ?
		       -rule.err :
		       behind->prefer_node(mem, size, node);
}

static int fault_memory_policy(void)
{
	return should_fail(FAULT_MEMORY_POLICY) ? -rule.err :
						  behind->memory_policy();
}

static int fault_get_affinity(pid_t tid, unsigned long *mask, size_t size)
{
	return should_fail(FAULT_GET_AFFINITY) ?
		       -rule.err :
		       behind->get_affinity(tid, mask, size);
}

static int fault_set_affinity(const unsigned long *mask, size_t size)
{
	return should_fail(FAULT_SET_AFFINITY) ?
		       -rule.err :
		       behind->set_affinity(mask, size);
}

static int fault_set_timer_slack(unsigned long ns)
{
	return should_fail(FAULT_SET_TIMER_SLACK) ? -rule.err :
						    behind->set_timer_slack(ns);
}

static ssize_t fault_get_dents(int fd, void *buf, size_t size)
{
	return should_fail(FAULT_GET_DENTS) ? -rule.err :
					      behind->get_dents(fd, buf, size);
}

static ssize_t fault_read_link(const char *path, char *buf, size_t size)
{
	return should_fail(FAULT_READ_LINK) ?
		       -rule.err :
		       behind->read_link(path, buf, size);
}

static int fault_pipe(int fds[2])
{
	return should_fail(FAULT_PIPE) ? -rule.err : behind->pipe(fds);
}

static ssize_t fault_splice_pages(int pipe, const void *mem, size_t size)
{
	return should_fail(FAULT_SPLICE_PAGES) ?
		       -rule.err :
		       behind->splice_pages(pipe, mem, size);
}

static int fault_memfd(const char *name)
{
	return should_fail(FAULT_MEMFD) ? -rule.err : behind->memfd(name);
}

static int fault_set_mode(int fd, mode_t mode)
{
	return should_fail(FAULT_SET_MODE) ? -rule.err :
					     behind->set_mode(fd, mode);
}

static int fault_resize(int fd, size_t size)
{
	return should_fail(FAULT_RESIZE) ? -rule.err : behind->resize(fd, size);
}

static int fault_seal(int fd, int seals)
{
	return should_fail(FAULT_SEAL) ? -rule.err : behind->seal(fd, seals);
}

static int fault_map_file_at(void *mem, size_t size, int fd)
{
	return should_fail(FAULT_MAP_FILE_AT) ?
		       -rule.err :
		       behind->map_file_at(mem, size, fd);
}

static int fault_map_anon_at(void *mem, size_t size)
{
	return should_fail(FAULT_MAP_ANON_AT) ? -rule.err :
						behind->map_anon_at(mem, size);
}

/* It cannot fail. */
static int fault_clock(clockid_t clock, struct timespec *ts)
{
	return should_fail(FAULT_CLOCK) ? -rule.err :
					  behind->clock_gettime(clock, ts);
}

static const char *fault_getenv(const char *name)
{
	return should_fail(FAULT_GETENV) ? NULL : behind->getenv(name);
}

static char **fault_environment(void)
{
	return should_fail(FAULT_ENVIRONMENT) ? NULL : behind->environment();
}

/* A row that is not here would be NULL, and the first caller would tell. */
static const struct cf_os faulty = {
	.open = fault_open,
	.close = fault_close,
	.read = fault_read,
	.write = fault_write,
	.pread = fault_pread,
	.pwrite = fault_pwrite,
	.fstat = fault_fstat,
	.statx = fault_statx,
	.file_type = fault_file_type,
	.file_id = fault_file_id,
	.fstatfs = fault_fstatfs,
	.get_flags = fault_get_flags,
	.get_lease = fault_get_lease,
	.record_locks = fault_record_locks,
	.ioctl = fault_ioctl,
	.cachestat = fault_cachestat,
	.read_ahead = fault_read_ahead,
	.dup_above = fault_dup_above,
	.fd_table = fault_fd_table,
	.map_anon = fault_map_anon,
	.map_shared = fault_map_shared,
	.map_file = fault_map_file,
	.map_to_write = fault_map_to_write,
	.copy_to = fault_copy_to,
	.copy_out = fault_copy_out,
	.map_nothing = fault_map_nothing,
	.forbid = fault_forbid,
	.madvise = fault_madvise,
	.unmap = fault_unmap,
	.prefer_node = fault_prefer_node,
	.memory_policy = fault_memory_policy,
	.get_affinity = fault_get_affinity,
	.set_affinity = fault_set_affinity,
	.set_timer_slack = fault_set_timer_slack,
	.get_dents = fault_get_dents,
	.read_link = fault_read_link,
	.pipe = fault_pipe,
	.splice_pages = fault_splice_pages,
	.memfd = fault_memfd,
	.set_mode = fault_set_mode,
	.resize = fault_resize,
	.seal = fault_seal,
	.map_file_at = fault_map_file_at,
	.map_anon_at = fault_map_anon_at,
	.clock_gettime = fault_clock,
	.getenv = fault_getenv,
	.environment = fault_environment,
};

/* ---------------------------------------------------------------- rings */

/* Calls that were queued: what was allowed, or what was made up. */
#define MAX_QUEUED 64

struct cf_kring {
	struct cf_kring *real;
	struct queued {
		bool used, made_up;
		uint64_t cookie;
		ssize_t n; /* at most so many bytes, or the result made up */
	} queued[MAX_QUEUED];
};

static int fault_ring_make(unsigned depth, struct cf_kring **out)
{
	struct cf_kring *ring;
	int err;

	if (should_fail(FAULT_RING_MAKE))
		return -rule.err;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	err = cf_uring_real.make(depth, &ring->real);
	if (err)
		free(ring);
	else
		*out = ring;
	return err;
}

static void fault_ring_end(struct cf_kring *ring)
{
	cf_uring_real.end(ring->real);
	free(ring);
}

static struct queued *find_queued(struct cf_kring *ring, bool used,
				  uint64_t cookie)
{
	for (int i = 0; i < MAX_QUEUED; i++) {
		struct queued *q = &ring->queued[i];

		if (q->used == used && (!used || q->cookie == cookie))
			return q;
	}
	return NULL;
}

static bool fault_ring_queue(struct cf_kring *ring, bool write, int fd,
			     void *mem, size_t size, off_t off, uint64_t cookie)
{
	struct queued *q = find_queued(ring, false, 0);
	size_t allowed = size;
	ssize_t n;

	if (!q)
		return false;
	n = hinder(write ? FAULT_PWRITE : FAULT_PREAD, fd, &allowed);
	*q = (struct queued){ .used = true,
			      .made_up = n < 0,
			      .cookie = cookie,
			      .n = n < 0 ? n : (ssize_t)allowed };
	/* what failed moves nothing, but comes back through the ring */
	return cf_uring_real.queue(ring->real, write, fd, mem,
				   n < 0 ? 0 : asked_of(fd, size, allowed), off,
				   cookie);
}

static int fault_ring_submit(struct cf_kring *ring, bool wait)
{
	return should_fail(FAULT_RING_SUBMIT) ?
		       -rule.err :
		       cf_uring_real.submit(ring->real, wait);
}

static int fault_ring_wait(struct cf_kring *ring)
{
	return should_fail(FAULT_RING_WAIT) ? -rule.err :
					      cf_uring_real.wait(ring->real);
}

static bool fault_ring_reap(struct cf_kring *ring, struct cf_uring_done *done)
{
	struct queued *q;

	if (!cf_uring_real.reap(ring->real, done))
		return false;
	q = find_queued(ring, true, done->cookie);
	if (q && (q->made_up || done->result > q->n))
		done->result = (int)q->n;
	if (q)
		q->used = false;
	if (should_fail(FAULT_RING_DONE))
		done->result = -rule.err;
	return true;
}

static const struct cf_uring faulty_uring = {
	.make = fault_ring_make,
	.end = fault_ring_end,
	.queue = fault_ring_queue,
	.submit = fault_ring_submit,
	.wait = fault_ring_wait,
	.reap = fault_ring_reap,
};

void fault_begin(const struct fault *fault)
{
	/* one that has just been made may still look at the table */
	cf_workers_close();
	rule = *fault;
	for (int i = 0; i < FAULT_NR_CALLS; i++)
		atomic_store(&calls[i], 0);
	atomic_store(&fired, 0);
	if (cf_os != &faulty)
		behind = cf_os;
	cf_os = &faulty;
	/* rings of the other table are not this one's */
	cf_rings_close();
	cf_uring = &faulty_uring;
}

void fault_end(void)
{
	cf_workers_close();
	if (cf_os == &faulty)
		cf_os = behind;
	cf_rings_close();
	cf_uring = &cf_uring_real;
}

unsigned fault_calls(enum fault_call call)
{
	return atomic_load(&calls[call]);
}

unsigned fault_fired(void)
{
	return atomic_load(&fired);
}
