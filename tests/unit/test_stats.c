// SPDX-License-Identifier: Apache-2.0
/*
 * test_stats - numbers are true, gated by level, and stand still when told.
 *
 * Time comes from a clock the tests set, GPUs from a driver table of theirs.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <cufile.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/config.h"
#include "core/device.h"
#include "core/log.h"
#include "core/stats.h"
#include "seam/os.h"

#define NR_THREADS 80 /* more than have a shard of their own */
#define NR_ROUNDS 6400

static struct cf_os os;
static _Atomic uint64_t now_ns;
static _Atomic unsigned clock_reads;
static char log_text[8192];

static int test_clock(clockid_t clock, struct timespec *ts)
{
	uint64_t now = now_ns;

	(void)clock;
	clock_reads++;
	ts->tv_sec = (time_t)(now / 1000000000);
	ts->tv_nsec = (long)(now % 1000000000);
	return 0;
}

/* No counter is trusted where this cannot be read. */
static int test_open(const char *path, int flags, mode_t mode)
{
	return strstr(path, "clocksource") ? -ENOENT :
					     cf_os_real.open(path, flags, mode);
}

static ssize_t test_write(int fd, const void *buf, size_t size)
{
	size_t len = strlen(log_text);

	(void)fd;
	if (len + size < sizeof(log_text))
		memcpy(log_text + len, buf, size);
	return (ssize_t)size;
}

static const char *test_getenv(const char *name)
{
	if (!strcmp(name, "CUFILE_LOGGING_LEVEL"))
		return "INFO";
	return strcmp(name, "CUFILE_LOGFILE_PATH") ? NULL : "/dev/stderr";
}

static CUresult gpu_get(CUdevice *dev, int ordinal)
{
	*dev = ordinal;
	return CF_CU_SUCCESS;
}

static CUresult gpu_uuid(CUuuid *uuid, CUdevice dev)
{
	memset(uuid->bytes, 0xa0 + dev, sizeof(uuid->bytes));
	return CF_CU_SUCCESS;
}

static CUresult gpu_retain(CUcontext *ctx, CUdevice dev)
{
	static char contexts[16];

	*ctx = (CUcontext)&contexts[dev];
	return CF_CU_SUCCESS;
}

static CUresult gpu_release(CUdevice dev)
{
	(void)dev;
	return CF_CU_SUCCESS;
}

static CUresult gpu_push(CUcontext ctx)
{
	(void)ctx;
	return CF_CU_SUCCESS;
}

static CUresult gpu_pop(CUcontext *ctx)
{
	*ctx = NULL;
	return CF_CU_SUCCESS;
}

static CUresult get_api_version(CUcontext ctx, unsigned *version)
{
	*version = 3020;
	return CF_CU_SUCCESS;
}

static const struct cf_cuda cuda = {
	.ctx_get_api_version = get_api_version,
	.device_get = gpu_get,
	.device_get_uuid = gpu_uuid,
	.primary_ctx_retain = gpu_retain,
	.primary_ctx_release = gpu_release,
	.ctx_push = gpu_push,
	.ctx_pop = gpu_pop,
};

static int set_up(void **state)
{
	(void)state;
	os = cf_os_real;
	os.clock_gettime = test_clock;
	os.open = test_open;
	cf_os = &os;
	now_ns = 1000000000;
	cf_stats_open(0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cf_stats_close();
	cf_os = &cf_os_real;
	return 0;
}

static void begin(int level)
{
	assert_int_equal(cf_stats_set_level(level), 0);
	cf_stats_start();
}

static CUfileStatsLevel3_t numbers(void)
{
	CUfileStatsLevel3_t stats;
	int level = cf_stats_level();

	cf_stats_set_level(3);
	assert_int_equal(cf_stats_get(3, &stats), 0);
	cf_stats_set_level(level);
	return stats;
}

/* A request that took us microseconds and ends now. */
static struct cf_stats_io io_of(enum cf_op op, ssize_t result, size_t size,
				uint64_t us)
{
	return (struct cf_stats_io){ .op = op,
				     .result = result,
				     .size = size,
				     .start = cf_stats_begin() - us * 1000,
				     .ordinal = -1 };
}

static void did(enum cf_op op, ssize_t result, size_t size)
{
	cf_stats_plain_io(op, size, result, cf_stats_begin() - 10000);
}

static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < NR_ROUNDS; i++) {
		did(CF_READ, 4096, 4096);
		did(CF_WRITE, i % 4 ? 100 : -EIO, 100);
		cf_stats_call(CF_STATS_HDL_REGISTER, i % 2);
		if (i % 32 == 0) /* so that threads of a shard meet */
			sched_yield();
	}
	return NULL;
}

