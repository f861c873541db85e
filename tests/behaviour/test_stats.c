// SPDX-License-Identifier: Apache-2.0
/* stats - the statistics calls, from level to number. */
#include "fresh.h"

#include <fcntl.h>
#include <opencufile.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BAD CU_FILE_INVALID_VALUE
#define CLOSED CU_FILE_DRIVER_NOT_INITIALIZED

static int level(void)
{
	int value = -1;

	assert_ok(cuFileGetStatsLevel(&value));
	return value;
}

/* "stats level 4, -1 ... level 0..3 ok before open"; record section b. */
static void levels_0_to_3_may_be_set_before_and_after_open(void **state)
{
	for (int i = 0; i < 8; i++) {
		if (i == 4)
			assert_ok(cuFileDriverOpen());
		assert_ok(cuFileSetStatsLevel(i % 4));
		assert_int_equal(level(), i % 4);
	}
}

static struct {
	void *mem; /* of a page that cannot be written to yet */
	size_t size;
	atomic_bool met, asked, in_vain;
} fault;

/* Lets the page be written to, once another thread has had an answer. */
static void on_fault(int sig)
{
	atomic_store(&fault.met, true);
	for (int ms = 0; ms < 10000 && !atomic_load(&fault.asked); ms++)
		th_sleep_ms(1);
	atomic_store(&fault.in_vain, !atomic_load(&fault.asked));
	if (mprotect(fault.mem, fault.size, PROT_READ | PROT_WRITE))
		_exit(1);
}

static void *get_into_fault(void *arg)
{
	CUfileStatsLevel1_t *l1 = fault.mem;

	return cuFileGetStatsL1(l1).err || l1->hdl_register_ops.err ? NULL :
								      fault.mem;
}

/* Such as memory that maps a file whose server is away. */
static void memory_that_takes_its_time_holds_up_nobody_else(void **state)
{
	struct sigaction mine = { .sa_handler = on_fault }, before;
	pthread_t thread;
	void *got;

	fault.size = (size_t)sysconf(_SC_PAGESIZE);
	fault.mem = mmap(NULL, fault.size, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(fault.mem != MAP_FAILED);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileSetStatsLevel(1));
	assert_int_equal(sigaction(SIGSEGV, &mine, &before), 0);
	assert_int_equal(pthread_create(&thread, NULL, get_into_fault, NULL),
			 0);
	while (!atomic_load(&fault.met))
		th_sleep_ms(1);
	assert_int_equal(level(), 1);
	atomic_store(&fault.asked, true);
	pthread_join(thread, &got);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_ptr_equal(got, fault.mem);
	assert_false(atomic_load(&fault.in_vain));
	munmap(fault.mem, fault.size);
}

/* "stats level 4, -1"; contract 3.14. */
static void other_levels_are_refused_5022(void **state)
{
	assert_ok(cuFileSetStatsLevel(2));
	assert_code(cuFileSetStatsLevel(4), BAD);
	assert_code(cuFileSetStatsLevel(-1), BAD);
	assert_code(cuFileGetStatsLevel(NULL), BAD);
	assert_int_equal(level(), 2);
}

/* "StatsStart before open"; contract 3.14. */
static void start_stop_and_reset_before_open_are_refused_5001(void **state)
{
	CUfileStatsLevel1_t l1;

	assert_code(cuFileStatsStart(), CLOSED);
	assert_code(cuFileStatsStop(), CLOSED);
	assert_code(cuFileStatsReset(), CLOSED);
	assert_ok(cuFileSetStatsLevel(1));
	assert_code(cuFileGetStatsL1(&l1), CLOSED);
	assert_int_equal(cuFileUseCount(), 0);
}

/* Contract 3.14; record section i. */
static void a_level_above_the_one_kept_is_refused_5022(void **state)
{
	static CUfileStatsLevel3_t stats;

	assert_ok(cuFileDriverOpen());
	for (int kept = 0; kept < 4; kept++) {
		assert_ok(cuFileSetStatsLevel(kept));
		assert_ok(cuFileStatsStart());
		assert_code(cuFileGetStatsL1(&stats.detailed.basic),
			    kept < 1 ? BAD : 0);
		assert_code(cuFileGetStatsL2(&stats.detailed),
			    kept < 2 ? BAD : 0);
		assert_code(cuFileGetStatsL3(&stats), kept < 3 ? BAD : 0);
	}
	assert_code(cuFileGetStatsL1(NULL), BAD);
	assert_code(cuFileGetStatsL2(NULL), BAD);
	assert_code(cuFileGetStatsL3(NULL), BAD);
}

