// SPDX-License-Identifier: Apache-2.0
/*
 * A context that is busy with what waits for us: the driver loads no kernel
 * then, and reads and writes go without. What the client's stream waits for
 * ends by itself after a while, or a failure would be a hang.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define FUSE_NS (20ull * 1000 * 1000 * 1000)
#define THREADS 16
#define SMALL ((size_t)4096)
#define NR 64
#define LARGE TH_MIB
#define NR_LARGE 32

struct busy {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned char *bytes, *got;
	size_t size;
	CUstream stream;
	uint64_t fuse_ns;
	atomic_bool let, blown;
	struct th_bad bad;
};

static void wait_to_be_let(void *arg)
{
	struct busy *b = arg;

	while (!atomic_load(&b->let) && !atomic_load(&b->blown)) {
		if (th_now_ns() > b->fuse_ns)
			atomic_store(&b->blown, true);
		th_sleep_ms(1);
	}
}

static void busy_init(struct busy *b, size_t size)
{
	*b = (struct busy){ .size = size };
	th_mem_need(TH_DEVICE);
	th_open();
	if (th_fake())
		th_fake()->idle_calls(1);
	b->bytes = th_bytes(size);
	b->got = malloc(size);
	assert_non_null(b->got);
	th_mem_alloc(&b->mem, TH_DEVICE, size);
	th_file_make(&b->file, TH_BUFFERED, O_RDWR, b->bytes, size);
	assert_int_equal(cuStreamCreate(&b->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	b->fuse_ns = th_now_ns() + FUSE_NS;
	assert_int_equal(cuLaunchHostFunc(b->stream, wait_to_be_let, b), 0);
	b->fh = th_handle(b->file.fd);
}

/* All that was done until now was done while the context was busy. */
static void let(struct busy *b)
{
	atomic_store(&b->let, true);
	assert_int_equal(cuStreamSynchronize(b->stream), 0);
	assert_false(atomic_load(&b->blown));
}

static void busy_fini(struct busy *b)
{
	th_bad_check(&b->bad);
	cuFileHandleDeregister(b->fh);
	th_file_end(&b->file);
	assert_int_equal(cuStreamDestroy(b->stream), 0);
	th_mem_free(&b->mem);
	free(b->bytes);
	free(b->got);
	th_close();
}

static void check_memory(struct busy *b)
{
	th_mem_get(&b->mem, 0, b->got, b->size);
	th_equal("memory", b->got, b->bytes, b->size);
}

/* Each entry is of another place, as the next one of memory is not its. */
static void run_batch(struct busy *b, CUfileOpcode_t opcode, unsigned nr)
{
	CUfileIOParams_t params[NR];
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t batch;
	size_t each = b->size / nr;
	unsigned n = nr;

	assert_int_equal(cuFileBatchIOSetUp(&batch, nr).err, 0);
	for (unsigned i = 0; i < nr; i++) {
		off_t at = (off_t)(i * 5 % nr * each);

		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = b->fh,
						.opcode = opcode };
		params[i].u.batch.devPtr_base = b->mem.ptr;
		params[i].u.batch.devPtr_offset = at;
		params[i].u.batch.file_offset = at;
		params[i].u.batch.size = each;
	}
	assert_int_equal(cuFileBatchIOSubmit(batch, nr, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, nr, &n, events, NULL).err, 0);
	assert_int_equal(n, nr);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(events[i].ret, each);
	cuFileBatchIODestroy(batch);
}

/* The bytes are others each time. */
static void read_all(struct busy *b, unsigned nr)
{
	th_fill(b->bytes, b->size);
	th_file_put(&b->file, 0, b->bytes, b->size);
	run_batch(b, CUFILE_READ, nr);
}

