// SPDX-License-Identifier: Apache-2.0
/*
 * Large direct requests: which of them a ring carries, and that the bytes
 * are right whoever carries them, with little room and many threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/gpu.h"
#include "core/ring.h"
#include "harness.h"
#include "seam/uring.h"

#define SIZE (9 * TH_MIB + 4096 + 513)
#define BLOCK 4096

/* ------------------------------------------------------ a ring that counts */

static atomic_uint queued;
static struct cf_uring counting;

static bool count_queue(struct cf_kring *ring, bool write, int fd, void *mem,
			size_t size, off_t off, uint64_t cookie)
{
	atomic_fetch_add(&queued, 1);
	return cf_uring_real.queue(ring, write, fd, mem, size, off, cookie);
}

static int setup(void **state)
{
	counting = cf_uring_real;
	counting.queue = count_queue;
	cf_uring = &counting;
	atomic_store(&queued, 0);
	return 0;
}

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	cf_uring = &cf_uring_real;
	unsetenv("OCF_IO_URING");
	return err;
}

static void need_rings(void)
{
	if (!cf_rings_usable())
		th_skip("this machine refuses io_uring");
}

/* ------------------------------------------------------------------ bytes */

struct bench {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned char *content, *got;
};

static void bench_init(struct bench *b, enum th_mem_kind mem_kind,
		       enum th_file_kind file_kind)
{
	th_mem_need(mem_kind);
	th_open_for(file_kind);
	b->content = th_bytes(SIZE);
	b->got = malloc(SIZE);
	assert_non_null(b->got);
	th_file_make(&b->file, file_kind, O_RDWR, b->content, SIZE);
	th_mem_alloc(&b->mem, mem_kind, SIZE + 2 * BLOCK);
	b->fh = th_handle(b->file.fd);
}

static void all_slots_are_back(void)
{
	const struct cf_gpu *gpu = cf_gpu_at(0);
	size_t bytes, leased = 0;

	if (gpu)
		cf_pool_usage(gpu->pool, &bytes, &leased);
	assert_int_equal(leased, 0);
}

static void bench_fini(struct bench *b)
{
	all_slots_are_back();
	cuFileHandleDeregister(b->fh);
	th_mem_free(&b->mem);
	th_file_end(&b->file);
	free(b->content);
	free(b->got);
	th_close();
}

static void read_back(struct bench *b, size_t size, size_t off, size_t at)
{
	size_t asked = size;
	ssize_t n;

	th_mem_set(&b->mem, 0xa5);
	n = cuFileRead(b->fh, b->mem.ptr, size, (off_t)off, (off_t)at);
	if (size > SIZE - off)
		size = SIZE - off;
	assert_int_equal(n, size);
	th_mem_get(&b->mem, at, b->got, size);
	th_equal("read", b->got, b->content + off, size);
	/* behind the end of a file the kernel may fill up a block */
	th_mem_get(&b->mem, at + asked, b->got, BLOCK);
	th_all("behind the read", b->got, 0xa5, BLOCK);
	if (at >= BLOCK) {
		th_mem_get(&b->mem, at - BLOCK, b->got, BLOCK);
		th_all("before the read", b->got, 0xa5, BLOCK);
	}
}

static void write_over(struct bench *b, size_t size, size_t off, size_t at)
{
	th_fill(b->content + off, size);
	th_mem_put(&b->mem, at, b->content + off, size);
	assert_int_equal(
		cuFileWrite(b->fh, b->mem.ptr, size, (off_t)off, (off_t)at),
		size);
	assert_int_equal(th_file_size(&b->file), SIZE);
	th_file_get(&b->file, 0, b->got, SIZE);
	th_equal("written", b->got, b->content, SIZE);
}

/* ------------------------------------------------------------------ tests */

#define LAST ((size_t)SIZE - 50) /* in the middle of a block */

