// SPDX-License-Identifier: Apache-2.0
/*
 * test_topology - the nodes of GPUs on machines of several kinds, and what
 * is put there. The machines are trees under tests/unit/sysfs: four fake GPUs
 * look for themselves in them, and the fourth is in none.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/gpu.h"
#include "core/topology.h"
#include "engine/settle.h"
#include "engine/worker.h"
#include "harness.h"
#include "seam/os.h"

#define CHUNK (16 * TH_MIB)

/* ------------------------------------------------------------ machines */

static const char *tree;

static int open_in_tree(const char *path, int flags, mode_t mode)
{
	char there[512];

	if (strncmp(path, "/sys/", 5))
		return cf_os_real.open(path, flags, mode);
	snprintf(there, sizeof(there), "%s/%s/%s", getenv("OCF_SYSFS"), tree,
		 path + 5);
	return cf_os_real.open(there, flags, mode);
}

/* What was asked of the kernel; it is never really asked for a node. */
static struct {
	atomic_int placed, put_on, late, binds;
	_Atomic size_t bytes;
	atomic_ulong bound_to; /* the first 64 processors */
	int pins;	       /* before */
	int policy, err;
} seen;

static int count_pins(void)
{
	return (int)th_fake()->calls("cuMemHostRegister_v2");
}

static bool is_touched(void *mem, size_t size)
{
	unsigned char pages[CHUNK / 4096];

	assert_true(size <= CHUNK);
	assert_int_equal(mincore(mem, size, pages), 0);
	return memchr(pages, 1, size / 4096);
}

static int see_place(void *mem, size_t size, unsigned node)
{
	int nr = atomic_fetch_add(&seen.placed, 1);

	if (is_touched(mem, size) || count_pins() != seen.pins + nr)
		atomic_fetch_add(&seen.late, 1);
	atomic_fetch_add(&seen.bytes, size);
	atomic_store(&seen.put_on, (int)node);
	return seen.err;
}

static int tell_policy(void)
{
	return seen.policy;
}

static int see_bind(const unsigned long *mask, size_t size)
{
	int err = cf_os_real.set_affinity(mask, size);

	atomic_store(&seen.bound_to, mask[0]);
	atomic_fetch_add(&seen.binds, 1);
	return err;
}

static struct cf_os machine_os;

static void machine(const char *name)
{
	tree = name;
	memset(&seen, 0, sizeof(seen));
	seen.pins = th_fake() ? count_pins() : 0;
	machine_os = cf_os_real;
	machine_os.open = open_in_tree;
	machine_os.prefer_node = see_place;
	machine_os.memory_policy = tell_policy;
	machine_os.set_affinity = see_bind;
	cf_os = &machine_os;
}

static int leave_machine(void **state)
{
	(void)state;
	th_close();
	cf_workers_close();
	cf_os = &cf_os_real;
	cf_topology_configure(false);
	return 0;
}

/* --------------------------------------------------------------- facts */

static int node_of(int ordinal)
{
	return cf_gpu_node(cf_cuda_loaded(), ordinal);
}

static void a_gpu_has_the_node_that_sysfs_says(void **state)
{
	(void)th_need_fake();
	machine("two-sockets");
	assert_int_equal(node_of(0), 0);
	assert_int_equal(node_of(1), 1);
	assert_int_equal(node_of(2), -1); /* the firmware does not say */
	assert_int_equal(node_of(3), -1); /* it is not there */
	machine("memory-apart");
	assert_int_equal(node_of(0), 0);
	assert_int_equal(node_of(1), 2);
}

static void one_node_is_no_node(void **state)
{
	(void)th_need_fake();
	machine("one-socket");
	assert_int_equal(node_of(0), -1);
	machine("no-such-tree");
	assert_int_equal(node_of(0), -1);
}

static void a_node_has_its_processors_or_none(void **state)
{
	struct cf_cpus cpus;

	machine("two-sockets");
	assert_int_equal(cf_node_cpus(1, &cpus), 0);
	assert_int_equal(cf_cpus_count(&cpus), 112);
	assert_int_equal(cpus.bits[0], 0xff00000000000000);
	assert_int_equal(cf_node_cpus(2, &cpus), -ENOENT);
	machine("memory-apart");
	assert_int_equal(cf_node_cpus(2, &cpus), 0);
	assert_int_equal(cf_cpus_count(&cpus), 0);
}

/* ------------------------------------------------------------- requests */

/* The context stays until the memory is freed. */
static CUdeviceptr alloc_on(int ordinal, size_t size)
{
	CUcontext ctx, popped;
	CUdeviceptr mem;

	assert_int_equal(cuDevicePrimaryCtxRetain(&ctx, ordinal), 0);
	assert_int_equal(cuCtxPushCurrent(ctx), 0);
	assert_int_equal(cuMemAlloc(&mem, size), 0);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	return mem;
}

