// SPDX-License-Identifier: Apache-2.0
/*
 * The bytes of batches: every kind of memory and file, mixed, unaligned, many
 * entries on few slots, many threads, and cancels in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "engine/plan_batch.h"
#include "harness.h"
#include "path/bundle.h"
#include "seam/os.h"

#define MAX_NR 4096

/* What a batch moves: windows of one memory and of one file. */
struct field {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	size_t size;	       /* of both */
	unsigned char *in_mem; /* as it must be */
	unsigned char *in_file;
};

static void field_init(struct field *f, enum th_mem_kind mem_kind,
		       enum th_file_kind file_kind, size_t size)
{
	f->size = size;
	f->in_file = th_bytes(size);
	f->in_mem = th_bytes(size);
	th_mem_alloc(&f->mem, mem_kind, size);
	th_mem_put(&f->mem, 0, f->in_mem, size);
	th_file_make(&f->file, file_kind, O_RDWR, f->in_file, size);
	f->fh = th_handle(f->file.fd);
}

static void field_check(struct field *f)
{
	unsigned char *got = malloc(f->size);

	th_mem_get(&f->mem, 0, got, f->size);
	th_equal(th_mem_name(f->mem.kind), got, f->in_mem, f->size);
	th_file_get(&f->file, 0, got, f->size);
	th_equal(th_file_name(f->file.kind), got, f->in_file, f->size);
	assert_int_equal(th_file_size(&f->file), f->size);
	free(got);
}

static void field_fini(struct field *f)
{
	cuFileHandleDeregister(f->fh);
	th_file_end(&f->file);
	th_mem_free(&f->mem);
	free(f->in_mem);
	free(f->in_file);
}

/* An entry, and its effect on what must be. */
static CUfileIOParams_t move(struct field *f, CUfileOpcode_t opcode,
			     size_t mem_at, size_t file_at, size_t size,
			     size_t cookie)
{
	CUfileIOParams_t p = { .mode = CUFILE_BATCH,
			       .fh = f->fh,
			       .opcode = opcode,
			       .cookie = (void *)cookie };
	/* by base and offset, or by an interior pointer */
	size_t inside = cookie & 1 ? mem_at : 0;

	p.u.batch.devPtr_base = (char *)f->mem.ptr + inside;
	p.u.batch.devPtr_offset = (off_t)(mem_at - inside);
	p.u.batch.file_offset = (off_t)file_at;
	p.u.batch.size = size;
	if (opcode == CUFILE_READ)
		memcpy(f->in_mem + mem_at, f->in_file + file_at, size);
	else
		memcpy(f->in_file + file_at, f->in_mem + mem_at, size);
	return p;
}

static CUfileBatchHandle_t batch_of(unsigned nr)
{
	CUfileBatchHandle_t batch;

	assert_int_equal(cuFileBatchIOSetUp(&batch, nr).err, 0);
	return batch;
}