static pthread_barrier_t all_there;

static void *work_together(void *arg)
{
	pthread_barrier_wait(&all_there);
	return work(arg);
}

static void run_threads(void *(*fn)(void *))
{
	pthread_t threads[NR_THREADS];

	pthread_barrier_init(&all_there, NULL, NR_THREADS);
	for (int i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fn, NULL),
				 0);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all_there);
}

static CUfileStatsLevel3_t sums_over_many_threads(void)
{
	const uint64_t all = NR_THREADS * NR_ROUNDS;
	CUfileStatsLevel3_t n;

	begin(3);
	run_threads(work_together);
	n = numbers();
	assert_int_equal(n.detailed.basic.read_ops.ok, all);
	assert_int_equal(n.detailed.basic.read_ops.err, 0);
	assert_int_equal(n.detailed.basic.read_bytes, all * 4096);
	assert_int_equal(n.detailed.basic.write_ops.ok, all / 4 * 3);
	assert_int_equal(n.detailed.basic.write_ops.err, all / 4);
	assert_int_equal(n.detailed.basic.write_bytes, all / 4 * 3 * 100);
	assert_int_equal(n.detailed.basic.hdl_register_ops.ok, all / 2);
	assert_int_equal(n.detailed.basic.hdl_register_ops.err, all / 2);
	assert_int_equal(n.detailed.read_size_kb_hist[1], all);
	assert_int_equal(n.detailed.write_size_kb_hist[0], all);
	return n;
}

static void sums_over_many_threads_are_exact(void **state)
{
	CUfileStatsLevel3_t n = sums_over_many_threads();

	(void)state;
	assert_int_equal(n.detailed.basic.read_lat_sum_us,
			 NR_THREADS * NR_ROUNDS * 10);
}

/* As they are once its rate is known: here, a tick a nanosecond. */
static void sums_by_the_counter_are_exact(void **state)
{
	CUfileStatsLevel3_t n;

	(void)state;
	if (!cf_ticks())
		skip();
	cf_stats_counter.rate = 1ull << CF_STATS_RATE_SHIFT;
	atomic_store(&cf_stats_counter.known, true);
	n = sums_over_many_threads();
	atomic_store(&cf_stats_counter.known, false);
	assert_in_range(n.detailed.basic.read_lat_sum_us,
			NR_THREADS * NR_ROUNDS * 10,
			NR_THREADS * NR_ROUNDS * 1000000ull);
}

static atomic_bool over;

static void *work_until_over(void *arg)
{
	while (!atomic_load(&over))
		work(arg);
	return NULL;
}

static void reading_and_resetting_beside_counting_threads_is_safe(void **state)
{
	CUfileStatsLevel3_t n;
	pthread_t thread;

	(void)state;
	begin(3);
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, work_until_over, NULL),
			 0);
	do
		n = numbers();
	while (!n.detailed.basic.read_ops.ok);
	for (int i = 0; i < 50; i++) {
		cf_stats_stop();
		cf_stats_start();
		cf_stats_reset();
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	cf_stats_reset();
	n = numbers();
	assert_int_equal(n.detailed.basic.read_ops.ok, 0);
	assert_int_equal(n.detailed.basic.read_bytes, 0);
}

static void nothing_is_counted_before_start(void **state)
{
	(void)state;
	assert_int_equal(cf_stats_set_level(3), 0);
	assert_false(cf_stats_on());
	did(CF_READ, 5, 5);
	cf_stats_call(CF_STATS_BUF_REGISTER, true);
	cf_stats_start();
	assert_true(cf_stats_on());
	assert_int_equal(numbers().detailed.basic.read_ops.ok, 0);
	assert_int_equal(numbers().detailed.basic.buf_register_ops.ok, 0);
}

static void nothing_is_counted_at_level_0_and_no_clock_is_read(void **state)
{
	unsigned reads;

	(void)state;
	cf_stats_start();
	reads = clock_reads;
	assert_false(cf_stats_on());
	did(CF_READ, 5, 5);
	cf_stats_call(CF_STATS_BUF_REGISTER, true);
	assert_int_equal(clock_reads, reads);
	assert_int_equal(numbers().detailed.basic.read_ops.ok, 0);
	assert_int_equal(numbers().detailed.basic.buf_register_ops.ok, 0);
}

