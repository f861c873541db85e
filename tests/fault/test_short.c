// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels and file systems that do less than was asked, or refuse O_DIRECT:
 * the right bytes arrive all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "core/ring.h"
#include "fault.h"
#include "harness.h"
#include "leases.h"

#define SIZE (2 * TH_MIB + 70001)
#define AT 777 /* odd, in file and memory alike and apart */

struct cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
};

struct bench {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned char *content;
};

#define FILE_SIZE (SIZE + 3 * 4096)

static void bench_init(struct bench *b, const struct cell *cell)
{
	th_mem_need(cell->mem_kind);
	th_open_for(cell->file_kind);
	b->content = th_bytes(FILE_SIZE);
	th_file_make(&b->file, cell->file_kind, O_RDWR, b->content, FILE_SIZE);
	th_mem_alloc(&b->mem, cell->mem_kind, FILE_SIZE);
	b->fh = th_handle(b->file.fd);
}

static void bench_fini(struct bench *b)
{
	cuFileHandleDeregister(b->fh);
	th_mem_free(&b->mem);
	th_file_end(&b->file);
	free(b->content);
	leases_check("after the faults");
	th_close();
}

/* There and back under the fault, with every alignment that matters. */
static void read_and_write(struct bench *b, const struct fault *fault,
			   size_t file_off, size_t at)
{
	unsigned char *got = malloc(FILE_SIZE);
	ssize_t n;

	assert_non_null(got);
	th_mem_set(&b->mem, 0xa5);
	fault_begin(fault);
	n = cuFileRead(b->fh, b->mem.ptr, SIZE, (off_t)file_off, (off_t)at);
	fault_end();
	assert_int_equal(n, SIZE);
	th_mem_get(&b->mem, 0, got, FILE_SIZE);
	th_all("before the read", got, 0xa5, at);
	th_equal("read", got + at, b->content + file_off, SIZE);
	th_all("behind the read", got + at + SIZE, 0xa5, FILE_SIZE - at - SIZE);

	th_fill(b->content + file_off, SIZE);
	th_mem_put(&b->mem, at, b->content + file_off, SIZE);
	fault_begin(fault);
	n = cuFileWrite(b->fh, b->mem.ptr, SIZE, (off_t)file_off, (off_t)at);
	fault_end();
	assert_int_equal(n, SIZE);
	assert_int_equal(th_file_size(&b->file), FILE_SIZE);
	th_file_get(&b->file, 0, got, FILE_SIZE);
	th_equal("written", got, b->content, FILE_SIZE);
	free(got);
}

static void under(void **state, const struct fault *faults, size_t nr)
{
	struct bench b = { 0 };

	bench_init(&b, *state);
	for (size_t i = 0; i < nr; i++) {
		read_and_write(&b, &faults[i], 4096, 4096);
		read_and_write(&b, &faults[i], AT, 0);
		read_and_write(&b, &faults[i], 0, AT);
		read_and_write(&b, &faults[i], AT, AT);
	}
	bench_fini(&b);
}

static void short_counts_are_gone_on_from(void **state)
{
	static const struct fault faults[] = {
		{ .portion = 1000 },
		{ .portion = 4096 },
		{ .portion = 65537 },
		{ .portion = 512 * 1024 },
	};

	under(state, faults, sizeof(faults) / sizeof(faults[0]));
}

static void interruptions_are_gone_on_from(void **state)
{
	static const struct fault faults[] = {
		{ .portion = 60000, .eintr_every = 2 },
		{ .portion = 300000, .eintr_every = 3 },
	};

	under(state, faults, sizeof(faults) / sizeof(faults[0]));
}

static void refused_direct_io_goes_through_the_page_cache(void **state)
{
	static const struct fault fault = { .no_direct = true };

	under(state, &fault, 1);
}

static void refused_direct_open_goes_through_the_page_cache(void **state)
{
	static const struct fault fault = { .no_direct_open = true };

	under(state, &fault, 1);
}

/* A sandbox whose list of calls is older than this one. */
static void a_filter_that_refuses_statx_refuses_no_file(void **state)
{
	static const struct fault fault = {
		.call = FAULT_STATX, .nth = 1, .persist = true, .err = EPERM
	};
	struct bench b = { 0 };

	bench_init(&b, *state);
	cuFileHandleDeregister(b.fh);
	fault_begin(&fault);
	b.fh = th_handle(b.file.fd);
	assert_true(fault_fired() > 0);
	fault_end();
	read_and_write(&b, &fault, 4096, 4096);
	read_and_write(&b, &fault, AT, 0);
	bench_fini(&b);
}