/* Submits, and reaps in odd portions; each entry has one whole event. */
static void run_batch(CUfileBatchHandle_t batch, CUfileIOParams_t *params,
		      unsigned nr)
{
	static bool seen[MAX_NR];
	static CUfileIOEvents_t events[MAX_NR];
	unsigned done = 0;

	memset(seen, 0, sizeof(seen));
	assert_int_equal(cuFileBatchIOSubmit(batch, nr, params, 0).err, 0);
	while (done < nr) {
		unsigned n = nr;
		unsigned least = 1 + (unsigned)th_below(nr - done);

		assert_int_equal(
			cuFileBatchIOGetStatus(batch, least, &n, events, NULL)
				.err,
			0);
		assert_in_range(n, least, nr - done);
		for (unsigned i = 0; i < n; i++) {
			size_t k = (size_t)events[i].cookie;

			assert_true(k < nr && !seen[k]);
			seen[k] = true;
			assert_int_equal(events[i].status, CUFILE_COMPLETE);
			assert_int_equal(events[i].ret, params[k].u.batch.size);
		}
		done += n;
	}
}

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
		params[i] = move(f, opcode, mem_at, file_at, size, i);
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
	field_init(&f, mem_kind, file_kind, NR_WINDOWS * WINDOW);
	batch = batch_of(NR_WINDOWS);
	for (int round = 0; round < 3; round++) {
		run_batch(batch, params, part_entries(&f, CUFILE_READ, params));
		field_check(&f);
		run_batch(batch, params,
			  part_entries(&f, CUFILE_WRITE, params));
		field_check(&f);
	}
	cuFileBatchIODestroy(batch);
	field_fini(&f);
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
	batch = batch_of(2 * NR_FIELDS * NR_WINDOWS);
	for (int k = 0; k < NR_FIELDS; k++)
		field_init(&f[k], kinds[k].mem, kinds[k].file,
			   2 * NR_WINDOWS * WINDOW);
	for (unsigned i = 0; i < NR_WINDOWS; i++)
		for (unsigned k = 0; k < NR_FIELDS; k++) {
			/* read into one window, write out of its neighbour */
			size_t at = 2 * i * WINDOW;
			size_t size = 1 + th_below(i % 5 ? 5000 : WINDOW);

			params[nr] = move(&f[k], CUFILE_READ, at, at, size, nr);
			nr++;
			at += WINDOW;
			params[nr] =
				move(&f[k], CUFILE_WRITE, at, at, size, nr);
			nr++;
		}
	run_batch(batch, params, nr);
	for (int k = 0; k < NR_FIELDS; k++) {
		field_check(&f[k]);
		field_fini(&f[k]);
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
	batch = batch_of(NR_FILES * NR_WRITES);
	for (unsigned k = 0; k < NR_FILES; k++)
		field_init(&f[k], k % 2 ? TH_MALLOC : TH_DEVICE, TH_BUFFERED,
			   NR_WRITES * 2 * 8 * TH_KIB);
	for (int round = 0; round < 3; round++, nr = 0) {
		for (unsigned i = 0; i < NR_WRITES; i++)
			for (unsigned k = 0; k < NR_FILES; k++) {
				size_t at = (2 * i + (unsigned)round % 2) * 8 *
					    TH_KIB;

				params[nr] = move(&f[k], CUFILE_WRITE, at, at,
						  1 + th_below(8 * TH_KIB), nr);
				nr++;
			}
		run_batch(batch, params, nr);
	}
	for (unsigned k = 0; k < NR_FILES; k++) {
		field_check(&f[k]);
		field_fini(&f[k]);
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

	field_init(&f, kind, TH_BUFFERED, nr * each);
	batch = batch_of(nr);
	/* at scattered places of the file, as 128 of them hang the reference */
	for (unsigned i = 0; i < nr; i++)
		params[i] = move(&f, CUFILE_READ, i * each, th_below(nr) * each,
				 each, i);
	begun = th_now_ns();
	run_batch(batch, params, nr);
	ns += th_now_ns() - begun;
	field_check(&f);
	for (unsigned i = 0; i < nr; i++)
		params[i] = move(&f, CUFILE_WRITE, th_below(nr) * each,
				 i * each, each, i);
	begun = th_now_ns();
	run_batch(batch, params, nr);
	ns += th_now_ns() - begun;
	field_check(&f);
	cuFileBatchIODestroy(batch);
	field_fini(&f);
	free(params);
	return ns;
}

static void set_size(CUFileSizeTConfigParameter_t param, size_t value)
{
	assert_int_equal(cuFileSetParameterSizeT(param, value).err, 0);
}

static void four_thousand_entries_pass_through_two_slots(void **state)
{
	th_need_gpu();
	set_size(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 64);
	set_size(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 128);
	set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6);
	th_open();
	many_entries(TH_DEVICE, MAX_NR, 4096);
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
	set_size(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 512);
	set_size(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 512);
	th_open();
	field_init(&f, TH_DEVICE, TH_BUFFERED, 64 * (each + 16));
	batch = batch_of(64);
	for (size_t gap = 0; gap <= 16; gap++) {
		for (size_t i = 0, at = 0; i < 64; i++, at += each + gap) {
			/* by the base, all of them */
			params[i] =
				move(&f, gap & 1 ? CUFILE_WRITE : CUFILE_READ,
				     at, at, each, 0);
			params[i].cookie = (void *)i;
		}
		run_batch(batch, params, 64);
	}
	field_check(&f);
	cuFileBatchIODestroy(batch);
	field_fini(&f);
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
	set_size(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 4);
	set_size(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 8);
	set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 3);
	th_open();
	many_entries(TH_DEVICE, 100, 9 * TH_KIB);
	th_close();
}

