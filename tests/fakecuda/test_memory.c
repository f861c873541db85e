// SPDX-License-Identifier: Apache-2.0
/*
 * test_memory - the fake driver keeps its word: device memory, pointer facts,
 * registration, pools, mapped memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"

/* --- device memory */

static void cpu_access_to_device_memory_faults(void **state)
{
	CUdeviceptr p = new_mem(4096);
	int fd = open("/proc/self/exe", O_RDONLY);

	(void)state;
	assert_true(faults((const char *)(uintptr_t)p));
	assert_int_equal(pread(fd, (void *)(uintptr_t)p, 16, 0), -1);
	assert_int_equal(errno, EFAULT);
	close(fd);
	OK(cuMemFree(p));
}

static void copies_arrive_at_every_size_and_offset(void **state)
{
	static const size_t sizes[] = {
		1, 511, 4096, 65536, 65537, 3 * MIB + 5
	};
	char *in = malloc(4 * MIB), *out = malloc(4 * MIB);
	CUdeviceptr p = new_mem(4 * MIB), q = new_mem(4 * MIB);

	(void)state;
	fill_random(in, 4 * MIB);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t n = sizes[i];

		OK(cuMemcpyHtoD(p + 3, in, n));
		OK(cuMemcpyDtoD(q + 1, p + 3, n));
		memset(out, 0, n);
		OK(cuMemcpyDtoH(out, q + 1, n));
		assert_memory_equal(in, out, n);
	}
	OK(cuMemFree(p));
	OK(cuMemFree(q));
	free(in);
	free(out);
}

static void range_checks_are_exact_to_the_byte(void **state)
{
	CUdeviceptr p = new_mem(1000);
	char buf[1001] = { 0 };
	CUdeviceptr base;
	size_t size;

	(void)state;
	OK(cuMemcpyHtoD(p, buf, 1000));
	FAILS(cuMemcpyHtoD(p, buf, 1001), 1);
	expect_complaint("past the end");
	FAILS(cuMemcpyDtoH(buf, p + 999, 2), 1);
	expect_complaint("past the end");
	FAILS(cuMemcpyDtoH(buf, p + 1000, 1), 1);
	FAILS(cuMemsetD8(p + 1, 0, 1000), 1);
	expect_complaint("past the end");
	OK(cuMemGetAddressRange(&base, &size, p + 500));
	assert_int_equal(base, p);
	assert_int_equal(size, 1000);
	FAILS(cuMemGetAddressRange(&base, &size, p + 1000), CF_CU_NOT_FOUND);
	OK(cuMemFree(p));
}

static void use_after_free_fails_and_is_reported(void **state)
{
	CUdeviceptr p = new_mem(4096);
	char b = 0;

	(void)state;
	OK(cuMemFree(p));
	FAILS(cuMemcpyHtoD(p, &b, 1), 1);
	expect_complaint("use after free");
	FAILS(cuMemFree(p), 1);
	expect_complaint("freed before");
	FAILS(cuMemFree(p + 4096 * 16), 1);
	expect_complaint("not the start");
	OK(cuMemFree(0));
}

static void small_allocations_are_aligned_to_512_only(void **state)
{
	CUdeviceptr p[8];
	bool odd = false;

	(void)state;
	for (int i = 0; i < 8; i++) {
		p[i] = new_mem(4096);
		assert_int_equal(p[i] % 512, 0);
		odd |= p[i] % 4096 != 0;
	}
	assert_true(odd);
	for (int i = 0; i < 8; i++)
		OK(cuMemFree(p[i]));
}

static void five_thousand_allocations_can_live_together(void **state)
{
	enum { NR = 5000 };
	CUdeviceptr *p = malloc(NR * sizeof(*p));

	(void)state;
	for (int i = 0; i < NR; i++) {
		p[i] = new_mem(4096);
		OK(fakecuda_write(p[i], &i, sizeof(i)));
	}
	assert_int_equal(fakecuda_live("mem"), NR);
	for (int i = 0; i < NR; i++) {
		int got = -1;

		OK(fakecuda_read(p[i], &got, sizeof(got)));
		assert_int_equal(got, i);
		OK(cuMemFree(p[i]));
	}
	free(p);
}

