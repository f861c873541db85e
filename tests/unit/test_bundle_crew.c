// SPDX-License-Identifier: Apache-2.0
/*
 * test_bundle_crew - small reads through one slot that helpers fill: nothing is
 * sent before it is there, in few copies, and what goes wrong ends those it
 * concerns.
 */
#include "path/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/device.h"
#include "harness.h"
#include "seam/os.h"

#define SLOT (4 * TH_MIB)
#define MEM (6 * TH_MIB)
#define PAD 4096
#define SIZE (2 * TH_MIB)
#define OTHER_SIZE (300 * TH_KIB + 77)
#define SMALL (16 * TH_KIB)
#define LARGE (64 * TH_KIB) /* is read by halves */
#define SEND_MIN (256 * TH_KIB)

/* ---------------------------------------------------------------- crews */

static _Thread_local bool is_helper;

struct helper {
	void (*help)(void *arg);
	void *arg;
	pthread_t thread;
};

static void *run_helper(void *helper)
{
	struct helper *h = helper;

	is_helper = true;
	h->help(h->arg);
	return NULL;
}

static void helper_start(struct helper *h, void (*help)(void *arg), void *arg)
{
	*h = (struct helper){ .help = help, .arg = arg };
	assert_int_equal(pthread_create(&h->thread, NULL, run_helper, h), 0);
}

/* As the engine's: it returns when all have come back. */
static void with_helpers(struct cf_crew *crew, void (*lead)(void *arg),
			 void (*help)(void *arg), void *arg)
{
	struct helper helpers[8];

	for (unsigned i = 0; i < crew->helpers; i++)
		helper_start(&helpers[i], help, arg);
	lead(arg);
	for (unsigned i = 0; i < crew->helpers; i++)
		pthread_join(helpers[i].thread, NULL);
}

static void without_any(struct cf_crew *crew, void (*lead)(void *arg),
			void (*help)(void *arg), void *arg)
{
	(void)crew;
	(void)help;
	lead(arg);
}

static void help_then_lead(struct cf_crew *crew, void (*lead)(void *arg),
			   void (*help)(void *arg), void *arg)
{
	(void)crew;
	help(arg);
	lead(arg);
}

static struct cf_crew nobody = { .work = without_any };
static struct cf_crew busy = { .helpers = 3, .work = without_any };
static struct cf_crew early = { .helpers = 3, .work = help_then_lead };
static struct cf_crew one = { .helpers = 1, .work = with_helpers };
static struct cf_crew several = { .helpers = 5, .work = with_helpers };

static struct cf_crew *const crews[] = { &nobody, &busy, &early, &one,
					 &several };
#define NR_CREWS (sizeof(crews) / sizeof(crews[0]))

/* ------------------------------------------------------- files and time */

static struct cf_os ours;
static atomic_uint reads;
static off_t bad_from, bad_to; /* of any file; both 0: none */

static ssize_t count_read(int fd, void *buf, size_t size, off_t off)
{
	atomic_fetch_add(&reads, 1);
	if (off >= bad_from && off < bad_to)
		return -EIO;
	if (off < bad_from && off + (off_t)size > bad_from)
		size = (size_t)(bad_from - off);
	return cf_os_real.pread(fd, buf, size, off);
}

/* A launch has a millisecond to get on: here that never is over. */
static int clock_that_stands(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_MONOTONIC)
		return cf_os_real.clock_gettime(clock, ts);
	*ts = (struct timespec){ .tv_sec = 1000 };
	return 0;
}

/* ------------------------------------------------------------- demoting */

/* Called instead of cf_cache_demote; nobody can see the instruction at work. */
void __wrap_cf_cache_demote(const void *mem, size_t size);

static _Atomic size_t demoted; /* bytes */

void __wrap_cf_cache_demote(const void *mem, size_t size)
{
	(void)mem;
	atomic_fetch_add(&demoted, size);
}

/* ---------------------------------------------------------------- world */

struct world {
	struct th_pair pair;  /* a file, and the memory for all */
	struct th_file other; /* another one, that is shorter */
	unsigned char *bytes; /* of it */
	unsigned char *image; /* what the memory should be */
	CUfileHandle_t fh;    /* the other's */
	struct cf_piece piece[CF_BUNDLE_MAX];
	const struct cf_piece *pieces[CF_BUNDLE_MAX];
	ssize_t want[CF_BUNDLE_MAX], results[CF_BUNDLE_MAX];
	unsigned nr;
	size_t at, need; /* of the memory; of a slot */
	bool kernel;
};