static void free_on(int ordinal, CUdeviceptr mem)
{
	assert_int_equal(cuMemFree(mem), 0);
	assert_int_equal(cuDevicePrimaryCtxRelease(ordinal), 0);
}

struct reader {
	struct th_file file;
	CUfileHandle_t fh;
	CUdeviceptr mem[2];
	unsigned char *bytes;
	size_t size;
};

static void begin(struct reader *r, size_t size)
{
	r->size = size;
	r->bytes = th_bytes(size);
	th_file_make(&r->file, TH_TMPFS, O_RDWR, r->bytes, size);
	for (int i = 0; i < 2; i++)
		r->mem[i] = alloc_on(i, size);
	th_open();
	r->fh = th_handle(r->file.fd);
}

static void read_into(struct reader *r, int ordinal)
{
	void *ptr = (void *)(uintptr_t)r->mem[ordinal];
	unsigned char *got = malloc(r->size);

	assert_int_equal(cuFileRead(r->fh, ptr, r->size, 0, 0), r->size);
	assert_int_equal(th_fake()->read(r->mem[ordinal], got, r->size), 0);
	th_equal("what was read", got, r->bytes, r->size);
	free(got);
}

static void end(struct reader *r)
{
	cuFileHandleDeregister(r->fh);
	th_close();
	for (int i = 0; i < 2; i++)
		free_on(i, r->mem[i]);
	th_file_end(&r->file);
	free(r->bytes);
}

static size_t pinned_on(unsigned n)
{
	const struct cf_gpu *gpu = cf_gpu_at(n);
	size_t large, small, leased;

	assert_non_null(gpu);
	cf_pool_usage(gpu->pool, &large, &leased);
	cf_pool_usage(gpu->small, &small, &leased);
	return large + small;
}

static void slots_are_put_on_the_node_before_they_are_pinned(void **state)
{
	struct reader r;

	(void)th_need_fake();
	machine("two-sockets");
	begin(&r, TH_MIB);
	read_into(&r, 1);
	assert_int_equal(atomic_load(&seen.put_on), 1);
	assert_int_equal(atomic_load(&seen.bytes), pinned_on(0));
	atomic_store(&seen.bytes, 0);
	read_into(&r, 0);
	assert_int_equal(atomic_load(&seen.put_on), 0);
	assert_int_equal(atomic_load(&seen.bytes), pinned_on(1));
	assert_int_equal(atomic_load(&seen.late), 0);
	end(&r);
}

static void a_kernel_that_refuses_to_place_stops_nobody(void **state)
{
	struct reader r;

	(void)th_need_fake();
	machine("two-sockets");
	seen.err = -EPERM;
	begin(&r, TH_MIB);
	read_into(&r, 0);
	assert_true(atomic_load(&seen.placed) > 0);
	end(&r);
	machine("two-sockets");
	seen.policy = -ENOSYS;
	begin(&r, TH_MIB);
	read_into(&r, 0);
	assert_int_equal(atomic_load(&seen.placed), 0);
	end(&r);
}

static void a_process_under_numactl_keeps_its_policy(void **state)
{
	struct reader r;

	(void)th_need_fake();
	machine("two-sockets");
	seen.policy = 3; /* MPOL_INTERLEAVE */
	begin(&r, TH_MIB);
	read_into(&r, 0);
	assert_int_equal(atomic_load(&seen.placed), 0);
	end(&r);
}

static void nothing_is_placed_where_it_does_not_matter(void **state)
{
	struct reader r;

	(void)th_need_fake();
	machine("one-socket");
	begin(&r, TH_MIB);
	read_into(&r, 0);
	assert_int_equal(atomic_load(&seen.placed), 0);
	end(&r);
	machine("two-sockets");
	assert_int_equal(cuFileSetParameterBool(
				 CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION, true)
				 .err,
			 0);
	begin(&r, TH_MIB);
	read_into(&r, 0);
	assert_int_equal(atomic_load(&seen.placed), 0);
	end(&r);
}

/* -------------------------------------------------------------- workers */

/* Leaves the test unless processors 0 and 1 are ours. */
static void need_two_processors(void)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	if (!CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
		th_skip("needs processors 0 and 1");
}

/* A job of one helper that is called to a node. */
struct call {
	struct cf_job job;
	int node;
	atomic_bool came;
};

static void wait_until_it_came(struct cf_job *job)
{
	while (!atomic_load(&((struct call *)job)->came))
		sched_yield();
}

