// SPDX-License-Identifier: Apache-2.0
/*
 * The bytes of batches: every kind of memory and file, mixed, unaligned, and
 * many entries on few slots.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "batch_field.h"
#include "seam/os.h"

/* ------------------------------------------------------------- a matrix */

#define WINDOW (96 * TH_KIB)
#define NR_WINDOWS 24

/* One part of each window of memory, from or to the same window of file. */
static unsigned part_entries(struct field *f, CUfileOpcode_t opcode,
			     CUfileIOParams_t *params)
{
	for (unsigned i = 0; i < NR_WINDOWS; i++) {
		size_t size = i % 3 ? 1 + th_below(WINDOW / 8) :
				      1 + th_below(WINDOW - 2 * 4096);
		size_t mem_at = i * WINDOW + th_below(WINDOW - size);
		size_t file_at = i * WINDOW + th_below(WINDOW - size);

		/* blocks of the file that are whole, now and then */
		if (i % 4 == 1) {
			size = (size + 4095) & ~(size_t)4095;
			mem_at = i * WINDOW;
			file_at = i * WINDOW + 4096;
		}
		params[i] = bf_move(f, opcode, mem_at, file_at, size, i);
	}
	return NR_WINDOWS;
}

static void entries_of_one_kind(enum th_mem_kind mem_kind,
				enum th_file_kind file_kind)
{
	CUfileIOParams_t params[NR_WINDOWS];
	CUfileBatchHandle_t batch;
	struct field f;

	th_open_for(file_kind);
	bf_init(&f, mem_kind, file_kind, NR_WINDOWS * WINDOW);
	batch = bf_batch_of(NR_WINDOWS);
	for (int round = 0; round < 3; round++) {
		bf_run(batch, params, part_entries(&f, CUFILE_READ, params));
		bf_check(&f);
		bf_run(batch, params, part_entries(&f, CUFILE_WRITE, params));
		bf_check(&f);
	}
	cuFileBatchIODestroy(batch);
	bf_fini(&f);
	th_close();
}

static void every_memory_on_every_file(void **state)
{
	for (int m = 0; m < TH_NR_MEM_KINDS; m++)
		for (int i = 0; i < TH_NR_FILE_KINDS; i++)
			if (th_gpu(NULL) || !th_mem_is_device(m))
				entries_of_one_kind(m, i);
}

/* ---------------------------------------------------------------- mixed */

#define NR_FIELDS 6

/* Everything in one submit: kinds of memory and file, directions, sizes. */
static void all_kinds_travel_in_one_batch(void **state)
{
	static const struct {
		enum th_mem_kind mem;
		enum th_file_kind file;
	} kinds[NR_FIELDS] = {
		{ TH_DEVICE, TH_BUFFERED }, { TH_DEVICE, TH_ODIRECT },
		{ TH_MALLOC, TH_ODIRECT },  { TH_MANAGED, TH_TMPFS },
		{ TH_SECOND, TH_BUFFERED }, { TH_PINNED, TH_MEMFD },
	};
	CUfileIOParams_t params[2 * NR_FIELDS * NR_WINDOWS];
	struct field f[NR_FIELDS];
	CUfileBatchHandle_t batch;
	unsigned nr = 0;

	th_need_gpu();
	th_open();
	batch = bf_batch_of(2 * NR_FIELDS * NR_WINDOWS);
	for (int k = 0; k < NR_FIELDS; k++)
		bf_init(&f[k], kinds[k].mem, kinds[k].file,
			2 * NR_WINDOWS * WINDOW);
	for (unsigned i = 0; i < NR_WINDOWS; i++)
		for (unsigned k = 0; k < NR_FIELDS; k++) {
			/* read into one window, write out of its neighbour */
			size_t at = 2 * i * WINDOW;
			size_t size = 1 + th_below(i % 5 ? 5000 : WINDOW);

			params[nr] =
				bf_move(&f[k], CUFILE_READ, at, at, size, nr);
			nr++;
			at += WINDOW;
			params[nr] =
				bf_move(&f[k], CUFILE_WRITE, at, at, size, nr);
			nr++;
		}
	bf_run(batch, params, nr);
	for (int k = 0; k < NR_FIELDS; k++) {
		bf_check(&f[k]);
		bf_fini(&f[k]);
	}
	cuFileBatchIODestroy(batch);
	th_close();
}

#define NR_FILES 40 /* more than a submission keeps apart */
#define NR_WRITES 6 /* of each */

