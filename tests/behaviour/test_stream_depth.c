// SPDX-License-Identifier: Apache-2.0
/*
 * stream_depth - many operations in a stream at once, and what they cost
 * while they wait there.
 */
#include "fresh.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "seam/cuda.h"

#define PART 4096
#define NR 1000
#define MORE (3 * NR)
#define PER_OPERATION 3 /* entries of the fake's stream */
#define UNTOUCHED ((ssize_t)-77777)

struct io {
	size_t size;
	off_t file_off, buf_off;
	ssize_t bytes;
};

struct world {
	unsigned char *bytes, *got;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
	CUstream stream;
	struct io io[MORE];
	_Atomic unsigned submitted;
	_Atomic int refused; /* the first code, and then no more is tried */
	int gate[2];	     /* a pipe: who waits for it costs nothing */
};

static struct world *world_make(void)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!fresh_bells())
		th_skip("not with OCF_STREAM_BELLS=0");
	th_mem_need(TH_DEVICE);
	w->bytes = th_bytes(NR * PART);
	w->got = malloc(NR * PART);
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, w->bytes, NR * PART);
	th_mem_alloc(&w->mem, TH_DEVICE, NR * PART);
	th_mem_set(&w->mem, 0xee);
	assert_int_equal(pipe(w->gate), 0);
	assert_ok(cuFileDriverOpen());
	w->fh = th_handle(w->file.fd);
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	for (int i = 0; i < MORE; i++)
		w->io[i] = (struct io){ PART, i % NR * PART, i % NR * PART,
					UNTOUCHED };
	return w;
}

static void world_end(struct world *w)
{
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	while (cuFileUseCount())
		assert_ok(cuFileDriverClose_v2());
	close(w->gate[0]);
	close(w->gate[1]);
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->bytes);
	free(w->got);
	free(w);
}

static CUfileError_t put_read(struct world *w, unsigned i, CUstream stream)
{
	struct io *io = &w->io[i];

	return cuFileReadAsync(w->fh, w->mem.ptr, &io->size, &io->file_off,
			       &io->buf_off, &io->bytes, stream);
}

static void wait_for_gate(void *arg)
{
	const struct world *w = arg;
	char c;

	(void)!read(w->gate[0], &c, 1);
}

static void hold(struct world *w)
{
	assert_int_equal(cuLaunchHostFunc(w->stream, wait_for_gate, w), 0);
}

static void let_go(struct world *w)
{
	assert_int_equal(write(w->gate[1], "", 1), 1);
}

static void assert_all_arrived(struct world *w, unsigned nr)
{
	assert_int_equal(cuStreamSynchronize(w->stream), 0);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(w->io[i].bytes, PART);
	th_mem_get(&w->mem, 0, w->got, NR * PART);
	th_equal("memory", w->got, w->bytes, NR * PART);
}

static void a_thousand_operations_wait_in_a_stream_at_once(void **state)
{
	struct world *w = world_make();

	hold(w);
	for (unsigned i = 0; i < NR; i++)
		assert_ok(put_read(w, i, w->stream));
	assert_int_equal(w->io[0].bytes, UNTOUCHED);
	let_go(w);
	assert_all_arrived(w, NR);
	/* and again, with what the first ones left */
	th_mem_set(&w->mem, 0xee);
	for (unsigned i = 0; i < NR; i++)
		assert_ok(put_read(w, i, w->stream));
	assert_all_arrived(w, NR);
	world_end(w);
}

static void operations_need_no_host_function(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct world *w = world_make();

	for (unsigned i = 0; i < NR; i++)
		assert_ok(put_read(w, i, w->stream));
	assert_all_arrived(w, NR);
	assert_int_equal(fake->calls("cuLaunchHostFunc"), 0);
	world_end(w);
}

static struct cf_cuda real;
static __thread bool submits;
static atomic_bool waits_for_room;

/* Who waits for room asks now and then after the context. */
static CUresult query_of_who_waits(CUstream stream)
{
	if (submits)
		atomic_store(&waits_for_room, true);
	return real.stream_query(stream);
}

/* Before the stream has anything in it. */
static void see_who_waits(void)
{
	struct cf_cuda *cuda = (struct cf_cuda *)cf_cuda_loaded();

	real = *cuda;
	cuda->stream_query = query_of_who_waits;
}

static void await_wait_for_room(void)
{
	while (!atomic_load(&waits_for_room))
		th_sleep_ms(1);
}

static void submit_or_let_go(void *arg, unsigned i)
{
	struct world *w = arg;

	if (i == 0) {
		for (unsigned k = 0; k < MORE && !w->refused; k++) {
			submits = k == NR;
			w->refused = (int)put_read(w, k, w->stream).err;
			w->submitted += !w->refused;
		}
		return;
	}
	await_wait_for_room();
	let_go(w);
}

