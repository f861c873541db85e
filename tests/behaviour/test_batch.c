// SPDX-License-Identifier: Apache-2.0
/*
 * batch - what the table "Batch" of the behaviour page says, and what clients
 * of batches rely on (contract 3.12, 3.18, 3.19).
 *
 * A user-space file system whose reads wait for a gate stands for a slow
 * disk: with it a test says itself what has begun and what has not.
 */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "seam/os.h"

#define NR 8
#define SIZE 4096

/* A file of NR entries' bytes, and as much memory of some kind. */
struct bench {
	struct th_file file;
	struct th_mem mem;
	unsigned char *bytes;
	CUfileHandle_t fh;
	CUfileIOParams_t params[NR];
	CUfileIOEvents_t events[NR];
	unsigned nr;
};

static CUfileIOParams_t entry(CUfileHandle_t fh, CUfileOpcode_t opcode,
			      void *base, size_t at, size_t size, size_t cookie)
{
	CUfileIOParams_t params = { .mode = CUFILE_BATCH,
				    .fh = fh,
				    .opcode = opcode,
				    .cookie = (void *)cookie };

	params.u.batch.devPtr_base = base;
	params.u.batch.file_offset = (off_t)at;
	params.u.batch.devPtr_offset = (off_t)at;
	params.u.batch.size = size;
	return params;
}

static void bench_begin_as(struct bench *b, enum th_mem_kind kind,
			   CUfileOpcode_t opcode)
{
	assert_ok(cuFileDriverOpen());
	b->bytes = th_bytes(NR * SIZE);
	th_file_make(&b->file, TH_BUFFERED, O_RDWR, b->bytes, NR * SIZE);
	th_mem_alloc(&b->mem, kind, NR * SIZE);
	assert_ok(fresh_register(b->file.fd, &b->fh));
	for (size_t i = 0; i < NR; i++)
		b->params[i] = entry(b->fh, opcode, b->mem.ptr, i * SIZE, SIZE,
				     100 + i);
	b->nr = NR;
}

static void bench_begin(struct bench *b)
{
	bench_begin_as(b, TH_MALLOC, CUFILE_READ);
}

static void bench_end(struct bench *b)
{
	cuFileHandleDeregister(b->fh);
	th_file_end(&b->file);
	th_mem_free(&b->mem);
	free(b->bytes);
	while (cuFileUseCount() > 0)
		assert_ok(cuFileDriverClose_v2());
}

static CUfileBatchHandle_t batch_of(unsigned nr)
{
	CUfileBatchHandle_t batch = NULL;

	assert_ok(cuFileBatchIOSetUp(&batch, nr));
	assert_non_null(batch);
	return batch;
}

/* Each cookie from 100 on once, all complete and whole. */
static void check_events(const CUfileIOEvents_t *events, unsigned nr)
{
	bool seen[NR] = { false };

	for (unsigned i = 0; i < nr; i++) {
		size_t k = (size_t)events[i].cookie - 100;

		assert_true(k < nr);
		assert_false(seen[k]);
		seen[k] = true;
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
		assert_int_equal(events[i].ret, SIZE);
	}
}

static void check_read(const struct bench *b)
{
	unsigned char *got = malloc(NR * SIZE);

	th_mem_get(&b->mem, 0, got, NR * SIZE);
	th_equal("what the batch read", got, b->bytes, NR * SIZE);
	free(got);
}

/* Nothing was read and there is nothing to report. */
static void check_untouched(struct bench *b, CUfileBatchHandle_t batch)
{
	unsigned char *got = malloc(NR * SIZE);

	b->nr = NR;
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b->nr, b->events, NULL));
	assert_int_equal(b->nr, 0);
	th_mem_get(&b->mem, 0, got, NR * SIZE);
	th_all("memory of refused entries", got, 0x5c, NR * SIZE);
	free(got);
}

/* --------------------------------------------------------------- set up */

static void set_up_takes_1_to_65536_entries(void **state)
{
	static const unsigned sizes[] = { 1, 128, 129, 257, 65536 };
	CUfileBatchHandle_t batch = (void *)0x77;

	assert_ok(cuFileDriverOpen());
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		cuFileBatchIODestroy(batch_of(sizes[i]));
	assert_code(cuFileBatchIOSetUp(&batch, 0), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBatchIOSetUp(&batch, 65537), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBatchIOSetUp(NULL, 4), CU_FILE_INVALID_VALUE);
	assert_ptr_equal(batch, (void *)0x77);
	assert_ok(cuFileDriverClose_v2());
}

