// SPDX-License-Identifier: Apache-2.0
/*
 * stream_batch - batches in the order of a stream (ocf_batch_submit_stream):
 * what is refused, what is told and when, and what becomes of entries whose
 * stream, batch, file or driver goes away first.
 */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR 24u
#define PART 5003
#define SIZE (NR * PART)
#define SPARE 4

struct world {
	unsigned char *bytes;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
	CUstream stream;
	CUfileBatchHandle_t batch;
	CUfileIOParams_t params[NR];
};

static void fill_params(struct world *w, CUfileOpcode_t opcode)
{
	for (size_t i = 0; i < NR; i++) {
		CUfileIOParams_t *p = &w->params[i];

		*p = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
					 .fh = w->fh,
					 .opcode = opcode,
					 .cookie = (void *)(100 + i) };
		p->u.batch.devPtr_base = w->mem.ptr;
		p->u.batch.devPtr_offset = (off_t)(i * PART);
		p->u.batch.file_offset = (off_t)(i * PART);
		p->u.batch.size = PART;
	}
}

static void world_files(struct world *w)
{
	w->fh = th_handle(w->file.fd);
	assert_ok(cuFileBatchIOSetUp(&w->batch, NR + SPARE));
	fill_params(w, CUFILE_READ);
}

static void world_make(struct world *w)
{
	th_mem_need(TH_DEVICE);
	w->bytes = th_bytes(SIZE);
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, w->bytes, SIZE);
	th_mem_alloc(&w->mem, TH_DEVICE, SIZE);
	th_mem_set(&w->mem, 0xee);
	assert_ok(cuFileDriverOpen());
	world_files(w);
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
}

static void world_end(struct world *w)
{
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	while (cuFileUseCount())
		assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->bytes);
}

static CUfileError_t submit(struct world *w)
{
	return ocf_batch_submit_stream(w->batch, NR, w->params, 0, w->stream);
}

static void settle(struct world *w)
{
	assert_int_equal(cuStreamSynchronize(w->stream), 0);
}

/* How many events there are without waiting; each has this end. */
static unsigned reap_now(struct world *w, CUfileStatus_t status, ssize_t ret)
{
	struct timespec none = { 0, 0 };
	CUfileIOEvents_t events[NR + SPARE];
	unsigned nr = NR + SPARE;

	assert_ok(cuFileBatchIOGetStatus(w->batch, 0, &nr, events, &none));
	for (unsigned i = 0; i < nr; i++) {
		assert_int_equal(events[i].status, status);
		assert_int_equal((ssize_t)events[i].ret, ret);
	}
	return nr;
}

static void assert_memory(struct world *w, size_t at, size_t size, bool read)
{
	unsigned char *got = malloc(SIZE);

	th_mem_get(&w->mem, 0, got, SIZE);
	if (read)
		th_equal("memory", got + at, w->bytes + at, size);
	else
		th_all("memory", got + at, 0xee, size);
	free(got);
}

static void hold_stream(struct world *w, struct th_gate *gate)
{
	th_gate_put(gate, w->stream);
	th_gate_reach(gate);
}

/* ------------------------------------------------------------ refusals */

static void assert_nothing_was_submitted(struct world *w)
{
	assert_int_equal(cuStreamQuery(w->stream), 0);
	assert_int_equal(reap_now(w, CUFILE_COMPLETE, 0), 0);
	assert_memory(w, 0, SIZE, false);
	/* nor is any room of the batch taken */
	assert_ok(submit(w));
	settle(w);
	assert_int_equal(reap_now(w, CUFILE_COMPLETE, PART), NR);
	assert_memory(w, 0, SIZE, true);
}

#define BAD_SUBMIT CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR

static void bad_numbers_and_batches_are_refused(void **state)
{
	struct world w;

	world_make(&w);
	assert_code(ocf_batch_submit_stream(NULL, NR, w.params, 0, w.stream),
		    BAD_SUBMIT);
	assert_code(ocf_batch_submit_stream(&w, NR, w.params, 0, w.stream),
		    BAD_SUBMIT);
	assert_code(ocf_batch_submit_stream(w.batch, 0, w.params, 0, w.stream),
		    BAD_SUBMIT);
	assert_code(ocf_batch_submit_stream(w.batch, NR + SPARE + 1, w.params,
					    0, w.stream),
		    BAD_SUBMIT);
	assert_code(ocf_batch_submit_stream(w.batch, NR, NULL, 0, w.stream),
		    BAD_SUBMIT);
	assert_code(ocf_batch_submit_stream(w.batch, NR, w.params, 1, w.stream),
		    CU_FILE_INVALID_VALUE);
	assert_nothing_was_submitted(&w);
	world_end(&w);
}

