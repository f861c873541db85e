// SPDX-License-Identifier: Apache-2.0
/* buffers - registering memory of every kind, and what it changes for IO. */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE (1u << 20)

/* A file of random bytes, its handle, and device memory if there is a GPU. */
struct world {
	unsigned char *bytes;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
};

static void world_make(struct world *w, enum th_mem_kind kind)
{
	th_mem_need(kind);
	w->bytes = th_bytes(SIZE);
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, w->bytes, SIZE);
	th_mem_alloc(&w->mem, kind, SIZE);
	assert_ok(cuFileDriverOpen());
	w->fh = th_handle(w->file.fd);
}

static void world_end(struct world *w)
{
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->bytes);
}

/* Reads the file's first bytes to base + off and compares them there. */
static void assert_reads(struct world *w, size_t base, size_t off, size_t size)
{
	unsigned char *got = malloc(size);

	assert_int_equal(cuFileRead(w->fh, (char *)w->mem.ptr + base, size, 0,
				    (off_t)off),
			 size);
	th_mem_get(&w->mem, base + off, got, size);
	th_equal("buffer", got, w->bytes, size);
	free(got);
}

static char *at(const struct world *w, size_t off)
{
	return (char *)w->mem.ptr + off;
}

/* "NULL, size 0"; contract 3.7. */
static void null_and_size_0_are_refused_5022(void **state)
{
	char buf[16] = "";

	assert_ok(cuFileDriverOpen());
	assert_code(cuFileBufRegister(NULL, 16, 0), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBufRegister(buf, 0, 0), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBufRegister(NULL, 0, 0), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBufRegister(buf, SIZE_MAX, 0), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBufDeregister(NULL), CU_FILE_INVALID_VALUE);
}

static void a_buffer_is_not_registered_where_the_driver_does_not_open(
	void **state)
{
	const char *path = fresh_text_file(
		"test.json",
		"{\"miscellaneous\": {\"api_check_aggressive\": true},, }");
	char buf[16] = "";

	assert_int_equal(setenv("CUFILE_ENV_PATH_JSON", path, 1), 0);
	assert_code(cuFileBufRegister(buf, sizeof(buf), 0),
		    CU_FILE_DRIVER_INVALID_PROPS);
	unsetenv("CUFILE_ENV_PATH_JSON");
	assert_ok(cuFileDriverOpen());
	assert_code(cuFileBufDeregister(buf), CU_FILE_MEMORY_NOT_REGISTERED);
	assert_ok(cuFileBufRegister(buf, sizeof(buf), 0));
	assert_ok(cuFileBufDeregister(buf));
}

/* "flags 1, 2, 8"; cuda-python passes 999. */
static void unknown_flags_are_ignored(void **state)
{
	static const int flags[] = { 1, 2, 3, 8, 999, -1 };
	char buf[16] = "";

	assert_ok(cuFileDriverOpen());
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		assert_ok(cuFileBufRegister(buf, sizeof(buf), flags[i]));
		assert_ok(cuFileBufDeregister(buf));
	}
}

/* "same base twice"; contract 3.7. */
static void the_same_base_twice_is_refused_5023(void **state)
{
	char buf[4096] = "";

	assert_ok(cuFileBufRegister(buf, sizeof(buf), 0));
	assert_code(cuFileBufRegister(buf, sizeof(buf), 0),
		    CU_FILE_MEMORY_ALREADY_REGISTERED);
	assert_code(cuFileBufRegister(buf, 16, 0),
		    CU_FILE_MEMORY_ALREADY_REGISTERED);
	assert_ok(cuFileBufDeregister(buf));
	assert_ok(cuFileBufRegister(buf, 16, 0));
	assert_ok(cuFileBufDeregister(buf));
}

/* "deregister an address that is no registered base"; contract 3.7. */
static void deregistering_what_is_no_base_is_refused_5024(void **state)
{
	char buf[4096] = "";

	assert_ok(cuFileDriverOpen());
	assert_code(cuFileBufDeregister(buf), CU_FILE_MEMORY_NOT_REGISTERED);
	assert_ok(cuFileBufRegister(buf, sizeof(buf), 0));
	assert_code(cuFileBufDeregister(buf + 1),
		    CU_FILE_MEMORY_NOT_REGISTERED);
	assert_code(cuFileBufDeregister(buf + sizeof(buf)),
		    CU_FILE_MEMORY_NOT_REGISTERED);
	assert_ok(cuFileBufDeregister(buf));
	assert_code(cuFileBufDeregister(buf), CU_FILE_MEMORY_NOT_REGISTERED);
}