static void world_make(struct world *w)
{
	memset(w, 0, sizeof(*w));
	th_need_fake();
	th_slots_of(SLOT);
	th_pair_make(&w->pair, TH_BUFFERED, SIZE, MEM - SIZE);
	w->bytes = th_bytes(OTHER_SIZE);
	w->image = malloc(MEM);
	assert_non_null(w->image);
	th_file_make(&w->other, TH_BUFFERED, O_RDWR, w->bytes, OTHER_SIZE);
	w->fh = th_handle(w->other.fd);
	w->at = PAD;
	ours = cf_os_real;
	ours.pread = count_read;
	bad_from = bad_to = 0;
	cf_os = &ours;
}

static void world_end(struct world *w)
{
	cf_os = &cf_os_real;
	cuFileHandleDeregister(w->fh);
	th_file_end(&w->other);
	free(w->bytes);
	free(w->image);
	th_pair_end(&w->pair);
}

/* gap bytes behind the one before it. */
static void add(struct world *w, bool other, size_t off, size_t size,
		size_t gap)
{
	struct cf_piece *piece = &w->piece[w->nr];
	size_t end = other ? OTHER_SIZE : SIZE;
	size_t left = off < end ? end - off : 0;

	w->at += gap;
	*piece = (struct cf_piece){
		.op = CF_READ,
		.size = size,
		.file_off = (off_t)off,
		.handle = cf_handle_get(other ? w->fh : w->pair.fh),
	};
	assert_non_null(piece->handle);
	cf_handle_put(piece->handle); /* it stays registered */
	cf_memory_facts((uintptr_t)w->pair.mem.ptr + w->at, &piece->mem);
	assert_true(cf_bundle_can(piece));
	w->pieces[w->nr] = piece;
	w->want[w->nr++] = (ssize_t)(left < size ? left : size);
	w->at += size;
	w->need += cf_bundle_need(piece);
	assert_true(w->at + PAD <= MEM);
	assert_true(w->need <= SLOT);
}

/* nr of one size and of one file, that follow each other in it. */
static void add_row(struct world *w, bool other, unsigned nr, size_t size,
		    size_t gap)
{
	for (unsigned i = 0; i < nr; i++)
		add(w, other, i * size, size, gap);
}

static void nothing_is_leased(struct world *w)
{
	static const size_t sizes[] = { 1, SLOT };
	size_t bytes, leased;
	struct cf_device *dev;

	assert_int_equal(cf_device_find(&w->piece[0].mem, &dev), 0);
	for (unsigned i = 0; i < 2; i++) {
		cf_pool_usage(cf_gpu_pool(dev->gpu, sizes[i]), &bytes, &leased);
		assert_int_equal(leased, 0);
	}
}

static void forget(struct world *w)
{
	th_mem_set(&w->pair.mem, 0xa5);
	for (unsigned i = 0; i < w->nr; i++)
		w->results[i] = 12345;
	atomic_store(&reads, 0);
}

static void run(struct world *w, struct cf_crew *crew)
{
	cf_bundle_run(w->pieces, w->results, w->nr, w->kernel, crew);
	th_fake()->plan_clear();
	th_fake()->copy_delay_us(0);
	nothing_is_leased(w);
}

static const unsigned char *source_of(const struct world *w, unsigned i)
{
	bool other = w->piece[i].handle->fd == w->other.fd;

	return (other ? w->bytes : w->pair.bytes) + w->piece[i].file_off;
}

/* Draws piece i into the image; after an error of the driver, what is there. */
static void draw(struct world *w, unsigned i)
{
	size_t at = w->piece[i].mem.addr - (uintptr_t)w->pair.mem.ptr;

	if (cf_is_cuda_error((int)w->results[i]))
		memcpy(w->image + at, w->pair.got + at, w->piece[i].size);
	else if (w->results[i] > 0)
		memcpy(w->image + at, source_of(w, i), (size_t)w->results[i]);
}

/* And nothing around them is touched. */
static void are_as_they_say(struct world *w)
{
	th_mem_get(&w->pair.mem, 0, w->pair.got, MEM);
	memset(w->image, 0xa5, MEM);
	for (unsigned i = 0; i < w->nr; i++)
		draw(w, i);
	th_equal("the memory", w->pair.got, w->image, MEM);
}