static void a_bad_entry_refuses_all(void **state)
{
	struct world w;

	world_make(&w);
#define TRY(field, value) \
	do { \
		CUfileIOParams_t good = w.params[NR - 2]; \
		w.params[NR - 2].field = value; \
		assert_code(submit(&w), BAD_SUBMIT); \
		w.params[NR - 2] = good; \
	} while (0)
	TRY(mode, (CUfileBatchMode_t)0);
	TRY(opcode, (CUfileOpcode_t)7);
	TRY(fh, NULL);
	TRY(fh, &w);
	TRY(u.batch.devPtr_base, NULL);
	TRY(u.batch.devPtr_offset, -1);
	TRY(u.batch.file_offset, -1);
	TRY(u.batch.size, SIZE + 1);
#undef TRY
	assert_nothing_was_submitted(&w);
	world_end(&w);
}

static void a_batch_without_room_says_so_while_entries_wait(void **state)
{
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	assert_code(submit(&w), CU_FILE_BATCH_FULL);
	assert_code(cuFileBatchIOSubmit(w.batch, SPARE + 1, w.params, 0),
		    CU_FILE_BATCH_FULL);
	gate.open = true;
	settle(&w);
	assert_code(submit(&w), CU_FILE_BATCH_FULL); /* not reaped yet */
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	assert_ok(submit(&w));
	settle(&w);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	world_end(&w);
}

static void an_invalid_stream_is_refused(void **state)
{
	CUfileError_t error;
	struct world w;

	(void)th_need_fake(); /* a real driver would follow the pointer */
	world_make(&w);
	error = ocf_batch_submit_stream(w.batch, NR, w.params, 0, (CUstream)&w);
	assert_int_equal(error.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(error.cu_err, CF_CU_INVALID_HANDLE);
	assert_nothing_was_submitted(&w);
	world_end(&w);
}

/* The capture goes on as if nobody had asked. */
static void a_stream_in_capture_is_refused_900(void **state)
{
	CUfileError_t error;
	struct world w;
	CUgraph graph;

	world_make(&w);
	assert_int_equal(cuStreamBeginCapture(w.stream, 0), 0);
	error = submit(&w);
	assert_int_equal(error.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(error.cu_err, CF_CU_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cuStreamEndCapture(w.stream, &graph), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	assert_nothing_was_submitted(&w);
	world_end(&w);
}

static void a_driver_call_that_fails_leaves_no_entry_behind(void **state)
{
	/* a kernel that rings needs no wait before it */
	const char *const plans[] = {
		fresh_bells() ? "cuLaunchKernelEx:1=2" :
				"cuStreamWaitValue32_v2:1=2",
		"cuLaunchKernelEx:1=2",
		"cuStreamGetCtx:1=2",
	};
	const struct th_fake *fake = th_need_fake();
	CUfileError_t error;
	struct world w;

	world_make(&w);
	assert_ok(submit(&w)); /* the dock is there, with its own first wait */
	settle(&w);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct th_gate gate = { false };

		th_mem_set(&w.mem, 0xee);
		hold_stream(&w, &gate);
		fake->plan(plans[i]);
		error = submit(&w);
		fake->plan_clear();
		assert_int_equal(error.err, CU_FILE_CUDA_DRIVER_ERROR);
		assert_int_equal(error.cu_err, CF_CU_OUT_OF_MEMORY);
		gate.open = true;
		settle(&w);
		assert_nothing_was_submitted(&w);
	}
	world_end(&w);
}

static void a_closed_driver_and_no_workers_are_refused(void **state)
{
	struct world w;

	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS,
					  0));
	world_make(&w);
	assert_code(submit(&w), CU_FILE_ASYNC_NOT_SUPPORTED);
	assert_ok(cuFileDriverClose_v2());
	assert_code(submit(&w), CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_int_equal(cuStreamQuery(w.stream), 0);
	world_end(&w);
}

/* ---------------------------------------------------------- what is told */

static void the_call_waits_for_nothing_and_copies_the_entries(void **state)
{
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	memset(w.params, 0xff, sizeof(w.params));
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), 0);
	assert_memory(&w, 0, SIZE, false);
	gate.open = true;
	settle(&w);
	/* the stream went on behind the last event */
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	assert_memory(&w, 0, SIZE, true);
	world_end(&w);
}