static void memory_is_limited_and_accounted(void **state)
{
	size_t free_bytes, total, after;
	CUdeviceptr p;

	(void)state;
	OK(cuMemGetInfo(&free_bytes, &total));
	FAILS(cuMemAlloc(&p, total + 1), CF_CU_OUT_OF_MEMORY);
	FAILS(cuMemAlloc(&p, 0), CF_CU_INVALID_VALUE);
	p = new_mem(10 * MIB);
	OK(cuMemGetInfo(&after, &total));
	assert_int_equal(free_bytes - after, 10 * MIB);
	OK(cuMemFree(p));
}

/* --- pointer attributes */

static void pointer_facts_of_device_memory(void **state)
{
	CUdeviceptr p = new_mem(1000), q = new_mem(1000);
	struct facts f = facts_of(p + 123);
	void *host;

	(void)state;
	assert_ptr_equal(f.ctx, ctx);
	assert_int_equal(f.type, CF_CU_MEMORYTYPE_DEVICE);
	assert_int_equal(f.dev, p + 123);
	assert_null(f.host);
	assert_int_equal(f.managed, 0);
	assert_int_equal(f.ordinal, 0);
	assert_int_equal(f.start, p);
	assert_int_equal(f.size, 1000);
	assert_int_equal(f.mapped, 1);
	assert_int_not_equal(f.id, facts_of(q).id);
	FAILS(cuPointerGetAttribute(
		      &host, (CUpointer_attribute)CF_CU_POINTER_HOST_POINTER,
		      p),
	      1);
	OK(cuMemFree(p));
	OK(cuMemFree(q));
}

static void pointer_facts_of_unknown_memory_are_zero(void **state)
{
	char local[16];
	struct facts f = facts_of((CUdeviceptr)(uintptr_t)local), zero = { 0 };
	unsigned int type;

	(void)state;
	zero.ordinal = f.ordinal = 0;
	assert_null(f.ctx);
	assert_int_equal(f.type, 0);
	assert_int_equal(f.dev, 0);
	assert_int_equal(f.size, 0);
	assert_int_equal(f.id, zero.id);
	FAILS(cuPointerGetAttribute(
		      &type, (CUpointer_attribute)CF_CU_POINTER_MEMORY_TYPE,
		      (CUdeviceptr)(uintptr_t)local),
	      1);
}

static void pointer_facts_of_host_managed_and_pool_memory(void **state)
{
	void *pinned, *plain = malloc(8192);
	CUdeviceptr managed, pool, dev;
	struct facts f;

	(void)state;
	OK(cuMemHostAlloc(&pinned, 100, CF_CU_MEMHOSTALLOC_PORTABLE));
	f = facts_of((CUdeviceptr)(uintptr_t)pinned + 5);
	assert_int_equal(f.type, CF_CU_MEMORYTYPE_HOST);
	assert_ptr_equal(f.host, (char *)pinned + 5);
	assert_int_equal(f.size, 100);
	OK(cuMemHostRegister(plain, 8192, 0));
	f = facts_of((CUdeviceptr)(uintptr_t)plain);
	assert_int_equal(f.type, CF_CU_MEMORYTYPE_HOST);
	assert_ptr_equal(f.ctx, ctx);
	OK(cuMemHostGetDevicePointer(&dev, plain, 0));
	assert_int_equal(dev, (uintptr_t)plain);
	OK(cuMemAllocManaged(&managed, 100, CF_CU_MEM_ATTACH_GLOBAL));
	f = facts_of(managed);
	assert_int_equal(f.type, CF_CU_MEMORYTYPE_DEVICE);
	assert_int_equal(f.managed, 1);
	assert_ptr_equal(f.host, (void *)(uintptr_t)managed);
	memset((void *)(uintptr_t)managed, 7, 100);
	assert_int_equal(peek(managed + 99), 7);
	OK(cuMemAllocAsync(&pool, 100, NULL));
	f = facts_of(pool);
	assert_null(f.ctx);
	assert_int_equal(f.type, CF_CU_MEMORYTYPE_DEVICE);
	OK(cuMemFreeAsync(pool, NULL));
	OK(cuMemFree(managed));
	OK(cuMemHostUnregister(plain));
	OK(cuMemFreeHost(pinned));
	free(plain);
}

/* --- host registration */