/* "malloc, mmap, pinned, pool memory", "managed", and all the others. */
static void registers_and_reads(enum th_mem_kind kind)
{
	struct world w;

	world_make(&w, kind);
	assert_ok(cuFileBufRegister(w.mem.ptr, SIZE, 0));
	assert_code(cuFileBufRegister(w.mem.ptr, SIZE, 0),
		    CU_FILE_MEMORY_ALREADY_REGISTERED);
	assert_reads(&w, 0, 0, SIZE);
	assert_reads(&w, 0, 4096, SIZE - 4096);
	assert_reads(&w, 8192, 100, 777);
	assert_int_equal(cuFileWrite(w.fh, w.mem.ptr, 65536, 0, 8192 + 100),
			 65536);
	th_file_get(&w.file, 0, w.bytes, 777);
	assert_ok(cuFileBufDeregister(w.mem.ptr));
	assert_code(cuFileBufDeregister(w.mem.ptr),
		    CU_FILE_MEMORY_NOT_REGISTERED);
	th_mem_set(&w.mem, 0x55);
	th_file_get(&w.file, 0, w.bytes, SIZE);
	assert_reads(&w, 0, 0, SIZE);
	world_end(&w);
}

static void device_memory_registers_and_reads(void **state)
{
	registers_and_reads(TH_DEVICE);
}

static void managed_memory_registers_and_reads(void **state)
{
	registers_and_reads(TH_MANAGED);
}

static void pinned_memory_registers_and_reads(void **state)
{
	registers_and_reads(TH_PINNED);
}

static void malloc_memory_registers_and_reads(void **state)
{
	registers_and_reads(TH_MALLOC);
}

static void mmap_memory_registers_and_reads(void **state)
{
	registers_and_reads(TH_MMAP);
}

static void pool_memory_registers_and_reads(void **state)
{
	registers_and_reads(TH_POOL);
}

static void vmm_memory_registers_and_reads_across_its_mappings(void **state)
{
	registers_and_reads(TH_VMM);
}

static void memory_of_a_second_context_registers_and_reads(void **state)
{
	registers_and_reads(TH_SECOND);
}

/* "overlapping or interior registration". */
static void overlapping_and_nested_registrations_all_count(void **state)
{
	struct world w;

	world_make(&w, TH_DEVICE);
	assert_ok(cuFileBufRegister(w.mem.ptr, 65536, 0));
	assert_ok(cuFileBufRegister(at(&w, 4096), 4096, 0));
	assert_ok(cuFileBufRegister(at(&w, 32768), 65536, 0));
	/* the inner one is too small, the outer one holds it */
	assert_reads(&w, 4096, 0, 8192);
	assert_reads(&w, 0, 0, 65536);
	/* only the two together would hold this */
	assert_errno(cuFileRead(w.fh, w.mem.ptr, 98304, 0, 0),
		     CU_FILE_INVALID_MAPPING_RANGE);
	assert_reads(&w, 32768, 0, 65536);
	assert_ok(cuFileBufDeregister(w.mem.ptr));
	assert_reads(&w, 4096, 0, 4096);
	assert_errno(cuFileRead(w.fh, at(&w, 4096), 8192, 0, 0),
		     CU_FILE_INVALID_MAPPING_RANGE);
	assert_ok(cuFileBufDeregister(at(&w, 4096)));
	assert_ok(cuFileBufDeregister(at(&w, 32768)));
	world_end(&w);
}

struct windows {
	struct world *w;
	struct th_bad bad;
};

static void use_window(void *arg, unsigned i)
{
	struct windows *ws = arg;
	size_t size = SIZE / 10 & ~4095u;
	char *base = at(ws->w, i * size);

	if (cuFileBufRegister(base, size, 0).err)
		th_bad_note(&ws->bad, "window %u does not register", i);
	if (cuFileRead(ws->w->fh, base, size, (off_t)(i * size), 0) !=
	    (ssize_t)size)
		th_bad_note(&ws->bad, "window %u does not read", i);
	if (cuFileBufDeregister(base).err)
		th_bad_note(&ws->bad, "window %u does not deregister", i);
}