struct pair {
	struct th_gate *gate;
	struct world *w;
	struct th_bad bad;
};

static void open_or_reap(void *arg, unsigned i)
{
	struct pair *a = arg;
	CUfileIOEvents_t events[NR];
	unsigned nr = NR;

	if (i == 0) {
		th_sleep_ms(50);
		a->gate->open = true;
	} else if (cuFileBatchIOGetStatus(a->w->batch, NR, &nr, events, NULL)
			   .err ||
		   nr != NR || !a->gate->open) {
		th_bad_note(&a->bad, "%u events, gate %d", nr,
			    (int)a->gate->open);
	}
}

static void who_reaps_waits_for_entries_that_wait_for_their_stream(void **state)
{
	struct th_gate gate = { false };
	struct world w;
	struct pair a = { .gate = &gate, .w = &w };

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	th_threads(2, open_or_reap, &a);
	th_bad_check(&a.bad);
	settle(&w);
	world_end(&w);
}

/* Half of the entries are in a stream of their own, and the others in w's. */
static void submit_halves(struct world *w, CUstream other)
{
	assert_ok(ocf_batch_submit_stream(w->batch, NR / 2, w->params, 0,
					  w->stream));
	assert_ok(ocf_batch_submit_stream(w->batch, NR / 2, w->params + NR / 2,
					  0, other));
}

/* Without bells a held stream's function holds up those of any other. */
/* Without a kernel none is ordered of the one that an operation had before. */
static void entries_may_lie_in_memory_of_any_kind(void **state)
{
	unsigned char *host = malloc(PART);
	struct world w;

	world_make(&w);
	for (int i = 0; i < 100; i++) { /* more than there are operations */
		assert_ok(submit(&w));
		settle(&w);
		assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	}
	th_mem_set(&w.mem, 0xee);
	w.params[0].u.batch.devPtr_base = host;
	assert_ok(submit(&w));
	settle(&w);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	th_equal("host memory", host, w.bytes, PART);
	assert_memory(&w, PART, SIZE - PART, true);
	world_end(&w);
	free(host);
}

static void streams_of_one_batch_come_in_any_order(void **state)
{
	if (!fresh_bells())
		th_skip("not with OCF_STREAM_BELLS=0");
	for (unsigned held = 0; held < 2; held++) {
		struct th_gate gate = { false };
		CUstream streams[2];
		struct world w;

		world_make(&w);
		streams[0] = w.stream;
		assert_int_equal(
			cuStreamCreate(&streams[1], CF_CU_STREAM_NON_BLOCKING),
			0);
		th_gate_put(&gate, streams[held]);
		th_gate_reach(&gate);
		submit_halves(&w, streams[1]);
		assert_int_equal(cuStreamSynchronize(streams[!held]), 0);
		assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR / 2);
		assert_memory(&w, !held * SIZE / 2, SIZE / 2, true);
		assert_memory(&w, held * SIZE / 2, SIZE / 2, false);
		gate.open = true;
		assert_int_equal(cuStreamSynchronize(streams[held]), 0);
		assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR / 2);
		assert_memory(&w, 0, SIZE, true);
		assert_int_equal(cuStreamDestroy(streams[1]), 0);
		world_end(&w);
	}
}