static void registration_refuses_overlap_and_what_is_not_there(void **state)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	OK(cuMemHostRegister(p, 5000, 0));
	FAILS(cuMemHostRegister(p + 100, 10, 0),
	      CF_CU_HOST_MEMORY_ALREADY_REGISTERED);
	FAILS(cuMemHostRegister(p - 10, 20, 0),
	      CF_CU_HOST_MEMORY_ALREADY_REGISTERED);
	FAILS(cuMemHostUnregister(p + 1), CF_CU_HOST_MEMORY_NOT_REGISTERED);
	expect_complaint("not registered");
	OK(cuMemHostUnregister(p));
	mprotect(p, 8192, PROT_READ);
	FAILS(cuMemHostRegister(p, 8192, 0), 1);
	OK(cuMemHostRegister(p, 8192, CF_CU_MEMHOSTREGISTER_READ_ONLY));
	OK(cuMemHostUnregister(p));
	munmap(p, 8192);
	FAILS(cuMemHostRegister(p, 8192, 0), 1);
}

static CUDA_MEMCPY2D rows_of(CUdeviceptr dst, const void *src, size_t width)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = CF_CU_MEMORYTYPE_HOST,
		.srcHost = src,
		.srcPitch = width,
		.dstMemoryType = CF_CU_MEMORYTYPE_DEVICE,
		.dstDevice = dst,
		.dstPitch = width,
		.WidthInBytes = width,
		.Height = 2,
	};
}