static void all_are_there(struct world *w)
{
	for (unsigned i = 0; i < w->nr; i++)
		assert_int_equal(w->results[i], w->want[i]);
	are_as_they_say(w);
}

/* How many failed, with an error of the driver. */
static unsigned ended_well_or_failed(struct world *w)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < w->nr; i++) {
		if (cf_is_cuda_error((int)w->results[i]))
			failed++;
		else
			assert_int_equal(w->results[i], w->want[i]);
	}
	are_as_they_say(w);
	return failed;
}

static unsigned long copies(void)
{
	return th_copies_in();
}

/* ---------------------------------------------------------------- bytes */

/* Of any size, here and there behind each other in the file or the memory. */
static void add_any(struct world *w, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		size_t most = th_below(3) ? 8000 : CF_BUNDLE_MAX_SIZE;
		const struct cf_piece *before = i ? &w->piece[i - 1] : NULL;
		bool other = th_below(3) == 0;
		size_t off = th_below(other ? OTHER_SIZE + 9000 :
					      SIZE - CF_BUNDLE_MAX_SIZE);

		if (before && th_below(3)) {
			other = before->handle->fd == w->other.fd;
			off = (size_t)before->file_off + before->size;
		}
		add(w, other, off, 1 + th_below(most),
		    th_below(2) ? 0 : th_below(100));
	}
}

static void pieces_of_any_size_come_to_their_places(void **state)
{
	for (unsigned round = 0; round < TH_SCALE(24); round++) {
		struct world w;

		world_make(&w);
		add_any(&w, 2 + (unsigned)th_below(100));
		for (unsigned i = 0; i < NR_CREWS; i++) {
			forget(&w);
			run(&w, crews[i]);
			all_are_there(&w);
		}
		world_end(&w);
	}
}

static void as_many_as_a_bundle_holds_come_whole(void **state)
{
	struct world w;

	world_make(&w);
	for (unsigned i = 0; i < CF_BUNDLE_MAX; i++)
		add(&w, false, i * 7777, 7777 + i, i % 5);
	for (unsigned i = 0; i < NR_CREWS; i++) {
		forget(&w);
		run(&w, crews[i]);
		all_are_there(&w);
	}
	world_end(&w);
}

/* One read of several finds it first. */
static void the_end_of_a_file_is_that_of_its_pieces_alone(void **state)
{
	size_t first = OTHER_SIZE - 3 * SMALL - 5;
	struct world w;

	world_make(&w);
	add_row(&w, false, 8, SMALL, 0);
	for (unsigned i = 0; i < 8; i++)
		add(&w, true, first + i * SMALL, SMALL, 0);
	add_row(&w, false, 8, SMALL, 0);
	for (unsigned i = 0; i < NR_CREWS; i++) {
		forget(&w);
		run(&w, crews[i]);
		assert_int_equal(w.results[8 + 2], SMALL);
		assert_int_equal(w.results[8 + 3], 5);
		assert_int_equal(w.results[8 + 4], 0);
		all_are_there(&w);
	}
	world_end(&w);
}

/* --------------------------------------------------------------- copies */

static unsigned long copies_by(struct world *w, struct cf_crew *crew)
{
	unsigned long before;

	forget(w);
	before = copies();
	run(w, crew);
	before = copies() - before;
	all_are_there(w);
	return before;
}

static void what_lies_together_is_few_copies(void **state)
{
	struct world w;

	world_make(&w);
	add_row(&w, false, 64, SMALL, 0);
	assert_int_equal(copies_by(&w, &nobody), 1);
	assert_int_equal(copies_by(&w, &early), 1);
	assert_int_equal(copies_by(&w, &busy), 64 * SMALL / SEND_MIN);
	for (unsigned i = 0; i < TH_SCALE(20); i++)
		assert_in_range(copies_by(&w, &several), 1,
				64 * SMALL / SEND_MIN);
	world_end(&w);
}