/* The driver's own wait could be one that our workers wait for, too. */
static void beyond_it_a_submission_waits_outside_the_driver(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct world *w = world_make();

	fake->stream_depth(NR * PER_OPERATION + 20);
	see_who_waits();
	hold(w);
	th_threads(2, submit_or_let_go, w);
	assert_int_equal(w->refused, 0);
	assert_all_arrived(w, MORE);
	assert_int_equal(fake->stream_full(), 0);
	world_end(w);
}

static void submit_or_close(void *arg, unsigned i)
{
	struct world *w = arg;

	if (i == 0) {
		submit_or_let_go(w, 0);
		return;
	}
	await_wait_for_room();
	assert_int_equal(w->submitted, NR);
	assert_ok(cuFileDriverClose_v2());
}

static void a_close_ends_the_wait_for_room(void **state)
{
	struct world *w = world_make();

	see_who_waits();
	hold(w);
	th_threads(2, submit_or_close, w);
	assert_int_equal(w->submitted, NR);
	assert_int_equal(w->refused, CU_FILE_DRIVER_CLOSING);
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(w->io[i].bytes, -CU_FILE_DRIVER_CLOSING);
	let_go(w);
	assert_int_equal(cuStreamSynchronize(w->stream), 0);
	world_end(w);
}

static double cpu_s(int whose)
{
	struct rusage u;

	assert_int_equal(getrusage(whose, &u), 0);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* What so many naps cost a thread: some 0.06 s on an ordinary machine. */
static double cpu_of_naps(unsigned nr)
{
	const struct timespec nap = { .tv_nsec = 20 * 1000 };
	const unsigned sample = 1000;
	double before = cpu_s(RUSAGE_THREAD);

	for (unsigned i = 0; i < sample; i++)
		nanosleep(&nap, NULL);
	return (cpu_s(RUSAGE_THREAD) - before) * nr / sample;
}

/*
 * 2 seconds behind something long: less than 3 % of a processor, or on a slow
 * machine than a fourth of what it is to sleep as briefly as a stream may.
 */
static void operations_that_wait_cost_next_to_nothing(void **state)
{
	/* a sanitizer makes each look several times as dear */
	const unsigned dear = TH_SANITIZED ? 10 : 1;
	double limit = 0.06 * dear, naps;
	struct world *w = world_make();
	double before, least = 2;

	assert_ok(put_read(w, 0, w->stream)); /* makes what is made once */
	assert_int_equal(cuStreamSynchronize(w->stream), 0);
	hold(w);
	for (unsigned i = 0; i < NR; i++)
		assert_ok(put_read(w, i, w->stream));
	/* caches that others use, and what still lies down, cost some of it */
	for (int i = 0; i < 5 && least >= limit; i++) {
		before = cpu_s(RUSAGE_SELF);
		th_sleep_ms(2000);
		before = cpu_s(RUSAGE_SELF) - before;
		least = before < least ? before : least;
		naps = least < limit ? 0 : cpu_of_naps(8000 * dear);
		limit = naps > limit ? naps : limit;
	}
	let_go(w);
	assert_all_arrived(w, NR);
	print_message("%.0f ms of CPU in 2 s, of %.0f\n", least * 1e3,
		      limit * 1e3);
	assert_true(least < limit);
	world_end(w);
}

static bool other_is_first(struct world *w, unsigned i, CUstream other,
			   unsigned slow_ms)
{
	char plan[64];
	bool first;

	snprintf(plan, sizeof(plan), "cuLaunchKernelEx:1=@%u", slow_ms * 1000);
	assert_int_equal(th_fake()->plan(plan), 0);
	w->io[0].bytes = w->io[i].bytes = UNTOUCHED;
	assert_ok(put_read(w, 0, w->stream));
	th_sleep_ms(20); /* it has begun */
	assert_ok(put_read(w, i, other));
	assert_int_equal(cuStreamSynchronize(other), 0);
	assert_int_equal(w->io[i].bytes, PART);
	first = __atomic_load_n(&w->io[0].bytes, __ATOMIC_ACQUIRE) == UNTOUCHED;
	th_fake()->plan_clear();
	assert_int_equal(cuStreamSynchronize(w->stream), 0);
	assert_int_equal(w->io[0].bytes, PART);
	return first;
}

/* Where there are workers: what carries one stream's operation holds up no
 * other stream. */
static void a_slow_operation_holds_up_no_other_stream(void **state)
{
	struct world *w;
	CUstream other;

	(void)th_need_fake();

	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS,
					  3));
	w = world_make();
	assert_int_equal(cuStreamCreate(&other, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_ok(put_read(w, 0, w->stream));
	assert_int_equal(cuStreamSynchronize(w->stream), 0);
	for (unsigned i = 1; i < 4; i++) {
		unsigned slow_ms = 300;

		/* slow beyond what a busy machine needs for the other */
		while (!other_is_first(w, i, other, slow_ms)) {
			slow_ms *= 4;
			assert_true(slow_ms < 20000);
		}
	}
	assert_int_equal(cuStreamDestroy(other), 0);
	world_end(w);
}

/* One worker looks, carries and looks again. */
static void a_single_worker_is_enough(void **state)
{
	struct world *w;

	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS,
					  1));
	w = world_make();
	for (unsigned i = 0; i < NR; i++)
		assert_ok(put_read(w, i, w->stream));
	assert_all_arrived(w, NR);
	world_end(w);
}