/* Found out once: the second request does not ask again. */
static void a_refusal_is_remembered(void **state)
{
	static const struct fault fault = { .no_direct = true };
	struct bench b = { 0 };
	unsigned first;

	bench_init(&b, *state);
	fault_begin(&fault);
	assert_int_equal(cuFileRead(b.fh, b.mem.ptr, 65536, 4096, 4096), 65536);
	first = fault_calls(FAULT_PREAD);
	assert_int_equal(cuFileRead(b.fh, b.mem.ptr, 65536, 4096, 4096), 65536);
	assert_int_equal(first, 2);
	assert_int_equal(fault_calls(FAULT_PREAD), 3);
	fault_end();
	bench_fini(&b);
}

/* An error in the middle: what made it, and nothing that did not. */
static void the_bytes_before_an_error_are_counted(void **state)
{
	struct fault fault = { .call = FAULT_PREAD,
			       .nth = 3,
			       .persist = true,
			       .err = EIO,
			       .portion = 100 * 1024 };
	unsigned char *got = malloc(FILE_SIZE);
	struct bench b = { 0 };
	ssize_t n;

	assert_non_null(got);
	/* one carrier, so that the third call is the third part of the file */
	setenv("OCF_IO_URING", "0", 1);
	assert_int_equal(cuFileSetParameterBool(
				 CUFILE_PARAM_EXECUTION_PARALLEL_IO, false)
				 .err,
			 0);
	bench_init(&b, *state);
	th_mem_set(&b.mem, 0xa5);
	fault_begin(&fault);
	n = cuFileRead(b.fh, b.mem.ptr, SIZE, 4096, 0);
	fault_end();
	assert_int_equal(n, 200 * 1024);
	th_mem_get(&b.mem, 0, got, FILE_SIZE);
	th_equal("the bytes that made it", got, b.content + 4096, (size_t)n);

	fault.call = FAULT_PWRITE;
	fault.err = ENOSPC;
	fault_begin(&fault);
	n = cuFileWrite(b.fh, b.mem.ptr, SIZE, 4096, 0);
	fault_end();
	assert_int_equal(n, 200 * 1024);
	th_file_get(&b.file, 0, got, FILE_SIZE);
	th_equal("the rest of the file", got + 4096 + n, b.content + 4096 + n,
		 FILE_SIZE - 4096 - (size_t)n);

	fault.nth = 1;
	fault_begin(&fault);
	n = cuFileWrite(b.fh, b.mem.ptr, SIZE, 4096, 0);
	assert_int_equal(n, -1);
	assert_int_equal(errno, ENOSPC);
	fault_end();
	free(got);
	bench_fini(&b);
}

static void fails_with_eio(ssize_t n)
{
	int err = errno;

	fault_end();
	assert_int_equal(n, -1);
	assert_int_equal(err, EIO);
}

/* Of a block that is read for its end only the front came: not the file's end
 */
static void an_error_right_before_the_first_byte_is_told(void **state)
{
	enum { NR = 64 };
	const struct fault fault = { .call = FAULT_PREAD,
				     .nth = 2,
				     .persist = true,
				     .err = EIO,
				     .portion = 512 };
	CUfileIOParams_t params[NR] = { 0 };
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t batch;
	struct bench b = { 0 };
	unsigned nr = NR;

	if (getenv("OCF_HYBRID"))
		th_skip("what is cached is not read in blocks");
	bench_init(&b, *state);
	for (size_t size = 4096; size <= SIZE; size *= 8) {
		fault_begin(&fault);
		fails_with_eio(cuFileRead(b.fh, b.mem.ptr, size, AT, 0));
	}
	for (int i = 0; i < NR; i++) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = b.fh,
						.opcode = CUFILE_READ };
		params[i].u.batch.devPtr_base = b.mem.ptr;
		params[i].u.batch.devPtr_offset = i * 8192;
		params[i].u.batch.file_offset = i * 8192 + AT;
		params[i].u.batch.size = 5000;
	}
	assert_int_equal(cuFileBatchIOSetUp(&batch, NR).err, 0);
	fault_begin(&fault);
	assert_int_equal(cuFileBatchIOSubmit(batch, NR, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, NR, &nr, events, NULL).err, 0);
	fault_end();
	for (int i = 0; i < NR; i++)
		assert_int_equal(events[i].status, CUFILE_FAILED);
	cuFileBatchIODestroy(batch);
	bench_fini(&b);
}

