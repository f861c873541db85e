// SPDX-License-Identifier: Apache-2.0
/*
 * Several GPUs in one process: each has its own slots, within its own bound,
 * and nobody's bytes or troubles reach another. The fake driver has four; on
 * a machine with two or more real ones up to four are used.
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdlib.h>
#include <string.h>
#include "core/gpu.h"
#include "harness.h"

#define MAX_GPUS 4
#define PER_GPU 8 /* threads */
#define PAD ((size_t)512)

static int nr_gpus;
static CUcontext primary[MAX_GPUS];

static void need_gpus(void)
{
	if (nr_gpus < 2)
		th_skip("needs two GPUs, here are %d", nr_gpus);
}

static int find_gpus(void **state)
{
	int nr = 0;

	(void)state;
	if (!th_gpu(NULL) || cuDeviceGetCount(&nr) != CF_CU_SUCCESS)
		return 0;
	for (; nr_gpus < nr && nr_gpus < MAX_GPUS; nr_gpus++)
		if (cuDevicePrimaryCtxRetain(&primary[nr_gpus], nr_gpus))
			break;
	return 0;
}

/* -------------------------------------------------------------- memory */

struct mem {
	int gpu;
	size_t size;
	CUdeviceptr ptr;
};

static void enter(int gpu)
{
	assert_int_equal(cuCtxPushCurrent(primary[gpu]), 0);
}

static void leave(void)
{
	CUcontext popped;

	assert_int_equal(cuCtxPopCurrent(&popped), 0);
}

