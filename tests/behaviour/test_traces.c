// SPDX-License-Identifier: Apache-2.0
/*
 * traces - at level TRACE each request has a line with the words that scripts
 * look for (contract 4.4), whichever way it is carried.
 */
#include "fresh.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR 16

/* A request that changes its way has a line for each. */
static void check_lines(const char *op, unsigned least)
{
	const char *at = fresh_log();
	unsigned nr = 0;

	while ((at = strstr(at, "cufile IO mode: "))) {
		at = strchr(at, '(');
		assert_non_null(at);
		nr += !strncmp(at + 1, op, strlen(op));
	}
	assert_in_range(nr, least, 2 * least);
}

static void run_batch(CUfileHandle_t fh, void *base, CUfileOpcode_t opcode,
		      size_t size)
{
	CUfileBatchHandle_t batch;
	CUfileIOParams_t params[NR] = { 0 };
	CUfileIOEvents_t events[NR];
	unsigned nr = NR;

	assert_ok(cuFileBatchIOSetUp(&batch, NR));
	for (unsigned i = 0; i < NR; i++) {
		params[i].mode = CUFILE_BATCH;
		params[i].fh = fh;
		params[i].opcode = opcode;
		params[i].u.batch.devPtr_base = base;
		params[i].u.batch.devPtr_offset = (off_t)(i * size);
		params[i].u.batch.file_offset = (off_t)(i * size);
		params[i].u.batch.size = size;
	}
	assert_ok(cuFileBatchIOSubmit(batch, NR, params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &nr, events, NULL));
	assert_int_equal(nr, NR);
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(events[i].ret, size);
	cuFileBatchIODestroy(batch);
}

static void check_batches(enum th_file_kind file_kind, enum th_mem_kind kind,
			  size_t size)
{
	unsigned char *bytes = th_bytes(NR * size);
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	setenv("CUFILE_LOGGING_LEVEL", "TRACE", 1);
	th_mem_alloc(&mem, kind, NR * size);
	th_file_make(&file, file_kind, O_RDWR, bytes, NR * size);
	assert_ok(cuFileDriverOpen());
	fh = th_handle(file.fd);
	assert_int_equal(fdatasync(file.plain), 0);
	assert_int_equal(posix_fadvise(file.plain, 0, 0, POSIX_FADV_DONTNEED),
			 0);
	run_batch(fh, mem.ptr, CUFILE_READ, size);
	check_lines("read handle", NR);
	run_batch(fh, mem.ptr, CUFILE_READ, size); /* cached, if it may be */
	check_lines("read handle", 2 * NR);
	run_batch(fh, mem.ptr, CUFILE_WRITE, size);
	check_lines("write handle", NR);
	cuFileHandleDeregister(fh);
	assert_ok(cuFileDriverClose_v2());
	th_file_end(&file);
	th_mem_free(&mem);
	free(bytes);
}

static void entries_that_go_alone(void **state)
{
	check_batches(TH_BUFFERED, TH_MALLOC, 4096);
}

static void entries_in_a_bundle(void **state)
{
	th_need_gpu();
	check_batches(TH_BUFFERED, TH_DEVICE, 4096);
}

static void entries_of_a_fleet(void **state)
{
	th_need_gpu();
	check_batches(TH_ODIRECT, TH_DEVICE, 16384);
}

static void entries_of_a_fleet_in_host_memory(void **state)
{
	check_batches(TH_ODIRECT, TH_MMAP, 16384);
}

static void large_entries(void **state)
{
	th_need_gpu();
	check_batches(TH_BUFFERED, TH_DEVICE, 1 << 20);
}

/* Enough of them for a convoy, once they are cached. */
static void larger_entries(void **state)
{
	th_need_gpu();
	check_batches(TH_BUFFERED, TH_DEVICE, 4 << 20);
}

static const struct fresh_test tests[] = {
	FRESH(entries_that_go_alone), FRESH(entries_in_a_bundle),
	FRESH(entries_of_a_fleet),    FRESH(entries_of_a_fleet_in_host_memory),
	FRESH(large_entries),	      FRESH(larger_entries),
};

FRESH_MAIN(tests, 30)