static void a_level_set_after_start_counts_from_then_on(void **state)
{
	(void)state;
	cf_stats_start();
	did(CF_READ, 5, 5);
	assert_int_equal(cf_stats_set_level(1), 0);
	did(CF_READ, 6, 6);
	assert_int_equal(numbers().detailed.basic.read_bytes, 6);
}

static void sizes_are_counted_from_level_2_on(void **state)
{
	(void)state;
	begin(1);
	did(CF_READ, 4096, 4096);
	assert_int_equal(numbers().detailed.read_size_kb_hist[1], 0);
	cf_stats_set_level(2);
	did(CF_READ, 4096, 4096);
	assert_int_equal(numbers().detailed.read_size_kb_hist[1], 1);
	assert_int_equal(numbers().detailed.basic.read_ops.ok, 2);
}

static void a_level_is_0_to_3(void **state)
{
	(void)state;
	assert_int_equal(cf_stats_set_level(2), 0);
	assert_int_equal(cf_stats_set_level(-1), -CU_FILE_INVALID_VALUE);
	assert_int_equal(cf_stats_set_level(4), -CU_FILE_INVALID_VALUE);
	assert_int_equal(cf_stats_level(), 2);
	for (int level = 0; level <= 3; level++) {
		assert_int_equal(cf_stats_set_level(level), 0);
		assert_int_equal(cf_stats_level(), level);
	}
}

static void numbers_above_the_level_are_refused(void **state)
{
	CUfileStatsLevel3_t stats;

	(void)state;
	for (int level = 0; level <= 3; level++) {
		cf_stats_set_level(level);
		for (int want = 1; want <= 3; want++)
			assert_int_equal(
				cf_stats_get(want, &stats),
				want <= level ? 0 : -CU_FILE_INVALID_VALUE);
	}
}

static void stop_keeps_the_numbers_as_they_stood(void **state)
{
	CUfileStatsLevel3_t at_stop, later;

	(void)state;
	begin(3);
	did(CF_READ, 1000, 1000);
	now_ns += 1000000000;
	cf_stats_stop();
	at_stop = numbers();
	did(CF_READ, 1000, 1000);
	cf_stats_call(CF_STATS_HDL_REGISTER, true);
	now_ns += 1000000000;
	later = numbers();
	assert_int_equal(at_stop.detailed.basic.read_bytes, 1000);
	assert_int_equal(at_stop.detailed.basic.read_bw_bytes_per_sec, 1000);
	assert_memory_equal(&at_stop, &later, sizeof(later));
}

static void start_goes_on_from_where_stop_left(void **state)
{
	CUfileStatsLevel3_t n;

	(void)state;
	begin(1);
	did(CF_READ, 1000, 1000);
	now_ns += 1000000000;
	cf_stats_stop();
	now_ns += 5000000000;
	cf_stats_start();
	did(CF_READ, 1000, 1000);
	now_ns += 1000000000;
	n = numbers();
	assert_int_equal(n.detailed.basic.read_bytes, 2000);
	/* the time in between does not count either */
	assert_int_equal(n.detailed.basic.read_bw_bytes_per_sec, 1000);
}

static void reset_zeroes_the_numbers(void **state)
{
	CUfileStatsLevel3_t n, zero;

	(void)state;
	memset(&zero, 0, sizeof(zero));
	begin(3);
	did(CF_READ, 1000, 1000);
	did(CF_WRITE, -EIO, 1000);
	cf_stats_call(CF_STATS_HDL_REGISTER, true);
	cf_stats_reset();
	n = numbers();
	assert_memory_equal(&n, &zero, sizeof(n));
	did(CF_READ, 7, 7);
	assert_int_equal(numbers().detailed.basic.read_bytes, 7);
	cf_stats_stop();
	cf_stats_reset();
	n = numbers();
	assert_memory_equal(&n, &zero, sizeof(n));
}

static void averages_are_over_the_time_counted(void **state)
{
	struct cf_stats_io io;
	CUfileStatsLevel1_t n;

	(void)state;
	begin(1);
	now_ns += 2000000000;
	io = io_of(CF_READ, 3000, 4096, 100);
	cf_stats_io(&io);
	io = io_of(CF_READ, 5000, 8192, 300);
	cf_stats_io(&io);
	/* a refusal is quick, and would make the average look better */
	io = io_of(CF_READ, -EINVAL, 8192, 1);
	cf_stats_io(&io);
	n = numbers().detailed.basic;
	assert_int_equal(n.read_lat_sum_us, 400);
	assert_int_equal(n.read_lat_avg_us, 200);
	assert_int_equal(n.read_bw_bytes_per_sec, 4000);
	assert_int_equal(n.read_ops_per_sec, 1);
	assert_int_equal(n.write_lat_avg_us, 0);
}