static void mem_alloc(struct mem *mem, int gpu, size_t size, bool managed)
{
	*mem = (struct mem){ .gpu = gpu, .size = size };
	enter(gpu);
	assert_int_equal(managed ? cuMemAllocManaged(&mem->ptr, size,
						     CF_CU_MEM_ATTACH_GLOBAL) :
				   cuMemAlloc(&mem->ptr, size),
			 0);
	assert_int_equal(cuMemsetD8(mem->ptr, 0xa5, size), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
	leave();
}

static void mem_get(const struct mem *mem, void *bytes)
{
	enter(mem->gpu);
	assert_int_equal(cuMemcpyDtoH(bytes, mem->ptr, mem->size), 0);
	leave();
}

static void mem_free(struct mem *mem)
{
	enter(mem->gpu);
	assert_int_equal(cuMemFree(mem->ptr), 0);
	leave();
}

/* --------------------------------------------------------------- files */

struct work {
	struct th_bad bad;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned char *content;
	size_t size; /* of the file */
	size_t part; /* of it, for one thread */
	int rounds;
};

static void work_begin(struct work *w, size_t size)
{
	w->size = size;
	w->content = th_bytes(size);
	th_file_make(&w->file, TH_TMPFS, O_RDWR, w->content, size);
	w->fh = th_handle(w->file.fd);
}

static void work_end(struct work *w)
{
	th_bad_check(&w->bad);
	cuFileHandleDeregister(w->fh);
	th_file_end(&w->file);
	free(w->content);
}

/* Reads [at, at + size) behind PAD bytes; what lies around it stays. */
static void read_part(struct work *w, const struct mem *mem, size_t at,
		      size_t size)
{
	unsigned char *got = malloc(mem->size);
	ssize_t n = cuFileRead(w->fh, (void *)(uintptr_t)mem->ptr, size,
			       (off_t)at, PAD);

	if (n != (ssize_t)size)
		th_bad_note(&w->bad, "GPU %d: read %zd of %zu, errno %d",
			    mem->gpu, n, size, errno);
	mem_get(mem, got);
	if (memcmp(got + PAD, w->content + at, size))
		th_bad_note(&w->bad, "GPU %d: other bytes at %zu", mem->gpu,
			    at);
	for (size_t i = 0; i < PAD; i++)
		if (got[i] != 0xa5 || got[mem->size - 1 - i] != 0xa5)
			th_bad_note(&w->bad, "GPU %d: a neighbour changed",
				    mem->gpu);
	free(got);
}

/* --------------------------------------------------------------- pools */

/* Pinned for GPU n in the order of first use. */
static size_t pinned(unsigned n)
{
	const struct cf_gpu *gpu = cf_gpu_at(n);
	size_t large, small = 0, leased;

	assert_non_null(gpu);
	cf_pool_usage(gpu->pool, &large, &leased);
	assert_int_equal(leased, 0);
	if (gpu->small != gpu->pool)
		cf_pool_usage(gpu->small, &small, &leased);
	assert_int_equal(leased, 0);
	return large + small;
}

static void only_the_gpu_of_the_memory_gets_slots(void **state)
{
	struct work w = { 0 };
	struct mem mem;

	(void)state;
	need_gpus();
	work_begin(&w, TH_MIB);
	for (int i = 0; i < nr_gpus; i++) {
		int gpu = nr_gpus - 1 - i;
		size_t before = i ? pinned(0) : 0;

		assert_null(cf_gpu_at((unsigned)i));
		mem_alloc(&mem, gpu, TH_MIB + 2 * PAD, false);
		read_part(&w, &mem, 0, TH_MIB);
		mem_free(&mem);
		assert_int_equal(cf_gpu_at((unsigned)i)->ordinal, gpu);
		assert_true(pinned((unsigned)i) > 0);
		if (i)
			assert_int_equal(pinned(0), before);
	}
	work_end(&w);
}

/* ------------------------------------------------------------- at once */

static void read_much(void *arg, unsigned i)
{
	struct work *w = arg;
	struct mem mem;

	mem_alloc(&mem, (int)i % nr_gpus, w->part + 2 * PAD, false);
	for (int r = 0; r < w->rounds; r++) {
		size_t size = 1 + th_below(w->part);
		size_t at = th_below(w->size - size);
		struct mem tight = mem;

		/* whole, and of any size at any place */
		tight.size = size + 2 * PAD;
		read_part(w, &mem, i * 4096, w->part);
		enter(mem.gpu);
		cuMemsetD8(mem.ptr, 0xa5, mem.size);
		cuCtxSynchronize();
		leave();
		read_part(w, &tight, at, size);
		enter(mem.gpu);
		cuMemsetD8(mem.ptr, 0xa5, mem.size);
		cuCtxSynchronize();
		leave();
	}
	mem_free(&mem);
}

static void all_gpus_read_at_once(size_t part, int rounds)
{
	struct work w = { .part = part, .rounds = rounds };

	work_begin(&w, part + PER_GPU * MAX_GPUS * 4096);
	th_threads((unsigned)(PER_GPU * nr_gpus), read_much, &w);
	work_end(&w);
}

static void eight_threads_to_each_gpu_have_their_own_bytes(void **state)
{
	(void)state;
	need_gpus();
	all_gpus_read_at_once(TH_SCALE(200) * TH_KIB + 77, TH_SCALE(20));
}

static void no_gpu_pins_more_than_the_default_allows(void **state)
{
	(void)state;
	need_gpus();
	setenv("OCF_MAPPED", "off", 1); /* needs no slots */
	th_open();
	unsetenv("OCF_MAPPED");
	all_gpus_read_at_once(TH_SCALE(16) * TH_MIB, 1);
	for (int i = 0; i < nr_gpus; i++) {
		assert_true(pinned((unsigned)i) >= 4 * TH_MIB);
		/* max_device_cache_size_kb, and far below 256 MiB */
		assert_true(pinned((unsigned)i) <= 128 * TH_MIB);
	}
	assert_null(cf_gpu_at((unsigned)nr_gpus));
}

/* As if nobody gave any back. */
static void lease_all(struct cf_pool *pool)
{
	struct cf_slot *slots = NULL, *slot;

	while ((slot = cf_slot_try_lease(pool))) {
		slot->next = slots;
		slots = slot;
	}
	while ((slot = slots)) {
		slots = slot->next;
		cf_slot_give_back(pool, slot);
	}
}

static void set_cache_kib(size_t kib)
{
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, kib)
			.err,
		0);
}

static void each_gpu_keeps_its_bound_however_much_is_wanted(void **state)
{
	static const size_t kib[] = { 16384, 24576, 131072 };

	(void)state;
	need_gpus();
	for (size_t i = 0; i < 3; i++) {
		set_cache_kib(kib[i]);
		th_open();
		all_gpus_read_at_once(2 * TH_MIB, 1);
		for (unsigned n = 0; n < (unsigned)nr_gpus; n++) {
			assert_true(pinned(n) <= kib[i] * TH_KIB);
			lease_all(cf_gpu_at(n)->pool);
			lease_all(cf_gpu_at(n)->small);
			/* what a slot of 4 MiB leaves over is not used */
			assert_true(pinned(n) <= kib[i] * TH_KIB);
			assert_true(pinned(n) > kib[i] * TH_KIB - 4 * TH_MIB);
		}
		th_close();
	}
}