static void a_file_that_goes_first_fails_its_entries_alone(void **state)
{
	CUfileIOEvents_t events[NR];
	struct th_gate gate = { false };
	CUfileHandle_t second;
	struct th_file other;
	unsigned nr = NR;
	struct world w;

	world_make(&w);
	th_file_make(&other, TH_BUFFERED, O_RDWR, w.bytes, SIZE);
	second = th_handle(other.fd);
	for (unsigned i = 1; i < NR; i += 2)
		w.params[i].fh = second;
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	cuFileHandleDeregister(second); /* does not wait for the stream */
	gate.open = true;
	settle(&w);
	assert_ok(cuFileBatchIOGetStatus(w.batch, NR, &nr, events, NULL));
	assert_int_equal(nr, NR);
	for (unsigned i = 0; i < NR; i++) {
		size_t k = (size_t)events[i].cookie - 100;
		bool gone = k % 2;

		assert_int_equal(events[i].status,
				 gone ? CUFILE_FAILED : CUFILE_COMPLETE);
		assert_int_equal((ssize_t)events[i].ret,
				 gone ? -CU_FILE_HANDLE_NOT_REGISTERED : PART);
		assert_memory(&w, k * PART, PART, !gone);
	}
	th_file_end(&other);
	world_end(&w);
}

static void all_files_gone_lets_the_stream_go_on(void **state)
{
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	cuFileHandleDeregister(w.fh);
	gate.open = true;
	settle(&w);
	assert_int_equal(
		reap_now(&w, CUFILE_FAILED, -CU_FILE_HANDLE_NOT_REGISTERED),
		NR);
	assert_memory(&w, 0, SIZE, false);
	world_end(&w);
}

/* To load a module a driver may wait for the stream: it is there before. */
static void no_kernel_is_loaded_while_a_stream_waits(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct th_gate gate = { false };
	unsigned long loads;
	struct world w;

	world_make(&w);
	(void)th_volley_kernel(NULL);
	loads = fake->calls("cuModuleLoadData");
	assert_int_equal(loads, 1);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	gate.open = true;
	settle(&w);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	assert_memory(&w, 0, SIZE, true);
	assert_int_equal(fake->calls("cuModuleLoadData"), loads);
	assert_int_equal(fake->calls("cuLaunchKernel"), 0);
	assert_int_equal(fake->calls("cuLaunchKernelEx"), 1);
	assert_int_equal(th_ferry_launches(), 1);
	assert_true(th_ferry_orders()); /* no copy of the driver moved them */
	world_end(&w);
}

static void entries_are_counted_among_those_of_batches(void **state)
{
	struct th_gate gate = { false };
	CUfileStatsLevel1_t stats;
	struct world w;

	assert_ok(cuFileSetStatsLevel(1));
	world_make(&w);
	assert_ok(cuFileStatsStart());
	assert_ok(submit(&w));
	settle(&w);
	assert_code(ocf_batch_submit_stream(w.batch, NR, w.params, 1, w.stream),
		    CU_FILE_INVALID_VALUE);
	assert_ok(cuFileGetStatsL1(&stats));
	assert_int_equal(stats.batch_submit_ops.ok, 1);
	assert_int_equal(stats.batch_submit_ops.err, 1);
	assert_int_equal(stats.batch_enqueued_ops.ok, NR);
	assert_int_equal(stats.batch_complete_ops.ok, NR);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	/* also those whose file goes before the stream comes to them */
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	cuFileHandleDeregister(w.fh);
	gate.open = true;
	settle(&w);
	assert_ok(cuFileGetStatsL1(&stats));
	assert_int_equal(stats.batch_enqueued_ops.ok, 2 * NR);
	assert_int_equal(stats.batch_complete_ops.ok, NR);
	assert_int_equal(stats.batch_complete_ops.err, NR);
	world_end(&w);
}

/* Less than a microsecond counts as nothing, so there may be many. */
static void submissions_take_their_time(void **state)
{
	CUfileIOEvents_t events[NR];
	CUfileStatsLevel1_t stats;
	struct world w;

	assert_ok(cuFileSetStatsLevel(1));
	world_make(&w);
	assert_ok(cuFileStatsStart());
	for (int i = 0; i < 2; i++) {
		assert_ok(cuFileStatsReset());
		do {
			unsigned nr = NR;

			assert_ok(i ? submit(&w) :
				      cuFileBatchIOSubmit(w.batch, NR, w.params,
							  0));
			assert_ok(cuFileBatchIOGetStatus(w.batch, NR, &nr,
							 events, NULL));
			assert_ok(cuFileGetStatsL1(&stats));
		} while (!stats.batch_submit_lat_sum_us);
	}
	world_end(&w);
}