static void large_ones_are_sent_whole(void **state)
{
	struct world w;

	world_make(&w);
	ours.clock_gettime = clock_that_stands; /* no read is slow */
	add_row(&w, false, 30, LARGE, 0);
	assert_int_equal(copies_by(&w, &nobody), 1);
	assert_int_equal(copies_by(&w, &early), 1);
	assert_int_equal(copies_by(&w, &busy), 8);
	for (unsigned i = 0; i < TH_SCALE(20); i++)
		assert_in_range(copies_by(&w, &several), 1, 8);
	world_end(&w);
}

/* What is less than a copy's worth, at the end, goes with nothing else. */
static void the_last_copy_is_as_large_as_what_is_left(void **state)
{
	struct world w;

	world_make(&w);
	add_row(&w, false, 25, SMALL, 0);
	assert_int_equal(copies_by(&w, &busy), 2);
	world_end(&w);
	world_make(&w);
	add_row(&w, false, 3, SMALL, 0);
	for (unsigned i = 0; i < NR_CREWS; i++)
		assert_int_equal(copies_by(&w, crews[i]), 1);
	world_end(&w);
}

static void neighbours_in_a_file_are_few_reads(void **state)
{
	struct world w;

	world_make(&w);
	add_row(&w, false, 64, SMALL, 0);
	(void)copies_by(&w, &nobody);
	assert_int_equal(atomic_load(&reads), 1);
	for (unsigned i = 1; i < NR_CREWS; i++) {
		(void)copies_by(&w, crews[i]);
		/* at least two of each of the crew, and eight pieces at most */
		assert_int_equal(atomic_load(&reads),
				 crews[i] == &several ? 13 : 8);
	}
	world_end(&w);
}

/* ------------------------------------------------------------ in order */

static atomic_bool is_held;
static atomic_size_t read_by_others;
static atomic_ulong copies_while_held;
static unsigned long copies_before;
static size_t bytes_of_all;

/* A helper's first one comes when all others have. */
static ssize_t hold_first(int fd, void *buf, size_t size, off_t off)
{
	ssize_t n;

	if (is_helper && !atomic_exchange(&is_held, true)) {
		while (atomic_load(&read_by_others) + size < bytes_of_all)
			th_sleep_ms(1);
		th_sleep_ms(5); /* for who does not wait */
		atomic_store(&copies_while_held, copies() - copies_before);
		return cf_os_real.pread(fd, buf, size, off);
	}
	n = cf_os_real.pread(fd, buf, size, off);
	atomic_fetch_add(&read_by_others, n > 0 ? (size_t)n : 0);
	return n;
}

static void with_a_held_one(struct cf_crew *crew, void (*lead)(void *arg),
			    void (*help)(void *arg), void *arg)
{
	struct helper h;

	(void)crew;
	helper_start(&h, help, arg);
	while (!atomic_load(&is_held))
		th_sleep_ms(1);
	lead(arg);
	pthread_join(h.thread, NULL);
}

/* Of a large one its first half. */
static void nothing_is_sent_before_what_is_first_is_there(void **state)
{
	static const size_t sizes[] = { SMALL, LARGE };
	struct cf_crew held = { .helpers = 1, .work = with_a_held_one };

	for (unsigned i = 0; i < 2; i++) {
		struct world w;

		world_make(&w);
		add_row(&w, false, (unsigned)(TH_MIB / sizes[i]), sizes[i], 0);
		ours.pread = hold_first;
		bytes_of_all = TH_MIB;
		atomic_store(&is_held, false);
		atomic_store(&read_by_others, 0);
		copies_before = copies();
		run(&w, &held);
		assert_int_equal(atomic_load(&copies_while_held), 0);
		assert_int_equal(copies() - copies_before, 1);
		all_are_there(&w);
		world_end(&w);
	}
}

/* ------------------------------------------------------ what goes wrong */

static void a_read_that_fails_fails_its_piece_alone(void **state)
{
	struct world w;

	world_make(&w);
	add_row(&w, false, 32, SMALL, 0);
	add(&w, true, 0, SMALL, 0);
	bad_from = 19 * SMALL + 100;
	bad_to = SIZE;
	w.want[19] = 100;
	for (unsigned i = 20; i < 32; i++)
		w.want[i] = -EIO;
	for (unsigned i = 0; i < NR_CREWS; i++) {
		forget(&w);
		run(&w, crews[i]);
		all_are_there(&w);
	}
	world_end(&w);
}

