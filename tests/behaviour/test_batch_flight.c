// SPDX-License-Identifier: Apache-2.0
/*
 * batch_flight - batches whose entries are under way, as the table "Batch" of
 * the behaviour page has it: waits, cancels, and ends.
 *
 * A user-space file system whose reads wait for a gate stands for a slow
 * disk: with it a test says itself what has begun and what has not.
 */
#include "batch_world.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "seam/os.h"

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
	bw_begin(b);
	th_mem_set(&b->mem, 0x5c);
	cuFileHandleDeregister(b->fh);
	b->fh = register_slow();
	for (int i = 0; i < BW_NR; i++)
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
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	/* the gate is shut: only an asynchronous submit gets here */
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, &zero));
	assert_int_equal(b.nr, 0);
	let_through(BW_NR);
	b.nr = BW_NR;
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, BW_NR);
	bw_check_events(b.events, BW_NR);
	/* callbacks of one file system are never run side by side */
	assert_int_equal(slow.most, 1);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void a_timeout_ends_the_wait_with_what_is_there(void **state)
{
	struct timespec wait = { .tv_nsec = 30 * 1000 * 1000 };
	struct bench b;
	CUfileBatchHandle_t batch;
	uint64_t begun;

	bench_begin_slow(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	begun = th_now_ns();
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, &wait));
	assert_int_equal(b.nr, 0);
	assert_true(th_now_ns() - begun >= 30 * 1000 * 1000);
	let_through(BW_NR);
	b.nr = BW_NR;
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, BW_NR);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
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

	bw_begin(&b);
	batch = bw_batch_of(BW_NR);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct timespec timeout = odd[i];

		assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
		b.nr = BW_NR;
		assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events,
						 &timeout));
		assert_int_equal(b.nr, BW_NR);
	}
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void a_time_that_has_passed_does_not_wait(void **state)
{
	struct timespec past = { .tv_sec = -1 };
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin_slow(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, &past));
	assert_int_equal(b.nr, 0);
	let_through(BW_NR);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void a_full_batch_says_so_and_has_room_again_when_reaped(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bench_begin_slow(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, 6, b.params, 0));
	assert_code(cuFileBatchIOSubmit(batch, 3, b.params, 0),
		    CU_FILE_BATCH_FULL);
	assert_ok(cuFileBatchIOSubmit(batch, 2, b.params + 6, 0));
	let_through(BW_NR);
	/* ended, but not reaped: an event takes its entry's room */
	wait_until_begun(BW_NR);
	assert_code(cuFileBatchIOSubmit(batch, 1, b.params, 0),
		    CU_FILE_BATCH_FULL);
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, BW_NR);
	bw_check_events(b.events, BW_NR);
	let_through(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	cuFileBatchIODestroy(batch);
	bw_end(&b);
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
	batch = bw_batch_of(4);
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
	unsigned char got[BW_SIZE];

	use_threads(2);
	bench_begin_slow(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, 1, b.params, 0));
	wait_until_begun(1);
	b.params[2].fh = register_slow();
	assert_ok(cuFileBatchIOSubmit(batch, 2, b.params + 1, 0));
	wait_until_begun(2);
	opener_begin(&opener, b.params[2].fh, BW_NR);
	assert_ok(cuFileBatchIOCancel(batch));
	assert_int_equal(atomic_load(&slow.inside), 0);
	opener_end(&opener);
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 0);
	th_mem_get(&b.mem, 0, got, BW_SIZE);
	th_all("the entry that had begun", got, 0x77, BW_SIZE);
	th_mem_get(&b.mem, BW_SIZE, got, BW_SIZE);
	th_all("the second one that had", got, 0x77, BW_SIZE);
	th_mem_get(&b.mem, 2 * BW_SIZE, got, BW_SIZE);
	th_all("the entry that had not", got, 0x5c, BW_SIZE);
	/* and the batch is as new */
	b.params[2].fh = b.fh;
	let_through(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	b.nr = BW_NR;
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, BW_NR);
	bw_check_events(b.events, BW_NR);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
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
	batch = bw_batch_of(MANY);
	for (unsigned i = 0; i < MANY; i++)
		params[i] = b.params[i % BW_NR];
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
	bw_end(&b);
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
	bw_begin(&b);
	fd = dup(b.file.fd);
	assert_true(fd >= 0);
	cf_os = &gated; /* while no worker is there */
	batch = bw_batch_of(MANY);
	for (unsigned i = 0; i < MANY; i++)
		params[i] = b.params[i % BW_NR];
	assert_ok(fresh_register(fd, &params[MANY - 1].fh));
	assert_ok(cuFileBatchIOSubmit(batch, MANY, params, 0));
	wait_until_begun(1);
	opener_begin(&opener, params[MANY - 1].fh, MANY);
	assert_ok(cuFileBatchIOCancel(batch));
	assert_int_equal(atomic_load(&slow.begun), 1);
	opener_end(&opener);
	cuFileBatchIODestroy(batch);
	close(fd);
	bw_end(&b);
	cf_os = &cf_os_real;
	free(params);
}