static void carry_without_memory_operations(void)
{
	struct world w;

	assert_ok(cuFileSetParameterBool(CUFILE_PARAM_STREAM_MEMOPS_BYPASS,
					 true));
	world_make(&w);
	for (int i = 0; i < 20; i++) {
		th_mem_set(&w.mem, 0xee);
		assert_ok(submit(&w));
		settle(&w);
		assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
		assert_memory(&w, 0, SIZE, true);
	}
	world_end(&w);
}

static void streams_without_memory_operations_carry_batches(void **state)
{
	carry_without_memory_operations();
}

/* There callbacks wait themselves. */
static void nor_do_batches_need_a_kernel(void **state)
{
	setenv("OCF_STREAM_FERRY", "0", 1);
	carry_without_memory_operations();
}

/* -------------------------------------------------------- what goes away */

static void cancel_drops_what_waits_and_the_stream_goes_on(void **state)
{
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	assert_ok(cuFileBatchIOCancel(w.batch)); /* waits for no stream */
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), 0);
	/* there is room for other entries, behind those that were dropped */
	w.params[0].cookie = NULL;
	assert_ok(ocf_batch_submit_stream(w.batch, 1, w.params, 0, w.stream));
	gate.open = true;
	settle(&w);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), 1);
	assert_memory(&w, 0, PART, true);
	assert_memory(&w, PART, SIZE - PART, false);
	world_end(&w);
}

static void destroy_drops_what_waits_and_the_stream_goes_on(void **state)
{
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	cuFileBatchIODestroy(w.batch);
	assert_code(submit(&w), BAD_SUBMIT);
	/* the place is used again while the stream still holds the old one */
	assert_ok(cuFileBatchIOSetUp(&w.batch, NR));
	gate.open = true;
	settle(&w);
	assert_memory(&w, 0, SIZE, false);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), 0);
	world_end(&w);
}

static void a_closed_driver_lets_the_stream_go_on(void **state)
{
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	assert_ok(cuFileDriverClose_v2()); /* waits for no stream */
	gate.open = true;
	settle(&w);
	assert_memory(&w, 0, SIZE, false);
	assert_ok(cuFileDriverOpen());
	world_files(&w);
	assert_ok(submit(&w));
	settle(&w);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	assert_memory(&w, 0, SIZE, true);
	world_end(&w);
}

static void a_cancel_or_close_awaits_what_has_begun(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct world w;

	world_make(&w);
	for (int close = 0; close < 2; close++) {
		assert_ok(submit(&w));
		settle(&w);
		assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
		fake->copy_delay_us(20000);
		assert_ok(submit(&w));
		th_sleep_ms(10);
		if (close)
			assert_ok(cuFileDriverClose_v2());
		else
			assert_ok(cuFileBatchIOCancel(w.batch));
		fake->copy_delay_us(0);
		/* nothing touches the memory any more */
		th_mem_set(&w.mem, 0xee);
		th_sleep_ms(30);
		assert_memory(&w, 0, SIZE, false);
		settle(&w);
	}
	world_end(&w);
}

