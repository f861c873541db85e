// SPDX-License-Identifier: Apache-2.0
/*
 * Reads in stream order out of windows: the kernel in the stream copies from
 * the page cache itself, windows are opened behind its back, and bytes are
 * right whatever becomes of the file.
 *
 * Only where pages are pinned: TEST_PINS.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/ferry.h"
#include "core/pins.h"
#include "mapped_world.h"

#define PIECE (3 * TH_MIB) /* most cross from window to window */
#define PIECES 7	   /* the file has */
#define FIXED 0xf
#define ROOM (PIECES * PIECE + 2 * MW_PAD)

struct io {
	size_t size;
	off_t file_off, buf_off;
	ssize_t n;
};

static CUstream stream;
static struct th_mem room;
static unsigned char *want, *got;
static struct io ios[PIECES];

static void set_up(unsigned flags)
{
	assert_int_equal(cuStreamCreate(&stream, 1), 0);
	if (flags)
		assert_int_equal(cuFileStreamRegister(stream, flags).err, 0);
	th_mem_alloc(&room, TH_DEVICE, ROOM);
	want = malloc(ROOM);
	got = malloc(ROOM);
	assert_non_null(want);
	assert_non_null(got);
}

static void begin_auto(void)
{
	if (!mw_pins)
		th_skip("chunks are too small to be pinned");
	mw_begin_with("auto", 32 * MW_CHUNK, TH_BUFFERED);
	set_up(FIXED);
}

static void end(void)
{
	(void)cuFileStreamDeregister(stream);
	assert_int_equal(cuStreamDestroy(stream), 0);
	th_mem_free(&room);
	free(want);
	free(got);
	mw_end();
}

static void set_pieces(size_t size, size_t off)
{
	for (unsigned i = 0; i < PIECES; i++)
		ios[i] = (struct io){ .size = size,
				      .file_off = (off_t)(i * PIECE),
				      .buf_off = (off_t)(i * PIECE + off),
				      .n = -7 };
}

static void enqueue(struct io *io)
{
	assert_int_equal(cuFileReadAsync(mw_fh, room.ptr, &io->size,
					 &io->file_off, &io->buf_off, &io->n,
					 stream)
				 .err,
			 0);
}

static void enqueue_all(void)
{
	for (unsigned i = 0; i < PIECES; i++)
		enqueue(&ios[i]);
}

static void synchronize(void)
{
	assert_int_equal(cuStreamSynchronize(stream), 0);
}

static size_t in_file(const struct io *io, size_t end_of_file)
{
	size_t at = (size_t)io->file_off;

	return at >= end_of_file	   ? 0 :
	       io->size < end_of_file - at ? io->size :
					     end_of_file - at;
}

static void fill(void)
{
	th_fill(want, ROOM);
	th_mem_put(&room, 0, want, ROOM);
}

static void check(void)
{
	for (unsigned i = 0; i < PIECES; i++) {
		size_t n = in_file(&ios[i], MW_SIZE);

		assert_int_equal(ios[i].n, n);
		memcpy(want + ios[i].buf_off, mw_content + ios[i].file_off, n);
	}
	th_mem_get(&room, 0, got, ROOM);
	th_equal("the reads", got, want, ROOM);
}

static void run(void)
{
	fill();
	enqueue_all();
	synchronize();
	check();
}

/* How much the kernels had from the page cache. */
static unsigned long drawn(void)
{
	return th_fake() ? th_ferry_drawn_bytes() : 0;
}

/* Those that follow are launched for what was there for these. */
static void learn(void)
{
	set_pieces(PIECE, MW_PAD);
	for (int lap = 0; lap < 2; lap++)
		run();
}

static void begin(unsigned flags)
{
	if (!mw_pins)
		th_skip("chunks are too small to be pinned");
	mw_begin();
	mw_warm();
	set_up(flags);
	learn();
}

/* ------------------------------------------------------------------ tests */

