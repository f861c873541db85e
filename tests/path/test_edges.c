// SPDX-License-Identifier: Apache-2.0
/*
 * The ends of files, allocations and registrations, for every memory kind
 * (contract 3.7, 3.8; behaviour, "Buffers" and "Reads and writes").
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"

/* A file of this kind, a handle on it, and memory of this kind. */
struct bench {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned char *content;
	size_t file_size;
};

static void bench_init(struct bench *b, enum th_mem_kind mem_kind,
		       enum th_file_kind file_kind, size_t file_size,
		       size_t mem_size)
{
	b->file_size = file_size;
	b->content = th_bytes(file_size);
	th_file_make(&b->file, file_kind, O_RDWR, b->content, file_size);
	th_mem_alloc(&b->mem, mem_kind, mem_size);
	b->fh = th_handle(b->file.fd);
}

static void bench_fini(struct bench *b)
{
	cuFileHandleDeregister(b->fh);
	th_mem_free(&b->mem);
	th_file_end(&b->file);
	free(b->content);
}

static void refused(ssize_t n, int code)
{
	int err = errno;

	assert_int_equal(n, -1);
	assert_int_equal(err, code);
}

/* Reads size bytes at off; expects what the file has there and no more. */
static void read_at(struct bench *b, size_t off, size_t size)
{
	size_t have = off < b->file_size ? b->file_size - off : 0;
	size_t n = have < size ? have : size;
	unsigned char *got = malloc(b->mem.size);
	char what[80];

	assert_non_null(got);
	snprintf(what, sizeof(what), "read of %zu bytes at %zu of %zu", size,
		 off, b->file_size);
	th_mem_set(&b->mem, 0xa5);
	assert_int_equal(cuFileRead(b->fh, b->mem.ptr, size, (off_t)off, 64),
			 (ssize_t)n);
	th_mem_get(&b->mem, 0, got, b->mem.size);
	th_all(what, got, 0xa5, 64);
	if (n)
		th_equal(what, got + 64, b->content + off, n);
	th_all(what, got + 64 + n, 0xa5, b->mem.size - 64 - n);
	free(got);
}

static const enum th_file_kind end_kinds[] = { TH_BUFFERED, TH_ODIRECT,
					       TH_TMPFS };

static void read_ends_where_the_file_does(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	static const size_t file_sizes[] = { 0, 1, 4096, 10000,
					     3 * 1024 * 1024 + 17 };
	struct bench b = { 0 };

	th_mem_need(kind);
	th_open();
	for (size_t i = 0; i < 15; i++) {
		size_t size = file_sizes[i % 5];

		bench_init(&b, kind, end_kinds[i / 5], size, size + 65536);
		read_at(&b, 0, size + 8192);
		read_at(&b, size / 2, size);
		read_at(&b, size / 2 | 1, size + 1);
		read_at(&b, size ? size - 1 : 0, 4096);
		read_at(&b, size, 4096);	       /* at the end */
		read_at(&b, size + 1, 5000);	       /* past it */
		read_at(&b, size + (1ul << 40), 4096); /* far past it */
		bench_fini(&b);
	}
	th_close();
}

/* Writes size bytes at off into a file of file_size; nothing else changes. */
static void grow_at(struct bench *b, size_t off, size_t size)
{
	size_t end = off + size > b->file_size ? off + size : b->file_size;
	unsigned char *want = calloc(1, end + 1), *got = malloc(end + 1);
	char what[80];

	assert_non_null(want);
	assert_non_null(got);
	snprintf(what, sizeof(what), "write of %zu bytes at %zu to %zu", size,
		 off, b->file_size);
	assert_int_equal(ftruncate(b->file.plain, 0), 0);
	th_file_put(&b->file, 0, b->content, b->file_size);
	memcpy(want, b->content, b->file_size);
	th_fill(want + off, size);
	th_mem_put(&b->mem, 64, want + off, size);
	assert_int_equal(cuFileWrite(b->fh, b->mem.ptr, size, (off_t)off, 64),
			 (ssize_t)size);
	assert_int_equal(th_file_size(&b->file), (off_t)end);
	th_file_get(&b->file, 0, got, end);
	th_equal(what, got, want, end);
	free(want);
	free(got);
}