static void batches_need_an_open_driver(void **state)
{
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t event;
	unsigned nr = 1;

	assert_code(cuFileBatchIOSetUp(&batch, 4), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBatchIOGetStatus(NULL, 0, &nr, &event, NULL),
		    CU_FILE_INVALID_VALUE);
	assert_ok(cuFileBatchIOCancel(NULL));
	cuFileBatchIODestroy(NULL);
	assert_int_equal(cuFileUseCount(), 0);
}

static void properties_say_that_there_are_batches(void **state)
{
	CUfileDrvProps_t props;

	assert_ok(cuFileDriverGetProperties(&props));
	assert_true(props.fflags & 1u << CU_FILE_BATCH_IO_SUPPORTED);
	assert_int_equal(props.max_batch_io_size, 128);
	assert_int_equal(props.max_batch_io_timeout_msecs, 5);
}

/* --------------------------------------------------------------- submit */

static void a_batch_reads_and_reports_each_entry_once(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	/* the array is the caller's again */
	memset(b.params, 0xff, sizeof(b.params));
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, NR);
	check_events(b.events, NR);
	check_read(&b);
	/* everything was reported */
	b.nr = NR;
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 0);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void flag_1_is_accepted(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 1));
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	check_events(b.events, b.nr);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void bad_submits_are_refused_whole(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin(&b);
	th_mem_set(&b.mem, 0x5c);
	batch = batch_of(NR - 1);
	assert_code(cuFileBatchIOSubmit(batch, 0, b.params, 0), 5040);
	assert_code(cuFileBatchIOSubmit(batch, NR, b.params, 0), 5040);
	assert_code(cuFileBatchIOSubmit(batch, 1, NULL, 0), 5040);
	assert_code(cuFileBatchIOSubmit(NULL, 1, b.params, 0), 5040);
	assert_code(cuFileBatchIOSubmit((void *)&b, 1, b.params, 0), 5040);
	assert_code(cuFileBatchIOSubmit(b.fh, 1, b.params, 0), 5040);
	check_untouched(&b, batch);
	cuFileBatchIODestroy(batch);
	assert_code(cuFileBatchIOSubmit(batch, 1, b.params, 0), 5040);
	bench_end(&b);
}

enum spoil {
	NULL_HANDLE,
	STALE_HANDLE,
	NULL_BASE,
	BAD_OPCODE,
	BAD_MODE,
	NEGATIVE_FILE_OFFSET,
	NEGATIVE_BUFFER_OFFSET,
	HUGE_SIZE,
	NR_SPOILS
};

static CUfileIOParams_t spoiled(CUfileIOParams_t good, enum spoil how)
{
	switch (how) {
	case NULL_HANDLE:
		good.fh = NULL;
		break;
	case STALE_HANDLE:
		good.fh = (char *)good.fh + (1 << 24);
		break;
	case NULL_BASE:
		good.u.batch.devPtr_base = NULL;
		break;
	case BAD_OPCODE:
		good.opcode = (CUfileOpcode_t)7;
		break;
	case BAD_MODE:
		good.mode = (CUfileBatchMode_t)0;
		break;
	case NEGATIVE_FILE_OFFSET:
		good.u.batch.file_offset = -1;
		break;
	case NEGATIVE_BUFFER_OFFSET:
		good.u.batch.devPtr_offset = -4096;
		break;
	default:
		good.u.batch.size = SIZE_MAX / 2 + 1;
	}
	return good;
}