/* Its stream, handle and memory go with it; nobody waits for its bell. */
static void a_context_lost_in_front_of_operations_writes_nothing(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct world *w = world_make();

	hold(w);
	for (unsigned i = 0; i < 10; i++)
		assert_ok(put_read(w, i, w->stream));
	fake->lose_context(NULL);
	let_go(w);
	th_sleep_ms(700); /* it is asked about now and then */
	assert_ok(cuFileDriverClose_v2());
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(w->io[i].bytes, UNTOUCHED);
	/* its memory and its stream went with the context */
	close(w->gate[0]);
	close(w->gate[1]);
	th_file_end(&w->file);
	free(w->bytes);
	free(w->got);
	free(w);
}

static void submit_or_lose(void *arg, unsigned i)
{
	struct world *w = arg;

	if (i == 0) {
		submit_or_let_go(w, 0);
		return;
	}
	await_wait_for_room();
	th_fake()->lose_context(NULL);
}

/* Its stream will never have room again. */
static void a_lost_context_ends_the_wait_for_room(void **state)
{
	struct world *w;

	(void)th_need_fake();
	w = world_make();
	see_who_waits();
	hold(w);
	th_threads(2, submit_or_lose, w);
	assert_int_equal(w->submitted, NR);
	assert_int_equal(w->refused, CU_FILE_CUDA_DRIVER_ERROR);
	let_go(w);
	assert_ok(cuFileDriverClose_v2());
	for (unsigned i = 0; i < MORE; i++)
		assert_int_equal(w->io[i].bytes, UNTOUCHED);
	/* its memory and its stream went with the context */
	close(w->gate[0]);
	close(w->gate[1]);
	th_file_end(&w->file);
	free(w->bytes);
	free(w->got);
	free(w);
}

struct own {
	struct world *w;
	_Atomic unsigned full; /* the first thread's stream is */
	struct th_bad bad;
};

static void fill_own_stream(void *arg, unsigned i)
{
	struct own *own = arg;
	struct world *w = own->w;
	CUstream mine = CF_CU_STREAM_PER_THREAD;

	while (i && !own->full)
		th_sleep_ms(1);
	if (!i && cuLaunchHostFunc(mine, wait_for_gate, w))
		th_bad_note(&own->bad, "no host function");
	for (unsigned k = 0; k < (i ? 1 : NR); k++)
		if (put_read(w, i ? NR : k, mine).err)
			th_bad_note(&own->bad, "a read is refused");
	own->full = 1;
	if (i)
		let_go(w);
	if (cuStreamSynchronize(mine))
		th_bad_note(&own->bad, "the stream is broken");
}

/* All have one name: what is in one thread's fills no other's. */
static void each_threads_own_stream_has_room_of_its_own(void **state)
{
	struct own own = { .w = world_make() };

	th_threads(2, fill_own_stream, &own);
	th_bad_check(&own.bad);
	assert_all_arrived(own.w, NR + 1);
	world_end(own.w);
}

static const struct fresh_test tests[] = {
	FRESH(a_thousand_operations_wait_in_a_stream_at_once),
	FRESH(operations_need_no_host_function),
	FRESH(beyond_it_a_submission_waits_outside_the_driver),
	FRESH(a_close_ends_the_wait_for_room),
	FRESH(a_lost_context_ends_the_wait_for_room),
	FRESH(each_threads_own_stream_has_room_of_its_own),
	FRESH(operations_that_wait_cost_next_to_nothing),
	FRESH(a_slow_operation_holds_up_no_other_stream),
	FRESH(a_single_worker_is_enough),
	FRESH(a_context_lost_in_front_of_operations_writes_nothing),
};

FRESH_MAIN(tests, 30)