/* ------------------------------------------------------------ contexts */

static void any_context_may_be_current(void **state)
{
	struct work w = { 0 };

	(void)state;
	need_gpus();
	work_begin(&w, 3 * TH_MIB);
	for (int gpu = 0; gpu < nr_gpus; gpu++)
		/* the last one: none is current */
		for (int cur = 0; cur <= nr_gpus; cur++) {
			CUcontext want = cur < nr_gpus ? primary[cur] : NULL;
			CUcontext now;
			struct mem mem;

			mem_alloc(&mem, gpu, 3 * TH_MIB, false);
			assert_int_equal(cuCtxSetCurrent(want), 0);
			read_part(&w, &mem, 4096 + 11,
				  3 * TH_MIB - 2 * PAD - 4096);
			assert_int_equal(cuCtxGetCurrent(&now), 0);
			assert_ptr_equal(now, want);
			mem_free(&mem);
		}
	work_end(&w);
}

static void a_registered_buffer_is_written_from_its_own_gpu(void **state)
{
	struct work w = { 0 };
	unsigned char *got = malloc(TH_MIB);
	struct mem mem[MAX_GPUS];

	(void)state;
	need_gpus();
	work_begin(&w, MAX_GPUS * TH_MIB);
	for (int i = 0; i < nr_gpus; i++) {
		void *ptr;

		mem_alloc(&mem[i], i, TH_MIB, false);
		ptr = (void *)(uintptr_t)mem[i].ptr;
		enter(i);
		assert_int_equal(cuMemsetD8(mem[i].ptr, 0x11 * (i + 1), TH_MIB),
				 0);
		leave();
		enter((i + 1) % nr_gpus);
		assert_int_equal(cuFileBufRegister(ptr, TH_MIB, 0).err, 0);
		assert_int_equal(cuFileWrite(w.fh, ptr, TH_MIB - 99,
					     (off_t)((size_t)i * TH_MIB), 99),
				 TH_MIB - 99);
		leave();
	}
	for (int i = 0; i < nr_gpus; i++) {
		void *ptr = (void *)(uintptr_t)mem[i].ptr;
		size_t at = (size_t)i * TH_MIB;

		th_file_get(&w.file, (off_t)at, got, TH_MIB);
		th_all("written by its GPU", got, 0x11 * (i + 1), TH_MIB - 99);
		th_equal("behind it", got + TH_MIB - 99,
			 w.content + at + TH_MIB - 99, 99);
		assert_int_equal(cuFileBufDeregister(ptr).err, 0);
		mem_free(&mem[i]);
	}
	free(got);
	work_end(&w);
}

static void managed_memory_of_each_gpu_is_read(void **state)
{
	struct work w = { 0 };
	struct mem mem;

	(void)state;
	need_gpus();
	work_begin(&w, 2 * TH_MIB);
	for (int gpu = 0; gpu < nr_gpus; gpu++) {
		mem_alloc(&mem, gpu, 2 * TH_MIB, true);
		assert_int_equal(cuCtxSetCurrent(primary[(gpu + 1) % nr_gpus]),
				 0);
		read_part(&w, &mem, 777, 2 * TH_MIB - 2 * PAD);
		mem_free(&mem);
	}
	work_end(&w);
}

/* --------------------------------------------------------------- batches */

#define PER_BATCH 6 /* entries of a GPU */

/* Of GPU after GPU a part of its memory; of the file one behind the other. */
static CUfileIOParams_t entry_of(const struct work *w, const struct mem *mem,
				 CUfileOpcode_t opcode, unsigned i)
{
	size_t row = i / (unsigned)nr_gpus;
	CUfileIOParams_t p = { .mode = CUFILE_BATCH,
			       .fh = w->fh,
			       .opcode = opcode,
			       .cookie = (void *)(size_t)i };

	p.u.batch.devPtr_base =
		(void *)(uintptr_t)mem[i % (unsigned)nr_gpus].ptr;
	p.u.batch.devPtr_offset = (off_t)(PAD + row * w->part);
	p.u.batch.file_offset = (off_t)(i * w->part);
	p.u.batch.size = w->part;
	return p;
}