/* Last, so that what went before it would have been carried. */
static void a_bad_entry_refuses_all_and_is_named_in_the_log(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	CUfileIOParams_t good;

	bench_begin(&b);
	th_mem_set(&b.mem, 0x5c);
	batch = batch_of(NR);
	good = b.params[NR - 1];
	for (int how = 0; how < NR_SPOILS; how++) {
		b.params[NR - 1] = spoiled(good, (enum spoil)how);
		assert_code(cuFileBatchIOSubmit(batch, NR, b.params, 0), 5040);
		check_untouched(&b, batch);
	}
	assert_non_null(strstr(fresh_log(), "entry 7 of 8"));
	/* nothing of it clings to the batch or to the handle */
	b.params[NR - 1] = good;
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	b.nr = NR;
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	check_events(b.events, b.nr);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void a_write_to_a_read_only_file_is_refused(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	int fd;

	bench_begin(&b);
	batch = batch_of(NR);
	fd = open(b.file.path, O_RDONLY);
	assert_true(fd >= 0);
	assert_ok(fresh_register(fd, &b.params[0].fh));
	b.params[0].opcode = CUFILE_WRITE;
	assert_code(cuFileBatchIOSubmit(batch, 1, b.params, 0), 5040);
	cuFileHandleDeregister(b.params[0].fh);
	close(fd);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void strict_mode_refuses_entries_that_need_a_fallback(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	th_need_gpu();
	assert_ok(cuFileSetParameterBool(
		CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false));
	bench_begin_as(&b, TH_DEVICE, CUFILE_READ);
	th_mem_set(&b.mem, 0x5c);
	batch = batch_of(NR);
	assert_code(cuFileBatchIOSubmit(batch, NR, b.params, 0),
		    CU_FILE_BATCH_NOCOMPAT_ERROR);
	check_untouched(&b, batch);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void ends_of_files_and_nothing_at_all_complete(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin(&b);
	batch = batch_of(3);
	b.params[0] = entry(b.fh, CUFILE_READ, b.mem.ptr, 0, 0, 0);
	b.params[1] = entry(b.fh, CUFILE_READ, b.mem.ptr, 0, SIZE, 1);
	b.params[1].u.batch.file_offset = NR * SIZE;
	b.params[2] = entry(b.fh, CUFILE_READ, b.mem.ptr, 0, SIZE, 2);
	b.params[2].u.batch.file_offset = NR * SIZE - 17;
	assert_ok(cuFileBatchIOSubmit(batch, 3, b.params, 0));
	b.nr = 3;
	assert_ok(cuFileBatchIOGetStatus(batch, 3, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(b.events[i].status, CUFILE_COMPLETE);
		assert_int_equal(b.events[i].ret,
				 b.events[i].cookie == (void *)2 ? 17 : 0);
	}
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void an_entry_that_fails_has_its_event_too(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin(&b);
	batch = batch_of(2);
	/* an address that nobody has mapped is found out on the way */
	b.params[1].u.batch.devPtr_base = (void *)0x10000;
	b.params[1].u.batch.devPtr_offset = 0;
	assert_ok(cuFileBatchIOSubmit(batch, 2, b.params, 0));
	b.nr = 2;
	assert_ok(cuFileBatchIOGetStatus(batch, 2, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 2);
	for (int i = 0; i < 2; i++) {
		bool bad = b.events[i].cookie == (void *)101;

		assert_int_equal(b.events[i].status,
				 bad ? CUFILE_FAILED : CUFILE_COMPLETE);
		assert_int_equal((ssize_t)b.events[i].ret,
				 bad ? -EFAULT : SIZE);
	}
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void entries_are_counted_among_those_of_batches(void **state)
{
	CUfileStatsLevel1_t stats;
	struct bench b;
	CUfileBatchHandle_t batch;

	assert_ok(cuFileSetStatsLevel(1));
	bench_begin(&b);
	assert_ok(cuFileStatsStart());
	batch = batch_of(NR);
	b.params[0].u.batch.devPtr_base = (void *)0x10000;
	b.params[0].u.batch.devPtr_offset = 0;
	assert_code(cuFileBatchIOSetUp(NULL, NR), CU_FILE_INVALID_VALUE);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_code(cuFileBatchIOSubmit(batch, 0, b.params, 0), 5040);
	assert_ok(cuFileBatchIOCancel(batch));
	cuFileBatchIODestroy(batch);
	/* nothing is destroyed or cancelled, nor counted */
	cuFileBatchIODestroy(batch);
	assert_ok(cuFileBatchIOCancel(batch));
	assert_ok(cuFileGetStatsL1(&stats));
	assert_int_equal(stats.batch_setup_ops.ok, 1);
	assert_int_equal(stats.batch_setup_ops.err, 1);
	assert_int_equal(stats.batch_submit_ops.ok, 1);
	assert_int_equal(stats.batch_submit_ops.err, 1);
	assert_int_equal(stats.batch_cancel_ops.ok, 1);
	assert_int_equal(stats.batch_destroy_ops.ok, 1);
	assert_int_equal(stats.batch_enqueued_ops.ok, NR);
	assert_int_equal(stats.batch_processed_ops.ok, NR - 1);
	assert_int_equal(stats.batch_processed_ops.err, 1);
	assert_int_equal(stats.batch_read_bytes, (NR - 1) * SIZE);
	assert_int_equal(stats.batch_write_bytes, 0);
	assert_int_equal(stats.read_ops.ok, 0);
	bench_end(&b);
}

/* --------------------------------------------------------------- status */

static void bad_status_arguments_are_refused(void **state)
{
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t events[2];
	unsigned nr = 2;

	assert_ok(cuFileDriverOpen());
	batch = batch_of(2);
	assert_code(cuFileBatchIOGetStatus(batch, 3, &nr, events, NULL), 5022);
	assert_code(cuFileBatchIOGetStatus(batch, 0, NULL, events, NULL), 5022);
	assert_code(cuFileBatchIOGetStatus(batch, 0, &nr, NULL, NULL), 5022);
	assert_code(cuFileBatchIOGetStatus(NULL, 0, &nr, events, NULL), 5041);
	cuFileBatchIODestroy(batch);
	assert_code(cuFileBatchIOGetStatus(batch, 0, &nr, events, NULL), 5041);
	assert_int_equal(nr, 2);
	assert_ok(cuFileDriverClose_v2());
}

static void an_idle_batch_has_nothing_to_tell_at_once(void **state)
{
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t events[4];
	unsigned nr = 4;

	assert_ok(cuFileDriverOpen());
	batch = batch_of(4);
	assert_ok(cuFileBatchIOGetStatus(batch, 4, &nr, events, NULL));
	assert_int_equal(nr, 0);
	cuFileBatchIODestroy(batch);
	assert_ok(cuFileDriverClose_v2());
}

static void more_room_than_the_batch_has_is_well(void **state)
{
	struct bench b;
	CUfileIOEvents_t events[4 * NR];
	CUfileBatchHandle_t batch;
	unsigned nr = 4 * NR;

	bench_begin(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	/* more than will ever come: what is there, when all is there */
	assert_ok(cuFileBatchIOGetStatus(batch, 4 * NR, &nr, events, NULL));
	assert_int_equal(nr, NR);
	check_events(events, NR);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

/* ---------------------------------------------------- entries in flight */

static struct {
	sem_t gate;	  /* a post lets one read through */
	atomic_int begun; /* reads that are in or were */
	atomic_int inside, most;
} slow;

static ssize_t slow_read(const void *handle, char *buf, size_t size, off_t off,
			 const cufileRDMAInfo_t *info)
{
	int inside = atomic_fetch_add(&slow.inside, 1) + 1;

	if (inside > atomic_load(&slow.most))
		atomic_store(&slow.most, inside);
	atomic_fetch_add(&slow.begun, 1);
	while (sem_wait(&slow.gate) && errno == EINTR)
		continue;
	atomic_fetch_sub(&slow.inside, 1);
	memset(buf, 0x77, size);
	return (ssize_t)size;
}

static const CUfileFSOps_t slow_ops = { .read = slow_read };

static CUfileHandle_t register_slow(void)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.handle.handle = &slow,
				.fs_ops = &slow_ops };
	CUfileHandle_t fh;

	assert_ok(cuFileHandleRegister(&fh, &descr));
	return fh;
}

/* All entries of the bench go to the slow file system. */
static void bench_begin_slow(struct bench *b)
{
	memset(&slow, 0, sizeof(slow));
	sem_init(&slow.gate, 0, 0);
	bench_begin(b);
	th_mem_set(&b->mem, 0x5c);
	cuFileHandleDeregister(b->fh);
	b->fh = register_slow();
	for (int i = 0; i < NR; i++)
		b->params[i].fh = b->fh;
}

static void wait_until_begun(int nr)
{
	while (atomic_load(&slow.begun) < nr)
		usleep(100);
}

static void let_through(int nr)
{
	while (nr--)
		sem_post(&slow.gate);
}

static void submit_does_not_wait_for_the_entries(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	struct timespec zero = { 0 };

	bench_begin_slow(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	/* the gate is shut: only an asynchronous submit gets here */
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, &zero));
	assert_int_equal(b.nr, 0);
	let_through(NR);
	b.nr = NR;
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, NR);
	check_events(b.events, NR);
	/* callbacks of one file system are never run side by side */
	assert_int_equal(slow.most, 1);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void a_timeout_ends_the_wait_with_what_is_there(void **state)
{
	struct timespec wait = { .tv_nsec = 30 * 1000 * 1000 };
	struct bench b;
	CUfileBatchHandle_t batch;
	uint64_t begun;

	bench_begin_slow(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	begun = th_now_ns();
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, &wait));
	assert_int_equal(b.nr, 0);
	assert_true(th_now_ns() - begun >= 30 * 1000 * 1000);
	let_through(NR);
	b.nr = NR;
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, NR);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

/* Contract 3.19: the address of a 32-bit 5000 passes for a timespec. */
static void a_timeout_that_makes_no_sense_is_no_error(void **state)
{
	static const struct timespec odd[] = {
		{ .tv_sec = 5000, .tv_nsec = -1 },
		{ .tv_sec = 5000, .tv_nsec = 0x7fffffffffffffff },
		{ .tv_sec = 0x7fffdead00001388, .tv_nsec = 77 },
		{ .tv_sec = (time_t)0xffffdead00001388u, .tv_nsec = 1 },
		{ .tv_sec = (time_t)0x8000000000001388u, .tv_nsec = 1 },
	};
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin(&b);
	batch = batch_of(NR);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct timespec timeout = odd[i];

		assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
		b.nr = NR;
		assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events,
						 &timeout));
		assert_int_equal(b.nr, NR);
	}
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void a_time_that_has_passed_does_not_wait(void **state)
{
	struct timespec past = { .tv_sec = -1 };
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin_slow(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, &past));
	assert_int_equal(b.nr, 0);
	let_through(NR);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static void a_full_batch_says_so_and_has_room_again_when_reaped(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin_slow(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, 6, b.params, 0));
	assert_code(cuFileBatchIOSubmit(batch, 3, b.params, 0),
		    CU_FILE_BATCH_FULL);
	assert_ok(cuFileBatchIOSubmit(batch, 2, b.params + 6, 0));
	let_through(NR);
	/* ended, but not reaped: an event takes its entry's room */
	wait_until_begun(NR);
	assert_code(cuFileBatchIOSubmit(batch, 1, b.params, 0),
		    CU_FILE_BATCH_FULL);
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, NR);
	check_events(b.events, NR);
	let_through(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

/* --------------------------------------------------------------- cancel */

static void use_threads(size_t nr)
{
	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS,
					  nr));
}

/*
 * Opens the gate for so many when the handle is idle. An entry that waits has
 * it to itself: it is idle when that one has been dropped.
 */
struct opener {
	CUfileHandle_t fh;
	int nr;
	pthread_t thread;
};

static void *open_the_gate(void *arg)
{
	struct opener *o = arg;

	cuFileHandleDeregister(o->fh);
	let_through(o->nr);
	return NULL;
}

static void opener_begin(struct opener *o, CUfileHandle_t fh, int nr)
{
	o->fh = fh;
	o->nr = nr;
	assert_int_equal(pthread_create(&o->thread, NULL, open_the_gate, o), 0);
}

static void opener_end(struct opener *o)
{
	assert_int_equal(pthread_join(o->thread, NULL), 0);
}

static void cancel_of_nothing_is_well(void **state)
{
	CUfileBatchHandle_t batch;

	assert_ok(cuFileDriverOpen());
	batch = batch_of(4);
	assert_ok(cuFileBatchIOCancel(NULL));
	assert_ok(cuFileBatchIOCancel(batch));
	cuFileBatchIODestroy(batch);
	assert_ok(cuFileBatchIOCancel(batch));
	cuFileBatchIODestroy(batch);
	cuFileBatchIODestroy(NULL);
	assert_ok(cuFileDriverClose_v2());
}

/*
 * The first entry of each submission has begun, the other has not: the cancel
 * waits for those, the other never runs, and there is no event of any.
 */
static void cancel_drops_what_waits_and_awaits_what_runs(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	struct opener opener;
	unsigned char got[SIZE];

	use_threads(2);
	bench_begin_slow(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, 1, b.params, 0));
	wait_until_begun(1);
	b.params[2].fh = register_slow();
	assert_ok(cuFileBatchIOSubmit(batch, 2, b.params + 1, 0));
	wait_until_begun(2);
	opener_begin(&opener, b.params[2].fh, NR);
	assert_ok(cuFileBatchIOCancel(batch));
	assert_int_equal(atomic_load(&slow.inside), 0);
	opener_end(&opener);
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 0);
	th_mem_get(&b.mem, 0, got, SIZE);
	th_all("the entry that had begun", got, 0x77, SIZE);
	th_mem_get(&b.mem, SIZE, got, SIZE);
	th_all("the second one that had", got, 0x77, SIZE);
	th_mem_get(&b.mem, 2 * SIZE, got, SIZE);
	th_all("the entry that had not", got, 0x5c, SIZE);
	/* and the batch is as new */
	b.params[2].fh = b.fh;
	let_through(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	b.nr = NR;
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, NR);
	check_events(b.events, NR);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