/* Contract 3.14: "Reset without Start succeeds". */
static void reset_without_a_start_works(void **state)
{
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileStatsReset());
	assert_ok(cuFileStatsStop());
	assert_ok(cuFileSetStatsLevel(1));
	assert_ok(cuFileStatsReset());
}

struct world {
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
};

/* A file of 64 KiB and as much memory, GPU memory where there is a GPU. */
static void world_make(struct world *w)
{
	unsigned char *bytes = th_bytes(65536);

	th_thread_gpu();
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, bytes, 65536);
	th_mem_alloc(&w->mem, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, 65536);
	free(bytes);
}

/* 3 reads of 8 KiB, 2 writes of 4 KiB, a read and a write that fail. */
static void world_work(struct world *w)
{
	w->fh = th_handle(w->file.fd);
	assert_ok(cuFileBufRegister(w->mem.ptr, 65536, 0));
	for (int i = 0; i < 3; i++)
		assert_int_equal(cuFileRead(w->fh, w->mem.ptr, 8192, 0, 0),
				 8192);
	for (int i = 0; i < 2; i++)
		assert_int_equal(cuFileWrite(w->fh, w->mem.ptr, 4096, 0, 0),
				 4096);
	assert_int_equal(cuFileRead(w->fh, w->mem.ptr, 1, -1, 0), -1);
	assert_int_equal(cuFileWrite(NULL, w->mem.ptr, 1, 0, 0), -1);
	assert_ok(cuFileBufDeregister(w->mem.ptr));
	cuFileHandleDeregister(w->fh);
}

static void assert_counts(const CUfileStatsLevel1_t *l1, uint64_t times)
{
	assert_int_equal(l1->read_ops.ok, 3 * times);
	assert_int_equal(l1->read_ops.err, times);
	assert_int_equal(l1->write_ops.ok, 2 * times);
	assert_int_equal(l1->write_ops.err, times);
	assert_int_equal(l1->read_bytes, 3 * 8192 * times);
	assert_int_equal(l1->write_bytes, 2 * 4096 * times);
	assert_int_equal(l1->hdl_register_ops.ok, times);
	assert_int_equal(l1->hdl_deregister_ops.ok, times);
	assert_int_equal(l1->buf_register_ops.ok, times);
	assert_int_equal(l1->buf_deregister_ops.ok, times);
	assert_int_equal(l1->hdl_register_ops.err, 0);
	assert_int_equal(l1->buf_register_ops.err, 0);
}

/* "Stats L1..L3 between start and stop": true numbers, not doubled. */
static void level_1_counts_every_call_once(void **state)
{
	struct world w;
	CUfileStatsLevel1_t l1;

	world_make(&w);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileSetStatsLevel(1));
	world_work(&w); /* not started: does not count */
	assert_ok(cuFileStatsStart());
	world_work(&w);
	assert_ok(cuFileGetStatsL1(&l1));
	assert_counts(&l1, 1);
	world_work(&w);
	assert_ok(cuFileGetStatsL1(&l1));
	assert_counts(&l1, 2);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

/* Contract 3.14: the histogram starts at 4 KiB. */
static void level_2_counts_sizes(void **state)
{
	static CUfileStatsLevel2_t l2;
	uint64_t sum = 0;
	struct world w;

	world_make(&w);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileSetStatsLevel(2));
	assert_ok(cuFileStatsStart());
	world_work(&w);
	assert_ok(cuFileGetStatsL2(&l2));
	assert_counts(&l2.basic, 1);
	assert_int_equal(l2.read_size_kb_hist[2], 3);
	assert_int_equal(l2.write_size_kb_hist[1], 2);
	for (int i = 0; i < 32; i++)
		sum += l2.read_size_kb_hist[i];
	assert_in_range(sum, 3, 4); /* a refused call has a size too */
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

/* Contract 3.14. */
static void level_3_counts_by_gpu(void **state)
{
	static CUfileStatsLevel3_t l3;
	const CUfilePerGpuStats_t *gpu = &l3.per_gpu_stats[0];
	struct world w;
	CUuuid uuid;

	th_need_gpu();
	world_make(&w);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileSetStatsLevel(3));
	assert_ok(cuFileStatsStart());
	world_work(&w);
	assert_ok(cuFileGetStatsL3(&l3));
	assert_counts(&l3.detailed.basic, 1);
	assert_int_equal(l3.num_gpus, 1);
	assert_int_equal(cuDeviceGetUuid(&uuid, 0), CF_CU_SUCCESS);
	assert_memory_equal(gpu->uuid, uuid.bytes, sizeof(uuid.bytes));
	assert_int_equal(gpu->read_bytes, 3 * 8192);
	assert_int_equal(gpu->writes_bytes, 2 * 4096);
	assert_int_equal(gpu->n_posix_reads, 3);
	assert_int_equal(gpu->n_posix_writes, 2);
	assert_int_equal(gpu->n_nvfs_reads, 0);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