/* Of the ninth the second half is read, and does not count. */
static void a_half_that_fails_ends_its_piece_alone(void **state)
{
	struct world w;

	world_make(&w);
	add_row(&w, false, 20, LARGE, 0);
	add_row(&w, true, 6, LARGE, 0); /* the file ends in the fifth */
	add(&w, true, OTHER_SIZE - 100, LARGE, 0);
	bad_from = 7 * LARGE + LARGE / 2 + 100;
	bad_to = 8 * LARGE + 10;
	w.want[7] = LARGE / 2 + 100;
	w.want[8] = -EIO;
	for (unsigned i = 0; i < NR_CREWS; i++) {
		forget(&w);
		run(&w, crews[i]);
		all_are_there(&w);
	}
	world_end(&w);
}

/* Small copies go in rows, and without where that is refused. */
#define FAILS(rows, plain) \
	"cuMemcpy2DAsync_v2:" rows "=999,cuMemcpyHtoDAsync_v2:" plain "=999"

static unsigned fails_with(struct world *w, struct cf_crew *crew,
			   const char *plan)
{
	forget(w);
	assert_int_equal(th_fake()->plan(plan), 0);
	run(w, crew);
	return ended_well_or_failed(w);
}

/* Four are due; each of the second's pieces is tried alone. */
static void a_copy_that_fails_is_made_piece_by_piece(void **state)
{
	unsigned long before;
	struct world w;

	world_make(&w);
	add_row(&w, false, 64, SMALL, 0);
	before = copies();
	assert_int_equal(fails_with(&w, &busy, "cuMemcpyHtoDAsync_v2:2=999"),
			 0);
	assert_int_equal(copies() - before, 4 + 16);
	assert_int_equal(
		fails_with(&w, &busy,
			   "cuMemcpyHtoDAsync_v2:2=999," FAILS("3", "3")),
		1);
	assert_int_equal(w.results[16 + 2], CF_ECUDA(CF_CU_UNKNOWN));
	world_end(&w);
}

static void a_copy_that_fails_fails_its_piece_alone(void **state)
{
	char plan[128];
	struct world w;

	world_make(&w);
	add_row(&w, false, 40, SMALL, 512);
	for (unsigned i = 0; i < NR_CREWS; i++) {
		for (unsigned n = 1; n <= w.nr; n++) {
			snprintf(plan, sizeof(plan), FAILS("%u", "1"), n);
			assert_int_equal(fails_with(&w, crews[i], plan), 1);
			assert_int_equal(w.results[n - 1],
					 CF_ECUDA(CF_CU_UNKNOWN));
		}
		assert_int_equal(fails_with(&w, crews[i], FAILS("9+", "*")),
				 w.nr - 8);
	}
	world_end(&w);
}

/* What has another result by then keeps it. */
static void a_wait_that_fails_fails_all_that_were_sent(void **state)
{
	struct world w;

	world_make(&w);
	add_row(&w, false, 32, SMALL, 0);
	add(&w, true, OTHER_SIZE + 1, SMALL, 0);
	bad_from = 30 * SMALL;
	bad_to = SIZE;
	w.want[30] = w.want[31] = -EIO;
	for (unsigned i = 0; i < NR_CREWS; i++)
		assert_int_equal(
			fails_with(&w, crews[i], "cuStreamSynchronize:1=999"),
			30);
	world_end(&w);
}

/* What a slot holds that is anybody's again. */
static void scribble(struct world *w)
{
	struct cf_device *dev;
	struct cf_scope scope;
	struct cf_pool *pool;
	struct cf_slot *slot;

	assert_int_equal(cf_device_find(&w->piece[0].mem, &dev), 0);
	assert_int_equal(cf_context_enter(dev->ctx, &scope), 0);
	pool = cf_gpu_pool(dev->gpu, w->need);
	assert_int_equal(cf_slot_lease(pool, &slot), 0);
	memset(slot->mem, 0x77, slot->size);
	cf_slot_give_back(pool, slot);
	cf_context_leave(&scope);
}

/* Its copies are over when the slot is anybody's again. */
static void copies_under_way_are_waited_for(void **state)
{
	struct world w;

	world_make(&w);
	add_row(&w, false, 64, SMALL, 0);
	for (unsigned i = 0; i < NR_CREWS; i++) {
		forget(&w);
		assert_int_equal(th_fake()->plan("cuStreamSynchronize:1=999"),
				 0);
		th_fake()->copy_delay_us(20000);
		run(&w, crews[i]);
		scribble(&w);
		for (unsigned k = 0; k < w.nr; k++) {
			assert_int_equal(w.results[k], CF_ECUDA(CF_CU_UNKNOWN));
			w.results[k] = w.want[k];
		}
		are_as_they_say(&w);
	}
	world_end(&w);
}