#define MANY 2000

/* Two workers, and the callbacks of one file system one at a time. */
static void cancel_leaves_what_has_not_begun_alone(void **state)
{
	CUfileIOParams_t *params = calloc(MANY, sizeof(*params));
	struct bench b;
	CUfileBatchHandle_t batch;
	struct opener opener;
	int begun;

	use_threads(2);
	bench_begin_slow(&b);
	batch = batch_of(MANY);
	for (unsigned i = 0; i < MANY; i++)
		params[i] = b.params[i % NR];
	params[MANY - 1].fh = register_slow();
	assert_ok(cuFileBatchIOSubmit(batch, MANY, params, 0));
	wait_until_begun(1);
	opener_begin(&opener, params[MANY - 1].fh, MANY);
	assert_ok(cuFileBatchIOCancel(batch));
	begun = atomic_load(&slow.begun);
	opener_end(&opener);
	assert_true(begun <= 2);
	usleep(20 * 1000);
	assert_int_equal(atomic_load(&slow.begun), begun);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
	free(params);
}

/* Of a file of the kernel's, whose bytes may be long in coming. */
static ssize_t gated_pread(int fd, void *buf, size_t size, off_t off)
{
	atomic_fetch_add(&slow.begun, 1);
	while (sem_wait(&slow.gate) && errno == EINTR)
		continue;
	return cf_os_real.pread(fd, buf, size, off);
}