static unsigned crews_of(CUfileHandle_t fh, unsigned nr, size_t each)
{
	struct cf_piece piece = { .op = CF_READ, .size = each };
	struct cf_crew_plan plan;

	piece.handle = cf_handle_get(fh);
	assert_non_null(piece.handle);
	plan = cf_plan_crews(nr,
			     (unsigned long long)nr * cf_plan_cost_ns(&piece),
			     (unsigned long long)nr * cf_bundle_need(&piece));
	cf_handle_put(piece.handle);
	return plan.bundles;
}

/* Whatever the machine has; and one behind the other in memory and file. */
static void come_by_crews(unsigned crews, unsigned nr, size_t each)
{
	CUfileIOParams_t *params = calloc(nr, sizeof(*params));
	CUfileBatchHandle_t batch;
	struct field f;

	th_need_gpu();
	set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 8);
	th_open();
	field_init(&f, TH_DEVICE, TH_BUFFERED, nr * each);
	assert_int_equal(crews_of(f.fh, nr, each), crews);
	batch = batch_of(nr);
	for (unsigned i = 0; i < nr; i++)
		params[i] = move(&f, CUFILE_READ, i * each, i * each, each, i);
	run_batch(batch, params, nr);
	field_check(&f);
	cuFileBatchIODestroy(batch);
	field_fini(&f);
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
	set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6);
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
	field_init(&f, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, TH_BUFFERED,
		   64 * 4096);
	batch = batch_of(64);
	for (int round = 0; round < TH_SCALE(2000); round++) {
		for (unsigned i = 0; i < 64; i++)
			params[i] = move(&f, CUFILE_READ, i * 4096,
					 th_below(64) * 4096, 4096, i);
		run_batch(batch, params, 64);
	}
	field_check(&f);
	cuFileBatchIODestroy(batch);
	field_fini(&f);
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
	field_init(&f, TH_DEVICE, TH_BUFFERED, 64 * 4096);
	batch = batch_of(64);
	for (int round = 0; round < 5; round++) {
		/* the last word of the last entry; the first is for warmth */
		word = 64 * 4096 - 4;
		memset(f.in_file + word, 0x5a, 4);
		th_file_put(&f.file, (off_t)word, f.in_file + word, 4);
		for (unsigned i = 0; i < 64; i++)
			params[i] = move(&f, CUFILE_READ, i * 4096, i * 4096,
					 4096, i);
		run_batch(batch, params, 64);
		field_check(&f);
		assert_int_equal(cuMemsetD8((uintptr_t)f.mem.ptr, 0, f.size),
				 0);
		assert_int_equal(cuCtxSynchronize(), 0);
		th_sleep_ms(100u << round);
		stream = fill_gpu(&module, (uintptr_t)f.mem.ptr + word);
		run_batch(batch, params, 64);
		assert_int_equal(cuStreamSynchronize(stream), 0);
		field_check(&f);
		assert_int_equal(cuStreamDestroy(stream), 0);
		assert_int_equal(cuModuleUnload(module), 0);
	}
	cuFileBatchIODestroy(batch);
	field_fini(&f);
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
	field_init(&f, TH_DEVICE, TH_BUFFERED, 64 * 4096);
	batch = batch_of(64);
	if (th_fake())
		th_fake()->legacy_delay_us(30000);
	assert_int_equal(cuMemcpyHtoD((uintptr_t)f.mem.ptr, new, 64 * 4096), 0);
	memcpy(f.in_mem, new, 64 * 4096);
	for (unsigned i = 0; i < 64; i++)
		params[i] = move(&f, CUFILE_WRITE, i * 4096, i * 4096, 4096, i);
	run_batch(batch, params, 64);
	if (th_fake())
		th_fake()->legacy_delay_us(0);
	field_check(&f);
	cuFileBatchIODestroy(batch);
	field_fini(&f);
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
	field_init(&f[0], TH_DEVICE, TH_BUFFERED, size);
	field_init(&f[1], TH_SECOND, TH_BUFFERED, size);
	batch = batch_of(32);
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
		params[i] = move(&f[i % 2], CUFILE_WRITE, i / 2 * each,
				 i / 2 * each, each, i);
	run_batch(batch, params, 32);
	cuFileBatchIODestroy(batch);
	for (unsigned k = 0; k < 2; k++) {
		field_check(&f[k]);
		field_fini(&f[k]);
	}
	free(new);
	th_close();
}