static void a_destroyed_stream_finishes_its_batch(void **state)
{
	CUfileIOEvents_t events[NR];
	struct th_gate gate = { false };
	unsigned nr = NR;
	struct world w;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	assert_int_equal(cuStreamDestroy(w.stream), 0);
	gate.open = true;
	assert_ok(cuFileBatchIOGetStatus(w.batch, NR, &nr, events, NULL));
	assert_int_equal(nr, NR);
	assert_memory(&w, 0, SIZE, true);
	assert_int_equal(cuStreamCreate(&w.stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	world_end(&w);
}

/* A lost context never comes to its batch, and nobody waits for it. */
static void a_lost_context_holds_neither_cancel_nor_close(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	fake->lose_context(th_primary());
	gate.open = true;
	assert_ok(cuFileBatchIOCancel(w.batch));
	assert_int_equal(submit(&w).err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_ok(cuFileDriverClose_v2());
	th_file_end(&w.file);
	free(w.bytes);
}

/* Who waits for its events gets them, with the driver's error. */
static void a_lost_context_fails_entries_that_somebody_waits_for(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct th_gate gate = { false };
	CUfileIOEvents_t events[NR];
	unsigned nr = NR;
	struct world w;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	fake->lose_context(th_primary());
	gate.open = true;
	assert_ok(cuFileBatchIOGetStatus(w.batch, NR, &nr, events, NULL));
	assert_int_equal(nr, NR);
	for (unsigned i = 0; i < NR; i++) {
		assert_int_equal(events[i].status, CUFILE_FAILED);
		assert_int_equal((ssize_t)events[i].ret,
				 -CU_FILE_CUDA_DRIVER_ERROR);
	}
	assert_ok(cuFileDriverClose_v2());
	th_file_end(&w.file);
	free(w.bytes);
}

static void open_or_deregister(void *arg, unsigned i)
{
	struct pair *a = arg;

	if (i == 0) {
		th_sleep_ms(50);
		a->gate->open = true;
	} else {
		(void)cuFileStreamDeregister(a->w->stream);
	}
}

static void deregistering_waits_for_the_streams_batches(void **state)
{
	struct th_gate gate = { false };
	struct world w;
	struct pair a = { .gate = &gate, .w = &w };

	world_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0xf));
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	th_threads(2, open_or_deregister, &a);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	assert_memory(&w, 0, SIZE, true);
	world_end(&w);
}

static void a_forked_child_has_no_batch_in_a_stream(void **state)
{
	struct th_gate gate = { false };
	struct world w;
	int status;
	pid_t pid;

	world_make(&w);
	hold_stream(&w, &gate);
	assert_ok(submit(&w));
	pid = th_fork();
	if (!pid) {
		int bad = submit(&w).err == CU_FILE_SUCCESS;

		cuFileBatchIODestroy(w.batch);
		/* the sanitizer allows a forked child no thread of its own */
		if (!TH_TSAN) {
			bad |= cuFileBatchIOSetUp(&w.batch, NR).err != 0;
			bad |= cuFileBatchIOCancel(w.batch).err != 0;
		}
		bad |= cuFileDriverClose_v2().err != 0;
		_exit(bad);
	}
	gate.open = true;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	settle(&w);
	assert_int_equal(reap_now(&w, CUFILE_COMPLETE, PART), NR);
	assert_memory(&w, 0, SIZE, true);
	world_end(&w);
}

static const struct fresh_test tests[] = {
	FRESH(bad_numbers_and_batches_are_refused),
	FRESH(a_bad_entry_refuses_all),
	FRESH(a_batch_without_room_says_so_while_entries_wait),
	FRESH(an_invalid_stream_is_refused),
	FRESH(a_stream_in_capture_is_refused_900),
	FRESH(a_driver_call_that_fails_leaves_no_entry_behind),
	FRESH(a_closed_driver_and_no_workers_are_refused),
	FRESH(the_call_waits_for_nothing_and_copies_the_entries),
	FRESH(who_reaps_waits_for_entries_that_wait_for_their_stream),
	FRESH(entries_may_lie_in_memory_of_any_kind),
	FRESH(streams_of_one_batch_come_in_any_order),
	FRESH(a_file_that_goes_first_fails_its_entries_alone),
	FRESH(all_files_gone_lets_the_stream_go_on),
	FRESH(no_kernel_is_loaded_while_a_stream_waits),
	FRESH(entries_are_counted_among_those_of_batches),
	FRESH(submissions_take_their_time),
	FRESH(streams_without_memory_operations_carry_batches),
	FRESH(nor_do_batches_need_a_kernel),
	FRESH(cancel_drops_what_waits_and_the_stream_goes_on),
	FRESH(destroy_drops_what_waits_and_the_stream_goes_on),
	FRESH(a_closed_driver_lets_the_stream_go_on),
	FRESH(a_cancel_or_close_awaits_what_has_begun),
	FRESH(a_destroyed_stream_finishes_its_batch),
	FRESH(a_lost_context_holds_neither_cancel_nor_close),
	FRESH(a_lost_context_fails_entries_that_somebody_waits_for),
	FRESH(deregistering_waits_for_the_streams_batches),
	FRESH(a_forked_child_has_no_batch_in_a_stream),
};

FRESH_MAIN(tests, 30)
