// SPDX-License-Identifier: Apache-2.0
/*
 * Copies of several pieces: which of them a kernel may be trusted with, what
 * each answers when the launch, the wait or the driver fails.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"
#include "path/copies.h"
#include "seam/os.h"

#define NR 3
#define MANY 7
#define SIZE 1000 /* of each of many */
#define STEP 4096 /* apart in both memories, so that none are one copy */

static bool is_child;

/* Registered first, so it runs when the library knows that the process ends. */
static void copy_late(void)
{
	struct cf_piece piece = { .op = CF_READ, .size = 4096 };
	const struct cf_piece *pieces[NR] = { &piece, &piece, &piece };
	ssize_t results[NR] = { 4096, 0, -EIO };
	char *at[NR] = { NULL };
	struct cf_lane lane = { 0 };
	struct cf_copies copies = { .lane = &lane,
				    .pieces = pieces,
				    .at = at,
				    .results = results,
				    .nr = NR };
	int gone = CF_ECUDA(CF_CU_DEINITIALIZED);

	if (!is_child)
		return;
	_exit(cf_copies_move(&copies) != gone || results[0] != gone ||
	      results[1] != 0 || results[2] != -EIO);
}

static void an_exit_before_the_copies_fails_those_that_were_due(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		is_child = true;
		if (!cf_cuda_open() || !cf_cuda_loaded())
			_exit(2);
		exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* --------------------------------------------------------------- clock */

#define S_NS 1000000000

/* A launch has a millisecond to get on, as this clock says; 0: the real one. */
static _Atomic int64_t stands_at;

static int clock_that_may_stand(clockid_t clock, struct timespec *ts)
{
	int64_t at = atomic_load(&stands_at);

	if (!at || clock != CLOCK_MONOTONIC)
		return cf_os_real.clock_gettime(clock, ts);
	*ts = (struct timespec){ .tv_sec = at / S_NS, .tv_nsec = at % S_NS };
	return 0;
}

static void use_our_clock(void)
{
	static struct cf_os os;

	os = cf_os_real;
	os.clock_gettime = clock_that_may_stand;
	cf_os = &os;
}

/* ---------------------------------------------------------------- many */

struct many {
	struct th_mem mem, other; /* the last piece is in the other one */
	unsigned char *bytes, *got;
	struct cf_piece piece[MANY];
	const struct cf_piece *pieces[MANY];
	char *at[MANY];
	ssize_t results[MANY];
	struct cf_device *dev;
	struct cf_pool *pool;
	struct cf_slot *slot;
	struct cf_lane *lane;
	struct cf_scope scope;
};

static void add_piece(struct many *m, unsigned i, const struct th_mem *mem,
		      size_t at)
{
	m->piece[i] = (struct cf_piece){ .op = CF_READ, .size = SIZE };
	cf_memory_facts((uintptr_t)mem->ptr + at, &m->piece[i].mem);
	m->pieces[i] = &m->piece[i];
	m->at[i] = m->slot->mem + i * STEP;
	m->results[i] = SIZE;
}

static int many_move(struct many *m)
{
	return cf_copies_move(&(struct cf_copies){ .dev = m->dev,
						   .lane = m->lane,
						   .slot = m->slot->mem,
						   .pieces = m->pieces,
						   .at = m->at,
						   .results = m->results,
						   .nr = MANY });
}

static void many_make(struct many *m, enum th_mem_kind other)
{
	th_need_fake();
	th_open();
	th_mem_alloc(&m->mem, TH_DEVICE, MANY * STEP);
	th_mem_alloc(&m->other, other, STEP);
	cf_memory_facts((uintptr_t)m->mem.ptr, &m->piece[0].mem);
	assert_int_equal(cf_device_find(&m->piece[0].mem, &m->dev), 0);
	assert_int_equal(cf_context_enter(m->dev->ctx, &m->scope), 0);
	m->pool = cf_gpu_pool(m->dev->gpu, MANY * STEP);
	assert_int_equal(cf_slot_lease(m->pool, &m->slot), 0);
	assert_int_equal(cf_lane_lease(&m->dev->lanes, &m->lane), 0);
	m->bytes = th_bytes(MANY * STEP);
	m->got = malloc(MANY * STEP);
	memcpy(m->slot->mem, m->bytes, MANY * STEP);
	for (unsigned i = 0; i < MANY; i++)
		add_piece(m, i, i < MANY - 1 ? &m->mem : &m->other,
			  i < MANY - 1 ? i * STEP : 0);
	atomic_store(&stands_at, (int64_t)th_now_ns());
	/* what only the first ones do is done */
	assert_int_equal(many_move(m), 0);
	th_mem_set(&m->mem, 0xa5);
	th_mem_set(&m->other, 0xa5);
}

static void many_end(struct many *m)
{
	atomic_store(&stands_at, 0);
	th_fake()->plan_clear();
	cf_lane_settle(m->lane);
	cf_lane_give_back(&m->dev->lanes, m->lane);
	cf_slot_give_back(m->pool, m->slot);
	cf_context_leave(&m->scope);
	th_mem_free(&m->mem);
	th_mem_free(&m->other);
	free(m->bytes);
	free(m->got);
	th_close();
}

/* Piece i is there, and what lies around it is as it was. */
static void has_arrived(struct many *m, unsigned i)
{
	bool last = i == MANY - 1;

	assert_int_equal(m->results[i], SIZE);
	th_mem_get(last ? &m->other : &m->mem, last ? 0 : i * STEP, m->got,
		   STEP);
	th_equal("a piece", m->got, m->bytes + i * STEP, SIZE);
	th_all("behind it", m->got + SIZE, 0xa5, STEP - SIZE);
}

static void all_have_arrived(struct many *m)
{
	for (unsigned i = 0; i < MANY; i++)
		has_arrived(m, i);
}

static void many_small_copies_share_a_launch(void **state)
{
	unsigned long moved;
	struct many m;

	many_make(&m, TH_DEVICE);
	moved = th_volley_moved();
	assert_int_equal(many_move(&m), 0);
	assert_int_equal(th_volley_moved() - moved, MANY);
	all_have_arrived(&m);
	many_end(&m);
}

/* Since the submit the client may have freed it, and others have it now. */
static void share_all_but_one(int how)
{
	struct many m;
	unsigned long moved;

	many_make(&m, TH_DEVICE);
	if (how == 0)
		m.piece[MANY - 1].mem.buffer_id += 1000;
	else if (how == 1)
		m.piece[MANY - 1].mem.ctx = th_second_ctx();
	else
		m.piece[MANY - 1].mem.kind = CF_MEMORY_MANAGED;
	moved = th_volley_moved();
	assert_int_equal(many_move(&m), 0);
	all_have_arrived(&m);
	assert_int_equal(th_volley_moved() - moved, MANY - 1);
	many_end(&m);
}

static void memory_that_is_another_now_is_not_the_kernels(void **state)
{
	for (int how = 0; how < 3; how++)
		share_all_but_one(how);
}

/* The driver refuses such a copy; a kernel would break the context. */
static void a_piece_beyond_its_memory_is_not_the_kernels(void **state)
{
	struct cf_memory *mem;
	unsigned long moved;
	struct many m;

	many_make(&m, TH_DEVICE);
	mem = &m.piece[MANY - 1].mem;
	mem->addr = mem->end - SIZE + 1;
	moved = th_volley_moved();
	assert_int_equal(many_move(&m), CF_ECUDA(CF_CU_INVALID_VALUE));
	for (unsigned i = 0; i < MANY - 1; i++)
		has_arrived(&m, i);
	assert_int_equal(m.results[MANY - 1], CF_ECUDA(CF_CU_INVALID_VALUE));
	assert_int_equal(cuStreamQuery(m.lane->stream), CF_CU_SUCCESS);
	/* in rows and without */
	assert_int_equal(th_fake()->complaints(NULL), 2);
	th_fake()->complaints_clear();
	assert_int_equal(th_volley_moved() - moved, MANY - 1);
	many_end(&m);
}

/* The kernel's are done; of those beside it nothing is known. */
static void a_wait_that_fails_fails_what_was_copied_beside_the_kernel(
	void **state)
{
	unsigned long moved;
	struct many m;

	many_make(&m, TH_MANAGED);
	m.results[1] = 0;
	m.results[2] = -EIO;
	moved = th_volley_moved();
	assert_int_equal(th_fake()->plan("cuStreamSynchronize:1=999"), 0);
	assert_int_equal(many_move(&m), CF_ECUDA(CF_CU_UNKNOWN));
	assert_int_equal(th_volley_moved() - moved, MANY - 3);
	assert_int_equal(m.results[1], 0);
	assert_int_equal(m.results[2], -EIO);
	assert_int_equal(m.results[MANY - 1], CF_ECUDA(CF_CU_UNKNOWN));
	for (unsigned i = 0; i < MANY - 1; i++)
		if (i != 1 && i != 2)
			has_arrived(&m, i);
	many_end(&m);
}

static unsigned long copies_before;

/* The third block has no room until it is to be cancelled. */
static void come_late(unsigned block, unsigned seq)
{
	(void)seq;
	while (block == 2 &&
	       th_fake()->calls("cuMemcpyHtoDAsync_v2") == copies_before) {
		atomic_fetch_add(&stands_at, S_NS);
		th_sleep_ms(1);
	}
}

/* It does not get on, and cannot be cancelled: nothing is known of any. */
static void a_launch_that_fails_fails_all_that_were_due(void **state)
{
	unsigned long moved;
	struct many m;

	many_make(&m, TH_DEVICE);
	(void)th_volley_kernel(come_late);
	m.results[1] = 0;
	m.results[2] = -EIO;
	moved = th_volley_moved();
	copies_before = th_fake()->calls("cuMemcpyHtoDAsync_v2");
	assert_int_equal(th_fake()->plan("cuMemcpyHtoDAsync_v2:1=999"), 0);
	assert_int_equal(many_move(&m), CF_ECUDA(CF_CU_UNKNOWN));
	assert_int_equal(th_volley_moved() - moved, MANY - 2);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(m.results[i],
				 i == 1 ? 0 :
				 i == 2 ? -EIO :
					  CF_ECUDA(CF_CU_UNKNOWN));
	(void)th_volley_kernel(NULL);
	many_end(&m);
}

/* In rows and, where that is refused, without. */
#define REFUSED(rows, plain) \
	"cuMemcpy2DAsync_v2:" rows "=1,cuMemcpyHtoDAsync_v2:" plain "=1"

/*
 * The launch moves all but piece 2, and so its neighbour, too. A copy of both
 * that is refused is no news for the neighbour.
 */
static void a_copy_that_is_refused_fails_none_that_the_launch_has_moved(
	void **state)
{
	const ssize_t refused = CF_ECUDA(CF_CU_INVALID_VALUE);
	const size_t at = 2 * STEP + SIZE;
	struct many m;

	many_make(&m, TH_DEVICE);
	m.piece[2].mem.ctx = th_second_ctx();
	add_piece(&m, 3, &m.mem, at);
	m.at[3] = m.slot->mem + at;
	assert_int_equal(th_fake()->plan(REFUSED("*", "*")), 0);
	assert_int_equal(many_move(&m), refused);
	th_fake()->plan_clear();
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(m.results[i], i == 2 ? refused : SIZE);
	th_mem_get(&m.mem, 2 * STEP, m.got, STEP);
	th_all("refused", m.got, 0xa5, SIZE);
	th_equal("its neighbour", m.got + SIZE, m.bytes + at, SIZE);
	many_end(&m);
}

/* Neighbours in both memories are one copy, unless the driver refuses it. */
static void a_copy_of_neighbours_that_is_refused_is_made_one_by_one(
	void **state)
{
	const ssize_t refused = CF_ECUDA(CF_CU_INVALID_VALUE);
	struct many m;

	for (int how = 0; how < 3; how++) {
		unsigned long copies;
		struct cf_copies run;

		many_make(&m, TH_DEVICE);
		for (unsigned i = 0; i < MANY - 1; i++) {
			add_piece(&m, i, &m.mem, i * SIZE);
			m.at[i] = m.slot->mem + i * SIZE;
		}
		run = (struct cf_copies){ .dev = m.dev,
					  .lane = m.lane,
					  .pieces = m.pieces,
					  .at = m.at,
					  .results = m.results,
					  .nr = MANY - 1 };
		if (how)
			assert_int_equal(
				th_fake()->plan(
					how == 1 ?
						REFUSED("1", "1") :
						REFUSED("1", "1") "," REFUSED(
							"4", "2")),
				0);
		copies = th_copies_in();
		assert_int_equal(cf_copies_move(&run), how == 2 ? refused : 0);
		assert_int_equal(th_copies_in(),
				 copies + (how ? MANY + how : 1));
		th_mem_get(&m.mem, 0, m.got, (MANY - 1) * SIZE + 1);
		for (unsigned i = 0; i < MANY - 1; i++) {
			bool bad = how == 2 && i == 2;

			assert_int_equal(m.results[i], bad ? refused : SIZE);
			if (bad)
				th_all("refused", m.got + i * SIZE, 0xa5, SIZE);
			else
				th_equal("a piece", m.got + i * SIZE,
					 m.bytes + i * SIZE, SIZE);
		}
		th_all("behind", m.got + (MANY - 1) * SIZE, 0xa5, 1);
		many_end(&m);
	}
}

/* They are right, which says nothing of one before them. */
static void neighbours_that_come_one_by_one_hide_no_error(void **state)
{
	const ssize_t refused = CF_ECUDA(CF_CU_INVALID_VALUE);
	struct many m;

	many_make(&m, TH_DEVICE);
	for (unsigned i = 1; i < 3; i++) {
		add_piece(&m, i, &m.mem, STEP + i * SIZE);
		m.at[i] = m.slot->mem + STEP + i * SIZE;
	}
	assert_int_equal(
		th_fake()->plan(REFUSED("1", "1") "," REFUSED("2", "2")), 0);
	assert_int_equal(
		cf_copies_move(&(struct cf_copies){ .dev = m.dev,
						    .lane = m.lane,
						    .pieces = m.pieces,
						    .at = m.at,
						    .results = m.results,
						    .nr = 3 }),
		refused);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(m.results[i], i ? SIZE : refused);
	th_mem_get(&m.mem, STEP + SIZE, m.got, 2 * SIZE);
	th_equal("neighbours", m.got, m.bytes + STEP + SIZE, 2 * SIZE);
	many_end(&m);
}

enum apart {
	SHORT, /* the first of them is not all there */
	OTHER_BUFFER,
	OTHER_END,
	CHAINED,
	MANAGED,
	GAP_IN_SLOT,
	GAP_IN_MEMORY,
	NR_APART,
};

/* Piece 2, or all from 3 on, are no neighbours of those before. */
static void set_apart(struct many *m, enum apart how)
{
	struct cf_memory *mem = &m->piece[2].mem;

	m->results[2] -= how == SHORT;
	mem->buffer_id += how == OTHER_BUFFER ? 1000 : 0;
	mem->end += how == OTHER_END ? 1 : 0;
	mem->chained = how == CHAINED;
	if (how == MANAGED)
		mem->kind = CF_MEMORY_MANAGED;
	for (unsigned i = 3; i < MANY - 1; i++) {
		m->at[i] += how == GAP_IN_SLOT ? 512 : 0;
		m->piece[i].mem.addr += how == GAP_IN_MEMORY ? 512 : 0;
	}
}

static void what_lies_apart_is_a_copy_of_its_own(void **state)
{
	for (enum apart how = 0; how < NR_APART; how++) {
		bool alone = how != SHORT && how < GAP_IN_SLOT;
		unsigned long copies;
		struct cf_copies run;
		struct many m;

		many_make(&m, TH_DEVICE);
		for (unsigned i = 0; i < MANY - 1; i++) {
			add_piece(&m, i, &m.mem, i * SIZE);
			m.at[i] = m.slot->mem + i * SIZE;
		}
		set_apart(&m, how);
		run = (struct cf_copies){ .dev = m.dev,
					  .lane = m.lane,
					  .pieces = m.pieces,
					  .at = m.at,
					  .results = m.results,
					  .nr = MANY - 1 };
		copies = th_copies_in();
		assert_int_equal(cf_copies_move(&run), 0);
		/* an odd byte takes a copy of its own */
		assert_int_equal(th_copies_in(),
				 copies + (alone ? 3 : 2) + (how == SHORT));
		for (unsigned i = 0; i < MANY - 1; i++) {
			size_t to = m.piece[i].mem.addr - (uintptr_t)m.mem.ptr;

			th_mem_get(&m.mem, to, m.got, SIZE);
			th_equal("a piece", m.got,
				 m.bytes + (m.at[i] - m.slot->mem),
				 (size_t)m.results[i]);
		}
		many_end(&m);
	}
}

#define MANY_TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_exit_before_the_copies_fails_those_that_were_due),
		/* from here on the process has used the driver */
		MANY_TEST(many_small_copies_share_a_launch),
		MANY_TEST(memory_that_is_another_now_is_not_the_kernels),
		MANY_TEST(a_piece_beyond_its_memory_is_not_the_kernels),
		MANY_TEST(
			a_wait_that_fails_fails_what_was_copied_beside_the_kernel),
		MANY_TEST(a_launch_that_fails_fails_all_that_were_due),
		MANY_TEST(
			a_copy_that_is_refused_fails_none_that_the_launch_has_moved),
		MANY_TEST(
			a_copy_of_neighbours_that_is_refused_is_made_one_by_one),
		MANY_TEST(neighbours_that_come_one_by_one_hide_no_error),
		MANY_TEST(what_lies_apart_is_a_copy_of_its_own),
	};

	(void)atexit(copy_late);
	th_start(60);
	use_our_clock();
	(void)th_volley_kernel(NULL);
	return th_finish(
		cmocka_run_group_tests_name("copies", tests, NULL, NULL));
}