/* Who writes beside whom is known for the first of them; all are written. */
static void more_files_are_written_than_are_kept_apart(void **state)
{
	CUfileIOParams_t params[NR_FILES * NR_WRITES];
	struct field f[NR_FILES];
	CUfileBatchHandle_t batch;
	unsigned nr = 0;

	th_need_gpu();
	th_open();
	batch = bf_batch_of(NR_FILES * NR_WRITES);
	for (unsigned k = 0; k < NR_FILES; k++)
		bf_init(&f[k], k % 2 ? TH_MALLOC : TH_DEVICE, TH_BUFFERED,
			NR_WRITES * 2 * 8 * TH_KIB);
	for (int round = 0; round < 3; round++, nr = 0) {
		for (unsigned i = 0; i < NR_WRITES; i++)
			for (unsigned k = 0; k < NR_FILES; k++) {
				size_t at = (2 * i + (unsigned)round % 2) * 8 *
					    TH_KIB;

				params[nr] =
					bf_move(&f[k], CUFILE_WRITE, at, at,
						1 + th_below(8 * TH_KIB), nr);
				nr++;
			}
		bf_run(batch, params, nr);
	}
	for (unsigned k = 0; k < NR_FILES; k++) {
		bf_check(&f[k]);
		bf_fini(&f[k]);
	}
	cuFileBatchIODestroy(batch);
	th_close();
}

/* --------------------------------------------------------- many entries */

/* Answers how long the batches took. */
static uint64_t many_entries(enum th_mem_kind kind, unsigned nr, size_t each)
{
	CUfileIOParams_t *params = calloc(nr, sizeof(*params));
	struct field f;
	CUfileBatchHandle_t batch;
	uint64_t begun, ns = 0;

	bf_init(&f, kind, TH_BUFFERED, nr * each);
	batch = bf_batch_of(nr);
	/* at scattered places of the file, as 128 of them hang the reference */
	for (unsigned i = 0; i < nr; i++)
		params[i] = bf_move(&f, CUFILE_READ, i * each,
				    th_below(nr) * each, each, i);
	begun = th_now_ns();
	bf_run(batch, params, nr);
	ns += th_now_ns() - begun;
	bf_check(&f);
	for (unsigned i = 0; i < nr; i++)
		params[i] = bf_move(&f, CUFILE_WRITE, th_below(nr) * each,
				    i * each, each, i);
	begun = th_now_ns();
	bf_run(batch, params, nr);
	ns += th_now_ns() - begun;
	bf_check(&f);
	cuFileBatchIODestroy(batch);
	bf_fini(&f);
	free(params);
	return ns;
}

static void four_thousand_entries_pass_through_two_slots(void **state)
{
	th_need_gpu();
	bf_set_size(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 64);
	bf_set_size(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 128);
	bf_set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6);
	th_open();
	many_entries(TH_DEVICE, BF_MAX_NR, 4096);
	th_close();
}

/* Eight and no byte more fill the slot, and the next is not another's. */
static void entries_at_odd_places_stay_in_their_slot(void **state)
{
	const size_t each = 64 * TH_KIB;
	CUfileIOParams_t params[64];
	CUfileBatchHandle_t batch;
	struct field f;

	th_need_gpu();
	bf_set_size(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 512);
	bf_set_size(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 512);
	th_open();
	bf_init(&f, TH_DEVICE, TH_BUFFERED, 64 * (each + 16));
	batch = bf_batch_of(64);
	for (size_t gap = 0; gap <= 16; gap++) {
		for (size_t i = 0, at = 0; i < 64; i++, at += each + gap) {
			/* by the base, all of them */
			params[i] = bf_move(
				&f, gap & 1 ? CUFILE_WRITE : CUFILE_READ, at,
				at, each, 0);
			params[i].cookie = (void *)i;
		}
		bf_run(batch, params, 64);
	}
	bf_check(&f);
	cuFileBatchIODestroy(batch);
	bf_fini(&f);
	th_close();
}

/* What hangs the reference for ever. */
static void one_buffer_takes_128_entries_of_16_kib_from_anywhere(void **state)
{
	th_open();
	many_entries(th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, 128, 16 * TH_KIB);
	th_close();
}

static void entries_larger_than_a_slot_pass_through_it(void **state)
{
	th_need_gpu();
	bf_set_size(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 4);
	bf_set_size(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 8);
	bf_set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 3);
	th_open();
	many_entries(TH_DEVICE, 100, 9 * TH_KIB);
	th_close();
}

