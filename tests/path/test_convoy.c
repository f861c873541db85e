// SPDX-License-Identifier: Apache-2.0
/*
 * Batches of large reads out of the page cache: when they are a convoy, and
 * that the bytes are right beside other entries, with little room, and when
 * they are dropped in the middle.
 */
#include <stdatomic.h>
#include "seam/os.h"
#include "windows.h"

#define NR 40  /* 80 MiB */
#define FEW 31 /* 62 MiB */
#define WINDOW (2 * TH_MIB)
#define PAD 4096

static void begin(struct windows *w)
{
	windows_init(w, TH_DEVICE, TH_BUFFERED, NR, WINDOW);
}

/* Of the file another window than of memory, unless it is written. */
static void set_entry(struct windows *w, unsigned i, CUfileOpcode_t opcode,
		      size_t at, size_t size)
{
	windows_set(w, i, opcode, opcode == CUFILE_READ ? NR - 1 - i : i, at,
		    size);
}

/* Each copy of a convoy is marked, and an entry alone has none to mark. */
static unsigned long marks(void)
{
	return th_fake() ? th_fake()->calls("cuEventRecord") : 0;
}

/* ------------------------------------------------------------------ tests */

static void many_large_reads_are_a_convoy(void **state)
{
	struct windows b = { .nr = 0 };
	unsigned long before;

	begin(&b);
	for (unsigned i = 0; i < NR; i++)
		set_entry(&b, i, CUFILE_READ, th_below(PAD),
			  WINDOW - PAD - th_below(PAD));
	before = marks();
	windows_run(&b, NR);
	windows_check(&b);
	/* two parts or more of each */
	if (th_fake())
		assert_in_range(marks() - before, 2 * NR, 3 * NR);
	windows_fini(&b);
}

static void a_few_large_reads_are_none(void **state)
{
	struct windows b = { .nr = 0 };
	unsigned long before;

	begin(&b);
	for (unsigned i = 0; i < FEW; i++)
		set_entry(&b, i, CUFILE_READ, 0, WINDOW);
	before = marks();
	windows_run(&b, FEW);
	windows_check(&b);
	if (th_fake())
		assert_in_range(marks() - before, 0, FEW);
	windows_fini(&b);
}

/* Small, tiny and large ones; writes of windows that nobody reads. */
static void a_convoy_travels_beside_others(void **state)
{
	struct windows b = { .nr = 0 };

	begin(&b);
	for (int lap = 0; lap < 3; lap++) {
		for (unsigned i = 0; i < NR; i++) {
			bool write = i % 10 == 4 || i % 10 == 5;
			size_t size = i % 10 == 7 ? 1 + th_below(2 * PAD) :
						    WINDOW - 2 * PAD;

			/* where i ends with 4, NR - 1 - i does with 5 */
			set_entry(&b, i, write ? CUFILE_WRITE : CUFILE_READ,
				  th_below(PAD), size);
		}
		windows_run(&b, NR);
		windows_check(&b);
	}
	windows_fini(&b);
}

static void two_slots_are_enough(void **state)
{
	struct windows b = { .nr = 0 };

	windows_slots(2, 2048);
	begin(&b);
	for (unsigned i = 0; i < NR; i++)
		set_entry(&b, i, CUFILE_READ, th_below(PAD), WINDOW - PAD);
	windows_run(&b, NR);
	windows_check(&b);
	windows_fini(&b);
}

/*
 * Memory of its own for each round, freed after the cancel or the destroy: a
 * late byte is seen by the fake driver.
 */
static void memory_may_go_after_a_cancel_or_a_destroy(void **state)
{
	struct windows b = { .nr = 0 };

	begin(&b);
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
	windows_run(&b, NR);
	windows_check(&b);
	windows_fini(&b);
}

static atomic_bool gated, shut;

/*
 * The first window of the file is read for the other batch. Then the gate is
 * shut behind it, so that what the convoy has done by then stands.
 */
static ssize_t gated_pread(int fd, void *buf, size_t size, off_t off)
{
	if (atomic_load(&gated) && off < (off_t)WINDOW)
		atomic_store(&shut, true);
	else
		while (atomic_load(&shut))
			th_sleep_ms(1);
	return cf_os_real.pread(fd, buf, size, off);
}

/* The one worker there is lets a batch that came later through. */
static void a_convoy_lets_others_through(void **state)
{
	static struct cf_os os;
	struct windows b = { .nr = 0 };
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t other;
	unsigned nr = 1;

	th_need_fake();
	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 1)
				 .err,
			 0);
	os = cf_os_real;
	os.pread = gated_pread;
	cf_os = &os; /* while no thread of the library is there */
	begin(&b);
	assert_int_equal(cuFileBatchIOSetUp(&other, 1).err, 0);
	for (unsigned i = 0; i < NR; i++)
		set_entry(&b, i, CUFILE_READ, 0, WINDOW);
	atomic_store(&gated, true);
	atomic_store(&shut, true);
	assert_int_equal(cuFileBatchIOSubmit(b.batch, NR - 1, b.params, 0).err,
			 0);
	assert_int_equal(
		cuFileBatchIOSubmit(other, 1, b.params + NR - 1, 0).err, 0);
	atomic_store(&shut, false);
	assert_int_equal(
		cuFileBatchIOGetStatus(other, 1, &nr, events, NULL).err, 0);
	assert_int_equal(nr, 1);
	nr = NR;
	assert_int_equal(cuFileBatchIOGetStatus(b.batch, 0, &nr, events,
						&(struct timespec){ 0 })
				 .err,
			 0);
	assert_in_range(nr, 1, NR / 2);
	atomic_store(&gated, false);
	atomic_store(&shut, false);
	cuFileBatchIODestroy(b.batch);
	cuFileBatchIODestroy(other);
	assert_int_equal(cuFileBatchIOSetUp(&b.batch, NR).err, 0);
	windows_run(&b, NR);
	windows_check(&b);
	windows_fini(&b);
	cf_os = &cf_os_real;
}

/* A context that dies takes entries with it, and gives each an event. */
static void a_lost_context_ends_each_entry_once(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct windows b = { .nr = 0 };
	CUfileIOEvents_t events[NR];
	unsigned nr = NR, failed = 0;

	begin(&b);
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
	windows_run(&b, NR);
	windows_check(&b);
	windows_fini(&b);
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