/* Many parts under way, one of them fails: the bytes before it made it. */
static void an_error_of_one_flight_ends_the_request_there(void **state)
{
	struct fault fault = { .call = FAULT_PREAD, .err = EIO };
	unsigned char *got = malloc(FILE_SIZE);
	struct bench b = { 0 };
	ssize_t n;

	assert_non_null(got);
	setenv("OCF_IO_URING", "1", 1);
	bench_init(&b, *state);
	if (!cf_rings_usable())
		th_skip("this machine refuses io_uring");
	for (fault.nth = 1; fault.nth < 5; fault.nth++) {
		th_mem_set(&b.mem, 0xa5);
		fault.call = FAULT_PREAD;
		fault_begin(&fault);
		n = cuFileRead(b.fh, b.mem.ptr, SIZE, 4096, 0);
		fault_end();
		assert_int_equal(n < 0, fault.nth == 1);
		assert_true(n < (ssize_t)SIZE);
		th_mem_get(&b.mem, 0, got, FILE_SIZE);
		th_equal("the bytes that made it", got, b.content + 4096,
			 n < 0 ? 0 : (size_t)n);
		th_all("behind the read", got + SIZE, 0xa5, FILE_SIZE - SIZE);

		fault.call = FAULT_PWRITE;
		fault_begin(&fault);
		n = cuFileWrite(b.fh, b.mem.ptr, SIZE, 4096, 0);
		fault_end();
		assert_int_equal(n < 0, fault.nth == 1);
		assert_true(n < (ssize_t)SIZE);
		th_file_get(&b.file, 0, got, FILE_SIZE);
		th_equal("the file before the write", got, b.content, 4096);
		th_equal("the file behind the write", got + 4096 + SIZE,
			 b.content + 4096 + SIZE, FILE_SIZE - 4096 - SIZE);
		th_file_put(&b.file, 0, b.content, FILE_SIZE);
	}
	free(got);
	bench_fini(&b);
}

#define CELL(test, mem, file) \
	{ \
		.name = #test " (" #mem ", " #file ")", .test_func = test, \
		.teardown_func = teardown, .initial_state = &(struct cell) \
		{ \
			mem, file \
		} \
	}
#define ALL(test) \
	CELL(test, TH_DEVICE, TH_ODIRECT), CELL(test, TH_MALLOC, TH_ODIRECT), \
		CELL(test, TH_DEVICE, TH_FORCED), \
		CELL(test, TH_MALLOC, TH_FORCED), \
		CELL(test, TH_DEVICE, TH_BUFFERED), \
		CELL(test, TH_MALLOC, TH_BUFFERED)

static const char *io_uring_given; /* by who started us */

static int teardown(void **state)
{
	fault_end();
	if (io_uring_given)
		setenv("OCF_IO_URING", io_uring_given, 1);
	else
		unsetenv("OCF_IO_URING");
	return th_teardown_close(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALL(short_counts_are_gone_on_from),
		ALL(interruptions_are_gone_on_from),
		ALL(refused_direct_io_goes_through_the_page_cache),
		CELL(refused_direct_open_goes_through_the_page_cache, TH_DEVICE,
		     TH_FORCED),
		CELL(refused_direct_open_goes_through_the_page_cache, TH_MALLOC,
		     TH_FORCED),
		CELL(a_filter_that_refuses_statx_refuses_no_file, TH_DEVICE,
		     TH_BUFFERED),
		CELL(a_filter_that_refuses_statx_refuses_no_file, TH_DEVICE,
		     TH_ODIRECT),
		CELL(a_refusal_is_remembered, TH_DEVICE, TH_ODIRECT),
		CELL(a_refusal_is_remembered, TH_MALLOC, TH_ODIRECT),
		CELL(the_bytes_before_an_error_are_counted, TH_DEVICE,
		     TH_BUFFERED),
		CELL(the_bytes_before_an_error_are_counted, TH_MALLOC,
		     TH_BUFFERED),
		CELL(the_bytes_before_an_error_are_counted, TH_DEVICE,
		     TH_ODIRECT),
		CELL(an_error_right_before_the_first_byte_is_told, TH_DEVICE,
		     TH_ODIRECT),
		CELL(an_error_of_one_flight_ends_the_request_there, TH_DEVICE,
		     TH_ODIRECT),
		CELL(an_error_of_one_flight_ends_the_request_there, TH_MALLOC,
		     TH_ODIRECT),
	};

	io_uring_given = getenv("OCF_IO_URING");
	if (io_uring_given)
		io_uring_given = strdup(io_uring_given);
	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("short", tests, NULL, NULL));
}