/* Their memory has PAD bytes on both sides of its parts. */
static void carry_batch(const struct work *w, const struct mem *mem,
			CUfileOpcode_t opcode)
{
	unsigned nr = PER_BATCH * (unsigned)nr_gpus, all = nr;
	CUfileIOParams_t params[PER_BATCH * MAX_GPUS];
	CUfileIOEvents_t events[PER_BATCH * MAX_GPUS];
	CUfileBatchHandle_t batch;

	for (unsigned i = 0; i < nr; i++)
		params[i] = entry_of(w, mem, opcode, i);
	assert_int_equal(cuFileBatchIOSetUp(&batch, nr).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, nr, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, nr, &all, events, NULL).err, 0);
	assert_int_equal(all, nr);
	for (unsigned i = 0; i < nr; i++) {
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
		assert_int_equal(events[i].ret, w->part);
	}
	cuFileBatchIODestroy(batch);
}

static void batch_mem_alloc(const struct work *w, struct mem *mem)
{
	for (int i = 0; i < nr_gpus; i++)
		mem_alloc(&mem[i], i, PER_BATCH * w->part + 2 * PAD, false);
}

static void one_batch_reads_into_all_gpus(void **state)
{
	/* that share copies, that do not, and that go one by one */
	static const size_t parts[] = { 3000, 40000, 300000 };

	(void)state;
	need_gpus();
	for (size_t k = 0; k < 3; k++) {
		struct work w = { .part = parts[k] };
		unsigned char *got = malloc(PER_BATCH * parts[k] + 2 * PAD);
		struct mem mem[MAX_GPUS];

		work_begin(&w, PER_BATCH * MAX_GPUS * w.part);
		batch_mem_alloc(&w, mem);
		carry_batch(&w, mem, CUFILE_READ);
		for (int i = 0; i < nr_gpus; i++) {
			size_t row = (size_t)nr_gpus * w.part;
			unsigned char *at = got + PAD;

			mem_get(&mem[i], got);
			th_all("before", got, 0xa5, PAD);
			for (size_t n = 0; n < PER_BATCH; n++, at += w.part)
				th_equal("a part", at,
					 w.content + n * row +
						 (size_t)i * w.part,
					 w.part);
			th_all("behind", at, 0xa5, PAD);
			mem_free(&mem[i]);
		}
		free(got);
		work_end(&w);
	}
}

/* Two reads as a batch in a stream of the second GPU, into what may be the
 * first's. */
static void carry_in_second_stream(const struct work *w, void *const *bases)
{
	CUfileIOParams_t params[2];
	CUfileIOEvents_t events[2];
	CUfileBatchHandle_t batch;
	CUstream stream;
	unsigned nr = 2;

	for (unsigned i = 0; i < nr; i++) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = w->fh,
						.opcode = CUFILE_READ };
		params[i].u.batch.devPtr_base = bases[i];
		params[i].u.batch.file_offset = (off_t)(i * w->part);
		params[i].u.batch.size = w->part;
	}
	assert_int_equal(cuFileBatchIOSetUp(&batch, nr).err, 0);
	enter(1);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(
		ocf_batch_submit_stream(batch, nr, params, 0, stream).err, 0);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	leave();
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, nr, &nr, events, NULL).err, 0);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(events[i].ret, w->part);
	cuFileBatchIODestroy(batch);
}

/*
 * Managed memory is reached from any GPU, and mapped memory from its own alone,
 * which is where managed memory of the same batch may lie, too.
 */
static void a_kernel_reaches_for_mapped_memory_of_its_own_gpu(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_MANAGED, TH_VMM };
	struct work w = { .part = 4096 };
	unsigned long before = th_ferry_orders();
	unsigned char *got = malloc(w.part);
	struct th_mem mem[2];
	void *bases[2];

	(void)state;
	need_gpus();
	th_mem_need(TH_VMM);
	work_begin(&w, 2 * w.part);
	for (int i = 0; i < 2; i++) {
		th_mem_alloc(&mem[i], kinds[i], w.part);
		bases[i] = mem[i].ptr;
	}
	carry_in_second_stream(&w, bases);
	if (th_fake()) /* whose kernels stray without a trace */
		assert_int_equal(th_ferry_orders() - before, 1);
	for (int i = 0; i < 2; i++) {
		th_mem_get(&mem[i], 0, got, w.part);
		th_equal(th_mem_name(kinds[i]), got, w.content + i * w.part,
			 w.part);
		th_mem_free(&mem[i]);
	}
	free(got);
	work_end(&w);
}

