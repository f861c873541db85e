// SPDX-License-Identifier: Apache-2.0
/*
 * fake_nvfs - see fake_nvfs.h.
 *
 * lock guards mappings and their states. A queued request is a thread, which
 * an unmap waits for.
 */
#include "fake_nvfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "core/nvfs_abi.h"
#include "harness.h"
#include "seam/os.h"

#define MAX_SHADOWS 256
#define RAM 0x5a /* what a fresh shadow holds */

struct fake_nvfs fake_nvfs;

enum state { FREE, INIT, MAPPED, BUSY, DEAD };

static struct shadow {
	enum state state;
	char *mem;
	size_t size;
	uint64_t gpu, gpu_size;
	struct cf_nvfs_fence *fence;
	uint64_t last_value;
	pthread_t thread;
	bool has_thread;
	/* of the request under way */
	struct cf_nvfs_io_arg io;
	bool write;
} shadows[MAX_SHADOWS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const void *unforked[MAX_SHADOWS]; /* lock; that no child gets */
static atomic_size_t counts[FAKE_NR_COUNTS];
static atomic_uint violations, requests, open_nodes, maps;

static struct {
	enum fake_row row;
	unsigned nth;
	bool persist;
	int err;
	atomic_uint calls, fired;
} fault;

#define VIOLATION(...) \
	do { \
		fprintf(stderr, "nvidia-fs rule broken: " __VA_ARGS__); \
		fputc('\n', stderr); \
		atomic_fetch_add(&violations, 1); \
	} while (0)

size_t fake_nvfs_count(enum fake_count count)
{
	return atomic_load(&counts[count]);
}

unsigned fake_nvfs_violations(void)
{
	return atomic_load(&violations);
}

void fake_nvfs_fail(enum fake_row row, unsigned nth, bool persist, int err)
{
	fault.row = row;
	fault.nth = nth;
	fault.persist = persist;
	fault.err = err;
	atomic_store(&fault.calls, 0);
	atomic_store(&fault.fired, 0);
}

bool fake_nvfs_fired(void)
{
	return atomic_load(&fault.fired);
}

static bool fails(enum fake_row row)
{
	unsigned nr;

	if (!fault.nth || fault.row != row)
		return false;
	nr = atomic_fetch_add(&fault.calls, 1) + 1;
	if (nr < fault.nth || (nr > fault.nth && !fault.persist))
		return false;
	atomic_fetch_add(&fault.fired, 1);
	return true;
}

/* ------------------------------------------------------------ the machine */

static int file_of(const char *text)
{
	int fd = memfd_create("fake", MFD_CLOEXEC);

	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n >= m && !strcmp(path + n - m, end);
}

static int open_disk(const char *path, int flags)
{
	bool member = strstr(path, "/slaves/") != NULL;

	if (fake_nvfs.level && !member) {
		if (ends_with(path, "/md/level"))
			return file_of(fake_nvfs.level);
		/* a folder with the names of two members */
		if (ends_with(path, "/slaves") && flags & O_DIRECTORY)
			return cf_os_real.open(getenv("FAKE_SLAVES"), flags, 0);
		return -ENOENT;
	}
	if (strstr(path, "/nvme1n1/device/transport") && fake_nvfs.transport_1)
		return file_of(fake_nvfs.transport_1);
	if (ends_with(path, "/device/transport") && fake_nvfs.transport)
		return file_of(fake_nvfs.transport);
	if (ends_with(path, "/integrity/format"))
		return fake_nvfs.integrity ? file_of("T10-DIF-TYPE1-CRC\n") :
					     -ENOENT;
	return -ENOENT;
}

static int open_mounts(void)
{
	char line[512];
	struct stat st;

	if (stat(th_disk_dir(), &st))
		abort();
	snprintf(line, sizeof(line),
		 "31 1 %u:%u / / rw,relatime shared:1 - %s /dev/fake %s\n",
		 major(st.st_dev), minor(st.st_dev), fake_nvfs.fs,
		 fake_nvfs.opts);
	return file_of(line);
}

static int open_node(const char *path)
{
	/* two nodes, so that turns are taken */
	if (!fake_nvfs.open_err && !ends_with(path, "fs0") &&
	    !ends_with(path, "fs1"))
		return -ENOENT;
	if (fake_nvfs.open_err)
		return -fake_nvfs.open_err;
	atomic_fetch_add(&open_nodes, 1);
	return file_of("node");
}

static int fake_open(const char *path, int flags, mode_t mode)
{
	if (fails(FAKE_OPEN))
		return -fault.err;
	if (!strncmp(path, "/dev/nvidia-fs", 14))
		return open_node(path);
	if (!strcmp(path, "/proc/driver/nvidia-fs/version"))
		return fake_nvfs.version ? file_of(fake_nvfs.version) : -ENOENT;
	/* the list is made by the open of a node */
	if (!strcmp(path, "/proc/driver/nvidia-fs/modules"))
		return file_of(atomic_load(&open_nodes) ? fake_nvfs.modules :
							  "");
	if (!strcmp(path, "/proc/thread-self/mountinfo"))
		return open_mounts();
	if (!strncmp(path, "/sys/dev/block/", 15))
		return open_disk(path, flags);
	return cf_os_real.open(path, flags, mode);
}

/* A kernel that does not tell numbers of mounts. */
static int fake_statx(int fd, unsigned mask, struct statx *stx)
{
	int err = cf_os_real.statx(fd, mask, stx);

	stx->stx_mask &= ~0x1000u;
	stx->stx_attributes = fake_nvfs.attributes;
	return err;
}

static int fake_fstat(int fd, struct stat *st)
{
	return fails(FAKE_FSTAT) ? -fault.err : cf_os_real.fstat(fd, st);
}

/* --------------------------------------------------------------- mappings */

/* lock held */
static struct shadow *find(uint64_t mem)
{
	for (int i = 0; i < MAX_SHADOWS; i++)
		if (shadows[i].state != FREE &&
		    (uintptr_t)shadows[i].mem == mem)
			return &shadows[i];
	return NULL;
}

static int fake_map_shared(int fd, size_t size, void **mem)
{
	struct shadow *s = shadows;
	char *got;

	if (fails(FAKE_MAP_SHARED))
		return -fault.err;
	if (!size || size > CF_NVFS_MAX_SHADOW ||
	    size % (size < CF_NVFS_PAGE ? CF_NVFS_BLOCK : CF_NVFS_PAGE)) {
		VIOLATION("a shadow of %zu bytes", size);
		return -EINVAL;
	}
	got = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (got == MAP_FAILED)
		return -ENOMEM;
	memset(got, RAM, size);
	pthread_mutex_lock(&lock);
	while (s->state != FREE)
		s++;
	*s = (struct shadow){ .state = INIT, .mem = got, .size = size };
	pthread_mutex_unlock(&lock);
	*mem = got;
	return 0;
}

/* lock held. The driver still writes there. */
static bool is_pinned(const void *mem)
{
	for (int i = 0; i < MAX_SHADOWS; i++)
		if (shadows[i].state != FREE && shadows[i].fence == mem)
			return true;
	return false;
}

/* lock held */
static const void **find_unforked(const void *mem)
{
	for (int i = 0; i < MAX_SHADOWS; i++)
		if (unforked[i] == mem)
			return &unforked[i];
	return NULL;
}

/* lock held */
static void forget_unforked(const void *mem)
{
	const void **at = find_unforked(mem);

	if (at)
		*at = NULL;
}

static int fake_unmap(void *mem, size_t size)
{
	struct shadow *s;
	pthread_t thread;
	bool join = false;

	pthread_mutex_lock(&lock);
	if (is_pinned(mem))
		VIOLATION("a fence page unmapped before its shadow");
	pthread_mutex_unlock(&lock);
	if (fails(FAKE_UNMAP))
		return -fault.err;
	pthread_mutex_lock(&lock);
	forget_unforked(mem);
	s = find((uintptr_t)mem);
	if (s) {
		if (size != s->size)
			VIOLATION("a part of a shadow unmapped");
		join = s->has_thread;
		thread = s->thread;
	}
	pthread_mutex_unlock(&lock);
	if (join)
		pthread_join(thread, NULL);
	if (s) {
		pthread_mutex_lock(&lock);
		s->state = FREE;
		pthread_mutex_unlock(&lock);
	}
	return cf_os_real.unmap(mem, size);
}

static bool is_gpu(uint64_t at, uint64_t size)
{
	char byte;

	return size && !th_fake()->read(at, &byte, 1) &&
	       !th_fake()->read(at + size - 1, &byte, 1);
}

/* lock held; 0 or -errno */
static int map_locked(const struct cf_nvfs_map_arg *m)
{
	struct shadow *s = find(m->shadow);

	if (!s || s->state != INIT) {
		/* a second MAP of a shadow kills the first */
		if (s)
			s->state = DEAD;
		VIOLATION("MAP of no fresh shadow");
		return -EINVAL;
	}
	if (fake_nvfs.map_err)
		return -fake_nvfs.map_err;
	if (fake_nvfs.map_most && atomic_load(&maps) >= fake_nvfs.map_most)
		return -ENOMEM;
	if (!m->blocks || m->blocks * CF_NVFS_BLOCK != s->size || m->pad ||
	    m->size <= 0 || !is_gpu(m->gpu, (uint64_t)m->size) || !m->fence ||
	    m->fence % CF_NVFS_BLOCK ||
	    (m->fence >= m->shadow && m->fence < m->shadow + s->size) ||
	    ((size_t)m->size < CF_NVFS_PAGE &&
	     s->size < m->gpu % CF_NVFS_PAGE + (size_t)m->size)) {
		VIOLATION("MAP %llx size %lld shadow %zu",
			  (unsigned long long)m->gpu, (long long)m->size,
			  s->size);
		return -EINVAL;
	}
	if (!find_unforked((void *)(uintptr_t)m->fence))
		VIOLATION("a fence page that a child would share");
	s->state = MAPPED;
	s->gpu = m->gpu;
	s->gpu_size = (uint64_t)m->size;
	s->fence = (struct cf_nvfs_fence *)(uintptr_t)m->fence;
	atomic_fetch_add(&maps, 1);
	atomic_fetch_add(&counts[FAKE_MAPS], 1);
	return 0;
}

/* --------------------------------------------------------------- requests */

static int check_file(const struct cf_nvfs_io_arg *io, bool write)
{
	int flags = cf_os_real.get_flags(io->fd);
	struct stat st;

	if (flags < 0 || fstat(io->fd, &st))
		return -EBADF;
	if (!(flags & O_DIRECT)) {
		VIOLATION("a descriptor without O_DIRECT");
		return -EINVAL;
	}
	if ((flags & O_ACCMODE) == (write ? O_RDONLY : O_WRONLY)) {
		VIOLATION("a descriptor of the wrong mode");
		return -EBADF;
	}
	if (!io->ino)
		return -EINVAL;
	if (io->ino != st.st_ino || io->major != major(st.st_dev) ||
	    io->minor != minor(st.st_dev))
		return -ESTALE;
	return 0;
}

static int check_range(const struct shadow *s, const struct cf_nvfs_io_arg *io)
{
	uint64_t v = s->gpu % CF_NVFS_PAGE + io->gpu_off;

	if (io->off < 0 || !io->size || io->off % (long)CF_NVFS_BLOCK ||
	    io->size % CF_NVFS_BLOCK || v % CF_NVFS_BLOCK ||
	    io->gpu_off + io->size > s->gpu_size)
		return -EINVAL;
	if (v % CF_NVFS_PAGE && io->size > CF_NVFS_PAGE - v % CF_NVFS_PAGE)
		return -EINVAL;
	if (!(io->bits & CF_NVFS_SYNC) && io->size > s->size) {
		VIOLATION("a queued request larger than its shadow");
		return -EINVAL;
	}
	return 0;
}

/* lock held. The mapping has a request from now on. */
static int begin_locked(const struct cf_nvfs_io_arg *io, bool write,
			struct shadow **out)
{
	struct shadow *s = find(io->shadow);
	int err;

	if (!s || s->state == INIT) {
		VIOLATION("a request to no mapping");
		return -EINVAL;
	}
	if (s->state != MAPPED) {
		/* for good: the driver stores the end of callbacks */
		s->state = DEAD;
		atomic_fetch_add(&counts[FAKE_BUSY], 1);
		return -EBUSY;
	}
	err = check_range(s, io);
	if (!err)
		err = check_file(io, write);
	if (err) {
		if (err != -ESTALE)
			VIOLATION("request off %lld size %llu gpu_off %llu",
				  (long long)io->off,
				  (unsigned long long)io->size,
				  (unsigned long long)io->gpu_off);
		return err;
	}
	if (!write && s->fence->state != CF_NVFS_CLEAN)
		VIOLATION("a READ whose fence page was not reset");
	if (!(io->bits & CF_NVFS_SYNC) &&
	    (!io->fence_value || io->fence_value == s->last_value))
		VIOLATION("a fence value that says nothing");
	s->last_value = io->fence_value;
	s->state = BUSY;
	s->io = *io;
	s->write = write;
	*out = s;
	return 0;
}

static int next_err(void)
{
	unsigned nr = atomic_fetch_add(&requests, 1) + 1;

	if (!fake_nvfs.err_at || nr < fake_nvfs.err_at ||
	    (nr > fake_nvfs.err_at && !fake_nvfs.err_persist))
		return 0;
	return -fake_nvfs.err;
}

static void tell_hole(struct shadow *s, off_t from, off_t end)
{
	struct cf_nvfs_fence *f = s->fence;
	unsigned i = f->state == CF_NVFS_SPARSE ? f->nr_holes : 0;

	f->magic = CF_NVFS_FENCE_MAGIC;
	f->version = CF_NVFS_FENCE_VERSION;
	f->start = s->io.off;
	f->holes[i].first =
		(uint16_t)((size_t)(from - s->io.off) / CF_NVFS_BLOCK);
	f->holes[i].nr =
		(uint16_t)((size_t)(end - from + 4095) / CF_NVFS_BLOCK);
	f->nr_holes = i + 1;
	/* the library may look at it meanwhile */
	__atomic_store_n(&f->state, CF_NVFS_SPARSE, __ATOMIC_RELAXED);
}

static bool in_hole(off_t off, off_t *end)
{
	for (unsigned i = 0; i < fake_nvfs.nr_holes; i++) {
		const struct fake_hole *h = &fake_nvfs.holes[i];

		if (off >= h->off && off < h->off + (off_t)h->size) {
			*end = h->off + (off_t)h->size;
			return true;
		}
		if (off < h->off && h->off < *end)
			*end = h->off;
	}
	return false;
}

/* What is no hole goes to the GPU. */
static void to_gpu(struct shadow *s, const char *buf, size_t n)
{
	off_t off = s->io.off, last = off + (off_t)n, end;

	for (; off < last; off = end) {
		uint64_t at = (uint64_t)(off - s->io.off);

		end = last;
		if (fake_nvfs.unhooked || in_hole(off, &end)) {
			if (end > last)
				end = last;
			tell_hole(s, off, end);
			continue;
		}
		th_fake()->write(s->gpu + s->io.gpu_off + at, buf + at,
				 (size_t)(end - off));
	}
	if (fake_nvfs.unhooked)
		memcpy(s->mem, buf, n < s->size ? n : s->size);
}

static ssize_t move(struct shadow *s)
{
	size_t size = s->io.size;
	int err = next_err();
	char *buf;
	ssize_t n;

	if (err)
		return err;
	if (fake_nvfs.short_at && size > fake_nvfs.short_at)
		size = fake_nvfs.short_at;
	buf = aligned_alloc(4096, size);
	memset(buf, RAM, size);
	if (s->write && !fake_nvfs.unhooked)
		th_fake()->read(s->gpu + s->io.gpu_off, buf, size);
	n = s->write ? pwrite(s->io.fd, buf, size, s->io.off) :
		       pread(s->io.fd, buf, size, s->io.off);
	if (n < 0)
		n = -errno;
	else if (!s->write)
		to_gpu(s, buf, (size_t)n);
	if (n > 0)
		atomic_fetch_add(&counts[FAKE_BYTES], (size_t)n);
	free(buf);
	return n;
}

static void end_request(struct shadow *s)
{
	pthread_mutex_lock(&lock);
	if (s->state == BUSY)
		s->state = MAPPED;
	pthread_mutex_unlock(&lock);
}

static void *carry(void *arg)
{
	struct shadow *s = arg;
	struct cf_nvfs_fence *fence = s->fence;
	uint64_t value = s->io.fence_value;
	ssize_t n;

	if (fake_nvfs.async_us)
		usleep(fake_nvfs.async_us);
	n = move(s);
	__atomic_store_n(&fence->result, n, __ATOMIC_RELAXED);
	/* a request may follow as soon as the fence is seen */
	end_request(s);
	__atomic_store_n(&fence->value, value, __ATOMIC_RELEASE);
	return NULL;
}

static int request(struct cf_nvfs_io_arg *io, bool write)
{
	bool sync = io->bits & CF_NVFS_SYNC;
	pthread_t before;
	struct shadow *s;
	bool join;
	int err;

	pthread_mutex_lock(&lock);
	err = begin_locked(io, write, &s);
	join = !err && s->has_thread;
	if (join) {
		before = s->thread;
		s->has_thread = false;
	}
	pthread_mutex_unlock(&lock);
	if (err)
		return err;
	if (join)
		pthread_join(before, NULL);
	atomic_fetch_add(&counts[sync ? FAKE_SYNCS : FAKE_ASYNCS], 1);
	if (sync) {
		io->result = move(s);
		end_request(s);
		return io->result < 0 ? (int)io->result : 0;
	}
	s->has_thread = true;
	pthread_create(&s->thread, NULL, carry, s);
	io->result = 0;
	return 0;
}

static int batch(const struct cf_nvfs_batch_arg *b)
{
	struct cf_nvfs_io_arg *entries =
		(struct cf_nvfs_io_arg *)(uintptr_t)b->entries;

	atomic_fetch_add(&counts[FAKE_BATCHES], 1);
	if (!b->nr || b->nr > CF_NVFS_MAX_BATCH) {
		VIOLATION("a batch of %llu", (unsigned long long)b->nr);
		return -1;
	}
	for (uint64_t i = 0; i < b->nr; i++) {
		struct cf_nvfs_io_arg io = entries[i];

		if (io.bits & CF_NVFS_SYNC)
			VIOLATION("an entry of a batch that blocks");
		if (i && fake_nvfs.no_batch)
			return -1;
		if (request(&io, io.bits & CF_NVFS_OP_WRITE))
			return -1;
	}
	return 0;
}

static bool is_zero(const unsigned char *bytes, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++)
		if (bytes[i])
			return false;
	return true;
}