/* Of a GPU that has moved bytes; others are not shown. */
static void level_3_counts_buffers_by_gpu(void **state)
{
	static CUfileStatsLevel3_t l3;
	const CUfilePerGpuStats_t *gpu = &l3.per_gpu_stats[0];
	CUfilePerGpuStats_t before;
	struct world w;

	th_need_gpu();
	world_make(&w);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileSetStatsLevel(3));
	assert_ok(cuFileStatsStart());
	world_work(&w);
	assert_ok(cuFileGetStatsL3(&l3));
	before = *gpu;
	assert_ok(cuFileBufRegister(w.mem.ptr, 65536, 0));
	for (int i = 0; i < 2; i++)
		assert_code(cuFileBufRegister(w.mem.ptr, 65536, 0),
			    CU_FILE_MEMORY_ALREADY_REGISTERED);
	assert_ok(cuFileGetStatsL3(&l3));
	assert_int_equal(gpu->reg_bytes, 65536);
	assert_int_equal(gpu->n_mmap, before.n_mmap + 3);
	assert_int_equal(gpu->n_mmap_ok, before.n_mmap_ok + 1);
	assert_int_equal(gpu->n_mmap_err, before.n_mmap_err + 2);
	assert_ok(cuFileBufDeregister(w.mem.ptr));
	assert_code(cuFileBufDeregister(w.mem.ptr),
		    CU_FILE_MEMORY_NOT_REGISTERED);
	assert_ok(cuFileGetStatsL3(&l3));
	assert_int_equal(gpu->reg_bytes, 0);
	assert_int_equal(gpu->n_mmap_free, before.n_mmap_free + 1);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

static void behind_the_last_gpu_nothing_is_written(void **state)
{
	static CUfileStatsLevel3_t l3;
	struct world w;

	th_need_gpu();
	memset(&l3, 0xa5, sizeof(l3));
	world_make(&w);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileSetStatsLevel(3));
	assert_ok(cuFileStatsStart());
	world_work(&w);
	assert_ok(cuFileGetStatsL3(&l3));
	assert_int_equal(l3.num_gpus, 1);
	assert_int_equal(l3.per_gpu_stats[0].n_posix_reads, 3);
	for (size_t i = offsetof(CUfileStatsLevel3_t, per_gpu_stats[1]);
	     i < sizeof(l3); i++)
		assert_int_equal(((unsigned char *)&l3)[i], 0xa5);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

/* "Stats L1..L3 after stop". */
static void after_a_stop_the_numbers_stay_as_they_stood(void **state)
{
	static CUfileStatsLevel3_t before, after;
	struct world w;

	world_make(&w);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileSetStatsLevel(3));
	assert_ok(cuFileStatsStart());
	world_work(&w);
	assert_ok(cuFileStatsStop());
	assert_ok(cuFileGetStatsL3(&before));
	assert_counts(&before.detailed.basic, 1);
	world_work(&w);
	assert_ok(cuFileGetStatsL3(&after));
	assert_memory_equal(&before, &after, sizeof(before));
	/* and go on from there */
	assert_ok(cuFileStatsStart());
	world_work(&w);
	assert_ok(cuFileGetStatsL3(&after));
	assert_counts(&after.detailed.basic, 2);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

/* Contract 3.14: "Reset zeroes". */
static void a_reset_zeroes_running_and_stopped_numbers(void **state)
{
	CUfileStatsLevel1_t l1;
	struct world w;

	world_make(&w);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileSetStatsLevel(1));
	assert_ok(cuFileStatsStart());
	world_work(&w);
	assert_ok(cuFileStatsReset());
	assert_ok(cuFileGetStatsL1(&l1));
	assert_counts(&l1, 0);
	world_work(&w);
	assert_ok(cuFileStatsStop());
	assert_ok(cuFileStatsReset());
	assert_ok(cuFileGetStatsL1(&l1));
	assert_counts(&l1, 0);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