static void a_submit_takes_the_time_it_took(void **state)
{
	CUfileStatsLevel1_t n;
	uint64_t start;

	begin(1);
	start = cf_stats_mark();
	now_ns += 30000;
	cf_stats_submitted(true, start);
	start = cf_stats_mark();
	now_ns += 10000;
	cf_stats_submitted(true, start);
	/* a refusal is quick */
	cf_stats_submitted(false, start);
	now_ns += 5000000;
	n = numbers().detailed.basic;
	assert_int_equal(n.batch_submit_ops.ok, 2);
	assert_int_equal(n.batch_submit_ops.err, 1);
	assert_int_equal(n.batch_submit_lat_sum_us, 40);
	assert_int_equal(n.batch_submit_lat_avg_us, 20);
	/* one that began before the counting */
	cf_stats_submitted(true, 0);
	n = numbers().detailed.basic;
	assert_int_equal(n.batch_submit_ops.ok, 3);
	assert_int_equal(n.batch_submit_lat_sum_us, 40);
}

static void a_size_belongs_to_the_bin_that_begins_at_or_below_it(void **state)
{
	static const struct {
		size_t size;
		int bin;
	} rows[] = {
		{ 0, 0 },	    { 1, 0 },		{ 4095, 0 },
		{ 4096, 1 },	    { 4097, 1 },	{ 8191, 1 },
		{ 8192, 2 },	    { 1 << 20, 9 },	{ (1 << 21) - 1, 9 },
		{ 64u << 20, 15 },  { 1ull << 41, 30 }, { 1ull << 42, 31 },
		{ 1ull << 43, 31 }, { SIZE_MAX, 31 },
	};

	(void)state;
	begin(2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CUfileStatsLevel2_t n;

		cf_stats_reset();
		did(CF_READ, 0, rows[i].size);
		did(CF_WRITE, -EIO, rows[i].size);
		n = numbers().detailed;
		assert_int_equal(n.read_size_kb_hist[rows[i].bin], 1);
		assert_int_equal(n.write_size_kb_hist[rows[i].bin], 1);
	}
}

static void use_gpu(int ordinal)
{
	struct cf_memory mem = { .kind = CF_MEMORY_DEVICE, .ordinal = ordinal };
	struct cf_device *dev;

	assert_int_equal(cf_device_find(&mem, &dev), 0);
}

static int set_up_gpus(void **state)
{
	cf_cuda_replace(&cuda);
	return set_up(state);
}

static int tear_down_gpus(void **state)
{
	tear_down(state);
	cf_devices_close();
	cf_cuda_replace(NULL);
	return 0;
}

static void gpus_are_listed_in_the_order_of_their_use(void **state)
{
	CUfileStatsLevel3_t n;

	(void)state;
	begin(3);
	assert_int_equal(numbers().num_gpus, 0);
	use_gpu(3);
	use_gpu(1);
	n = numbers();
	assert_int_equal(n.num_gpus, 2);
	for (int i = 0; i < CUFILE_GPU_UUID_LEN; i++) {
		assert_int_equal((unsigned char)n.per_gpu_stats[0].uuid[i],
				 0xa3);
		assert_int_equal((unsigned char)n.per_gpu_stats[1].uuid[i],
				 0xa1);
	}
}