static void write_extends_the_file_exactly(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	struct bench b = { 0 };

	th_mem_need(kind);
	th_open();
	for (size_t i = 0; i < 3; i++) {
		bench_init(&b, kind, end_kinds[i], 5000, 4 * TH_MIB);
		grow_at(&b, 5000, 1);
		grow_at(&b, 5000, 4096);
		grow_at(&b, 4096, 4097);
		grow_at(&b, 0, 65536);
		grow_at(&b, 0, 65537);
		grow_at(&b, 4999, 2 * TH_MIB + 3);
		grow_at(&b, 12345, 100); /* leaves a hole */
		grow_at(&b, 3 * TH_MIB, TH_MIB + 1);
		bench_fini(&b);
	}
	th_close();
}

static void size_zero_moves_nothing_and_answers_zero(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	struct bench b = { 0 };

	th_mem_need(kind);
	th_open();
	bench_init(&b, kind, TH_ODIRECT, 100, 4096);
	assert_int_equal(cuFileRead(b.fh, b.mem.ptr, 0, 0, 0), 0);
	assert_int_equal(cuFileRead(b.fh, b.mem.ptr, 0, 1 << 20, 0), 0);
	assert_int_equal(cuFileWrite(b.fh, b.mem.ptr, 0, 1 << 20, 0), 0);
	assert_int_equal(th_file_size(&b.file), 100);
	bench_fini(&b);
	th_close();
}

static void numbers_out_of_range_are_refused(void **state)
{
	struct bench b = { 0 };

	th_open();
	bench_init(&b, TH_MALLOC, TH_BUFFERED, 100, 4096);
	refused(cuFileRead(b.fh, b.mem.ptr, 10, -1, 0), EINVAL);
	refused(cuFileRead(b.fh, b.mem.ptr, 10, 0, -1), EINVAL);
	refused(cuFileWrite(b.fh, b.mem.ptr, 10, -4096, 0), EINVAL);
	refused(cuFileWrite(b.fh, b.mem.ptr, 10, 0, LONG_MIN), EINVAL);
	refused(cuFileRead(b.fh, b.mem.ptr, SIZE_MAX, 0, 0), EINVAL);
	refused(cuFileRead(b.fh, b.mem.ptr, 10, LLONG_MAX, 0), EINVAL);
	refused(cuFileWrite(b.fh, b.mem.ptr, 10, LLONG_MAX - 5, 0), EINVAL);
	refused(cuFileRead(b.fh, NULL, 10, 0, 0), EINVAL);
	refused(cuFileRead(NULL, b.mem.ptr, 10, 0, 0), EINVAL);
	refused(cuFileRead((CUfileHandle_t)b.mem.ptr, b.mem.ptr, 10, 0, 0),
		EINVAL);
	assert_int_equal(th_file_size(&b.file), 100);
	bench_fini(&b);
	refused(cuFileRead(b.fh, &b, 10, 0, 0), EINVAL); /* stale */
	th_close();
}

/* An end that comes out below its start lies in any range, and in none. */
static void ranges_that_wrap_around_are_refused(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	char *top = (char *)(UINTPTR_MAX - 99);
	struct bench b = { 0 };

	th_mem_need(kind);
	th_open();
	bench_init(&b, kind, TH_BUFFERED, 100, 4096);
	for (int registered = 0; registered < 2; registered++) {
		refused(cuFileRead(b.fh, b.mem.ptr, LLONG_MAX, 0, LLONG_MAX),
			EINVAL);
		refused(cuFileWrite(b.fh, b.mem.ptr, LLONG_MAX, 0, LLONG_MAX),
			EINVAL);
		refused(cuFileRead(b.fh, top, 4096, 0, 0), EINVAL);
		refused(cuFileWrite(b.fh, top, 50, 0, 50), EINVAL);
		refused(cuFileRead(b.fh, top, 1, 0, 4096), EINVAL);
		if (!registered)
			assert_int_equal(
				cuFileBufRegister(b.mem.ptr, 4096, 0).err, 0);
	}
	assert_int_equal(cuFileBufDeregister(b.mem.ptr).err, 0);
	assert_int_equal(th_file_size(&b.file), 100);
	bench_fini(&b);
	th_close();
}