static void count_reads(void *arg, unsigned i)
{
	struct world *w = arg;
	char buf[16];

	for (int n = 0; n < 500; n++)
		if (cuFileRead(w->fh, buf, sizeof(buf), 0, 0) != 16)
			abort();
}

/* "true numbers", from any number of threads. */
static void no_read_of_many_threads_is_lost(void **state)
{
	CUfileStatsLevel1_t l1;
	struct world w;

	world_make(&w);
	assert_ok(cuFileDriverOpen());
	w.fh = th_handle(w.file.fd);
	assert_ok(cuFileSetStatsLevel(1));
	assert_ok(cuFileStatsStart());
	th_threads(8, count_reads, &w);
	assert_ok(cuFileGetStatsL1(&l1));
	assert_int_equal(l1.read_ops.ok, 8 * 500);
	assert_int_equal(l1.read_bytes, 8 * 500 * 16);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

static uint64_t clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* cuFileStatsStart(3): of quick reads of host memory, some go untimed. */
static void a_gpu_read_after_quick_host_reads_is_timed(void **state)
{
	static CUfileStatsLevel3_t l3;
	uint64_t since = clock_us();
	struct world w;

	th_need_gpu();
	world_make(&w);
	assert_ok(cuFileDriverOpen());
	w.fh = th_handle(w.file.fd);
	assert_ok(cuFileSetStatsLevel(3));
	assert_ok(cuFileStatsStart());
	for (int i = 0; i < 20; i++) {
		count_reads(&w, 0);
		assert_int_equal(cuFileRead(w.fh, w.mem.ptr, 65536, 0, 0),
				 65536);
	}
	assert_ok(cuFileGetStatsL3(&l3));
	assert_int_equal(l3.detailed.basic.read_ops.ok, 20 * 501);
	assert_int_equal(l3.per_gpu_stats[0].n_total_reads, 20);
	assert_in_range(l3.per_gpu_stats[0].read_duration_us, 20,
			clock_us() - since);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

static ocf_stats_t more(void)
{
	ocf_stats_t stats;

	memset(&stats, 0x5a, sizeof(stats));
	stats.struct_size = sizeof(stats);
	assert_ok(ocf_stats_get(&stats));
	assert_int_equal(stats.struct_size, sizeof(stats));
	return stats;
}

/* opencufile.h: a vectored call is one call, and each element a read. */
static void a_vectored_call_counts_as_one_and_by_its_elements(void **state)
{
	CUfileStatsLevel1_t l1;
	CUfileIOVec_t iov[3];
	struct world w;

	world_make(&w);
	assert_ok(cuFileDriverOpen());
	w.fh = th_handle(w.file.fd);
	assert_ok(cuFileSetStatsLevel(1));
	assert_ok(cuFileStatsStart());
	for (int i = 0; i < 3; i++)
		iov[i] = (CUfileIOVec_t){ (char *)w.mem.ptr + i * 4096, 4096 };
	assert_int_equal(cuFileReadv(w.fh, iov, 3, 0, 0), 3 * 4096);
	assert_int_equal(cuFileWritev(w.fh, iov, 2, 0, 0), 2 * 4096);
	assert_int_equal(cuFileReadv(w.fh, iov, 3, -1, 0), -1);
	assert_ok(cuFileGetStatsL1(&l1));
	assert_int_equal(l1.read_ops.ok, 3);
	assert_int_equal(l1.write_ops.ok, 2);
	assert_int_equal(more().level, 1);
	assert_int_equal(more().readv.ok, 1);
	assert_int_equal(more().readv.err, 1);
	assert_int_equal(more().readv.bytes, 3 * 4096);
	assert_int_equal(more().readv_elements, 3);
	assert_int_equal(more().writev.ok, 1);
	assert_int_equal(more().writev.bytes, 2 * 4096);
	assert_int_equal(more().writev_elements, 2);
	assert_true(more().readv.ns > 0);
	assert_true(more().period_ns >= more().readv.ns);
	assert_int_equal(more().batch_entries, 0);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

/* opencufile.h */
static void elements_after_quick_host_reads_count_as_elements(void **state)
{
	CUfileIOVec_t iov[3];
	CUfileStatsLevel1_t l1;
	char buf[3 * 16] = { 0 };
	struct world w;

	world_make(&w);
	assert_ok(cuFileDriverOpen());
	w.fh = th_handle(w.file.fd);
	assert_ok(cuFileSetStatsLevel(1));
	assert_ok(cuFileStatsStart());
	for (int i = 0; i < 3; i++)
		iov[i] = (CUfileIOVec_t){ buf + i * 16, 16 };
	for (int i = 0; i < 20; i++) {
		count_reads(&w, 0);
		assert_int_equal(cuFileReadv(w.fh, iov, 3, 0, 0), 3 * 16);
	}
	assert_ok(cuFileGetStatsL1(&l1));
	assert_int_equal(l1.read_ops.ok, 20 * 503);
	assert_int_equal(more().readv_elements, 20 * 3);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

/* opencufile.h */
static void entries_of_a_batch_count_from_submit_to_end(void **state)
{
	CUfileIOParams_t params[3] = { 0 };
	CUfileIOEvents_t events[3];
	CUfileBatchHandle_t batch;
	unsigned nr = 3;
	struct world w;

	world_make(&w);
	assert_ok(cuFileDriverOpen());
	w.fh = th_handle(w.file.fd);
	assert_ok(cuFileSetStatsLevel(1));
	assert_ok(cuFileStatsStart());
	for (int i = 0; i < 3; i++) {
		params[i].mode = CUFILE_BATCH;
		params[i].fh = w.fh;
		params[i].opcode = i < 2 ? CUFILE_READ : CUFILE_WRITE;
		params[i].u.batch.devPtr_base = w.mem.ptr;
		params[i].u.batch.devPtr_offset = i * 4096;
		params[i].u.batch.file_offset = i * 4096;
		params[i].u.batch.size = 4096;
	}
	assert_ok(cuFileBatchIOSetUp(&batch, 3));
	assert_ok(cuFileBatchIOSubmit(batch, 3, params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, 3, &nr, events, NULL));
	cuFileBatchIODestroy(batch);
	assert_int_equal(more().batch_entries, 3);
	assert_int_equal(more().batch_read.ok, 2);
	assert_int_equal(more().batch_read.bytes, 2 * 4096);
	assert_int_equal(more().batch_write.ok, 1);
	assert_int_equal(more().batch_write.bytes, 4096);
	assert_int_equal(more().batch_read.err + more().batch_write.err, 0);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
}

/* opencufile.h: "the library fills no more than that". */
static void stats_of_another_size_are_filled_as_far_as_known(void **state)
{
	struct {
		ocf_stats_t stats;
		char later[24], guard[8];
	} s;

	assert_code(ocf_stats_get(NULL), BAD);
	memset(&s, 0x5a, sizeof(s));
	s.stats.struct_size = sizeof(s.stats) + sizeof(s.later);
	assert_code(ocf_stats_get(&s.stats), CLOSED);
	assert_ok(cuFileDriverOpen());
	assert_code(ocf_stats_get(&s.stats), BAD); /* level 0 */
	assert_ok(cuFileSetStatsLevel(1));
	s.stats.struct_size = sizeof(s.stats) - 1;
	assert_code(ocf_stats_get(&s.stats), BAD);
	s.stats.struct_size = sizeof(s.stats) + sizeof(s.later);
	assert_ok(ocf_stats_get(&s.stats));
	th_all("fields we do not know", s.later, 0, sizeof(s.later));
	th_all("what is not the struct's", s.guard, 0x5a, sizeof(s.guard));
	assert_int_equal(s.stats.level, 1);
}

static const struct fresh_test tests[] = {
	FRESH(levels_0_to_3_may_be_set_before_and_after_open),
	FRESH(other_levels_are_refused_5022),
	FRESH(start_stop_and_reset_before_open_are_refused_5001),
	FRESH(a_level_above_the_one_kept_is_refused_5022),
	FRESH(reset_without_a_start_works),
	FRESH(level_1_counts_every_call_once),
	FRESH(level_2_counts_sizes),
	FRESH(level_3_counts_by_gpu),
	FRESH(level_3_counts_buffers_by_gpu),
	FRESH(behind_the_last_gpu_nothing_is_written),
	FRESH(after_a_stop_the_numbers_stay_as_they_stood),
	FRESH(a_reset_zeroes_running_and_stopped_numbers),
	FRESH(no_read_of_many_threads_is_lost),
	FRESH(a_gpu_read_after_quick_host_reads_is_timed),
	FRESH(a_vectored_call_counts_as_one_and_by_its_elements),
	FRESH(elements_after_quick_host_reads_count_as_elements),
	FRESH(entries_of_a_batch_count_from_submit_to_end),
	FRESH(stats_of_another_size_are_filled_as_far_as_known),
	FRESH(memory_that_takes_its_time_holds_up_nobody_else),
};

FRESH_MAIN(tests, 30)