static void each_gpu_has_its_own_numbers(void **state)
{
	struct cf_stats_io io;
	CUfileStatsLevel3_t n;

	(void)state;
	begin(3);
	use_gpu(2);
	use_gpu(0);
	now_ns += 1000000;
	io = io_of(CF_READ, 4096, 4096, 1000);
	io.ordinal = 2;
	cf_stats_io(&io);
	io.unaligned = true;
	cf_stats_io(&io);
	io = io_of(CF_WRITE, -EIO, 4096, 1000);
	io.ordinal = 0;
	cf_stats_io(&io);
	did(CF_READ, 100, 100);
	n = numbers();
	assert_int_equal(n.detailed.basic.read_bytes, 2 * 4096 + 100);
	assert_int_equal(n.per_gpu_stats[0].read_bytes, 2 * 4096);
	assert_int_equal(n.per_gpu_stats[0].n_total_reads, 2);
	assert_int_equal(n.per_gpu_stats[0].n_posix_reads, 2);
	assert_int_equal(n.per_gpu_stats[0].n_unaligned_reads, 1);
	assert_int_equal(n.per_gpu_stats[0].read_duration_us, 2000);
	/* two of them, both busy all the time */
	assert_int_equal(n.per_gpu_stats[0].read_utilization, 200);
	assert_int_equal(n.per_gpu_stats[0].n_total_writes, 0);
	assert_int_equal(n.per_gpu_stats[1].n_total_writes, 1);
	assert_int_equal(n.per_gpu_stats[1].n_writes_err, 1);
	assert_int_equal(n.per_gpu_stats[1].n_posix_writes, 0);
	assert_int_equal(n.per_gpu_stats[1].writes_bytes, 0);
	assert_int_equal(n.per_gpu_stats[1].n_total_reads, 0);
}

static void buffer_calls_show_at_their_gpu(void **state)
{
	struct cf_memory mem = { .kind = CF_MEMORY_DEVICE, .ordinal = 1 };
	struct cf_memory host = { .kind = CF_MEMORY_HOST, .ordinal = 1 };
	CUfilePerGpuStats_t n;

	(void)state;
	begin(3);
	use_gpu(1);
	cf_stats_buffer(CF_STATS_BUF_REGISTER, &mem, true);
	cf_stats_buffer(CF_STATS_BUF_REGISTER, &mem, true);
	cf_stats_buffer(CF_STATS_BUF_REGISTER, &mem, false);
	cf_stats_buffer(CF_STATS_BUF_DEREGISTER, &mem, true);
	cf_stats_buffer(CF_STATS_BUF_DEREGISTER, &mem, false);
	cf_stats_buffer(CF_STATS_BUF_REGISTER, &host, true);
	n = numbers().per_gpu_stats[0];
	assert_int_equal(n.n_mmap, 3);
	assert_int_equal(n.n_mmap_ok, 2);
	assert_int_equal(n.n_mmap_err, 1);
	assert_int_equal(n.n_mmap_free, 1);
}

static void a_gpu_past_the_sixteenth_is_in_the_totals_only(void **state)
{
	struct cf_stats_io io;

	(void)state;
	begin(3);
	io = io_of(CF_READ, 4096, 4096, 10);
	io.ordinal = 16;
	cf_stats_io(&io);
	assert_int_equal(numbers().detailed.basic.read_bytes, 4096);
}

static void a_level_from_configuration_counts_at_once(void **state)
{
	(void)state;
	cf_stats_close();
	cf_stats_open(2);
	assert_int_equal(cf_stats_level(), 2);
	assert_true(cf_stats_on());
	cf_stats_close();
	cf_stats_open(0);
	assert_int_equal(cf_stats_level(), 0);
	assert_false(cf_stats_on());
}

static void a_level_set_before_open_wins_once_over_configuration(void **state)
{
	(void)state;
	cf_stats_close();
	assert_int_equal(cf_stats_set_level(1), 0);
	cf_stats_open(3);
	assert_int_equal(cf_stats_level(), 1);
	cf_stats_close();
	cf_stats_open(3);
	assert_int_equal(cf_stats_level(), 3);
}

static void an_open_begins_at_zero(void **state)
{
	(void)state;
	begin(1);
	did(CF_READ, 9, 9);
	cf_stats_close();
	cf_stats_open(1);
	assert_int_equal(numbers().detailed.basic.read_bytes, 0);
}

static void log_to_test(void)
{
	struct cf_config *c = cf_config_new();

	assert_non_null(c);
	os.write = test_write;
	os.getenv = test_getenv;
	memset(log_text, 0, sizeof(log_text));
	assert_int_equal(cf_config_load(c, NULL), 0);
	cf_log_configure(c);
	cf_config_free(c);
}

static void close_reports_the_numbers_to_an_info_log(void **state)
{
	struct cf_stats_io io;

	(void)state;
	log_to_test();
	begin(2);
	did(CF_READ, 4096, 4096);
	io = io_of(CF_READ, 5, 5, 10);
	io.vectored = true;
	cf_stats_io(&io);
	cf_stats_call(CF_STATS_HDL_REGISTER, true);
	cf_stats_close();
	cf_log_reset();
	assert_non_null(strstr(log_text, "handles registered 1 err 0"));
	assert_non_null(
		strstr(log_text, "read ok 2 err 0 vectored 1 bytes 4101"));
	assert_non_null(strstr(log_text, "read sizes from 0K: 1 4K: 1\n"));
	assert_non_null(strstr(log_text, "write sizes from none\n"));
}