/* Behaviour, principle 5: the default stream of each context there is. */
static void one_batch_writes_what_all_gpus_did_before(void **state)
{
	const struct th_fake *fake;
	struct work w = { .part = 5000 };
	unsigned char got[5000];
	struct mem mem[MAX_GPUS];

	(void)state;
	need_gpus();
	fake = th_fake();
	work_begin(&w, PER_BATCH * MAX_GPUS * w.part);
	batch_mem_alloc(&w, mem);
	for (int i = 0; i < nr_gpus; i++) {
		/* each is there later than the one before it */
		if (fake)
			fake->legacy_delay_us(1000 + 30000u * (unsigned)i);
		enter(i);
		assert_int_equal(
			cuMemsetD8(mem[i].ptr, 0x11 * (i + 1), mem[i].size), 0);
		leave();
	}
	carry_batch(&w, mem, CUFILE_WRITE);
	if (fake)
		fake->legacy_delay_us(0);
	for (int i = 0; i < PER_BATCH * nr_gpus; i++) {
		th_file_get(&w.file, (off_t)((size_t)i * w.part), got, w.part);
		th_all("written by its GPU", got, 0x11 * (i % nr_gpus + 1),
		       w.part);
	}
	for (int i = 0; i < nr_gpus; i++)
		mem_free(&mem[i]);
	work_end(&w);
}

/* ----------------------------------------------------------------- ends */

static void a_close_gives_every_gpu_back(void **state)
{
	static const char *const kinds[] = { "stream", "event", "host_register",
					     "module" };
	const struct th_fake *fake;
	long retains;

	(void)state;
	need_gpus();
	fake = th_need_fake();
	retains = fake->live("primary_retain");
	for (int round = 0; round < 3; round++) {
		th_open();
		all_gpus_read_at_once(TH_MIB, 1);
		assert_int_equal(fake->live("primary_retain"),
				 retains + nr_gpus);
		assert_true(fake->live("host_register") >= nr_gpus);
		th_close();
		assert_null(cf_gpu_at(0));
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			assert_int_equal(fake->live(kinds[i]), 0);
		assert_int_equal(fake->live("primary_retain"), retains);
	}
}

struct losing {
	struct work w;
	struct mem mem[MAX_GPUS];
	int lost; /* the GPU */
	_Atomic bool is_lost;
};

/* Thread 0 breaks a GPU's context; each other thread is a GPU's reader. */
static void read_or_lose(void *arg, unsigned i)
{
	struct losing *l = arg;
	int gpu = (int)i - 1;

	if (!i) {
		th_sleep_ms(20);
		th_fake()->lose_context(primary[l->lost]);
		l->is_lost = true;
		return;
	}
	for (int after = 0; after < 5; after += l->is_lost) {
		void *ptr = (void *)(uintptr_t)l->mem[gpu].ptr;
		bool broken = l->is_lost;

		if (gpu != l->lost) {
			read_part(&l->w, &l->mem[gpu], 4096, TH_MIB);
			continue;
		}
		if (cuFileRead(l->w.fh, ptr, TH_MIB, 0, PAD) < 0) {
			if (errno != CU_FILE_CUDA_DRIVER_ERROR)
				th_bad_note(&l->w.bad, "errno %d", errno);
		} else if (broken) {
			th_bad_note(&l->w.bad, "a broken context reads");
		}
	}
}

/* ------------------------------------------------------- mapped memory */

/* Two mappings side by side, the second one of another GPU or of the same. */
struct mapped {
	CUdeviceptr base;
	size_t unit;
	CUmemGenericAllocationHandle parts[2];
};

static void mapped_make(struct mapped *m, int second_gpu)
{
	CUmemAllocationProp prop = { .type = CF_CU_MEM_ALLOCATION_PINNED };
	CUmemAccessDesc access = { .flags = CF_CU_MEM_ACCESS_READWRITE };

	prop.location.type = CF_CU_MEM_LOCATION_DEVICE;
	access.location = prop.location;
	enter(0);
	assert_int_equal(cuMemGetAllocationGranularity(&m->unit, &prop, 0), 0);
	assert_int_equal(cuMemAddressReserve(&m->base, 3 * m->unit, 0, 0, 0),
			 0);
	for (size_t i = 0; i < 2; i++) {
		prop.location.id = i ? second_gpu : 0;
		assert_int_equal(cuMemCreate(&m->parts[i], m->unit, &prop, 0),
				 0);
		assert_int_equal(cuMemMap(m->base + i * m->unit, m->unit, 0,
					  m->parts[i], 0),
				 0);
	}
	assert_int_equal(cuMemSetAccess(m->base, 2 * m->unit, &access, 1), 0);
	leave();
}