static void come_out_of_windows(unsigned flags)
{
	unsigned long before;
	uint64_t used;

	begin(flags);
	for (int lap = 0; lap < 3; lap++) {
		before = drawn();
		used = mw_counts().used;
		set_pieces(PIECE, MW_PAD);
		run();
		assert_true(mw_counts().used >= used + PIECES);
		if (th_fake()) /* but for the last granule, which is none */
			assert_in_range(drawn() - before, MW_SIZE - 2 * TH_MIB,
					MW_SIZE);
	}
	assert_int_equal(mw_counts().stale, 0);
	end();
}

static void hot_reads_of_a_stream_come_out_of_windows(void **state)
{
	come_out_of_windows(0);
}

static void those_that_come_ahead_do_too(void **state)
{
	come_out_of_windows(FIXED);
}

static void what_is_small_or_not_alike_is_carried_otherwise(void **state)
{
	unsigned long before;

	begin(FIXED);
	/* one that the one before was launched for is carried so, too */
	set_pieces(CF_FERRY_DRAWS - 1, MW_PAD);
	before = drawn();
	run();
	set_pieces(PIECE, MW_PAD + 8);
	run();
	assert_int_equal(drawn(), before);
	/* and one that is so, but the ones before were not */
	set_pieces(CF_FERRY_DRAWS, MW_PAD);
	run();
	assert_int_equal(drawn(), before);
	/* small ones between change nothing */
	learn();
	set_pieces(CF_FERRY_DRAWS - 1, MW_PAD);
	run();
	set_pieces(CF_FERRY_DRAWS, MW_PAD);
	before = drawn();
	run();
	if (th_fake())
		assert_true(drawn() > before);
	end();
}

/* What opencufile.mapped_use_kb says is for reads that are alone. */
static void a_quarter_of_what_else_is_the_smallest_is_enough(void **state)
{
	const size_t size = 2 * CF_FERRY_DRAWS;
	unsigned long before;

	if (!mw_pins)
		th_skip("chunks are too small to be pinned");
	mw_open_from = mw_use_from = 4 * size;
	mw_begin();
	mw_warm();
	set_up(FIXED);
	set_pieces(size, MW_PAD);
	for (int lap = 0; lap < 2; lap++)
		run();
	before = drawn();
	run();
	if (th_fake()) /* but for the last granule, which is none */
		assert_int_equal(drawn() - before, (PIECES - 1) * size);
	set_pieces(size - 16, MW_PAD);
	before = drawn();
	run();
	assert_int_equal(drawn(), before);
	end();
}

/* Nobody else reads. A wish at a time, and the pins are to be tried first. */
static void a_stream_has_windows_opened_for_its_next_read(void **state)
{
	unsigned long before;

	begin_auto();
	for (int lap = 0; lap < 200 && mw_counts().open < MW_NR_CHUNKS; lap++) {
		set_pieces(PIECE, MW_PAD);
		run();
		th_sleep_ms(5);
		if (cf_pins_state() == CF_PINS_NONE) {
			end();
			th_skip("the kernel driver pins no pages");
		}
	}
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
	learn();
	before = drawn();
	run();
	if (th_fake())
		assert_true(drawn() - before >= MW_SIZE - 2 * TH_MIB);
	end();
}

/* The handle goes as soon as it may, and windows with it. */
static void a_wish_for_a_handle_that_goes_leaves_nothing(void **state)
{
	begin_auto();
	for (int lap = 0; lap < TH_SCALE(20); lap++) {
		set_pieces(PIECE, MW_PAD);
		for (int n = 0; n < 4; n++)
			run();
		cuFileHandleDeregister(mw_fh);
		mw_all_are_closed();
		mw_fh = th_handle(mw_file.fd);
	}
	assert_true(mw_counts().opened || cf_pins_state() == CF_PINS_NONE);
	end();
}