static void without_a_lane_all_fail(void **state)
{
	struct world w;

	world_make(&w);
	add_row(&w, false, 64, SMALL, 0);
	assert_int_equal(fails_with(&w, &several,
				    "cuStreamCreateWithPriority:1=999,"
				    "cuStreamCreate:1=999"),
			 64);
	assert_int_equal(atomic_load(&reads), 0);
	forget(&w);
	run(&w, &several);
	all_are_there(&w);
	world_end(&w);
}

/* As when the client resets its GPU: the next may be well. */
static void a_context_that_is_another_by_now_gets_all_of_it(void **state)
{
	struct world w;

	world_make(&w);
	add_row(&w, false, 64, SMALL, 0);
	assert_int_equal(fails_with(&w, &several,
				    "cuStreamCreateWithPriority:1=709,"
				    "cuStreamCreate:1=709"),
			 0);
	world_end(&w);
}

/* The n-th call of the driver fails, for all n there are. */
static void any_call_may_fail(void **state)
{
	unsigned long calls;
	char plan[32];
	struct world w;

	world_make(&w);
	add_row(&w, false, 40, SMALL, 0);
	add_row(&w, true, 12, SMALL, 512);
	run(&w, &busy);
	forget(&w);
	calls = th_fake()->calls(NULL);
	run(&w, &busy);
	calls = th_fake()->calls(NULL) - calls;
	assert_in_range(calls, 12, 500);
	for (unsigned n = 1; n <= calls; n++) {
		snprintf(plan, sizeof(plan), "*:%u=999", n);
		(void)fails_with(&w, &busy, plan);
		(void)fails_with(&w, &several, plan);
		forget(&w);
		run(&w, &several);
		all_are_there(&w);
	}
	world_end(&w);
}

/* ------------------------------------------------------------- launches */

/* Many that lie apart; the first time makes the kernel. */
static void launches_make(struct world *w, size_t size)
{
	world_make(w);
	ours.clock_gettime = clock_that_stands;
	w->kernel = true;
	add_row(w, false, CF_BUNDLE_MAX, size, 512);
	run(w, &busy);
	forget(w);
}

static void many_small_ones_share_launches(void **state)
{
	struct world w;
	unsigned long launches, moved, before;

	launches_make(&w, 4096);
	launches = th_volley_launches();
	moved = th_volley_moved();
	before = copies();
	run(&w, &busy);
	all_are_there(&w);
	assert_int_equal(th_volley_moved() - moved, w.nr);
	assert_int_equal(th_volley_launches() - launches,
			 w.nr * 4096 / SEND_MIN);
	assert_int_equal(copies() - before, 0);
	world_end(&w);
}

/* But for too few at the end, which are copied. */
static void helpers_leave_a_launch_whole(void **state)
{
	struct world w;

	launches_make(&w, 4096);
	for (unsigned i = 0; i < TH_SCALE(20); i++) {
		unsigned long moved = th_volley_moved(), before = copies();

		forget(&w);
		run(&w, &several);
		all_are_there(&w);
		moved = th_volley_moved() - moved;
		before = copies() - before;
		assert_int_equal(moved + before, w.nr);
		assert_in_range(before, 0, 3);
	}
	world_end(&w);
}

static void less_than_a_copys_worth_is_one_launch(void **state)
{
	struct world w;
	unsigned long launches;

	launches_make(&w, 1000);
	for (unsigned i = 0; i < NR_CREWS; i++) {
		forget(&w);
		launches = th_volley_launches();
		run(&w, crews[i]);
		all_are_there(&w);
		assert_int_equal(th_volley_launches() - launches, 1);
	}
	world_end(&w);
}

static void a_launch_that_is_refused_is_copied(void **state)
{
	struct world w;

	launches_make(&w, 4096);
	assert_int_equal(fails_with(&w, &several, "cuLaunchKernel:1=999"), 0);
	world_end(&w);
}