/* Sample 016: ten windows of one allocation from ten threads. */
static void ten_windows_of_one_allocation_register_in_ten_threads(void **state)
{
	size_t all = 10 * (SIZE / 10 & ~4095u);
	unsigned char *got = malloc(all);
	struct world w;
	struct windows ws = { .w = &w };

	world_make(&w, TH_DEVICE);
	th_threads(10, use_window, &ws);
	th_bad_check(&ws.bad);
	th_mem_get(&w.mem, 0, got, all);
	th_equal("windows", got, w.bytes, all);
	free(got);
	world_end(&w);
}

/* "range beyond the allocation"; contract 3.7. */
static void a_range_beyond_the_allocation_is_refused_5014(void **state)
{
	struct world w;

	world_make(&w, TH_DEVICE);
	assert_code(cuFileBufRegister(w.mem.ptr, SIZE + 1, 0),
		    CU_FILE_CUDA_POINTER_RANGE_ERROR);
	assert_code(cuFileBufRegister(at(&w, SIZE - 4096), 4097, 0),
		    CU_FILE_CUDA_POINTER_RANGE_ERROR);
	assert_code(cuFileBufRegister(w.mem.ptr, (size_t)1 << 40, 0),
		    CU_FILE_CUDA_POINTER_RANGE_ERROR);
	assert_ok(cuFileBufRegister(at(&w, SIZE - 4096), 4096, 0));
	assert_ok(cuFileBufDeregister(at(&w, SIZE - 4096)));
	world_end(&w);
}

/* "base + 1, odd size"; sample 019 registers 3000 bytes. */
static void unaligned_bases_and_sizes_register(void **state)
{
	struct world w;

	world_make(&w, TH_DEVICE);
	assert_ok(cuFileBufRegister(at(&w, 1), 3000, 0));
	assert_reads(&w, 1, 0, 3000);
	assert_reads(&w, 1, 7, 1001);
	assert_ok(cuFileBufDeregister(at(&w, 1)));
	world_end(&w);
}

/* "unmapped host address". */
static void an_unmapped_address_registers_and_io_answers_efault(void **state)
{
	struct world w;
	char *hole;

	world_make(&w, TH_MALLOC);
	hole = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(hole, 65536);
	assert_ok(cuFileBufRegister(hole, 65536, 0));
	assert_errno(cuFileRead(w.fh, hole, 4096, 0, 0), EFAULT);
	assert_errno(cuFileWrite(w.fh, hole, 4096, 0, 0), EFAULT);
	assert_ok(cuFileBufDeregister(hole));
	assert_errno(cuFileRead(w.fh, hole, 4096, 0, 0), EFAULT);
	world_end(&w);
}

/* Record section e: the reference says EPERM. */
static void reading_into_read_only_memory_answers_efault(void **state)
{
	struct world w;
	void *page;

	world_make(&w, TH_MALLOC);
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_errno(cuFileRead(w.fh, page, 4096, 0, 0), EFAULT);
	assert_int_equal(cuFileWrite(w.fh, page, 4096, 0, 0), 4096);
	world_end(&w);
}

/* "interior pointer of a registered range as the base of a read". */
static void an_interior_pointer_counts_as_registered(void **state)
{
	struct world w;

	world_make(&w, TH_DEVICE);
	assert_ok(cuFileBufRegister(w.mem.ptr, 65536, 0));
	assert_reads(&w, 4096, 0, 4096);
	assert_reads(&w, 65535, 0, 1);
	/* it counts: the registration's end is this read's limit too */
	assert_errno(cuFileRead(w.fh, at(&w, 4096), 65536, 0, 0),
		     CU_FILE_INVALID_MAPPING_RANGE);
	world_end(&w);
}

/* "size or offset beyond the registered range but inside the allocation". */
static void io_beyond_the_registered_range_answers_5017(void **state)
{
	struct world w;

	world_make(&w, TH_DEVICE);
	assert_ok(cuFileBufRegister(w.mem.ptr, 65536, 0));
	assert_errno(cuFileRead(w.fh, w.mem.ptr, 65537, 0, 0),
		     CU_FILE_INVALID_MAPPING_RANGE);
	assert_errno(cuFileRead(w.fh, w.mem.ptr, 1, 0, 65536),
		     CU_FILE_INVALID_MAPPING_RANGE);
	assert_errno(cuFileWrite(w.fh, w.mem.ptr, 4096, 0, 61441),
		     CU_FILE_INVALID_MAPPING_RANGE);
	assert_reads(&w, 0, 61440, 4096);
	/* a base outside it is simply not registered */
	assert_reads(&w, 65536, 0, 65536);
	assert_ok(cuFileBufDeregister(w.mem.ptr));
	assert_reads(&w, 0, 0, 65537);
	world_end(&w);
}