/* Whatever the machine has; and one behind the other in memory and file. */
static void come_by_crews(unsigned crews, unsigned nr, size_t each)
{
	CUfileIOParams_t *params = calloc(nr, sizeof(*params));
	CUfileBatchHandle_t batch;
	struct field f;

	th_need_gpu();
	bf_set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 8);
	th_open();
	bf_init(&f, TH_DEVICE, TH_BUFFERED, nr * each);
	assert_int_equal(bf_crews_of(f.fh, nr, each), crews);
	batch = bf_batch_of(nr);
	for (unsigned i = 0; i < nr; i++)
		params[i] =
			bf_move(&f, CUFILE_READ, i * each, i * each, each, i);
	bf_run(batch, params, nr);
	bf_check(&f);
	cuFileBatchIODestroy(batch);
	bf_fini(&f);
	free(params);
	many_entries(TH_DEVICE, nr, each);
	th_close();
}

static void cached_reads_come_by_crews(void **state)
{
	come_by_crews(1, 64, 16 * TH_KIB);
	come_by_crews(1, 256, 4096);
	come_by_crews(1, 64, 64 * TH_KIB);
	come_by_crews(2, 65, 64 * TH_KIB);
	come_by_crews(1, 90, 33 * TH_KIB + 77);
	come_by_crews(2, 600, 4097);
	come_by_crews(2, 160, 64 * TH_KIB);
}

static void a_batch_needs_no_threads_of_configuration(void **state)
{
	assert_int_equal(cuFileSetParameterBool(
				 CUFILE_PARAM_EXECUTION_PARALLEL_IO, false)
				 .err,
			 0);
	th_open();
	many_entries(th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, 300, 4096);
	th_close();
}

static void large_entries_are_carried_by_several(void **state)
{
	bf_set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6);
	th_open();
	many_entries(th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, TH_SCALE(16),
		     2 * TH_MIB);
	th_close();
}

static void one_handle_is_submitted_again_for_ever(void **state)
{
	CUfileIOParams_t params[64];
	struct field f;
	CUfileBatchHandle_t batch;

	th_open();
	bf_init(&f, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, TH_BUFFERED,
		64 * 4096);
	batch = bf_batch_of(64);
	for (int round = 0; round < TH_SCALE(2000); round++) {
		for (unsigned i = 0; i < 64; i++)
			params[i] = bf_move(&f, CUFILE_READ, i * 4096,
					    th_below(64) * 4096, 4096, i);
		bf_run(batch, params, 64);
	}
	bf_check(&f);
	cuFileBatchIODestroy(batch);
	bf_fini(&f);
	th_close();
}

/* --------------------------------------------------------------- kernel */

static bool kernels_allowed(void)
{
	const char *text = getenv("OCF_BATCH_KERNEL");

	return !text || strcmp(text, "0") != 0;
}

static void small_entries_share_launches_unless_told_otherwise(void **state)
{
	unsigned long before = th_volley_launches();

	(void)th_need_fake();
	th_open();
	/* on a busy machine some are cancelled, and for a while none begun */
	for (int i = 0; i < 20 && th_volley_launches() == before; i++) {
		many_entries(TH_DEVICE, 64, 4096);
		th_sleep_ms(kernels_allowed() ? 50 : 0);
	}
	assert_int_equal(th_volley_launches() > before, kernels_allowed());
	th_close();
}

/* As a program whose own kernels fill the GPU would have it. */
static void launches_that_get_no_room_do_not_hold_a_batch_up(void **state)
{
	const struct th_fake *fake = th_need_fake();
	uint64_t ns, full_ms = 100;
	char plan[48];

	th_open();
	/* slow as a busy machine may be, it is less than any such time */
	do {
		full_ms *= 4;
		assert_true(full_ms < 20000);
		snprintf(plan, sizeof(plan), "cuLaunchKernel:*=@%u",
			 (unsigned)full_ms * 1000);
		assert_int_equal(fake->plan(plan), 0);
		ns = many_entries(TH_DEVICE, 200, 4096);
		fake->plan_clear();
	} while (ns >= full_ms * 1000000);
	th_close();
}

/* Waits for a word of memory that is not 0. */
static const char spin_ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
			       ".visible .entry spin(.param .u64 word)\n"
			       "{\n"
			       "	.reg .pred %p;\n"
			       "	.reg .b32 %r;\n"
			       "	.reg .b64 %a;\n"
			       "	ld.param.u64 %a, [word];\n"
			       "	cvta.to.global.u64 %a, %a;\n"
			       "LOOP:\n"
			       "	ld.volatile.global.u32 %r, [%a];\n"
			       "	setp.eq.u32 %p, %r, 0;\n"
			       "	@%p bra LOOP;\n"
			       "	ret;\n"
			       "}\n";

/* More blocks than any GPU has room for, none of which goes before the word
 * has come. */