/* Only the page table can tell. */
static void pages_that_were_replaced_are_read_again(void **state)
{
	static struct cf_os frozen;
	uint64_t stale;
	int fd;

	begin(FIXED);
	frozen = *mw_usual;
	frozen.statx = mw_statx_frozen;
	fd = mw_open_direct();
	cf_os = &frozen;
	mw_warm();
	learn();
	stale = mw_counts().stale;
	mw_write_direct(fd, MW_CHUNK, 4096);
	run();
	assert_true(mw_counts().stale > stale);
	close(fd);
	end();
}

static void read_meanwhile(void)
{
	enqueue_all();
	synchronize();
}

static void write_first_chunk(void)
{
	th_fill(mw_content, MW_CHUNK);
	(void)!pwrite(mw_file.plain, mw_content, MW_CHUNK, 0);
}

/* The pages stay the file's, and some were copied before. */
static void a_file_that_changes_meanwhile_is_read_again(void **state)
{
	th_need_fake();
	begin(0);
	set_pieces(PIECE, MW_PAD);
	fill();
	mw_change_during(write_first_chunk, read_meanwhile);
	check();
	end();
}

static void cut_off(void)
{
	(void)!ftruncate(mw_file.plain, (off_t)MW_CHUNK + 5);
}

static void a_file_that_is_cut_meanwhile_ends_there(void **state)
{
	const size_t end_of_file = MW_CHUNK + 5;

	th_need_fake();
	begin(0);
	set_pieces(PIECE, MW_PAD);
	mw_change_during(cut_off, read_meanwhile);
	for (unsigned i = 0; i < PIECES; i++)
		assert_int_equal(ios[i].n, in_file(&ios[i], end_of_file));
	th_mem_get(&room, MW_PAD, got, end_of_file);
	th_equal("what is left", got, mw_content, end_of_file);
	end();
}