/* "beyond the CUDA allocation". */
static void io_beyond_the_allocation_answers_5014(void **state)
{
	struct world w;

	world_make(&w, TH_DEVICE);
	assert_errno(cuFileRead(w.fh, w.mem.ptr, SIZE + 1, 0, 0),
		     CU_FILE_CUDA_POINTER_RANGE_ERROR);
	assert_errno(cuFileWrite(w.fh, w.mem.ptr, 4096, 0, SIZE - 4095),
		     CU_FILE_CUDA_POINTER_RANGE_ERROR);
	assert_reads(&w, SIZE - 4096, 0, 4096);
	world_end(&w);
}

/*
 * A registration is of the memory, not of its address: freed and allocated
 * anew it does not bound the new memory (core/buffer.c, BUFFER_ID).
 */
static void a_registration_of_freed_memory_does_not_count(void **state)
{
	const size_t small = 65536;
	void *before;
	struct world w;

	world_make(&w, TH_DEVICE);
	th_mem_free(&w.mem);
	th_mem_alloc(&w.mem, TH_DEVICE, small);
	before = w.mem.ptr;
	assert_ok(cuFileBufRegister(before, small, 0));
	th_mem_free(&w.mem);
	/* a real driver likes to; the fake's answer is in tests/unit */
	th_mem_alloc(&w.mem, TH_DEVICE, SIZE);
	if (w.mem.ptr != before) {
		world_end(&w);
		th_skip("the driver did not give the address again");
	}
	assert_reads(&w, 0, 0, SIZE);
	assert_ok(cuFileBufDeregister(before));
	world_end(&w);
}

/* Nor does it keep the new memory from being registered. */
static void memory_at_the_base_of_freed_memory_registers(void **state)
{
	const struct th_fake *fake = th_need_fake();
	void *before;
	struct world w;

	world_make(&w, TH_DEVICE);
	fake->reuse_handles(1);
	before = w.mem.ptr;
	assert_ok(cuFileBufRegister(before, SIZE, 0));
	for (int i = 0; i < 100; i++) {
		th_mem_free(&w.mem);
		th_mem_alloc(&w.mem, TH_DEVICE, SIZE);
		if (w.mem.ptr == before)
			break;
	}
	if (th_emulated() && w.mem.ptr != before) {
		world_end(&w);
		th_skip("the emulator did not give the address again");
	}
	assert_ptr_equal(w.mem.ptr, before);
	assert_ok(cuFileBufRegister(before, SIZE - 1, 0));
	assert_code(cuFileBufRegister(before, SIZE, 0),
		    CU_FILE_MEMORY_ALREADY_REGISTERED);
	assert_reads(&w, 0, 0, SIZE - 1);
	assert_errno(cuFileRead(w.fh, before, SIZE, 0, 0),
		     CU_FILE_INVALID_MAPPING_RANGE);
	assert_ok(cuFileBufDeregister(before));
	assert_code(cuFileBufDeregister(before), CU_FILE_MEMORY_NOT_REGISTERED);
	world_end(&w);
}

/* What was deregistered is gone in any case. */
static void new_memory_at_an_old_base_may_be_registered(void **state)
{
	struct world w;
	void *before;

	world_make(&w, TH_DEVICE);
	before = w.mem.ptr;
	assert_ok(cuFileBufRegister(before, SIZE, 0));
	assert_ok(cuFileBufDeregister(before));
	th_mem_free(&w.mem);
	th_mem_alloc(&w.mem, TH_DEVICE, SIZE);
	assert_ok(cuFileBufRegister(w.mem.ptr, SIZE, 0));
	assert_reads(&w, 0, 0, SIZE);
	assert_ok(cuFileBufDeregister(w.mem.ptr));
	world_end(&w);
}