/* The one worker takes many of them at a time, and reads one by one. */
static void cancel_leaves_what_was_taken_and_has_not_begun_alone(void **state)
{
	static struct cf_os gated;
	CUfileIOParams_t *params = calloc(MANY, sizeof(*params));
	CUfileBatchHandle_t batch;
	struct opener opener;
	struct bench b;
	int fd;

	gated = cf_os_real;
	gated.pread = gated_pread;
	sem_init(&slow.gate, 0, 0);
	use_threads(1);
	bench_begin(&b);
	fd = dup(b.file.fd);
	assert_true(fd >= 0);
	cf_os = &gated; /* while no worker is there */
	batch = batch_of(MANY);
	for (unsigned i = 0; i < MANY; i++)
		params[i] = b.params[i % NR];
	assert_ok(fresh_register(fd, &params[MANY - 1].fh));
	assert_ok(cuFileBatchIOSubmit(batch, MANY, params, 0));
	wait_until_begun(1);
	opener_begin(&opener, params[MANY - 1].fh, MANY);
	assert_ok(cuFileBatchIOCancel(batch));
	assert_int_equal(atomic_load(&slow.begun), 1);
	opener_end(&opener);
	cuFileBatchIODestroy(batch);
	close(fd);
	bench_end(&b);
	cf_os = &cf_os_real;
	free(params);
}