/* What the driver copies in and out, and how it hides errors. */
static int fake_ioctl(int fd, unsigned long nr, void *arg)
{
	union cf_nvfs_arg *a = arg;
	int err;

	if (fails(FAKE_IOCTL))
		return -fault.err;
	if (nr == FS_IOC_GETFLAGS) {
		*(int *)arg = fake_nvfs.flags;
		return 0;
	}
	if (!is_zero(a->room,
		     nr == CF_NVFS_MAP	 ? 48 :
		     nr == CF_NVFS_BATCH ? 24 :
					   80,
		     104))
		VIOLATION("an argument that is not zeroed to its end");
	switch (nr) {
	case CF_NVFS_MAP:
		pthread_mutex_lock(&lock);
		err = map_locked(&a->map);
		pthread_mutex_unlock(&lock);
		break;
	case CF_NVFS_READ:
	case CF_NVFS_WRITE:
		err = request(&a->io, nr == CF_NVFS_WRITE);
		break;
	case CF_NVFS_BATCH:
		return batch(&a->batch) ? -EPERM : 0;
	default:
		return -ENOTTY;
	}
	if (!err)
		return 0;
	a->io.result = err;
	return -EPERM;
}

static void *fake_map_anon(size_t size)
{
	return fails(FAKE_MAP_ANON) ? NULL : cf_os_real.map_anon(size);
}