static CUstream fill_gpu(CUmodule *module, CUdeviceptr word)
{
	void *params[] = { &word };
	CUfunction spin;
	CUstream stream;

	assert_int_equal(cuModuleLoadData(module, spin_ptx), 0);
	assert_int_equal(cuModuleGetFunction(&spin, *module, "spin"), 0);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuLaunchKernel(spin, 8192, 1, 1, 1024, 1, 1, 0, stream,
					params, NULL),
			 0);
	th_sleep_ms(20);
	assert_int_equal(cuStreamQuery(stream), CF_CU_NOT_READY);
	return stream;
}

/* On a real GPU: the fake has room for any number of kernels. */
static void a_kernel_that_fills_the_gpu_gets_the_data_it_waits_for(void **state)
{
	CUfileIOParams_t params[64];
	CUfileBatchHandle_t batch;
	CUstream stream;
	CUmodule module;
	struct field f;
	size_t word;

	th_need_gpu();
	if (th_fake())
		th_skip("needs a real GPU");
	th_open();
	bf_init(&f, TH_DEVICE, TH_BUFFERED, 64 * 4096);
	batch = bf_batch_of(64);
	for (int round = 0; round < 5; round++) {
		/* the last word of the last entry; the first is for warmth */
		word = 64 * 4096 - 4;
		memset(f.in_file + word, 0x5a, 4);
		th_file_put(&f.file, (off_t)word, f.in_file + word, 4);
		for (unsigned i = 0; i < 64; i++)
			params[i] = bf_move(&f, CUFILE_READ, i * 4096, i * 4096,
					    4096, i);
		bf_run(batch, params, 64);
		bf_check(&f);
		assert_int_equal(cuMemsetD8((uintptr_t)f.mem.ptr, 0, f.size),
				 0);
		assert_int_equal(cuCtxSynchronize(), 0);
		th_sleep_ms(100u << round);
		stream = fill_gpu(&module, (uintptr_t)f.mem.ptr + word);
		bf_run(batch, params, 64);
		assert_int_equal(cuStreamSynchronize(stream), 0);
		bf_check(&f);
		assert_int_equal(cuStreamDestroy(stream), 0);
		assert_int_equal(cuModuleUnload(module), 0);
	}
	cuFileBatchIODestroy(batch);
	bf_fini(&f);
	th_close();
}

/* ---------------------------------------------------------------- order */

/* Behaviour, principle 5: once for the submit, not once an entry. */
static void writes_see_what_the_default_stream_did_before(void **state)
{
	CUfileIOParams_t params[64];
	unsigned char *new = th_bytes(64 * 4096);
	struct field f;
	CUfileBatchHandle_t batch;

	th_need_gpu();
	th_open();
	bf_init(&f, TH_DEVICE, TH_BUFFERED, 64 * 4096);
	batch = bf_batch_of(64);
	if (th_fake())
		th_fake()->legacy_delay_us(30000);
	assert_int_equal(cuMemcpyHtoD((uintptr_t)f.mem.ptr, new, 64 * 4096), 0);
	memcpy(f.in_mem, new, 64 * 4096);
	for (unsigned i = 0; i < 64; i++)
		params[i] =
			bf_move(&f, CUFILE_WRITE, i * 4096, i * 4096, 4096, i);
	bf_run(batch, params, 64);
	if (th_fake())
		th_fake()->legacy_delay_us(0);
	bf_check(&f);
	cuFileBatchIODestroy(batch);
	bf_fini(&f);
	free(new);
	th_close();
}

/* Of each it is another; the second one's work is there later. */
static void writes_see_what_each_context_did_before(void **state)
{
	const size_t each = 4096, size = 16 * each;
	unsigned char *new = th_bytes(size);
	CUfileIOParams_t params[32];
	CUfileBatchHandle_t batch;
	struct field f[2];
	CUcontext popped;

	th_need_gpu();
	th_open();
	bf_init(&f[0], TH_DEVICE, TH_BUFFERED, size);
	bf_init(&f[1], TH_SECOND, TH_BUFFERED, size);
	batch = bf_batch_of(32);
	for (unsigned k = 0; k < 2; k++) {
		if (th_fake())
			th_fake()->legacy_delay_us(1000 + 30000 * k);
		assert_int_equal(
			cuCtxPushCurrent(k ? th_second_ctx() : th_primary()),
			0);
		assert_int_equal(
			cuMemcpyHtoD((uintptr_t)f[k].mem.ptr, new, size), 0);
		assert_int_equal(cuCtxPopCurrent(&popped), 0);
		memcpy(f[k].in_mem, new, size);
	}
	if (th_fake())
		th_fake()->legacy_delay_us(0);
	for (unsigned i = 0; i < 32; i++)
		params[i] = bf_move(&f[i % 2], CUFILE_WRITE, i / 2 * each,
				    i / 2 * each, each, i);
	bf_run(batch, params, 32);
	cuFileBatchIODestroy(batch);
	for (unsigned k = 0; k < 2; k++) {
		bf_check(&f[k]);
		bf_fini(&f[k]);
	}
	free(new);
	th_close();
}