static void mapped_end(struct mapped *m)
{
	enter(0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(cuMemUnmap(m->base + i * m->unit, m->unit), 0);
		assert_int_equal(cuMemRelease(m->parts[i]), 0);
	}
	assert_int_equal(cuMemAddressFree(m->base, 3 * m->unit), 0);
	leave();
}

static void is_out_of_range(ssize_t n)
{
	assert_int_equal(n, -1);
	assert_int_equal(errno, CU_FILE_CUDA_POINTER_RANGE_ERROR);
}

/* Contract 3.7: a request is of one GPU's memory, and of memory. */
static void mappings_of_two_gpus_are_not_one_buffer(void **state)
{
	struct work w = { 0 };

	(void)state;
	need_gpus();
	work_begin(&w, 16384);
	for (int second = 0; second < 2; second++) {
		struct mapped m;
		void *seam;
		ssize_t n;

		mapped_make(&m, second);
		seam = (void *)(uintptr_t)(m.base + m.unit - 8192);
		n = cuFileRead(w.fh, seam, 8192, 0, 0);
		assert_int_equal(n, 8192);
		n = cuFileRead(w.fh, seam, 8193, 0, 0);
		if (second)
			is_out_of_range(n);
		else
			assert_int_equal(n, 8193);
		assert_int_equal(cuFileBufRegister(seam, 8193, 0).err,
				 second ? CU_FILE_CUDA_POINTER_RANGE_ERROR : 0);
		if (!second)
			assert_int_equal(cuFileBufDeregister(seam).err, 0);
		/* a hole follows */
		is_out_of_range(cuFileRead(w.fh, (char *)seam + 8192, 8193, 0,
					   (off_t)(m.unit - 8192)));
		mapped_end(&m);
	}
	work_end(&w);
}

/* The last test: there is no way back from a broken primary context. */
static void a_gpu_that_breaks_leaves_the_others_alone(void **state)
{
	struct losing l = { .lost = 1 };
	long retains;

	(void)state;
	need_gpus();
	retains = th_need_fake()->live("primary_retain");
	th_open();
	work_begin(&l.w, 2 * TH_MIB);
	for (int i = 0; i < nr_gpus; i++)
		mem_alloc(&l.mem[i], i, TH_MIB + 2 * PAD, false);
	th_threads((unsigned)nr_gpus + 1, read_or_lose, &l);
	work_end(&l.w);
	for (int i = 0; i < nr_gpus; i++)
		if (i != l.lost)
			mem_free(&l.mem[i]);
	th_close();
	/* what is left of ours died with the context */
	assert_int_equal(th_fake()->live("primary_retain"), retains);
	th_fake()->reset();
}

#define OPENED(test) \
	cmocka_unit_test_setup_teardown(test, th_setup_open, th_teardown_close)
#define CLOSED(test) cmocka_unit_test_teardown(test, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OPENED(only_the_gpu_of_the_memory_gets_slots),
		OPENED(eight_threads_to_each_gpu_have_their_own_bytes),
		CLOSED(no_gpu_pins_more_than_the_default_allows),
		CLOSED(each_gpu_keeps_its_bound_however_much_is_wanted),
		OPENED(any_context_may_be_current),
		OPENED(a_registered_buffer_is_written_from_its_own_gpu),
		OPENED(managed_memory_of_each_gpu_is_read),
		OPENED(mappings_of_two_gpus_are_not_one_buffer),
		OPENED(one_batch_reads_into_all_gpus),
		OPENED(one_batch_writes_what_all_gpus_did_before),
		OPENED(a_kernel_reaches_for_mapped_memory_of_its_own_gpu),
		CLOSED(a_close_gives_every_gpu_back),
		CLOSED(a_gpu_that_breaks_leaves_the_others_alone),
	};

	th_start(200);
	return th_finish(
		cmocka_run_group_tests_name("gpus", tests, find_gpus, NULL));
}