static int fake_madvise(void *mem, size_t size, int advice)
{
	const void **free;

	if (fails(FAKE_MADVISE))
		return -fault.err;
	pthread_mutex_lock(&lock);
	free = find_unforked(NULL);
	if (advice == MADV_DONTFORK && free)
		*free = mem;
	pthread_mutex_unlock(&lock);
	return cf_os_real.madvise(mem, size, advice);
}

static int fake_clock(clockid_t clock, struct timespec *ts)
{
	return fails(FAKE_CLOCK) ? -fault.err :
				   cf_os_real.clock_gettime(clock, ts);
}

/* ------------------------------------------------------------------ whole */

unsigned fake_nvfs_live(void)
{
	unsigned nr = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_SHADOWS; i++)
		nr += shadows[i].state != FREE;
	pthread_mutex_unlock(&lock);
	return nr;
}

void fake_nvfs_begin(void)
{
	static struct cf_os os;

	fake_nvfs = (struct fake_nvfs){
		.version = "version: 2.28\n",
		.modules = "nvme: 2.28\nwekafsio: 1.0\n",
		.fs = "ext4",
		.opts = "rw,errors=remount-ro,data=ordered",
		.transport = "pcie\n",
		.flags = 0x00080000,
	};
	for (int i = 0; i < FAKE_NR_COUNTS; i++)
		atomic_store(&counts[i], 0);
	atomic_store(&violations, 0);
	atomic_store(&requests, 0);
	atomic_store(&maps, 0);
	atomic_store(&open_nodes, 0);
	fake_nvfs_fail(FAKE_OPEN, 0, false, 0);
	os = cf_os_real;
	os.open = fake_open;
	os.statx = fake_statx;
	os.fstat = fake_fstat;
	os.ioctl = fake_ioctl;
	os.map_shared = fake_map_shared;
	os.map_anon = fake_map_anon;
	os.madvise = fake_madvise;
	os.unmap = fake_unmap;
	os.clock_gettime = fake_clock;
	cf_os = &os;
	assert_int_equal(setenv("OCF_NVFS", "true", 1), 0);
}

void fake_nvfs_end(void)
{
	unsigned live = fake_nvfs_live(), broken = fake_nvfs_violations();

	cf_os = &cf_os_real;
	for (int i = 0; i < MAX_SHADOWS; i++)
		shadows[i].state = FREE;
	if (live || broken)
		fail_msg("%u mappings left, %u rules broken", live, broken);
}
