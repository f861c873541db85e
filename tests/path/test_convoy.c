// SPDX-License-Identifier: Apache-2.0
/*
 * Batches of large reads out of the page cache: when they are a convoy, and
 * that the bytes are right beside other entries, with little room, and when
 * they are dropped in the middle.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define NR 40
#define WINDOW (2 * TH_MIB)
#define PAD 4096

/* Windows of memory and of file, as large as each other. */
struct bench {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	CUfileBatchHandle_t batch;
	CUfileIOParams_t params[NR];
	size_t size;
	unsigned char *in_file, *in_mem;
};

static void bench_init(struct bench *b)
{
	th_mem_need(TH_DEVICE);
	th_open();
	b->size = NR * WINDOW;
	b->in_file = th_bytes(b->size);
	b->in_mem = th_same(0xa5, b->size);
	th_file_make(&b->file, TH_BUFFERED, O_RDWR, b->in_file, b->size);
	th_mem_alloc(&b->mem, TH_DEVICE, b->size);
	th_mem_set(&b->mem, 0xa5);
	b->fh = th_handle(b->file.fd);
	assert_int_equal(cuFileBatchIOSetUp(&b->batch, NR).err, 0);
}

static void bench_fini(struct bench *b)
{
	cuFileBatchIODestroy(b->batch);
	cuFileHandleDeregister(b->fh);
	th_mem_free(&b->mem);
	th_file_end(&b->file);
	free(b->in_file);
	free(b->in_mem);
	th_close();
}

/* Entry i: size bytes of window i of memory, and of another of the file. */
static void set_entry(struct bench *b, unsigned i, CUfileOpcode_t opcode,
		      size_t at, size_t size)
{
	CUfileIOParams_t *p = &b->params[i];
	size_t mem_at = i * WINDOW + at;
	size_t file_at = (opcode == CUFILE_READ ? NR - 1 - i : i) * WINDOW + at;

	*p = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
				 .fh = b->fh,
				 .opcode = opcode,
				 .cookie = (void *)(uintptr_t)i };
	p->u.batch.devPtr_base = b->mem.ptr;
	p->u.batch.devPtr_offset = (off_t)mem_at;
	p->u.batch.file_offset = (off_t)file_at;
	p->u.batch.size = size;
	if (opcode == CUFILE_READ)
		memcpy(b->in_mem + mem_at, b->in_file + file_at, size);
	else
		memcpy(b->in_file + file_at, b->in_mem + mem_at, size);
}

/* Each entry has one event, and all of its bytes; a little at a time. */
static void run(struct bench *b, unsigned nr)
{
	CUfileIOEvents_t events[NR];
	bool seen[NR] = { false };
	unsigned done = 0;

	assert_int_equal(cuFileBatchIOSubmit(b->batch, nr, b->params, 0).err,
			 0);
	while (done < nr) {
		unsigned some = NR;

		assert_int_equal(
			cuFileBatchIOGetStatus(b->batch, 1, &some, events, NULL)
				.err,
			0);
		for (unsigned i = 0; i < some; i++) {
			size_t k = (size_t)events[i].cookie;

			assert_true(k < nr && !seen[k]);
			seen[k] = true;
			assert_int_equal(events[i].status, CUFILE_COMPLETE);
			assert_int_equal(events[i].ret,
					 b->params[k].u.batch.size);
		}
		done += some;
	}
}

static void check(struct bench *b)
{
	unsigned char *got = malloc(b->size);

	assert_non_null(got);
	th_mem_get(&b->mem, 0, got, b->size);
	th_equal("memory", got, b->in_mem, b->size);
	th_file_get(&b->file, 0, got, b->size);
	th_equal("file", got, b->in_file, b->size);
	free(got);
}

/* Each copy of a convoy is marked, and an entry alone has none to mark. */
static unsigned long marks(void)
{
	return th_fake() ? th_fake()->calls("cuEventRecord") : 0;
}

/* ------------------------------------------------------------------ tests */

static void many_large_reads_are_a_convoy(void **state)
{
	struct bench b = { .size = 0 };
	unsigned long before;

	bench_init(&b);
	for (unsigned i = 0; i < NR; i++)
		set_entry(&b, i, CUFILE_READ, th_below(PAD),
			  WINDOW - PAD - th_below(PAD));
	before = marks();
	run(&b, NR);
	check(&b);
	/* two parts or more of each */
	if (th_fake())
		assert_in_range(marks() - before, 2 * NR, 3 * NR);
	bench_fini(&b);
}

/* What is left of 80 MiB when some are taken away is 62. */
static void a_few_large_reads_are_none(void **state)
{
	struct bench b = { .size = 0 };
	unsigned long before;

	bench_init(&b);
	for (unsigned i = 0; i < NR; i++)
		set_entry(&b, i, CUFILE_READ, 0, WINDOW);
	before = marks();
	for (unsigned i = 31; i < NR; i++)
		memset(b.in_mem + i * WINDOW, 0xa5, WINDOW);
	run(&b, 31);
	check(&b);
	if (th_fake())
		assert_in_range(marks() - before, 0, 31);
	bench_fini(&b);
}