static void range_beyond_the_allocation_is_5014(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	size_t size = 4 * TH_MIB;
	struct bench b = { 0 };
	CUfileError_t e;

	th_mem_need(kind);
	th_open();
	bench_init(&b, kind, TH_BUFFERED, 2 * size, size);
	if (kind == TH_VMM)
		size = (size_t)(b.mem.area + 2 * b.mem.half -
				(uintptr_t)b.mem.ptr);
	assert_int_equal(cuFileRead(b.fh, b.mem.ptr, 100, 0, (off_t)size - 100),
			 100);
	refused(cuFileRead(b.fh, b.mem.ptr, size + 4096, 0, 0), 5014);
	refused(cuFileRead(b.fh, b.mem.ptr, 8192, 0, (off_t)size - 4096), 5014);
	refused(cuFileWrite(b.fh, b.mem.ptr, 101, 0, (off_t)size - 100), 5014);
	refused(cuFileWrite(b.fh, (char *)b.mem.ptr + size - 100, 101, 0, 0),
		5014);
	e = cuFileBufRegister(b.mem.ptr, size + 1, 0);
	assert_int_equal(e.err, CU_FILE_CUDA_POINTER_RANGE_ERROR);
	assert_int_equal(e.cu_err, 0);
	bench_fini(&b);
	th_close();
}

static void range_beyond_the_registration_is_5017(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	struct bench b = { 0 };
	char *base;

	th_mem_need(kind);
	th_open();
	bench_init(&b, kind, TH_BUFFERED, TH_MIB, TH_MIB);
	base = (char *)b.mem.ptr + 4096;
	assert_int_equal(cuFileBufRegister(base, 8192, 0).err, 0);
	assert_int_equal(cuFileRead(b.fh, base, 8192, 0, 0), 8192);
	refused(cuFileRead(b.fh, base, 8193, 0, 0), 5017);
	refused(cuFileRead(b.fh, base, 100, 0, 8192), 5017);
	refused(cuFileWrite(b.fh, base, 4097, 0, 4096), 5017);
	refused(cuFileWrite(b.fh, base + 4096, 4097, 0, 0), 5017);
	/* an unregistered base is nobody's promise */
	assert_int_equal(cuFileRead(b.fh, b.mem.ptr, 65536, 0, 0), 65536);
	assert_int_equal(cuFileBufDeregister(base).err, 0);
	assert_int_equal(cuFileRead(b.fh, base, 8193, 0, 0), 8193);
	bench_fini(&b);
	th_close();
}

static void interior_pointers_of_a_registration_work(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	unsigned char got[5000];
	struct bench b = { 0 };
	char *inside;

	th_mem_need(kind);
	th_open();
	bench_init(&b, kind, TH_ODIRECT, TH_MIB, TH_MIB);
	inside = (char *)b.mem.ptr + 12345;
	assert_int_equal(cuFileBufRegister(b.mem.ptr, TH_MIB, 0).err, 0);
	assert_int_equal(cuFileBufRegister(inside, 300000, 0).err, 0);
	assert_int_equal(cuFileRead(b.fh, inside, 5000, 4096, 111), 5000);
	th_mem_get(&b.mem, 12345 + 111, got, 5000);
	th_equal("interior read", got, b.content + 4096, 5000);
	/* beyond the inner one, inside the outer one */
	assert_int_equal(cuFileRead(b.fh, inside, 400000, 0, 0), 400000);
	assert_int_equal(cuFileBufDeregister(b.mem.ptr).err, 0);
	refused(cuFileRead(b.fh, inside, 400000, 0, 0), 5017);
	assert_int_equal(cuFileBufDeregister(inside + 1).err,
			 CU_FILE_MEMORY_NOT_REGISTERED);
	assert_int_equal(cuFileBufDeregister(inside).err, 0);
	bench_fini(&b);
	th_close();
}