static void events_that_were_not_reaped_go_with_a_cancel(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	b.nr = 1;
	assert_ok(cuFileBatchIOGetStatus(batch, 1, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 1);
	assert_ok(cuFileBatchIOCancel(batch));
	b.nr = NR;
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 0);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

/* One worker, which one batch could keep for ever. */
static void a_long_batch_lets_a_short_one_through(void **state)
{
	CUfileBatchHandle_t slowly, batch;
	CUfileIOParams_t own[NR];
	struct bench b;
	CUfileHandle_t fh;

	use_threads(1);
	bench_begin_slow(&b);
	assert_ok(fresh_register(b.file.fd, &fh));
	slowly = batch_of(NR);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(slowly, NR, b.params, 0));
	wait_until_begun(1);
	for (int i = 0; i < NR; i++) {
		own[i] = b.params[i];
		own[i].fh = fh;
	}
	assert_ok(cuFileBatchIOSubmit(batch, NR, own, 0));
	let_through(1);
	/* seven of the long batch still wait */
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, NR);
	check_events(b.events, NR);
	/* and the one that ended was not kept back until all had */
	b.nr = NR;
	assert_ok(cuFileBatchIOGetStatus(slowly, 1, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 1);
	let_through(NR);
	cuFileBatchIODestroy(slowly);
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(fh);
	bench_end(&b);
}