/* Small, tiny and large ones; writes of windows that nobody reads. */
static void a_convoy_travels_beside_others(void **state)
{
	struct bench b = { .size = 0 };

	bench_init(&b);
	for (int lap = 0; lap < 3; lap++) {
		for (unsigned i = 0; i < NR; i++) {
			bool write = i % 10 == 4 || i % 10 == 5;
			size_t size = i % 10 == 7 ? 1 + th_below(2 * PAD) :
						    WINDOW - 2 * PAD;

			/* where i ends with 4, NR - 1 - i does with 5 */
			set_entry(&b, i, write ? CUFILE_WRITE : CUFILE_READ,
				  th_below(PAD), size);
		}
		run(&b, NR);
		check(&b);
	}
	bench_fini(&b);
}

static void two_slots_are_enough(void **state)
{
	struct bench b = { .size = 0 };

	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 2048)
			.err,
		0);
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 4096)
			.err,
		0);
	bench_init(&b);
	for (unsigned i = 0; i < NR; i++)
		set_entry(&b, i, CUFILE_READ, th_below(PAD), WINDOW - PAD);
	run(&b, NR);
	check(&b);
	bench_fini(&b);
}

/*
 * Memory of its own for each round, freed after the cancel or the destroy: a
 * late byte is seen by the fake driver.
 */
static void memory_may_go_after_a_cancel_or_a_destroy(void **state)
{
	struct bench b = { .size = 0 };

	bench_init(&b);
	for (unsigned i = 0; i < NR; i++)
		set_entry(&b, i, CUFILE_READ, 0, WINDOW);
	for (int round = 0; round < TH_SCALE(12); round++) {
		struct th_mem mem;

		th_mem_alloc(&mem, TH_DEVICE, b.size);
		for (unsigned i = 0; i < NR; i++)
			b.params[i].u.batch.devPtr_base = mem.ptr;
		assert_int_equal(
			cuFileBatchIOSubmit(b.batch, NR, b.params, 0).err, 0);
		th_sleep_ms((unsigned)round % 4);
		if (round & 1) {
			cuFileBatchIODestroy(b.batch);
			assert_int_equal(cuFileBatchIOSetUp(&b.batch, NR).err,
					 0);
		} else {
			assert_int_equal(cuFileBatchIOCancel(b.batch).err, 0);
		}
		th_mem_free(&mem);
	}
	for (unsigned i = 0; i < NR; i++)
		b.params[i].u.batch.devPtr_base = b.mem.ptr;
	run(&b, NR);
	check(&b);
	bench_fini(&b);
}

/* The one worker there is lets a batch that came later through. */
static void a_convoy_lets_others_through(void **state)
{
	struct bench b = { .size = 0 };
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t other;
	unsigned nr = 1;

	th_need_fake();
	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 1)
				 .err,
			 0);
	bench_init(&b);
	assert_int_equal(cuFileBatchIOSetUp(&other, 1).err, 0);
	for (unsigned i = 0; i < NR; i++)
		set_entry(&b, i, CUFILE_READ, 0, WINDOW);
	th_fake()->copy_delay_us(2000);
	assert_int_equal(cuFileBatchIOSubmit(b.batch, NR - 1, b.params, 0).err,
			 0);
	assert_int_equal(
		cuFileBatchIOSubmit(other, 1, b.params + NR - 1, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(other, 1, &nr, events, NULL).err, 0);
	assert_int_equal(nr, 1);
	nr = NR;
	assert_int_equal(cuFileBatchIOGetStatus(b.batch, 0, &nr, events,
						&(struct timespec){ 0 })
				 .err,
			 0);
	assert_in_range(nr, 1, NR / 2);
	cuFileBatchIODestroy(b.batch);
	cuFileBatchIODestroy(other);
	th_fake()->copy_delay_us(0);
	assert_int_equal(cuFileBatchIOSetUp(&b.batch, NR).err, 0);
	run(&b, NR);
	check(&b);
	bench_fini(&b);
}

/* A context that dies takes entries with it, and gives each an event. */
static void a_lost_context_ends_each_entry_once(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct bench b = { .size = 0 };
	CUfileIOEvents_t events[NR];
	unsigned nr = NR, failed = 0;

	bench_init(&b);
	for (unsigned i = 0; i < NR; i++)
		set_entry(&b, i, CUFILE_READ, 0, WINDOW);
	assert_int_equal(fake->plan("cuMemcpyHtoDAsync_v2:30+=700"), 0);
	assert_int_equal(cuFileBatchIOSubmit(b.batch, NR, b.params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(b.batch, NR, &nr, events, NULL).err, 0);
	assert_int_equal(nr, NR);
	for (unsigned i = 0; i < NR; i++)
		failed += events[i].status == CUFILE_FAILED;
	assert_in_range(failed, 1, NR - 1);
	fake->plan_clear();
	run(&b, NR);
	check(&b);
	bench_fini(&b);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_large_reads_are_a_convoy),
		TEST(a_few_large_reads_are_none),
		TEST(a_convoy_travels_beside_others),
		TEST(two_slots_are_enough),
		TEST(memory_may_go_after_a_cancel_or_a_destroy),
		TEST(a_convoy_lets_others_through),
		TEST(a_lost_context_ends_each_entry_once),
	};

	th_start(240);
	return th_finish(
		cmocka_run_group_tests_name("convoy", tests, NULL, NULL));
}