static void carries(enum th_mem_kind kind)
{
	/* what a ring does not carry is a write of part of a page */
	size_t at = th_page();
	struct bench b = { 0 };

	bench_init(&b, kind, TH_ODIRECT);
	need_rings();
	read_back(&b, 4 * TH_MIB, at, at);
	assert_true(atomic_load(&queued) >= 4);
	atomic_store(&queued, 0);
	write_over(&b, 4 * TH_MIB, at, at);
	assert_true(atomic_load(&queued) >= 4);
	/* with odd ends, and over the end of the file */
	read_back(&b, 3 * TH_MIB + 5, 777, BLOCK + 777);
	write_over(&b, 3 * TH_MIB + 5, 777, BLOCK + 777);
	read_back(&b, SIZE - TH_MIB, 2 * TH_MIB, 0);
	/* and where that comes in the block with which it begins */
	read_back(&b, 4 * TH_MIB, LAST, BLOCK + LAST % BLOCK);
	bench_fini(&b);
}

static void a_ring_carries_large_direct_requests_of_host_memory(void **state)
{
	carries(TH_MALLOC);
}

static void a_ring_carries_large_direct_requests_of_gpu_memory(void **state)
{
	carries(TH_DEVICE);
}

/* Small, buffered, or cut otherwise than the file: not worth one. */
static void other_requests_need_no_ring(void **state)
{
	struct bench b = { 0 };

	bench_init(&b, TH_MALLOC, TH_ODIRECT);
	need_rings();
	read_back(&b, 64 * TH_KIB, 0, 0);
	read_back(&b, 4 * TH_MIB, 0, 13);
	write_over(&b, 4 * TH_MIB, 0, 13);
	bench_fini(&b);
	bench_init(&b, TH_MALLOC, TH_BUFFERED);
	read_back(&b, 4 * TH_MIB, 0, 0);
	bench_fini(&b);
	assert_int_equal(atomic_load(&queued), 0);
}

static void configuration_can_do_without_rings(void **state)
{
	struct bench b = { 0 };

	setenv("OCF_IO_URING", "0", 1);
	bench_init(&b, TH_MALLOC, TH_ODIRECT);
	assert_false(cf_rings_usable());
	read_back(&b, 8 * TH_MIB, 0, 0);
	write_over(&b, 8 * TH_MIB, 0, 0);
	assert_int_equal(atomic_load(&queued), 0);
	bench_fini(&b);
}

/* Of one part, which is read, copied and read again; or of one and a half. */
static void a_slot_may_have_any_size(void **state)
{
	static const size_t sizes_kib[] = { 64, 100 };

	for (size_t i = 0; i < sizeof(sizes_kib) / sizeof(sizes_kib[0]); i++) {
		struct bench b = { 0 };
		CUfileError_t e = cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
			sizes_kib[i]);

		assert_int_equal(e.err, CU_FILE_SUCCESS);
		e = cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
			sizes_kib[i]);
		assert_int_equal(e.err, CU_FILE_SUCCESS);
		bench_init(&b, TH_DEVICE, TH_ODIRECT);
		need_rings();
		atomic_store(&queued, 0);
		read_back(&b, 3 * TH_MIB + 100, 333, BLOCK);
		write_over(&b, 3 * TH_MIB + 100, 333, BLOCK);
		assert_true(atomic_load(&queued) > 0);
		bench_fini(&b);
	}
}

/* More requests than there are rings. */
static void a_ring_comes_back_from_each_request(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_MALLOC, TH_DEVICE };

	for (size_t i = 0; i < 2; i++) {
		struct bench b = { 0 };

		bench_init(&b, kinds[i], TH_ODIRECT);
		need_rings();
		for (int lap = 0; lap < 40; lap++) {
			atomic_store(&queued, 0);
			read_back(&b, 2 * TH_MIB, 0, 0);
			assert_true(atomic_load(&queued) > 0);
		}
		bench_fini(&b);
	}
}

static void a_hole_reads_as_nothing(void **state)
{
	struct bench b = { 0 };

	bench_init(&b, TH_DEVICE, TH_ODIRECT);
	need_rings();
	assert_int_equal(ftruncate(b.file.plain, 0), 0);
	assert_int_equal(ftruncate(b.file.plain, SIZE), 0);
	memset(b.content, 0, SIZE);
	read_back(&b, 8 * TH_MIB, 0, 0);
	bench_fini(&b);
}