/* -------------------------------------------------------- destroy, close */

struct reaper {
	CUfileBatchHandle_t batch;
	CUfileError_t error;
	unsigned nr;
};

static __thread bool reaps;
static atomic_bool reaper_waits;

/* Who is about to wait asks for the time, once it has looked for events. */
static int clock_of_reaper(clockid_t id, struct timespec *ts)
{
	if (reaps)
		atomic_store(&reaper_waits, true);
	return cf_os_real.clock_gettime(id, ts);
}

static void *reap_all(void *arg)
{
	struct timespec long_time = { .tv_sec = 1000 };
	struct reaper *r = arg;
	CUfileIOEvents_t events[NR];

	r->nr = NR;
	reaps = true;
	r->error = cuFileBatchIOGetStatus(r->batch, NR, &r->nr, events,
					  &long_time);
	return NULL;
}

/* A thread that waits for events which only the end of the batch can end. */
static void end_under_a_reaper(bool close)
{
	static struct cf_os watched;
	struct reaper r = { 0 };
	struct opener opener;
	struct bench b;
	pthread_t reaper;

	watched = cf_os_real;
	watched.clock_gettime = clock_of_reaper;
	cf_os = &watched;
	bench_begin_slow(&b);
	b.params[NR - 1].fh = register_slow();
	r.batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(r.batch, NR, b.params, 0));
	wait_until_begun(1);
	pthread_create(&reaper, NULL, reap_all, &r);
	while (!atomic_load(&reaper_waits))
		usleep(100);
	opener_begin(&opener, b.params[NR - 1].fh, NR);
	if (close)
		assert_ok(cuFileDriverClose_v2());
	else
		cuFileBatchIODestroy(r.batch);
	assert_int_equal(atomic_load(&slow.inside), 0);
	pthread_join(reaper, NULL);
	opener_end(&opener);
	assert_code(r.error, CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
	bench_end(&b);
	cf_os = &cf_os_real;
}

static void destroy_under_a_reaper_tells_it(void **state)
{
	end_under_a_reaper(false);
}

static void close_under_a_reaper_tells_it(void **state)
{
	end_under_a_reaper(true);
}