/* Samples 023 to 026: memory that grows at its end, registered anew. */
static void vmm_memory_is_registered_again_after_it_has_grown(void **state)
{
	CUmemAllocationProp prop = { 0 };
	CUmemAccessDesc access = { .flags = CF_CU_MEM_ACCESS_READWRITE };
	CUmemGenericAllocationHandle parts[2];
	CUdeviceptr base;
	struct world w;
	size_t unit = 0;

	world_make(&w, TH_DEVICE);
	prop.type = CF_CU_MEM_ALLOCATION_PINNED;
	prop.location.type = CF_CU_MEM_LOCATION_DEVICE;
	access.location = prop.location;
	assert_int_equal(cuMemGetAllocationGranularity(&unit, &prop, 0), 0);
	assert_int_equal(cuMemAddressReserve(&base, 2 * unit, 0, 0, 0), 0);
	for (size_t i = 0; i < 2; i++) {
		void *ptr = (void *)(uintptr_t)base;

		assert_int_equal(cuMemCreate(&parts[i], unit, &prop, 0), 0);
		assert_int_equal(
			cuMemMap(base + i * unit, unit, 0, parts[i], 0), 0);
		assert_int_equal(
			cuMemSetAccess(base + i * unit, unit, &access, 1), 0);
		assert_code(cuFileBufRegister(ptr, (i + 2) * unit, 0),
			    CU_FILE_CUDA_POINTER_RANGE_ERROR);
		assert_ok(cuFileBufRegister(ptr, (i + 1) * unit, 0));
		assert_int_equal(cuFileRead(w.fh, ptr, 8192, 0,
					    (off_t)((i + 1) * unit - 8192)),
				 8192);
		assert_ok(cuFileBufDeregister(ptr));
	}
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(cuMemUnmap(base + i * unit, unit), 0);
		assert_int_equal(cuMemRelease(parts[i]), 0);
	}
	assert_int_equal(cuMemAddressFree(base, 2 * unit), 0);
	world_end(&w);
}

/* "cost: microseconds". Completes; a quadratic table would not in time. */
static void a_hundred_thousand_registrations_live_at_once(void **state)
{
	const size_t nr = TH_SCALE(100000);
	struct world w;

	world_make(&w, TH_MALLOC);
	for (size_t i = 0; i < nr; i++)
		assert_ok(cuFileBufRegister(at(&w, i * 8), 8, 0));
	assert_reads(&w, 8 * (nr / 2), 0, 8);
	assert_errno(cuFileRead(w.fh, at(&w, 8 * (nr / 2)), 9, 0, 0),
		     CU_FILE_INVALID_MAPPING_RANGE);
	for (size_t i = nr; i--;)
		assert_ok(cuFileBufDeregister(at(&w, i * 8)));
	assert_reads(&w, 0, 0, SIZE);
	world_end(&w);
}

static const struct fresh_test tests[] = {
	FRESH(null_and_size_0_are_refused_5022),
	FRESH(a_buffer_is_not_registered_where_the_driver_does_not_open),
	FRESH(unknown_flags_are_ignored),
	FRESH(the_same_base_twice_is_refused_5023),
	FRESH(deregistering_what_is_no_base_is_refused_5024),
	FRESH(device_memory_registers_and_reads),
	FRESH(managed_memory_registers_and_reads),
	FRESH(pinned_memory_registers_and_reads),
	FRESH(malloc_memory_registers_and_reads),
	FRESH(mmap_memory_registers_and_reads),
	FRESH(pool_memory_registers_and_reads),
	FRESH(vmm_memory_registers_and_reads_across_its_mappings),
	FRESH(memory_of_a_second_context_registers_and_reads),
	FRESH(overlapping_and_nested_registrations_all_count),
	FRESH(ten_windows_of_one_allocation_register_in_ten_threads),
	FRESH(a_range_beyond_the_allocation_is_refused_5014),
	FRESH(unaligned_bases_and_sizes_register),
	FRESH(an_unmapped_address_registers_and_io_answers_efault),
	FRESH(reading_into_read_only_memory_answers_efault),
	FRESH(an_interior_pointer_counts_as_registered),
	FRESH(io_beyond_the_registered_range_answers_5017),
	FRESH(io_beyond_the_allocation_answers_5014),
	FRESH(a_registration_of_freed_memory_does_not_count),
	FRESH(memory_at_the_base_of_freed_memory_registers),
	FRESH(new_memory_at_an_old_base_may_be_registered),
	FRESH(vmm_memory_is_registered_again_after_it_has_grown),
	FRESH(a_hundred_thousand_registrations_live_at_once),
};

FRESH_MAIN(tests, 60)