static void rows_that_lie_together_are_copied(void **state)
{
	unsigned char from[6] = { 1, 2, 3, 4, 5, 6 };
	CUdeviceptr d = new_mem(8);
	CUDA_MEMCPY2D rows = rows_of(d + 1, from, 3);

	(void)state;
	OK(cuMemsetD8(d, 9, 8));
	OK(cuMemcpy2DAsync(&rows, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(peek(d), 9);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(peek(d + 1 + i), i + 1);
	assert_int_equal(peek(d + 7), 9);
	rows = rows_of(d + 4, from, 3);
	FAILS(cuMemcpy2DAsync(&rows, NULL), 1);
	expect_complaint("past the end of an allocation");
	rows = rows_of(d, from, 3);
	rows.dstPitch = 2;
	FAILS(cuMemcpy2DAsync(&rows, NULL), 1);
	rows.dstPitch = 4;
	FAILS(cuMemcpy2DAsync(&rows, NULL), CF_CU_NOT_SUPPORTED);
	expect_complaint("rows of another kind");
	OK(cuMemFree(d));
}

static void a_fill_that_a_cpu_may_look_at_is_waited_for(void **state)
{
	unsigned int *pinned;
	CUdeviceptr managed;

	(void)state;
	OK(cuMemHostAlloc((void **)&pinned, 16, 0));
	OK(cuMemAllocManaged(&managed, 16, CF_CU_MEM_ATTACH_GLOBAL));
	OK(fakecuda_plan("cuMemsetD8_v2:1=@20000,cuMemsetD32_v2:1=@20000"));
	OK(cuMemsetD8((CUdeviceptr)(uintptr_t)pinned, 5, 16));
	assert_int_equal(pinned[3], 0x05050505);
	OK(cuMemsetD32(managed, 6, 4));
	assert_int_equal(((unsigned int *)(uintptr_t)managed)[3], 6);
	OK(cuMemFree(managed));
	OK(cuMemFreeHost(pinned));
}

static void copy_across_the_end_of_a_registration_is_refused(void **state)
{
	char *p = calloc(1, 8192);
	CUdeviceptr d = new_mem(8192);

	(void)state;
	OK(cuMemHostRegister(p + 4096, 4096, 0));
	FAILS(cuMemcpyHtoDAsync(d, p, 8192, NULL), 1);
	OK(cuMemcpyHtoDAsync(d, p + 4096, 4096, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemHostUnregister(p + 4096));
	OK(cuMemFree(d));
	free(p);
}

static void read_only_registration_is_no_target(void **state)
{
	char *p = calloc(1, 4096);
	CUdeviceptr d = new_mem(4096);

	(void)state;
	OK(cuMemHostRegister(p, 4096, CF_CU_MEMHOSTREGISTER_READ_ONLY));
	FAILS(cuMemcpyDtoHAsync(p, d, 4096, NULL), 1);
	expect_complaint("read-only");
	OK(cuMemHostUnregister(p));
	OK(cuMemFree(d));
	free(p);
}

/* A GPU reads the pages that were pinned, whatever the CPU has there by now. */
static void copy_of_a_file_page_that_went_is_what_it_was(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 2 * page;
	int fd = memfd_create("test", MFD_CLOEXEC);
	CUdeviceptr d = new_mem(size);
	unsigned char *got = malloc(size);
	char *p;

	(void)state;
	assert_non_null(got);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pwrite(fd, "old", 3, 0), 3);
	assert_int_equal(pwrite(fd, "old", 3, (off_t)page), 3);
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	FAILS(cuMemHostRegister(p, size, 0), 1);
	OK(cuMemHostRegister(p, size, CF_CU_MEMHOSTREGISTER_READ_ONLY));
	assert_int_equal(pwrite(fd, "new", 3, 0), 3); /* into the same page */
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	OK(cuMemcpyHtoDAsync(d, p, size, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(fakecuda_read(d, got, size), 0);
	assert_memory_equal(got, "new", 3);
	assert_memory_equal(got + page, "old", 4);
	assert_memory_equal(p + page, "\0\0\0", 4);
	OK(cuMemcpyHtoDAsync(d, p + page - 1, page + 1, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(fakecuda_read(d, got, size), 0);
	assert_memory_equal(got + 1, "old", 4);
	assert_int_equal(fakecuda_descriptors(), 2);
	OK(cuMemHostUnregister(p));
	assert_int_equal(fakecuda_descriptors(), 0);
	OK(cuMemFree(d));
	munmap(p, size);
	close(fd);
	free(got);
}

/* Who unregisters has been told off, and is given time not to wait. */
static void *open_gate_later(void *word)
{
	for (int i = 0; i < 100000 && !fakecuda_complaints(NULL); i++)
		usleep(100);
	usleep(30000);
	__atomic_store_n((uint32_t *)word, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void unregistering_under_a_copy_is_reported_and_waits(void **state)
{
	char *p = calloc(1, 4096);
	CUdeviceptr d = new_mem(4096);
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();
	pthread_t t;

	(void)state;
	OK(cuMemHostRegister(p, 4096, 0));
	gate_hold(g, s);
	OK(cuMemcpyHtoDAsync(d, p, 4096, s));
	pthread_create(&t, NULL, open_gate_later, g.word);
	OK(cuMemHostUnregister(p));
	expect_complaint("while an operation uses it");
	OK(cuStreamQuery(s));
	pthread_join(t, NULL);
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(g.word));
	OK(cuMemFree(d));
	free(p);
}

static void freed_pinned_memory_faults(void **state)
{
	void *p;

	(void)state;
	OK(cuMemAllocHost(&p, 4096));
	*(char *)p = 1;
	OK(cuMemFreeHost(p));
	assert_true(faults(p));
}

/* --- pools and VMM */

static CUmemPoolProps pool_props(void)
{
	CUmemPoolProps p;

	memset(&p, 0, sizeof(p));
	p.allocType = (int)CF_CU_MEM_ALLOCATION_PINNED;
	p.location.type = (int)CF_CU_MEM_LOCATION_DEVICE;
	return p;
}

static void pool_memory_is_freed_in_stream_order(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUmemPoolProps props = pool_props();
	struct gate g = gate_new();
	CUmemoryPool pool, def;
	CUdeviceptr p;

	(void)state;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuDeviceGetDefaultMemPool(&def, 0));
	assert_ptr_not_equal(pool, def);
	OK(cuMemAllocFromPoolAsync(&p, 4096, pool, s));
	gate_hold(g, s);
	OK(cuMemsetD8Async(p, 3, 4096, s));
	OK(cuMemFreeAsync(p, s));
	assert_int_equal(fakecuda_live("pool_mem"), 1);
	FAILS(cuMemsetD8Async(p, 3, 4096, s), 1);
	expect_complaint("use after free");
	FAILS(cuMemFreeAsync(p, s), 1);
	expect_complaint("freed before");
	gate_open(g);
	OK(cuStreamSynchronize(s));
	assert_int_equal(fakecuda_live("pool_mem"), 0);
	OK(cuMemPoolDestroy(pool));
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(g.word));
}

static void use_in_another_stream_after_the_free_is_reported(void **state)
{
	CUstream a = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUstream b = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();
	CUdeviceptr p;

	(void)state;
	OK(cuMemAllocAsync(&p, 16, a));
	gate_hold(g, b);
	OK(cuMemsetD8Async(p, 1, 16, b));
	OK(cuMemFreeAsync(p, a));
	OK(cuStreamSynchronize(a));
	gate_open(g);
	OK(cuStreamSynchronize(b));
	expect_complaint("was freed before");
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
	OK(cuMemFreeHost(g.word));
}

static CUmemAllocationProp vmm_prop(void)
{
	CUmemAllocationProp p;

	memset(&p, 0, sizeof(p));
	p.type = (int)CF_CU_MEM_ALLOCATION_PINNED;
	p.location.type = (int)CF_CU_MEM_LOCATION_DEVICE;
	return p;
}

static CUmemAccessDesc vmm_access(void)
{
	CUmemAccessDesc a;

	memset(&a, 0, sizeof(a));
	a.location.type = (int)CF_CU_MEM_LOCATION_DEVICE;
	a.flags = (int)CF_CU_MEM_ACCESS_READWRITE;
	return a;
}

static void mapped_memory_side_by_side_is_one_stretch(void **state)
{
	CUmemAllocationProp prop = vmm_prop();
	CUmemAccessDesc access = vmm_access();
	CUmemGenericAllocationHandle h[2];
	CUdeviceptr va;
	struct facts f;
	char *in = malloc(8192), *out = malloc(8192);

	(void)state;
	OK(cuMemAddressReserve(&va, 4 * GRAN, 0, 0, 0));
	for (unsigned int i = 0; i < 2; i++) {
		OK(cuMemCreate(&h[i], GRAN, &prop, 0));
		OK(cuMemMap(va + i * GRAN, GRAN, 0, h[i], 0));
		OK(cuMemRelease(h[i]));
	}
	FAILS(cuMemsetD8(va, 0, 16), 1);
	expect_complaint("no access");
	OK(cuMemSetAccess(va, 2 * GRAN, &access, 1));
	fill_random(in, 8192);
	OK(cuMemcpyHtoD(va + GRAN - 4096, in, 8192));
	OK(cuMemcpyDtoH(out, va + GRAN - 4096, 8192));
	assert_memory_equal(in, out, 8192);
	f = facts_of(va + GRAN + 1);
	assert_null(f.ctx);
	/* the range is the reservation, holes and all; the mapping is not */
	assert_int_equal(f.start, va);
	assert_int_equal(f.size, 4 * GRAN);
	assert_int_equal(f.mapping, va + GRAN);
	assert_int_equal(f.mapping_size, GRAN);
	FAILS(cuMemcpyDtoH(out, va + 2 * GRAN - 1, 2), 1);
	expect_complaint("past the end");
	FAILS(cuMemAddressFree(va, 4 * GRAN), 1);
	expect_complaint("still mapped");
	assert_true(faults((const char *)(uintptr_t)va));
	OK(cuMemUnmap(va, 2 * GRAN));
	OK(cuMemAddressFree(va, 4 * GRAN));
	free(in);
	free(out);
}

static void vmm_refuses_what_does_not_fit(void **state)
{
	CUmemAllocationProp prop = vmm_prop();
	CUmemGenericAllocationHandle h, again;
	CUdeviceptr va;
	size_t gran;

	(void)state;
	OK(cuMemGetAllocationGranularity(&gran, &prop, 0));
	assert_int_equal(gran, GRAN);
	FAILS(cuMemCreate(&h, GRAN + 1, &prop, 0), 1);
	OK(cuMemCreate(&h, GRAN, &prop, 0));
	OK(cuMemAddressReserve(&va, GRAN, 0, 0, 0));
	FAILS(cuMemMap(va, 2 * GRAN, 0, h, 0), 1);
	FAILS(cuMemMap(va + GRAN, GRAN, 0, h, 0), 1);
	OK(cuMemMap(va, GRAN, 0, h, 0));
	FAILS(cuMemMap(va, GRAN, 0, h, 0), 1);
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)va));
	assert_true(again == h);
	OK(cuMemRelease(again));
	OK(cuMemUnmap(va, GRAN));
	OK(cuMemRelease(h));
	FAILS(cuMemRelease(h), 1);
	expect_complaint("destroyed memory handle");
	OK(cuMemAddressFree(va, GRAN));
}

static void dmabuf_shows_the_same_bytes(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	CUdeviceptr p = new_mem(2 * MIB);
	int fd = -1;
	char *view;

	(void)state;
	OK(cuMemGetHandleForAddressRange(&fd, p, 2 * MIB, 1, 0));
	view = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(view, MAP_FAILED);
	view[77] = 42;
	assert_int_equal(peek(p + 77), 42);
	munmap(view, 2 * MIB);
	close(fd);
	FAILS(cuMemGetHandleForAddressRange(&fd, p + 1, page, 1, 0), 1);
	FAILS(cuMemGetHandleForAddressRange(&fd, p + page, page, 1, 0),
	      CF_CU_NOT_SUPPORTED);
	OK(cuMemFree(p));
}

static void exported_memory_is_the_same_and_outlives_its_handle(void **state)
{
	CUmemAllocationProp prop = vmm_prop();
	CUmemAccessDesc access = vmm_access();
	CUmemGenericAllocationHandle h;
	CUdeviceptr va;
	int fd = -1;
	char *view;

	(void)state;
	prop.requestedHandleTypes = (int)CF_CU_MEM_HANDLE_FD;
	OK(cuMemCreate(&h, GRAN, &prop, 0));
	OK(cuMemAddressReserve(&va, GRAN, 0, 0, 0));
	OK(cuMemMap(va, GRAN, 0, h, 0));
	OK(cuMemSetAccess(va, GRAN, &access, 1));
	OK(cuMemExportToShareableHandle(&fd, h, CF_CU_MEM_HANDLE_FD, 0));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	OK(cuMemRelease(h));
	view = mmap(NULL, GRAN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(view, MAP_FAILED);
	view[77] = 42;
	assert_int_equal(peek(va + 77), 42);
	OK(cuMemsetD8(va + GRAN - 1, 43, 1));
	OK(cuCtxSynchronize());
	OK(cuMemUnmap(va, GRAN));
	OK(cuMemAddressFree(va, GRAN));
	assert_int_equal(view[77], 42);
	assert_int_equal(view[GRAN - 1], 43);
	munmap(view, GRAN);
	close(fd);
}

static void only_what_was_made_for_it_is_exported(void **state)
{
	CUmemAllocationProp prop = vmm_prop();
	CUmemGenericAllocationHandle h, plain;
	int fd = -1;

	(void)state;
	OK(cuMemCreate(&plain, GRAN, &prop, 0));
	prop.requestedHandleTypes = (int)CF_CU_MEM_HANDLE_FD;
	OK(cuMemCreate(&h, GRAN, &prop, 0));
	FAILS(cuMemExportToShareableHandle(&fd, plain, CF_CU_MEM_HANDLE_FD, 0),
	      CF_CU_INVALID_VALUE);
	FAILS(cuMemExportToShareableHandle(&fd, h, 2, 0), CF_CU_NOT_SUPPORTED);
	FAILS(cuMemExportToShareableHandle(&fd, h, CF_CU_MEM_HANDLE_FD, 1),
	      CF_CU_INVALID_VALUE);
	FAILS(cuMemExportToShareableHandle(NULL, h, CF_CU_MEM_HANDLE_FD, 0),
	      CF_CU_INVALID_VALUE);
	OK(cuMemRelease(plain));
	OK(cuMemRelease(h));
	FAILS(cuMemExportToShareableHandle(&fd, h, CF_CU_MEM_HANDLE_FD, 0),
	      CF_CU_INVALID_VALUE);
	expect_complaint("destroyed memory handle");
	assert_int_equal(fd, -1);
}

int memory_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cpu_access_to_device_memory_faults),
		TEST(copies_arrive_at_every_size_and_offset),
		TEST(range_checks_are_exact_to_the_byte),
		TEST(use_after_free_fails_and_is_reported),
		TEST(small_allocations_are_aligned_to_512_only),
		TEST(five_thousand_allocations_can_live_together),
		TEST(memory_is_limited_and_accounted),
		TEST(pointer_facts_of_device_memory),
		TEST(pointer_facts_of_unknown_memory_are_zero),
		TEST(pointer_facts_of_host_managed_and_pool_memory),
		TEST(registration_refuses_overlap_and_what_is_not_there),
		TEST(rows_that_lie_together_are_copied),
		TEST(a_fill_that_a_cpu_may_look_at_is_waited_for),
		TEST(copy_across_the_end_of_a_registration_is_refused),
		TEST(read_only_registration_is_no_target),
		TEST(copy_of_a_file_page_that_went_is_what_it_was),
		TEST(unregistering_under_a_copy_is_reported_and_waits),
		TEST(freed_pinned_memory_faults),
		TEST(pool_memory_is_freed_in_stream_order),
		TEST(use_in_another_stream_after_the_free_is_reported),
		TEST(mapped_memory_side_by_side_is_one_stretch),
		TEST(vmm_refuses_what_does_not_fit),
		TEST(dmabuf_shows_the_same_bytes),
		TEST(exported_memory_is_the_same_and_outlives_its_handle),
		TEST(only_what_was_made_for_it_is_exported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
