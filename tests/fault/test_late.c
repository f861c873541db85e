// SPDX-License-Identifier: Apache-2.0
/*
 * late - what comes after an answer. What a client is told of a read is in its
 * memory when it is told, and from then on nobody else writes there, be the
 * answer bytes or an error; what it does with a write's memory from then on
 * does not get into the file.
 *
 * Driver calls fail, as drawn, and copies take their time. test_pairs.c looks
 * when all of a request has failed; here each entry of a batch is looked at
 * when its own answer comes, while its neighbours are still under way.
 *
 * TEST_ROUNDS: so many requests or batches for each test. What is drawn depends
 * on the seed alone.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "fault.h"
#include "harness.h"
#include "leases.h"

#define MOST 128    /* entries */
#define REOPENED 4  /* rounds; what the library has given up is tried anew */
#define BEFORE 0xa5 /* a read's memory, before */
#define REUSED 0x5a /* a write's memory, when its answer was told */
#define PLAN_SIZE 200

/* So many side by side, in one batch or one after the other. */
struct shape {
	enum th_file_kind file_kind;
	bool batched;
	unsigned nr;
	size_t size;
};

/* Those that copy and wait, and those that begin what does. */
static const char *const calls[] = {
	"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
	"cuMemcpyDtoDAsync_v2", "cuMemcpy2DAsync_v2",
	"cuMemcpyBatchAsync",	"cuMemcpyBatchAsync_v2",
	"cuEventRecord",	"cuEventQuery",
	"cuEventSynchronize",	"cuEventCreate",
	"cuStreamSynchronize",	"cuStreamQuery",
	"cuStreamWaitEvent",	"cuStreamCreateWithPriority",
	"cuLaunchKernel",	"cuCtxPushCurrent_v2",
	"cuCtxGetId",		"cuPointerGetAttributes",
	"cuMemHostRegister_v2", "cuMemMap",
};
#define NR_CALLS (sizeof(calls) / sizeof(*calls))

static struct {
	const struct shape *shape;
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	bool write;
	char plan[PLAN_SIZE], what[PLAN_SIZE + 64];
	unsigned char *content; /* of the file */
	unsigned char *told;	/* a read's memory, at the answers; a write's,
				   before */
	unsigned char *got;
	unsigned char *reused; /* REUSED, of one entry's size */
	ssize_t answers[MOST];
} w;

static size_t all_bytes(void)
{
	return w.shape->nr * w.shape->size;
}

static CUdeviceptr device_at(unsigned i)
{
	return (CUdeviceptr)(uintptr_t)w.mem.ptr + i * w.shape->size;
}

/* ---------------------------------------------------------------- answers */

/* Entry i has ended: it is the client's, who looks, or uses it again. */
static void note(unsigned i, ssize_t n)
{
	size_t size = w.shape->size, at = i * size;

	w.answers[i] = n;
	if (n == 0 || n > (ssize_t)size)
		fail_msg("%s: entry %u answers %zd", w.what, i, n);
	if (w.write) {
		th_fake()->write(device_at(i), w.reused, size);
		return;
	}
	th_fake()->read(device_at(i), w.told + at, size);
	if (n > 0)
		th_equal(w.what, w.told + at, w.content + at, (size_t)n);
}

static void go_alone(void)
{
	size_t size = w.shape->size;

	for (unsigned i = 0; i < w.shape->nr; i++) {
		off_t at = (off_t)(i * size);

		note(i, w.write ? cuFileWrite(w.fh, w.mem.ptr, size, at, at) :
				  cuFileRead(w.fh, w.mem.ptr, size, at, at));
	}
}

static void fill(CUfileIOParams_t *params)
{
	size_t size = w.shape->size;

	for (unsigned i = 0; i < w.shape->nr; i++) {
		params[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH,
			.fh = w.fh,
			.opcode = w.write ? CUFILE_WRITE : CUFILE_READ,
			.cookie = &w.answers[i],
		};
		params[i].u.batch.devPtr_base = w.mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)(i * size);
		params[i].u.batch.file_offset = (off_t)(i * size);
		params[i].u.batch.size = size;
	}
}

static void go_batched(void)
{
	CUfileIOParams_t params[MOST];
	CUfileIOEvents_t events[MOST];
	CUfileBatchHandle_t batch;
	unsigned nr = w.shape->nr, left = nr;

	fill(params);
	assert_int_equal(cuFileBatchIOSetUp(&batch, nr).err, 0);
	if (cuFileBatchIOSubmit(batch, nr, params, 0).err) {
		for (unsigned i = 0; i < nr; i++)
			note(i, -1);
		left = 0;
	}
	for (; left; left -= nr) {
		nr = left;
		assert_int_equal(
			cuFileBatchIOGetStatus(batch, 1, &nr, events, NULL).err,
			0);
		for (unsigned k = 0; k < nr; k++)
			note((unsigned)((ssize_t *)events[k].cookie -
					w.answers),
			     (ssize_t)events[k].ret);
	}
	cuFileBatchIODestroy(batch);
}

/* ------------------------------------------------------------- afterwards */

static void memory_is_as_told(void)
{
	th_fake()->read(device_at(0), w.got, all_bytes());
	th_equal(w.what, w.got, w.told, all_bytes());
}

/* What was not written is as before, or was written all the same. */
static void file_has_what_was_told(void)
{
	size_t size = w.shape->size;

	th_file_get(&w.file, 0, w.got, all_bytes());
	for (size_t i = 0; i < all_bytes(); i++) {
		bool sure = (ssize_t)(i % size) < w.answers[i / size];

		if (w.got[i] != w.told[i] && (sure || w.got[i] != w.content[i]))
			fail_msg("%s: byte %zu of entry %zu, which answers "
				 "%zd, is %02x",
				 w.what, i % size, i / size,
				 w.answers[i / size], w.got[i]);
	}
	memcpy(w.content, w.got, all_bytes());
}