static void a_registration_does_not_outlive_its_allocation(void **state)
{
	struct th_mem mem, next;
	struct th_file file;
	unsigned char *bytes = th_bytes(TH_MIB);
	CUfileHandle_t fh;

	(void)state;
	th_mem_need(TH_DEVICE);
	th_open();
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, TH_MIB);
	fh = th_handle(file.fd);
	th_mem_alloc(&mem, TH_DEVICE, 65536);
	assert_int_equal(cuFileBufRegister(mem.ptr, 4096, 0).err, 0);
	th_mem_free(&mem);
	/* whether or not the address comes back, the old promise is void */
	th_mem_alloc(&next, TH_DEVICE, 65536);
	assert_int_equal(cuFileRead(fh, next.ptr, 65536, 0, 0), 65536);
	th_mem_free(&next);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	free(bytes);
	th_close();
}

#define SLOT (256 * TH_KIB)

/* Of as many bytes as so many slots have, or of one more or less. */
static void reads_that_just_fill_slots_end(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	static const size_t nr_slots[] = { 1, 2, 7, 8, 9 };
	static const size_t offs[] = { 0, 1, 777, 4095, 4096 };
	struct bench b = { 0 };

	th_mem_need(kind);
	th_slots_of(SLOT);
	th_open();
	for (size_t i = 0; i < 2; i++) {
		bench_init(&b, kind, end_kinds[i], 10 * SLOT, 10 * SLOT);
		for (size_t k = 0; k < 25; k++) {
			size_t off = offs[k % 5], size = nr_slots[k / 5] * SLOT;

			read_at(&b, off, size - 1);
			read_at(&b, off, size);
			read_at(&b, off, size + 1);
		}
		bench_fini(&b);
	}
	th_close();
}

/* Those that are there were made for other parts. */
static void slots_stay_as_they_are_when_their_bound_is_raised(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	size_t kib[] = { 64 }, counts[] = { 16 };
	struct bench b = { 0 };

	th_mem_need(kind);
	assert_int_equal(
		cuFileSetParameterPosixPoolSlabArray(kib, counts, 1).err, 0);
	th_open();
	for (size_t i = 0; i < 2; i++) {
		bench_init(&b, kind, end_kinds[i], 3 * TH_MIB, 4 * TH_MIB);
		read_at(&b, 1, 2 * TH_MIB);
		assert_int_equal(
			cuFileDriverSetMaxCacheSize(65536 * (i + 1)).err, 0);
		read_at(&b, 0, 3 * TH_MIB);
		read_at(&b, 777, 200 * TH_KIB);
		grow_at(&b, 5, 3 * TH_MIB);
		bench_fini(&b);
	}
	th_close();
}

#define EVERY(test) \
	TH_OF(test, TH_DEVICE), TH_OF(test, TH_MANAGED), \
		TH_OF(test, TH_PINNED), TH_OF(test, TH_MALLOC), \
		TH_OF(test, TH_MMAP), TH_OF(test, TH_POOL), \
		TH_OF(test, TH_VMM), TH_OF(test, TH_SECOND)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EVERY(read_ends_where_the_file_does),
		EVERY(write_extends_the_file_exactly),
		EVERY(size_zero_moves_nothing_and_answers_zero),
		TH_OF(numbers_out_of_range_are_refused, TH_MALLOC),
		TH_OF(ranges_that_wrap_around_are_refused, TH_MALLOC),
		TH_OF(ranges_that_wrap_around_are_refused, TH_DEVICE),
		TH_OF(range_beyond_the_allocation_is_5014, TH_DEVICE),
		TH_OF(range_beyond_the_allocation_is_5014, TH_MANAGED),
		TH_OF(range_beyond_the_allocation_is_5014, TH_VMM),
		TH_OF(range_beyond_the_allocation_is_5014, TH_SECOND),
		EVERY(range_beyond_the_registration_is_5017),
		EVERY(interior_pointers_of_a_registration_work),
		TH_OF(a_registration_does_not_outlive_its_allocation,
		      TH_DEVICE),
		EVERY(reads_that_just_fill_slots_end),
		EVERY(slots_stay_as_they_are_when_their_bound_is_raised),
	};

	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("edges", tests, NULL, NULL));
}