/* Though the wait for what was sent is well. */
static void a_copy_that_says_the_context_is_gone_is_believed(void **state)
{
	struct cf_device *dev, *next;
	struct world w;

	world_make(&w);
	add_row(&w, false, 40, SMALL, 512);
	for (unsigned i = 0; i < NR_CREWS; i++) {
		assert_int_equal(cf_device_find(&w.piece[0].mem, &dev), 0);
		assert_int_equal(fails_with(&w, crews[i],
					    "cuMemcpy2DAsync_v2:3=709,"
					    "cuMemcpyHtoDAsync_v2:1=709"),
				 1);
		assert_int_equal(cf_device_find(&w.piece[0].mem, &next), 0);
		assert_ptr_not_equal(dev, next);
	}
	world_end(&w);
	/* the lane of a dead context is forgotten, not destroyed */
	assert_int_equal(th_fake()->live("stream"), NR_CREWS);
	assert_int_equal(th_fake()->complaints(NULL), 0);
	th_fake()->reset();
}

static int teardown(void **state)
{
	cf_os = &cf_os_real;
	return th_teardown_close(state);
}

static void what_should_leaves_the_cores_caches_once(void **state)
{
	struct world w;

	(void)state;
	world_make(&w);
	add_row(&w, false, 40, SMALL, 0);
	add_row(&w, true, 8, SMALL, 32);
	for (size_t i = 0; i < NR_CREWS; i++) {
		for (unsigned k = 0; k < w.nr; k++)
			w.piece[k].demote = i % 2 ? CF_DEMOTE_ALL : 0;
		forget(&w);
		atomic_store(&demoted, 0);
		run(&w, crews[i]);
		all_are_there(&w);
		assert_int_equal(atomic_load(&demoted), i % 2 * 48 * SMALL);
	}
	world_end(&w);
}

static void only_small_ones_between_a_gpu_and_the_page_cache_can(void **state)
{
	struct cf_handle handle = { .fs_ops = NULL };
	const struct cf_piece good = { .size = CF_BUNDLE_MAX_SIZE,
				       .mem.kind = CF_MEMORY_DEVICE,
				       .handle = &handle };
	struct cf_piece piece = good;

	(void)state;
	assert_true(cf_bundle_can(&piece));
	piece.size++;
	assert_false(cf_bundle_can(&piece));
	piece.size = 0;
	assert_false(cf_bundle_can(&piece));
	piece = good;
	piece.mem.kind = CF_MEMORY_HOST;
	assert_false(cf_bundle_can(&piece));
	piece = good;
	piece.via = CF_VIA_DIRECT;
	assert_false(cf_bundle_can(&piece));
	piece = good;
	handle.fs_ops = (const void *)&handle;
	assert_false(cf_bundle_can(&piece));
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_should_leaves_the_cores_caches_once),
		TEST(only_small_ones_between_a_gpu_and_the_page_cache_can),
		TEST(pieces_of_any_size_come_to_their_places),
		TEST(as_many_as_a_bundle_holds_come_whole),
		TEST(the_end_of_a_file_is_that_of_its_pieces_alone),
		TEST(what_lies_together_is_few_copies),
		TEST(large_ones_are_sent_whole),
		TEST(the_last_copy_is_as_large_as_what_is_left),
		TEST(neighbours_in_a_file_are_few_reads),
		TEST(nothing_is_sent_before_what_is_first_is_there),
		TEST(a_read_that_fails_fails_its_piece_alone),
		TEST(a_half_that_fails_ends_its_piece_alone),
		TEST(a_copy_that_fails_is_made_piece_by_piece),
		TEST(a_copy_that_fails_fails_its_piece_alone),
		TEST(a_wait_that_fails_fails_all_that_were_sent),
		TEST(copies_under_way_are_waited_for),
		TEST(without_a_lane_all_fail),
		TEST(a_context_that_is_another_by_now_gets_all_of_it),
		TEST(any_call_may_fail),
		TEST(many_small_ones_share_launches),
		TEST(helpers_leave_a_launch_whole),
		TEST(less_than_a_copys_worth_is_one_launch),
		TEST(a_launch_that_is_refused_is_copied),
		TEST(a_copy_that_says_the_context_is_gone_is_believed),
	};

	th_start(100);
	(void)th_volley_kernel(NULL);
	return th_finish(
		cmocka_run_group_tests_name("bundle_crew", tests, NULL, NULL));
}