/* -------------------------------------------------------------- threads */

#define NR_THREADS 64
#define EACH 16
#define NR_ROUNDS TH_SCALE(40)

struct crowd {
	CUfileBatchHandle_t shared;
	struct field f;
	atomic_uint submitted, reaped;
	atomic_uint left[NR_THREADS]; /* of a thread's entries: not reaped */
	struct th_bad bad;
};

static void own_entries(struct crowd *c, unsigned thread,
			CUfileIOParams_t *params)
{
	size_t at = (size_t)thread * EACH * 4096;

	for (unsigned i = 0; i < EACH; i++, at += 4096) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = c->f.fh,
						.opcode = CUFILE_READ,
						.cookie = &c->left[thread] };
		params[i].u.batch.devPtr_base = c->f.mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)at;
		params[i].u.batch.file_offset = (off_t)at;
		params[i].u.batch.size = 4096;
	}
}

static void reap_some(struct crowd *c, CUfileBatchHandle_t batch, unsigned min)
{
	CUfileIOEvents_t events[EACH];
	unsigned nr = EACH;
	CUfileError_t error =
		cuFileBatchIOGetStatus(batch, min, &nr, events, NULL);

	if (error.err)
		th_bad_note(&c->bad, "status answers %d", error.err);
	for (unsigned i = 0; i < nr && !error.err; i++) {
		if (events[i].status != CUFILE_COMPLETE ||
		    events[i].ret != 4096)
			th_bad_note(&c->bad, "status %d ret %zd",
				    events[i].status, events[i].ret);
		atomic_fetch_sub((atomic_uint *)events[i].cookie, 1);
	}
	if (!error.err)
		atomic_fetch_add(&c->reaped, nr);
}

/* Memory that a read is still under way into is nobody's to give again. */
static void submit_own(struct crowd *c, CUfileBatchHandle_t batch,
		       CUfileIOParams_t *params, atomic_uint *left)
{
	CUfileError_t error;

	if (atomic_load(left))
		return;
	atomic_store(left, EACH);
	error = cuFileBatchIOSubmit(batch, EACH, params, 0);
	if (!error.err) {
		atomic_fetch_add(&c->submitted, EACH);
		return;
	}
	atomic_store(left, 0);
	if (error.err != CU_FILE_BATCH_FULL || batch != c->shared)
		th_bad_note(&c->bad, "submit answers %d", error.err);
}