/* Each launch looks for itself. */
static void a_graph_draws_what_is_there_when_it_is_launched(void **state)
{
	CUgraph graph;
	CUgraphExec exec;
	unsigned long before;

	begin(0);
	before = drawn();
	set_pieces(PIECE, MW_PAD);
	assert_int_equal(cuStreamBeginCapture_v2(stream, 2), 0);
	enqueue_all();
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	for (int lap = 0; lap < 4; lap++) {
		fill();
		assert_int_equal(cuGraphLaunch(exec, stream), 0);
		synchronize();
		check();
		th_fill(mw_content + lap * MW_CHUNK, TH_KIB);
		th_file_put(&mw_file, lap * MW_CHUNK,
			    mw_content + lap * MW_CHUNK, TH_KIB);
	}
	if (th_fake())
		assert_true(drawn() > before);
	assert_int_equal(cuGraphExecDestroy(exec), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	end();
}

/* While its kernel is on its way to an idle stream, whose read begins. */
static void *rewrite(void *unused)
{
	(void)unused;
	th_sleep_ms(40);
	(void)!ftruncate(mw_file.plain, 0);
	(void)!pwrite(mw_file.plain, mw_content, MW_SIZE, 0);
	return NULL;
}

/* Whether it was written before the kernel came, after so many ms. */
static bool read_while_it_is_rewritten(unsigned ms)
{
	uint64_t begun = th_now_ns();
	pthread_t thread;
	char plan[80];

	th_fill(mw_content, MW_SIZE);
	snprintf(plan, sizeof(plan), "cuLaunchKernelEx:1=@%u", ms * 1000);
	assert_int_equal(th_fake()->plan(plan), 0);
	assert_int_equal(pthread_create(&thread, NULL, rewrite, NULL), 0);
	enqueue(&ios[0]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	th_fake()->plan_clear();
	return th_now_ns() - begun < ms * 1000000ull;
}

static void an_idle_stream_reads_when_it_is_there(void **state)
{
	unsigned ms = 200;

	th_need_fake();
	begin(FIXED);
	for (int lap = 0; lap < TH_SCALE(6); lap++) {
		bool in_time;

		learn();
		th_sleep_ms(MW_REST_MS); /* nothing of it is out any more */
		fill();
		if (lap % 2) /* its windows are no good now */
			th_file_put(&mw_file, 0, mw_content, 1);
		in_time = read_while_it_is_rewritten(ms);
		for (unsigned i = 1; i < PIECES; i++) {
			synchronize();
			enqueue(&ios[i]);
		}
		synchronize();
		if (in_time) {
			check();
		} else { /* a slow machine: another lap */
			ms *= 4;
			lap--;
		}
		th_sleep_ms(MW_REST_MS);
		mw_warm();
	}
	end();
}

/* Its result is told when its bytes are on their way. */
static void a_window_stays_until_the_kernel_has_left(void **state)
{
	begin(FIXED);
	for (int lap = 0; lap < TH_SCALE(6); lap++) {
		set_pieces(PIECE, MW_PAD);
		fill();
		enqueue_all();
		while (__atomic_load_n(&ios[PIECES - 1].n, __ATOMIC_ACQUIRE) ==
		       -7)
			sched_yield();
		cuFileHandleDeregister(mw_fh);
		synchronize();
		check();
		mw_all_are_closed();
		mw_fh = th_handle(mw_file.fd);
		mw_warm();
		learn();
	}
	assert_int_equal(mw_counts().stale, 0);
	end();
}

static void storm_read(struct mw_storm *s)
{
	const size_t size = TH_MIB;
	uint32_t *words = malloc(size);

	while (!atomic_load(&s->over)) {
		struct io io = { .size = size };
		uint32_t low = atomic_load(&s->done);

		enqueue(&io);
		synchronize();
		if (io.n != (ssize_t)size)
			th_bad_note(&s->bad, "read answers %zd", io.n);
		th_mem_get(&room, 0, (unsigned char *)words, size);
		mw_storm_look(s, words, size, low);
	}
	free(words);
}

static void storm_thread(void *arg, unsigned i)
{
	if (i)
		storm_read(arg);
	else
		mw_storm_write(arg);
}

static void a_read_never_shows_less_than_was_written_before_it(void **state)
{
	struct mw_storm s = { .size = MW_CHUNK,
			      .gap_ms = TH_SANITIZED ? 400 : 60,
			      .opens = 2 };
	unsigned long before;

	if (!mw_pins)
		th_skip("chunks are too small to be pinned");
	mw_begin_with("always", 4 * MW_CHUNK, TH_BUFFERED);
	set_up(FIXED);
	before = drawn();
	mw_storm_begin(&s);
	th_threads(2, storm_thread, &s);
	mw_storm_end(&s);
	assert_true(mw_counts().used > 0);
	if (th_fake())
		assert_true(drawn() > before);
	end();
}

#define TEST(name) cmocka_unit_test_teardown(name, mw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hot_reads_of_a_stream_come_out_of_windows),
		TEST(those_that_come_ahead_do_too),
		TEST(what_is_small_or_not_alike_is_carried_otherwise),
		TEST(a_quarter_of_what_else_is_the_smallest_is_enough),
		TEST(a_stream_has_windows_opened_for_its_next_read),
		TEST(a_wish_for_a_handle_that_goes_leaves_nothing),
		TEST(pages_that_were_replaced_are_read_again),
		TEST(a_file_that_changes_meanwhile_is_read_again),
		TEST(a_file_that_is_cut_meanwhile_ends_there),
		TEST(a_graph_draws_what_is_there_when_it_is_launched),
		TEST(an_idle_stream_reads_when_it_is_there),
		TEST(a_window_stays_until_the_kernel_has_left),
		TEST(a_read_never_shows_less_than_was_written_before_it),
	};

	mw_start();
	return th_finish(cmocka_run_group_tests_name("mapped_stream", tests,
						     NULL, NULL));
}