/* All that was begun comes to its end, but for a driver that fails. */
static void wait_for_what_is_under_way(void)
{
	th_fake()->plan_clear();
	th_fake()->copy_delay_us(0);
	assert_int_equal(cuCtxSynchronize(), 0);
}

/* ----------------------------------------------------------------- rounds */

/*
 * Of a driver that does not answer these any more, or twice in a row, nobody
 * can tell when its copies end: its context is taken for lost.
 */
static bool is_question(const char *call)
{
	return !strcmp(call, "cuStreamQuery") ||
	       !strcmp(call, "cuCtxPushCurrent_v2");
}

/* Low numbers are likelier: most calls are made a few times. */
static size_t add_to_plan(size_t used, const char *call)
{
	static const int results[] = { 999, 700, 2, 1, 304 };
	unsigned nth = 1 + (unsigned)th_below(1 + th_below(20));
	bool later = th_below(2) && !is_question(call);
	int res = results[th_below(sizeof(results) / sizeof(int))];

	return used + (size_t)snprintf(w.plan + used, PLAN_SIZE - used,
				       "%s%s:%u%s=%d", used ? "," : "", call,
				       nth, later ? "+" : "", res);
}

static void draw(void)
{
	const char *call = calls[th_below(NR_CALLS)];
	size_t used = add_to_plan(0, call);

	if (th_below(2)) {
		const char *other = calls[th_below(NR_CALLS)];

		if (!is_question(call) || !is_question(other))
			used = add_to_plan(used, other);
	}
	/* then most is under way */
	if (th_below(3) == 0)
		add_to_plan(used, "cuStreamSynchronize");
	w.write = th_below(4) == 0;
}

static void prepare(void)
{
	size_t bytes = all_bytes();

	memset(w.got, BEFORE, bytes);
	if (w.write)
		th_fill(w.told, bytes);
	th_fake()->write(device_at(0), w.write ? w.told : w.got, bytes);
}

static void one_round(void)
{
	unsigned copy_us = 100 + (unsigned)th_below(1500);

	draw();
	prepare();
	snprintf(w.what, sizeof(w.what), "%s with copies of %u us and plan %s",
		 w.write ? "write" : "read", copy_us, w.plan);
	assert_int_equal(th_fake()->plan(w.plan), 0);
	th_fake()->copy_delay_us(copy_us);
	if (w.shape->batched)
		go_batched();
	else
		go_alone();
	wait_for_what_is_under_way();
	if (th_fake()->complaints(stderr)) {
		th_fake()->complaints_clear(); /* not the next test's */
		fail_msg("%s: the driver was misused", w.what);
	}
	if (w.write)
		file_has_what_was_told();
	else
		memory_is_as_told();
	fault_count(1);
}

static void begin(const struct shape *shape)
{
	size_t bytes = shape->nr * shape->size;

	w.shape = shape;
	th_need_fake();
	w.content = th_bytes(bytes);
	w.told = malloc(bytes);
	w.got = malloc(bytes);
	w.reused = th_same(REUSED, shape->size);
	assert_true(w.told && w.got);
	th_file_make(&w.file, shape->file_kind, O_RDWR, w.content, bytes);
	th_mem_alloc(&w.mem, TH_DEVICE, bytes);
}

static void nothing_moves(void **state)
{
	unsigned nr = fault_rounds(TH_SCALE(8));

	begin(*state);
	for (unsigned i = 0; i < nr; i++) {
		if (i % REOPENED == 0) {
			th_open();
			w.fh = th_handle(w.file.fd);
		}
		one_round();
		if ((i + 1) % REOPENED == 0 || i + 1 == nr) {
			cuFileHandleDeregister(w.fh);
			leases_check(w.what);
			th_close();
		}
	}
	th_mem_free(&w.mem);
	th_file_end(&w.file);
}

/* Here, so that it is done after a failure, too. */
static int end(void **state)
{
	th_fake()->plan_clear();
	th_fake()->copy_delay_us(0);
	free(w.content);
	free(w.told);
	free(w.got);
	free(w.reused);
	return th_teardown_close(state);
}

#define ALONE(name, kind, nr, size) TEST(name, kind, false, nr, size)
#define BATCH(name, kind, nr, size) TEST(name, kind, true, nr, size)
#define TEST(text, ...) \
	{ \
		.name = "nothing_moves (" text ")", \
		.test_func = nothing_moves, .teardown_func = end, \
		.initial_state = &(struct shape) \
		{ \
			__VA_ARGS__ \
		} \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE("parts", TH_BUFFERED, 1, 6 * TH_MIB + 777),
		ALONE("direct parts", TH_ODIRECT, 1, 6 * TH_MIB),
		ALONE("middling", TH_BUFFERED, 1, 100 * TH_KIB),
		ALONE("small", TH_BUFFERED, 24, 12 * TH_KIB),
		BATCH("few large", TH_BUFFERED, 6, 3 * TH_MIB),
		BATCH("a convoy", TH_BUFFERED, 32, 2 * TH_MIB),
		BATCH("a fleet", TH_ODIRECT, 96, 64 * TH_KIB),
		BATCH("a fleet with edges", TH_ODIRECT, 64, 10 * TH_KIB + 3),
		BATCH("a bundle", TH_BUFFERED, 128, 4 * TH_KIB),
		BATCH("a bundle and helpers", TH_BUFFERED, 128, 60 * TH_KIB),
	};

	th_start(280);
	return fault_finish(
		cmocka_run_group_tests_name("late", tests, NULL, NULL));
}