/* Half of them share a batch: what one submits another may reap. */
static void submit_and_reap(void *arg, unsigned thread)
{
	struct crowd *c = arg;
	CUfileIOParams_t params[EACH];
	CUfileBatchHandle_t own = NULL, batch = c->shared;

	own_entries(c, thread, params);
	if (thread & 1) {
		if (cuFileBatchIOSetUp(&own, EACH).err)
			th_bad_note(&c->bad, "no batch");
		batch = own;
	}
	for (int round = 0; round < NR_ROUNDS; round++) {
		submit_own(c, batch, params, &c->left[thread]);
		reap_some(c, batch, own ? EACH : 1);
	}
	cuFileBatchIODestroy(own);
}

static void sixty_four_threads_submit_and_reap(void **state)
{
	struct crowd c = { .submitted = 0 };
	unsigned before;

	set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6);
	th_open();
	field_init(&c.f, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, TH_BUFFERED,
		   NR_THREADS * EACH * 4096);
	c.shared = batch_of(NR_THREADS * EACH / 4);
	th_threads(NR_THREADS, submit_and_reap, &c);
	do {
		before = atomic_load(&c.reaped);
		reap_some(&c, c.shared, EACH);
	} while (atomic_load(&c.reaped) != before);
	th_bad_check(&c.bad);
	/* each entry one event, and no event that nobody asked for */
	assert_int_equal(atomic_load(&c.reaped), atomic_load(&c.submitted));
	memcpy(c.f.in_mem, c.f.in_file, c.f.size);
	field_check(&c.f);
	cuFileBatchIODestroy(c.shared);
	field_fini(&c.f);
	th_close();
}

#define CREWED 64
#define CREWED_EACH (16 * TH_KIB)

/* Reads of one size each, one behind the other. */
struct reads {
	CUfileBatchHandle_t batch;
	CUfileIOParams_t params[CREWED];
	unsigned nr;
	enum th_mem_kind kind;
};

/*
 * Memory of its own for each round, freed after the cancel or the destroy:
 * a late byte is seen by the address sanitizer and by the fake driver.
 */
static void submit_and_stop(struct crowd *c, struct reads *r, unsigned wait_ms,
			    bool destroy)
{
	size_t each = r->params[0].u.batch.size;
	struct th_mem mem;

	if (!r->batch && cuFileBatchIOSetUp(&r->batch, r->nr).err)
		th_bad_note(&c->bad, "no batch");
	th_mem_alloc(&mem, r->kind, r->nr * each);
	for (unsigned i = 0; i < r->nr; i++) {
		r->params[i].u.batch.devPtr_base = mem.ptr;
		r->params[i].u.batch.devPtr_offset = (off_t)(i * each);
	}
	if (cuFileBatchIOSubmit(r->batch, r->nr, r->params, 0).err)
		th_bad_note(&c->bad, "submit");
	if (wait_ms)
		th_sleep_ms(wait_ms);
	if (destroy) {
		cuFileBatchIODestroy(r->batch);
		r->batch = NULL;
	} else if (cuFileBatchIOCancel(r->batch).err) {
		th_bad_note(&c->bad, "cancel");
	}
	th_mem_free(&mem);
}

static void cancel_and_free(void *arg, unsigned thread)
{
	struct reads r = { .nr = EACH,
			   .kind = th_gpu(NULL) && thread & 1 ? TH_DEVICE :
								TH_MALLOC };

	own_entries(arg, thread, r.params);
	for (int round = 0; round < NR_ROUNDS; round++)
		submit_and_stop(arg, &r, 0, round & 1);
	cuFileBatchIODestroy(r.batch);
}

static void memory_may_go_after_a_cancel_or_a_destroy(void **state)
{
	struct crowd c = { .submitted = 0 };

	set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6);
	th_open();
	if (th_fake())
		th_fake()->copy_delay_us(50);
	field_init(&c.f, TH_MALLOC, TH_BUFFERED, 16 * EACH * 4096);
	th_threads(16, cancel_and_free, &c);
	th_bad_check(&c.bad);
	field_fini(&c.f);
	if (th_fake())
		th_fake()->copy_delay_us(0);
	th_close();
}