static void close_at_level_0_reports_nothing(void **state)
{
	(void)state;
	log_to_test();
	cf_stats_start();
	did(CF_READ, 4096, 4096);
	cf_stats_close();
	cf_log_reset();
	assert_string_equal(log_text, "");
}

static void doors_refuse_while_closed_and_take_levels(void **state)
{
	CUfileStatsLevel3_t stats;
	int level = -1;

	(void)state;
	assert_int_equal(cuFileSetStatsLevel(3).err, 0);
	assert_int_equal(cuFileGetStatsLevel(&level).err, 0);
	assert_int_equal(level, 3);
	assert_int_equal(cuFileSetStatsLevel(4).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileGetStatsLevel(NULL).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileStatsStart().err,
			 CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_int_equal(cuFileStatsStop().err, CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_int_equal(cuFileStatsReset().err,
			 CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_int_equal(cuFileGetStatsL1(NULL).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileGetStatsL3(&stats).err,
			 CU_FILE_DRIVER_NOT_INITIALIZED);
}

/* What each door may write is what its level's struct holds. */
static void doors_fill_their_own_struct_and_not_a_byte_more(void **state)
{
	struct {
		CUfileStatsLevel1_t l1;
		char guard[16];
	} got;
	CUfileStatsLevel2_t l2;
	char guard[16];

	(void)state;
	memset(guard, 0x5a, sizeof(guard));
	memset(&got, 0x5a, sizeof(got));
	assert_int_equal(cuFileSetStatsLevel(1).err, 0);
	assert_int_equal(cuFileDriverOpen().err, 0);
	assert_int_equal(cuFileStatsReset().err, 0);
	assert_int_equal(cuFileStatsStart().err, 0);
	did(CF_READ, 77, 77);
	assert_int_equal(cuFileGetStatsL1(&got.l1).err, 0);
	assert_int_equal(cuFileGetStatsL2(&l2).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileStatsStop().err, 0);
	assert_int_equal(got.l1.read_ops.ok, 1);
	assert_int_equal(got.l1.read_bytes, 77);
	assert_int_equal(got.l1.last_batch_write_bytes, 0);
	assert_memory_equal(got.guard, guard, sizeof(guard));
	assert_int_equal(cuFileGetStatsL1(&got.l1).err, 0);
	assert_int_equal(got.l1.read_bytes, 77);
	assert_int_equal(cuFileDriverClose().err, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define GPU_TEST(name) \
	cmocka_unit_test_setup_teardown(name, set_up_gpus, tear_down_gpus)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sums_over_many_threads_are_exact),
		TEST(sums_by_the_counter_are_exact),
		TEST(reading_and_resetting_beside_counting_threads_is_safe),
		TEST(nothing_is_counted_before_start),
		TEST(nothing_is_counted_at_level_0_and_no_clock_is_read),
		TEST(a_level_set_after_start_counts_from_then_on),
		TEST(sizes_are_counted_from_level_2_on),
		TEST(a_level_is_0_to_3),
		TEST(numbers_above_the_level_are_refused),
		TEST(stop_keeps_the_numbers_as_they_stood),
		TEST(start_goes_on_from_where_stop_left),
		TEST(reset_zeroes_the_numbers),
		TEST(averages_are_over_the_time_counted),
		TEST(a_submit_takes_the_time_it_took),
		TEST(a_size_belongs_to_the_bin_that_begins_at_or_below_it),
		GPU_TEST(gpus_are_listed_in_the_order_of_their_use),
		GPU_TEST(each_gpu_has_its_own_numbers),
		GPU_TEST(buffer_calls_show_at_their_gpu),
		GPU_TEST(a_gpu_past_the_sixteenth_is_in_the_totals_only),
		TEST(a_level_from_configuration_counts_at_once),
		TEST(a_level_set_before_open_wins_once_over_configuration),
		TEST(an_open_begins_at_zero),
		TEST(close_reports_the_numbers_to_an_info_log),
		TEST(close_at_level_0_reports_nothing),
		cmocka_unit_test(doors_refuse_while_closed_and_take_levels),
		cmocka_unit_test(
			doors_fill_their_own_struct_and_not_a_byte_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