/* The kernel of a tmpfs may take O_DIRECT, or refuse it at the open. */
static void a_file_in_memory_is_read_and_written(void **state)
{
	struct bench b = { 0 };
	char path[300];
	int fd;

	bench_init(&b, TH_DEVICE, TH_TMPFS);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", b.file.plain);
	fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (fd < 0) {
		bench_fini(&b);
		th_skip("this kernel opens nothing there with O_DIRECT");
	}
	cuFileHandleDeregister(b.fh);
	b.fh = th_handle(fd);
	read_back(&b, 8 * TH_MIB, BLOCK, 0);
	write_over(&b, 8 * TH_MIB, BLOCK, 0);
	bench_fini(&b);
	close(fd);
}

/* The parent's ring idles; the child makes its own. */
static void a_child_goes_on_by_itself(void **state)
{
	struct bench b = { 0 };
	int status;
	pid_t pid;

	bench_init(&b, TH_MALLOC, TH_ODIRECT);
	need_rings();
	read_back(&b, 8 * TH_MIB, 0, 0);
	pid = fork();
	if (!pid) {
		bool good;

		memset(b.mem.ptr, 0, 8 * TH_MIB);
		good = cuFileRead(b.fh, b.mem.ptr, 8 * TH_MIB, 0, 0) ==
			       8 * (ssize_t)TH_MIB &&
		       !memcmp(b.mem.ptr, b.content, 8 * TH_MIB);
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	read_back(&b, 8 * TH_MIB, 0, 0);
	bench_fini(&b);
}

struct crowd {
	CUfileHandle_t fh;
	const unsigned char *content;
	enum th_mem_kind kind;
	struct th_bad bad;
};

#define CROWD_SIZE (2 * TH_MIB)

static void one_of_a_crowd(void *arg, unsigned i)
{
	struct crowd *crowd = arg;
	unsigned char *got = malloc(CROWD_SIZE);
	struct th_mem mem;

	th_mem_alloc(&mem, crowd->kind, CROWD_SIZE);
	for (int lap = 0; lap < TH_SCALE(4) && got; lap++) {
		size_t off = (i + (unsigned)lap) % 7 * TH_MIB;
		ssize_t n = cuFileRead(crowd->fh, mem.ptr, CROWD_SIZE,
				       (off_t)off, 0);

		if (n != (ssize_t)CROWD_SIZE) {
			th_bad_note(&crowd->bad, "thread %u: %zd", i, n);
			break;
		}
		th_mem_get(&mem, 0, got, CROWD_SIZE);
		if (memcmp(got, crowd->content + off, CROWD_SIZE))
			th_bad_note(&crowd->bad, "thread %u: wrong bytes", i);
	}
	th_mem_free(&mem);
	free(got);
}

/* More threads than there are rings, and than there are slots. */
static void crowd_of(enum th_mem_kind kind)
{
	struct bench b = { 0 };
	struct crowd crowd = { .kind = kind };

	bench_init(&b, kind, TH_ODIRECT);
	crowd.fh = b.fh;
	crowd.content = b.content;
	th_threads(64, one_of_a_crowd, &crowd);
	th_bad_check(&crowd.bad);
	bench_fini(&b);
}

static void sixty_four_threads_read_host_memory(void **state)
{
	crowd_of(TH_MALLOC);
}

static void sixty_four_threads_read_gpu_memory(void **state)
{
	crowd_of(TH_DEVICE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_ring_carries_large_direct_requests_of_host_memory),
		TEST(a_ring_carries_large_direct_requests_of_gpu_memory),
		TEST(other_requests_need_no_ring),
		TEST(configuration_can_do_without_rings),
		TEST(a_slot_may_have_any_size),
		TEST(a_ring_comes_back_from_each_request),
		TEST(a_hole_reads_as_nothing),
		TEST(a_file_in_memory_is_read_and_written),
		TEST(a_child_goes_on_by_itself),
		TEST(sixty_four_threads_read_host_memory),
		TEST(sixty_four_threads_read_gpu_memory),
	};

	th_start(250);
	return th_finish(
		cmocka_run_group_tests_name("direct", tests, NULL, NULL));
}