static void be_called(struct cf_job *job)
{
	struct call *call = (struct call *)job;

	cf_settle(call->node);
	atomic_store(&call->came, true);
}

static void call_to(int node, int times)
{
	while (times--) {
		struct call call = { .job = { .lead = wait_until_it_came,
					      .help = be_called },
				     .node = node };

		cf_workers_run(&call.job, 1);
	}
}

static void a_worker_moves_to_the_node_that_calls_it(void **state)
{
	need_two_processors();
	machine("two-processors");
	cf_workers_configure(1);
	call_to(-1, 20);
	assert_int_equal(atomic_load(&seen.binds), 1); /* its first */
	call_to(1, 20);
	assert_int_equal(atomic_load(&seen.bound_to), 2);
	assert_int_equal(atomic_load(&seen.binds), 2);
	call_to(-1, 20);
	call_to(0, 20);
	assert_int_equal(atomic_load(&seen.bound_to), 1);
	assert_int_equal(atomic_load(&seen.binds), 3);
}

static void nodes_that_take_turns_leave_a_worker_alone(void **state)
{
	machine("two-processors");
	cf_workers_configure(1);
	for (int i = 0; i < 40; i++)
		call_to(i & 1, 1);
	assert_int_equal(atomic_load(&seen.binds), 1);
}

static void nobody_moves_where_the_process_may_not_be(void **state)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 56; cpu < 112; cpu++)
		if (CPU_ISSET(cpu, &set))
			th_skip("this machine has such processors");
	machine("two-sockets");
	cf_workers_configure(1);
	call_to(1, 20);
	/* and a node without processors, and one that is not there */
	machine("memory-apart");
	call_to(2, 20);
	call_to(7, 20);
	assert_int_equal(atomic_load(&seen.binds), 0);
}

static void a_clients_thread_stays_where_it_is(void **state)
{
	machine("two-processors");
	for (int i = 0; i < 40; i++)
		cf_settle(1);
	assert_int_equal(atomic_load(&seen.binds), 0);
}

static pthread_t client;
static atomic_uint nr_helped, helped_before;

/* The client's own read of a file comes when a helper has come to one. */
static ssize_t read_with_help(int fd, void *buf, size_t size, off_t off)
{
	if (!pthread_equal(pthread_self(), client))
		atomic_fetch_add(&nr_helped, 1);
	for (int i = 0; i < 10000 && nr_helped == helped_before; i++)
		usleep(1000);
	return cf_os_real.pread(fd, buf, size, off);
}

/* Else its slow reads would count as of a disk's, where no kernel tells. */
static int all_is_cached(int fd, off_t off, size_t len,
			 struct cf_cachestat *out)
{
	*out = (struct cf_cachestat){ .cached = len };
	return 0;
}

static void read_into_with_help(struct reader *r, int gpu)
{
	helped_before = nr_helped;
	read_into(r, gpu);
	assert_true(nr_helped > helped_before);
}

/* How a GPU calls: reads until the helper has moved. */
static void reads_of_a_gpu_bring_the_helpers_to_it(void **state)
{
	struct reader r;

	(void)th_need_fake();
	need_two_processors();
	machine("two-processors");
	client = pthread_self();
	machine_os.pread = read_with_help;
	machine_os.cachestat = all_is_cached;
	begin(&r, 4 * TH_MIB);
	for (int gpu = 0; gpu < 2; gpu++) {
		unsigned long want = 1ul << gpu;

		for (int i = 0; i < 100 && atomic_load(&seen.bound_to) != want;
		     i++)
			read_into_with_help(&r, gpu);
		assert_int_equal(atomic_load(&seen.bound_to), want);
	}
	end(&r);
}

#define TEST(test) cmocka_unit_test_teardown(test, leave_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_gpu_has_the_node_that_sysfs_says),
		TEST(one_node_is_no_node),
		TEST(a_node_has_its_processors_or_none),
		TEST(slots_are_put_on_the_node_before_they_are_pinned),
		TEST(a_kernel_that_refuses_to_place_stops_nobody),
		TEST(a_process_under_numactl_keeps_its_policy),
		TEST(nothing_is_placed_where_it_does_not_matter),
		TEST(a_worker_moves_to_the_node_that_calls_it),
		TEST(nodes_that_take_turns_leave_a_worker_alone),
		TEST(nobody_moves_where_the_process_may_not_be),
		TEST(a_clients_thread_stays_where_it_is),
		TEST(reads_of_a_gpu_bring_the_helpers_to_it),
	};

	setenv("OCF_MAPPED", "off", 1); /* slots and helpers are meant */
	th_start(100);
	return th_finish(
		cmocka_run_group_tests_name("topology", tests, NULL, NULL));
}