/* ---------------------------------------------------- writes of one file */

static struct cf_os counting_os;
static atomic_uint nr_pwrites;
static atomic_int pwrites, most_pwrites;

static ssize_t slow_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	int now = 1 + atomic_fetch_add(&pwrites, 1);
	int most = atomic_load(&most_pwrites);
	ssize_t n;

	atomic_fetch_add(&nr_pwrites, 1);
	while (now > most &&
	       !atomic_compare_exchange_weak(&most_pwrites, &most, now))
		continue;
	th_sleep_ms(1);
	n = cf_os_real.pwrite(fd, buf, size, off);
	atomic_fetch_sub(&pwrites, 1);
	return n;
}

/* gap: between an entry and the next, in memory and in the file. */
static void count_writes(enum th_mem_kind kind, size_t each, size_t gap)
{
	CUfileIOParams_t params[NR_WINDOWS];
	CUfileBatchHandle_t batch;
	struct field f;

	counting_os = cf_os_real;
	counting_os.pwrite = slow_pwrite;
	cf_os = &counting_os; /* while no thread of the library is there */
	bf_set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 8);
	th_open();
	bf_init(&f, kind, TH_BUFFERED, NR_WINDOWS * (each + gap));
	batch = bf_batch_of(NR_WINDOWS);
	for (unsigned i = 0; i < NR_WINDOWS; i++)
		params[i] = bf_move(&f, CUFILE_WRITE, i * (each + gap),
				    i * (each + gap), each, i);
	atomic_store(&most_pwrites, 0);
	atomic_store(&nr_pwrites, 0);
	bf_run(batch, params, NR_WINDOWS);
	bf_check(&f);
	cuFileBatchIODestroy(batch);
	bf_fini(&f);
	th_close();
	cf_os = &cf_os_real;
}

static void two_at_most_write_one_file(void **state)
{
	static const size_t sizes[] = { 4096, 64 * TH_KIB, 300 * TH_KIB };

	for (size_t i = 0; i < 3; i++) {
		count_writes(TH_MALLOC, sizes[i], 512);
		assert_in_range(atomic_load(&most_pwrites), 1, 2);
		if (!th_gpu(NULL))
			continue;
		count_writes(TH_DEVICE, sizes[i], 512);
		assert_in_range(atomic_load(&most_pwrites), 1, 2);
	}
}

static void neighbours_in_memory_and_file_are_written_together(void **state)
{
	th_need_gpu();
	count_writes(TH_DEVICE, 4096, 0);
	assert_in_range(atomic_load(&nr_pwrites), 1, 4);
	count_writes(TH_DEVICE, 4096, 512);
	assert_int_equal(atomic_load(&nr_pwrites), NR_WINDOWS);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, NULL, th_teardown_close)
	const struct CMUnitTest tests[] = {
		TEST(every_memory_on_every_file),
		TEST(all_kinds_travel_in_one_batch),
		TEST(more_files_are_written_than_are_kept_apart),
		TEST(four_thousand_entries_pass_through_two_slots),
		TEST(entries_at_odd_places_stay_in_their_slot),
		TEST(one_buffer_takes_128_entries_of_16_kib_from_anywhere),
		TEST(entries_larger_than_a_slot_pass_through_it),
		TEST(cached_reads_come_by_crews),
		TEST(a_batch_needs_no_threads_of_configuration),
		TEST(large_entries_are_carried_by_several),
		TEST(one_handle_is_submitted_again_for_ever),
		TEST(small_entries_share_launches_unless_told_otherwise),
		TEST(launches_that_get_no_room_do_not_hold_a_batch_up),
		TEST(a_kernel_that_fills_the_gpu_gets_the_data_it_waits_for),
		TEST(writes_see_what_the_default_stream_did_before),
		TEST(writes_see_what_each_context_did_before),
		TEST(two_at_most_write_one_file),
		TEST(neighbours_in_memory_and_file_are_written_together),
	};

	th_start(280);
	(void)th_volley_kernel(NULL);
	return th_finish(
		cmocka_run_group_tests_name("batch", tests, NULL, NULL));
}