static void small_entries_do_not_wait_for_it(void **state)
{
	struct busy b;

	(void)state;
	busy_init(&b, NR * SMALL);
	for (int i = 0; i < 3; i++)
		read_all(&b, NR);
	let(&b);
	check_memory(&b);
	th_fill(b.bytes, b.size);
	th_mem_put(&b.mem, 0, b.bytes, b.size);
	atomic_store(&b.let, false);
	assert_int_equal(cuLaunchHostFunc(b.stream, wait_to_be_let, &b), 0);
	run_batch(&b, CUFILE_WRITE, NR);
	let(&b);
	th_file_get(&b.file, 0, b.got, b.size);
	th_equal("file", b.got, b.bytes, b.size);
	busy_fini(&b);
}

static void large_entries_do_not(void **state)
{
	struct busy b;

	(void)state;
	busy_init(&b, NR_LARGE * LARGE);
	for (int i = 0; i < 3; i++)
		read_all(&b, NR_LARGE);
	let(&b);
	check_memory(&b);
	busy_fini(&b);
}

static void read_small(void *arg, unsigned i)
{
	struct busy *b = arg;

	th_thread_gpu();
	for (unsigned n = i; n < b->size / SMALL; n += THREADS) {
		off_t at = (off_t)(n * SMALL);

		if (cuFileRead(b->fh, b->mem.ptr, SMALL, at, at) != SMALL)
			th_bad_note(&b->bad, "read at %ld", (long)at);
	}
}

static void reads_of_many_threads_do_not(void **state)
{
	struct busy b;

	(void)state;
	busy_init(&b, 100 * THREADS * SMALL);
	th_threads(THREADS, read_small, &b);
	let(&b);
	check_memory(&b);
	busy_fini(&b);
}

/* Not each of them asks, which takes a millisecond. */
static void registrations_of_files_do_not(void **state)
{
	unsigned long before;
	struct busy b;

	(void)state;
	(void)th_need_fake();
	before = th_fake()->calls("cuCtxRecordEvent");
	busy_init(&b, SMALL);
	for (int i = 0; i < 200; i++) {
		cuFileHandleDeregister(b.fh);
		b.fh = th_handle(b.file.fd);
	}
	assert_in_range(th_fake()->calls("cuCtxRecordEvent") - before, 1, 50);
	let(&b);
	busy_fini(&b);
}

/* But for half a second, in which the context might become idle. */
static void operations_of_other_streams_do_not(void **state)
{
	off_t at = 0;
	ssize_t n = -1;
	CUstream other;
	struct busy b;

	(void)state;
	busy_init(&b, SMALL);
	assert_int_equal(cuStreamCreate(&other, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuFileStreamRegister(other, 0).err, 0);
	assert_int_equal(
		cuFileReadAsync(b.fh, b.mem.ptr, &b.size, &at, &at, &n, other)
			.err,
		0);
	assert_int_equal(cuStreamSynchronize(other), 0);
	assert_int_equal(n, SMALL);
	let(&b);
	check_memory(&b);
	assert_int_equal(cuFileStreamDeregister(other).err, 0);
	assert_int_equal(cuStreamDestroy(other), 0);
	busy_fini(&b);
}

/* When the context is idle. */
static void the_kernel_is_loaded_later(void **state)
{
	unsigned long before = th_volley_launches();
	struct busy b;

	(void)state;
	(void)th_need_fake();
	busy_init(&b, NR * SMALL);
	read_all(&b, NR);
	assert_int_equal(th_volley_launches(), before);
	let(&b);
	for (int i = 0; i < 400 && th_volley_launches() == before; i++) {
		th_sleep_ms(10);
		read_all(&b, NR);
	}
	assert_true(th_volley_launches() > before);
	check_memory(&b);
	busy_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_entries_do_not_wait_for_it),
		cmocka_unit_test(large_entries_do_not),
		cmocka_unit_test(reads_of_many_threads_do_not),
		cmocka_unit_test(registrations_of_files_do_not),
		cmocka_unit_test(operations_of_other_streams_do_not),
		cmocka_unit_test(the_kernel_is_loaded_later),
	};

	th_start(280);
	(void)th_volley_kernel(NULL);
	return th_finish(
		cmocka_run_group_tests_name("busy", tests, NULL, NULL));
}