static void close_ends_batches_for_good(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	assert_ok(cuFileDriverClose_v2());
	assert_ok(cuFileDriverOpen());
	assert_code(cuFileBatchIOGetStatus(batch, 0, &b.nr, b.events, NULL),
		    CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
	assert_code(cuFileBatchIOSubmit(batch, NR, b.params, 0), 5040);
	bench_end(&b);
}

static void a_child_has_no_batch_of_its_parent(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	int status;
	pid_t pid;

	bench_begin_slow(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	wait_until_begun(1);
	pid = th_fork();
	if (!pid) {
		CUfileBatchHandle_t own, more[20];
		bool ok = true;

		b.nr = NR;
		ok &= cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL)
			      .err == 5041;
		ok &= cuFileBatchIOSubmit(batch, 1, b.params, 0).err == 5040;
		ok &= !cuFileBatchIOCancel(batch).err;
		cuFileBatchIODestroy(batch);
		/* the thread sanitizer lets a child start no thread */
		if (TH_TSAN)
			_exit(ok ? 0 : 1);
		/* and may have some of its own, with workers of its own */
		ok &= !cuFileBatchIOSetUp(&own, NR).err && own != batch;
		let_through(NR);
		ok &= !cuFileBatchIOSubmit(own, NR, b.params, 0).err;
		ok &= !cuFileBatchIOGetStatus(own, NR, &b.nr, b.events, NULL)
			       .err &&
		      b.nr == NR;
		/* each in a place that no other has */
		for (int i = 0; i < 20; i++) {
			ok &= !cuFileBatchIOSetUp(&more[i], NR).err;
			for (int j = 0; j < i; j++)
				ok &= more[i] != more[j];
		}
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	let_through(NR);
	b.nr = NR;
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, NR);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

/* -------------------------------------------------------------- clients */

/* Contract 3.19, batch_io_basic: writes, then reads, on one handle. */
static void one_handle_is_used_for_writes_and_then_reads(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	unsigned char *got = malloc(NR * SIZE);

	th_need_gpu();
	bench_begin_as(&b, TH_DEVICE, CUFILE_WRITE);
	th_mem_get(&b.mem, 0, b.bytes, NR * SIZE);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, NR);
	check_events(b.events, NR);
	th_file_get(&b.file, 0, got, NR * SIZE);
	th_equal("the file", got, b.bytes, NR * SIZE);
	th_mem_set(&b.mem, 0);
	for (int i = 0; i < NR; i++)
		b.params[i].opcode = CUFILE_READ;
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, NR);
	check_events(b.events, NR);
	check_read(&b);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
	free(got);
}

/* Sample 022: nothing wanted, no timeout, until all have come. */
static void asking_for_nothing_in_a_loop_gets_everything(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	unsigned done = 0;

	bench_begin(&b);
	batch = batch_of(NR);
	assert_ok(cuFileBatchIOSubmit(batch, NR, b.params, 0));
	while (done < NR) {
		b.nr = 3;
		assert_ok(cuFileBatchIOGetStatus(batch, 0, &b.nr,
						 b.events + done, NULL));
		assert_true(b.nr <= 3 && b.nr <= NR - done);
		done += b.nr;
	}
	check_events(b.events, NR);
	cuFileBatchIODestroy(batch);
	bench_end(&b);
}

static const struct fresh_test tests[] = {
	FRESH(set_up_takes_1_to_65536_entries),
	FRESH(batches_need_an_open_driver),
	FRESH(properties_say_that_there_are_batches),
	FRESH(a_batch_reads_and_reports_each_entry_once),
	FRESH(flag_1_is_accepted),
	FRESH(bad_submits_are_refused_whole),
	FRESH(a_bad_entry_refuses_all_and_is_named_in_the_log),
	FRESH(a_write_to_a_read_only_file_is_refused),
	FRESH(strict_mode_refuses_entries_that_need_a_fallback),
	FRESH(ends_of_files_and_nothing_at_all_complete),
	FRESH(an_entry_that_fails_has_its_event_too),
	FRESH(entries_are_counted_among_those_of_batches),
	FRESH(bad_status_arguments_are_refused),
	FRESH(an_idle_batch_has_nothing_to_tell_at_once),
	FRESH(more_room_than_the_batch_has_is_well),
	FRESH(submit_does_not_wait_for_the_entries),
	FRESH(a_timeout_ends_the_wait_with_what_is_there),
	FRESH(a_timeout_that_makes_no_sense_is_no_error),
	FRESH(a_time_that_has_passed_does_not_wait),
	FRESH(a_full_batch_says_so_and_has_room_again_when_reaped),
	FRESH(cancel_of_nothing_is_well),
	FRESH(cancel_drops_what_waits_and_awaits_what_runs),
	FRESH(cancel_leaves_what_has_not_begun_alone),
	FRESH(cancel_leaves_what_was_taken_and_has_not_begun_alone),
	FRESH(events_that_were_not_reaped_go_with_a_cancel),
	FRESH(a_long_batch_lets_a_short_one_through),
	FRESH(destroy_under_a_reaper_tells_it),
	FRESH(close_under_a_reaper_tells_it),
	FRESH(close_ends_batches_for_good),
	FRESH(a_child_has_no_batch_of_its_parent),
	FRESH(one_handle_is_used_for_writes_and_then_reads),
	FRESH(asking_for_nothing_in_a_loop_gets_everything),
};

FRESH_MAIN(tests, 60)