static void events_that_were_not_reaped_go_with_a_cancel(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bw_begin(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	b.nr = 1;
	assert_ok(cuFileBatchIOGetStatus(batch, 1, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 1);
	assert_ok(cuFileBatchIOCancel(batch));
	b.nr = BW_NR;
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 0);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

/* One worker, which one batch could keep for ever. */
static void a_long_batch_lets_a_short_one_through(void **state)
{
	CUfileBatchHandle_t slowly, batch;
	CUfileIOParams_t own[BW_NR];
	struct bench b;
	CUfileHandle_t fh;

	use_threads(1);
	bench_begin_slow(&b);
	assert_ok(fresh_register(b.file.fd, &fh));
	slowly = bw_batch_of(BW_NR);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(slowly, BW_NR, b.params, 0));
	wait_until_begun(1);
	for (int i = 0; i < BW_NR; i++) {
		own[i] = b.params[i];
		own[i].fh = fh;
	}
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, own, 0));
	let_through(1);
	/* seven of the long batch still wait */
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, BW_NR);
	bw_check_events(b.events, BW_NR);
	/* and the one that ended was not kept back until all had */
	b.nr = BW_NR;
	assert_ok(cuFileBatchIOGetStatus(slowly, 1, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 1);
	let_through(BW_NR);
	cuFileBatchIODestroy(slowly);
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(fh);
	bw_end(&b);
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
	CUfileIOEvents_t events[BW_NR];

	r->nr = BW_NR;
	reaps = true;
	r->error = cuFileBatchIOGetStatus(r->batch, BW_NR, &r->nr, events,
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
	b.params[BW_NR - 1].fh = register_slow();
	r.batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(r.batch, BW_NR, b.params, 0));
	wait_until_begun(1);
	pthread_create(&reaper, NULL, reap_all, &r);
	while (!atomic_load(&reaper_waits))
		usleep(100);
	opener_begin(&opener, b.params[BW_NR - 1].fh, BW_NR);
	if (close)
		assert_ok(cuFileDriverClose_v2());
	else
		cuFileBatchIODestroy(r.batch);
	assert_int_equal(atomic_load(&slow.inside), 0);
	pthread_join(reaper, NULL);
	opener_end(&opener);
	assert_code(r.error, CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
	bw_end(&b);
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

	bw_begin(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	assert_ok(cuFileDriverClose_v2());
	assert_ok(cuFileDriverOpen());
	assert_code(cuFileBatchIOGetStatus(batch, 0, &b.nr, b.events, NULL),
		    CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
	assert_code(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0), 5040);
	bw_end(&b);
}

static void a_child_has_no_batch_of_its_parent(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	int status;
	pid_t pid;

	bench_begin_slow(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	wait_until_begun(1);
	pid = th_fork();
	if (!pid) {
		CUfileBatchHandle_t own, more[20];
		bool ok = true;

		b.nr = BW_NR;
		ok &= cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events,
					     NULL)
			      .err == 5041;
		ok &= cuFileBatchIOSubmit(batch, 1, b.params, 0).err == 5040;
		ok &= !cuFileBatchIOCancel(batch).err;
		cuFileBatchIODestroy(batch);
		/* the thread sanitizer lets a child start no thread */
		if (TH_TSAN)
			_exit(ok ? 0 : 1);
		/* and may have some of its own, with workers of its own */
		ok &= !cuFileBatchIOSetUp(&own, BW_NR).err && own != batch;
		let_through(BW_NR);
		ok &= !cuFileBatchIOSubmit(own, BW_NR, b.params, 0).err;
		ok &= !cuFileBatchIOGetStatus(own, BW_NR, &b.nr, b.events, NULL)
			       .err &&
		      b.nr == BW_NR;
		/* each in a place that no other has */
		for (int i = 0; i < 20; i++) {
			ok &= !cuFileBatchIOSetUp(&more[i], BW_NR).err;
			for (int j = 0; j < i; j++)
				ok &= more[i] != more[j];
		}
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	let_through(BW_NR);
	b.nr = BW_NR;
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, BW_NR);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static const struct fresh_test tests[] = {
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
};

FRESH_MAIN(tests, 60)