/* The same, of so many bytes that helpers fill their slots. */
static void cancel_crews_and_free(void *arg, unsigned thread)
{
	struct reads r = { .nr = CREWED, .kind = TH_DEVICE };
	struct crowd *c = arg;

	for (unsigned i = 0; i < CREWED; i++) {
		r.params[i].mode = CUFILE_BATCH;
		r.params[i].fh = c->f.fh;
		r.params[i].u.batch.file_offset = (off_t)(i * CREWED_EACH);
		r.params[i].u.batch.size = CREWED_EACH;
	}
	for (unsigned round = 0; round < TH_SCALE(40); round++)
		submit_and_stop(c, &r, (unsigned)th_below(3),
				(round ^ thread) & 1);
	cuFileBatchIODestroy(r.batch);
}

static void memory_may_go_after_a_cancel_of_crews(void **state)
{
	struct crowd c = { .submitted = 0 };

	th_need_gpu();
	set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 8);
	th_open();
	if (th_fake())
		th_fake()->copy_delay_us(500);
	field_init(&c.f, TH_DEVICE, TH_BUFFERED, CREWED * CREWED_EACH);
	assert_int_equal(crews_of(c.f.fh, CREWED, CREWED_EACH), 1);
	th_threads(3, cancel_crews_and_free, &c);
	th_bad_check(&c.bad);
	field_fini(&c.f);
	if (th_fake())
		th_fake()->copy_delay_us(0);
	th_close();
}

/* Others cancel and reap what these submit, until the driver is closed. */
static void use_until_closed(void *arg, unsigned thread)
{
	struct crowd *c = arg;
	CUfileIOParams_t params[EACH];
	CUfileIOEvents_t events[EACH];
	unsigned nr;

	own_entries(c, thread, params);
	if (!thread) {
		th_sleep_ms(30);
		th_close();
		return;
	}
	for (;;) {
		CUfileError_t error =
			cuFileBatchIOSubmit(c->shared, EACH, params, 0);

		if (error.err && error.err != CU_FILE_BATCH_FULL)
			return;
		if (thread % 8 == 1)
			cuFileBatchIOCancel(c->shared);
		nr = EACH;
		if (cuFileBatchIOGetStatus(c->shared, 1, &nr, events, NULL).err)
			return;
	}
}

static void close_in_the_middle_of_it_all_ends_it_all(void **state)
{
	struct crowd c = { .submitted = 0 };

	for (int round = 0; round < TH_SCALE(8); round++) {
		set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 4);
		th_open();
		field_init(&c.f, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC,
			   TH_BUFFERED, 16 * EACH * 4096);
		c.shared = batch_of(100);
		th_threads(16, use_until_closed, &c);
		field_fini(&c.f);
	}
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
	set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 8);
	th_open();
	field_init(&f, kind, TH_BUFFERED, NR_WINDOWS * (each + gap));
	batch = batch_of(NR_WINDOWS);
	for (unsigned i = 0; i < NR_WINDOWS; i++)
		params[i] = move(&f, CUFILE_WRITE, i * (each + gap),
				 i * (each + gap), each, i);
	atomic_store(&most_pwrites, 0);
	atomic_store(&nr_pwrites, 0);
	run_batch(batch, params, NR_WINDOWS);
	field_check(&f);
	cuFileBatchIODestroy(batch);
	field_fini(&f);
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
		TEST(sixty_four_threads_submit_and_reap),
		TEST(memory_may_go_after_a_cancel_or_a_destroy),
		TEST(memory_may_go_after_a_cancel_of_crews),
		TEST(close_in_the_middle_of_it_all_ends_it_all),
		TEST(two_at_most_write_one_file),
		TEST(neighbours_in_memory_and_file_are_written_together),
	};

	th_start(280);
	(void)th_volley_kernel(NULL);
	return th_finish(
		cmocka_run_group_tests_name("batch", tests, NULL, NULL));
}
