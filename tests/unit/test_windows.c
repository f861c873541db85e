// SPDX-License-Identifier: Apache-2.0
/*
 * test_windows - which windows there are, who holds them, who has to go for
 * whom, and what a survey says of a read. What opens and ends a window stands
 * here, and lasts until it is let.
 */
#include "core/windows_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/gpu.h"
#include "core/pagemap.h"
#include "core/piece.h"
#include "core/reaper.h"
#include "core/refusals.h"
#include "core/window_table.h"
#include "core/wish.h"
#include "harness.h"
#include "seam/os.h"

#define CHUNK (256 * TH_KIB) /* some pages, also where they are large */
#define ROOM 4		     /* chunks */
#define FILE_SIZE (40 * CHUNK + 5000)

static const struct cf_gpu the_gpu = { .ordinal = 5,
				       .primary = (CUcontext)0x77 };

static void wait_for(atomic_int *count, int nr)
{
	while (atomic_load(count) < nr)
		usleep(100);
}

/* ------------------------------------------------- instead of the real ones */

static atomic_int nr_opened, nr_hidden, nr_closed, nr_noted, nr_forgotten;
static atomic_int nr_maps_closed, nr_tended, nr_pins_lost, nr_wishes_lost;
static _Atomic enum cf_pins pins;
static atomic_bool holds_opens, holds_closes, is_lost, is_pinned;
static atomic_bool opens_by_half; /* w->mem is registered where it fails */
static pthread_t closer;	  /* the last */
static int open_says;
static off_t opened_off;
static size_t opened_size;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __wrap_cf_window_open(struct cf_window *w, int fd, off_t off,
			  const struct cf_gpu *gpu, const char **step);
bool __wrap_cf_window_is_reached(const struct cf_window *w, int ordinal);
void __wrap_cf_window_hide(struct cf_window *w);
void __wrap_cf_window_close(struct cf_window *w);
void __wrap_cf_refusal_note(const struct cf_piece *piece, const char *step,
			    size_t size, int err);
void __wrap_cf_refusals_forget(void);
void __wrap_cf_pagemap_close(void);
enum cf_pins __wrap_cf_pins_state(void);
void __wrap_cf_windows_tend(void);
void __wrap_cf_pins_fork_child(void);
void __wrap_cf_wish_fork_child(void);
#pragma GCC visibility pop

static void wait_while(atomic_bool *holds)
{
	while (atomic_load(holds))
		usleep(100);
}

int __wrap_cf_window_open(struct cf_window *w, int fd, off_t off,
			  const struct cf_gpu *gpu, const char **step)
{
	assert_int_equal(fd, 42);
	assert_ptr_equal(gpu, &the_gpu);
	*step = "a step";
	opened_off = off;
	opened_size = w->size;
	w->pin.gpu = atomic_load(&is_pinned) ? 0x1000 : 0;
	atomic_fetch_add(&nr_opened, 1);
	w->mem = atomic_load(&opens_by_half) ? (char *)w : NULL;
	wait_while(&holds_opens);
	return open_says;
}

bool __wrap_cf_window_is_reached(const struct cf_window *w, int ordinal)
{
	(void)w;
	assert_int_equal(ordinal, the_gpu.ordinal);
	return !atomic_load(&is_lost);
}

void __wrap_cf_window_hide(struct cf_window *w)
{
	(void)w;
	atomic_fetch_add(&nr_hidden, 1);
}

void __wrap_cf_window_close(struct cf_window *w)
{
	assert_true(w->retired);
	assert_int_equal(w->refs, 0);
	wait_while(&holds_closes);
	closer = pthread_self();
	atomic_fetch_add(&nr_closed, 1);
}

void __wrap_cf_refusal_note(const struct cf_piece *piece, const char *step,
			    size_t size, int err)
{
	assert_string_equal(step, "a step");
	assert_int_equal(size, opened_size);
	assert_int_equal(err, open_says);
	(void)piece;
	atomic_fetch_add(&nr_noted, 1);
}

void __wrap_cf_refusals_forget(void)
{
	atomic_fetch_add(&nr_forgotten, 1);
}

void __wrap_cf_pagemap_close(void)
{
	atomic_fetch_add(&nr_maps_closed, 1);
}

enum cf_pins __wrap_cf_pins_state(void)
{
	return atomic_load(&pins);
}

void __wrap_cf_windows_tend(void)
{
	atomic_fetch_add(&nr_tended, 1);
}

void __wrap_cf_pins_fork_child(void)
{
	nr_pins_lost++;
}

void __wrap_cf_wish_fork_child(void)
{
	nr_wishes_lost++;
}

/* ------------------------------------------------------------------- time */

static struct cf_os os;
static atomic_bool in_vain; /* what is waited for does not come in time */

static int clock_of_the_test(clockid_t clock, struct timespec *ts)
{
	int err = cf_os_real.clock_gettime(clock, ts);

	if (clock == CLOCK_MONOTONIC)
		ts->tv_sec += atomic_load(&in_vain) ? -1000 : 1000;
	return err;
}

/* ------------------------------------------------------------------ world */

static struct cf_handle one, other; /* of the same file */
static const struct cf_windows_limits plain = {
	.mode = CF_WINDOWS_KEPT,
	.max_bytes = ROOM * CHUNK,
	.chunk = CHUNK,
	.open_from = 4 * TH_KIB,
	.use_from = TH_KIB,
};

static int begin(void **state)
{
	(void)state;
	os = cf_os_real;
	os.clock_gettime = clock_of_the_test;
	cf_os = &os;
	atomic_store(&in_vain, false);
	one.fd = other.fd = 42;
	cf_windows_configure(&plain);
	nr_opened = nr_hidden = nr_closed = nr_noted = nr_forgotten = 0;
	nr_maps_closed = nr_tended = nr_pins_lost = nr_wishes_lost = 0;
	atomic_store(&pins, CF_PINS_UNTRIED);
	holds_opens = holds_closes = is_lost = is_pinned = false;
	opens_by_half = false;
	open_says = 0;
	return 0;
}

static struct cf_windows_counts counts(void)
{
	struct cf_windows_counts c;

	cf_windows_count(&c);
	return c;
}

static int end(void **state)
{
	struct cf_windows_counts c;

	(void)state;
	cf_windows_close();
	cf_os = &cf_os_real;
	c = counts();
	return c.open || c.bytes || c.opened || c.used || c.stale || c.refused;
}

/* What is being closed is counted until it is. */
static void wait_for_bytes(size_t bytes)
{
	while (counts().bytes != bytes)
		usleep(100);
}

static struct cf_piece read_of(struct cf_handle *handle, size_t at, size_t size,
			       enum cf_sight sight)
{
	return (struct cf_piece){
		.op = CF_READ,
		.handle = handle,
		.size = size,
		.file_off = (off_t)at,
		.view = { .sight = sight,
			  .stamped = true,
			  .stamp = { .dev = 1, .ino = 2, .size = FILE_SIZE },
			  .since = UINT64_MAX },
	};
}

/* A chunk's window, which may be opened. */
static struct cf_window *get(uint64_t chunk)
{
	struct cf_piece piece =
		read_of(&one, chunk * CHUNK, CHUNK, CF_SIGHT_WORTH);
	struct cf_window *w = NULL;

	assert_int_equal(cf_windows_get(&piece, chunk, &the_gpu, &w), 0);
	assert_non_null(w);
	return w;
}

static int try(struct cf_piece piece)
{
	uint64_t chunk = (uint64_t)piece.file_off / CHUNK;
	struct cf_window *w;
	int err = cf_windows_get(&piece, chunk, &the_gpu, &w);

	if (!err)
		cf_windows_put(w, false);
	return err;
}

static int try_chunk(uint64_t chunk)
{
	return try(read_of(&one, chunk * CHUNK, CHUNK, CF_SIGHT_WORTH));
}

static struct cf_survey survey_of(size_t at, size_t size, bool reads)
{
	struct cf_piece piece = read_of(&one, at, size, CF_SIGHT_NONE);
	struct cf_survey survey;

	cf_windows_survey(&piece, size, reads, &plain, &survey);
	return survey;
}

static void open_all(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		survey_of(i * CHUNK, CHUNK, true);
		cf_windows_put(get(i), false);
	}
	assert_int_equal(counts().open, nr);
	assert_int_equal(counts().bytes, nr * CHUNK);
}

static bool is_open(uint64_t chunk)
{
	return !try(read_of(&one, chunk * CHUNK, CHUNK, CF_SIGHT_OPEN));
}

/* ---------------------------------------------------------------- getting */

static void a_chunk_has_one_window_for_all_handles(void **state)
{
	struct cf_piece again = read_of(&other, 100, 500, CF_SIGHT_OPEN);
	struct cf_window *w = get(0), *same;

	(void)state;
	assert_int_equal(cf_windows_get(&again, 0, &the_gpu, &same), 0);
	assert_ptr_equal(w, same);
	assert_int_equal(w->refs, 2);
	cf_windows_put(w, false);
	cf_windows_put(w, false);
	assert_ptr_equal(get(0), w);
	cf_windows_put(w, false);
	assert_int_equal(nr_opened, 1);
	assert_int_equal(counts().opened, 1);
	assert_int_equal(counts().used, 3);
	assert_int_equal(counts().open, 1);
	assert_int_equal(counts().bytes, CHUNK);
	/* and nobody opens one that is not worth it */
	assert_int_equal(try(read_of(&one, CHUNK, 500, CF_SIGHT_OPEN)),
			 -ESTALE);
	assert_int_equal(counts().open, 1);
}

/* By device, inode and chunk, all in one bucket of the table. */
static void each_chunk_of_each_file_has_its_own(void **state)
{
	static const struct {
		uint64_t dev, ino, chunk;
	} rows[] = { { 1, 2, 0 }, { 1, 2, 64 }, { 1, 66, 0 }, { 2, 2, 0 } };

	(void)state;
	for (int lap = 0; lap < 2; lap++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct cf_piece piece =
				read_of(&one, rows[i].chunk * CHUNK, CHUNK,
					CF_SIGHT_WORTH);

			piece.view.stamp.dev = rows[i].dev;
			piece.view.stamp.ino = rows[i].ino;
			piece.view.stamp.size = 100 * CHUNK;
			assert_int_equal(try(piece), 0);
			assert_int_equal(nr_opened, lap ? 4 : i + 1);
		}
	assert_int_equal(counts().open, 4);
}

static void the_last_one_ends_with_the_page_where_the_file_ends(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)state;
	cf_windows_put(get(3), false);
	assert_int_equal(opened_off, 3 * CHUNK);
	assert_int_equal(opened_size, CHUNK);
	cf_windows_put(get(40), false);
	assert_int_equal(opened_off, 40 * CHUNK);
	assert_int_equal(opened_size, (5000 + page - 1) / page * page);
	assert_int_equal(counts().bytes, CHUNK + opened_size);
}

static void *open_in_a_thread(void *err)
{
	*(int *)err = try_chunk(0);
	return NULL;
}

static void one_that_is_being_opened_is_nobodys(void **state)
{
	struct cf_windows_limits limits = plain;
	struct cf_survey survey;
	struct cf_piece piece = read_of(&one, 0, CHUNK, CF_SIGHT_NONE);
	pthread_t thread;
	int err = 1;

	(void)state;
	atomic_store(&holds_opens, true);
	assert_int_equal(pthread_create(&thread, NULL, open_in_a_thread, &err),
			 0);
	wait_for(&nr_opened, 1);
	assert_int_equal(try_chunk(0), -EBUSY);
	cf_windows_survey(&piece, CHUNK, false, &limits, &survey);
	assert_false(survey.all_open);
	atomic_store(&holds_opens, false);
	pthread_join(thread, NULL);
	assert_int_equal(err, 0);
	cf_windows_survey(&piece, CHUNK, false, &limits, &survey);
	assert_true(survey.all_open);
	assert_int_equal(try_chunk(0), 0);
	assert_int_equal(nr_opened, 1);
}

static void one_that_cannot_be_opened_leaves_nothing(void **state)
{
	(void)state;
	open_says = -ENODEV;
	assert_int_equal(try_chunk(0), -ENODEV);
	assert_int_equal(nr_noted, 1);
	assert_int_equal(counts().refused, 1);
	assert_int_equal(counts().opened, 0);
	assert_int_equal(counts().open, 0);
	assert_int_equal(counts().bytes, 0);
	open_says = 0;
	assert_int_equal(try_chunk(0), 0);
	assert_int_equal(counts().bytes, CHUNK);
	assert_int_equal(nr_closed, 0);
}

/* Its end may wait for a stream that waits for who opens it. */
static void another_thread_closes_what_the_driver_has_yet(void **state)
{
	(void)state;
	atomic_store(&opens_by_half, true);
	atomic_store(&holds_closes, true);
	open_says = -EIO;
	assert_int_equal(try_chunk(0), -EIO);
	assert_int_equal(nr_noted, 1);
	assert_int_equal(counts().refused, 1);
	assert_int_equal(counts().open, 0);
	assert_int_equal(counts().bytes, CHUNK);
	assert_int_equal(nr_hidden, 1);
	atomic_store(&holds_closes, false);
	wait_for_bytes(0);
	assert_int_equal(nr_closed, 1);
	assert_false(pthread_equal(closer, pthread_self()));
}

/* Its handle goes meanwhile; then it comes to be all the same, or does not. */
static void one_may_be_retired_while_it_is_opened(void **state)
{
	static const int says[] = { 0, -EIO };
	pthread_t thread;
	int err;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_says = says[i];
		atomic_store(&holds_opens, true);
		assert_int_equal(
			pthread_create(&thread, NULL, open_in_a_thread, &err),
			0);
		wait_for(&nr_opened, i + 1);
		cf_windows_retire(&one);
		assert_int_equal(counts().open, 0);
		atomic_store(&holds_opens, false);
		pthread_join(thread, NULL);
		assert_int_equal(err, says[i]);
		assert_int_equal(counts().open, 0);
		wait_for(&nr_closed, 1);
	}
	assert_int_equal(nr_closed, 1);
}

static void *open_for_later(void *err)
{
	struct cf_piece piece = read_of(&one, 0, CHUNK, CF_SIGHT_WORTH);

	*(int *)err = cf_windows_open(&piece, 0, &the_gpu);
	return NULL;
}

/* Or it would keep its file open until somebody else's window goes. */
static void nobody_waits_to_close_one_that_was_opened_for_later(void **state)
{
	pthread_t thread;
	int err = 1;

	(void)state;
	atomic_store(&holds_opens, true);
	assert_int_equal(pthread_create(&thread, NULL, open_for_later, &err),
			 0);
	wait_for(&nr_opened, 1);
	cf_windows_retire(&one);
	atomic_store(&holds_opens, false);
	pthread_join(thread, NULL);
	assert_int_equal(err, 0);
	assert_int_equal(nr_hidden, 1);
	wait_for(&nr_closed, 1);
}

static void mode_auto_opens_none_that_are_not_pinned(void **state)
{
	struct cf_windows_limits limits = plain;

	(void)state;
	limits.mode = CF_WINDOWS_AUTO;
	cf_windows_configure(&limits);
	for (int says = CF_PINS_UNTRIED; says <= CF_PINS_NONE; says++) {
		bool good = says == CF_PINS_GOOD;

		atomic_store(&pins, (enum cf_pins)says);
		assert_int_equal(try_chunk(0), good ? 0 : -ESTALE);
		assert_int_equal(counts().open, good);
		cf_windows_drop();
	}
	assert_int_equal(nr_opened, 1);
}

/* The pins are of whole granules, and may be untried yet. */
static void who_asks_is_told_whether_they_may_be_pinned(void **state)
{
	struct cf_windows_limits limits = plain;

	(void)state;
	for (int says = CF_PINS_UNTRIED; says <= CF_PINS_NONE; says++)
		for (size_t half = 1; half <= 4; half *= 2) {
			limits.chunk = half * CF_PIN_GRANULE / 2;
			cf_windows_configure(&limits);
			atomic_store(&pins, (enum cf_pins)says);
			assert_int_equal(cf_windows_may_be_pinned(),
					 says != CF_PINS_NONE && half > 1);
		}
}

/* The rest of the file, of which a pin would hold pages that it has not. */
static void what_is_pinned_ends_with_a_whole_granule(void **state)
{
	struct cf_piece piece = read_of(&one, 0, CHUNK, CF_SIGHT_WORTH);
	struct cf_windows_limits limits = plain;

	(void)state;
	limits.chunk = limits.max_bytes = 2 * CF_PIN_GRANULE;
	cf_windows_configure(&limits);
	atomic_store(&pins, CF_PINS_GOOD);
	piece.view.stamp.size = 3 * CF_PIN_GRANULE + 5000;
	piece.file_off = 2 * CF_PIN_GRANULE;
	assert_int_equal(cf_windows_open(&piece, 1, &the_gpu), 0);
	assert_int_equal(opened_size, CF_PIN_GRANULE);
	piece.view.stamp.ino++;
	piece.view.stamp.size = 2 * CF_PIN_GRANULE + 5000;
	assert_int_equal(cf_windows_open(&piece, 1, &the_gpu), -ESTALE);
	assert_int_equal(nr_opened, 1);
	assert_int_equal(counts().open, 1);
}

/* Others stay, for who ends a registration may have to wait. */
static void what_is_pinned_is_looked_after(void **state)
{
	(void)state;
	assert_int_equal(try_chunk(0), 0);
	assert_int_equal(nr_tended, 0);
	atomic_store(&is_pinned, true);
	assert_int_equal(try_chunk(1), 0);
	assert_int_equal(try_chunk(1), 0);
	assert_int_equal(nr_tended, 1);
}

/* ------------------------------------------------------- when it is stale */

/* The pages that a read touches, no others; one in their midst is enough. */
static void one_is_current_while_its_pages_are_there(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct cf_window w = { .witness = mem, .size = 8 * page };

	(void)state;
	assert_ptr_not_equal(mem, MAP_FAILED);
	memset(mem, 1, 8 * page);
	assert_true(cf_window_is_current(&w, 0, 8 * page));
	assert_int_equal(madvise(mem + 5 * page, page, MADV_DONTNEED), 0);
	assert_true(cf_window_is_current(&w, 0, 5 * page));
	assert_true(cf_window_is_current(&w, 6 * page, 2 * page));
	assert_true(cf_window_is_current(&w, 4 * page + 100, page - 100));
	assert_false(cf_window_is_current(&w, 5 * page + 100, 1));
	assert_false(cf_window_is_current(&w, 4 * page + 100, page - 99));
	assert_false(cf_window_is_current(&w, 3 * page, 4 * page));
	munmap(mem, 8 * page);
}

static void a_file_that_changed_gets_another(void **state)
{
	struct cf_piece piece = read_of(&one, 0, CHUNK, CF_SIGHT_OPEN);
	struct cf_window *old = get(0), *new;

	(void)state;
	piece.view.stamp.mtime++;
	assert_int_equal(cf_windows_get(&piece, 0, &the_gpu, &new), -ESTALE);
	assert_int_equal(counts().open, 0);
	piece.view.sight = CF_SIGHT_WORTH;
	assert_int_equal(cf_windows_get(&piece, 0, &the_gpu, &new), 0);
	assert_ptr_not_equal(new, old);
	assert_int_equal(counts().open, 1);
	assert_int_equal(counts().bytes, 2 * CHUNK);
	assert_int_equal(nr_hidden, 0); /* it is in use */
	cf_windows_put(old, true);
	assert_int_equal(nr_hidden, 1);
	wait_for(&nr_closed, 1);
	cf_windows_put(new, false);
	assert_int_equal(counts().stale, 1);
	assert_int_equal(counts().used, 1);
}

static void one_of_a_file_that_changed_is_closed_at_once(void **state)
{
	struct cf_piece piece = read_of(&one, 0, CHUNK, CF_SIGHT_OPEN);

	(void)state;
	open_all(1);
	piece.view.stamp.mtime++;
	assert_int_equal(try(piece), -ESTALE);
	assert_int_equal(nr_hidden, 1);
	wait_for(&nr_closed, 1);
}

static void several_may_find_it_stale(void **state)
{
	struct cf_window *w = get(0);

	(void)state;
	assert_ptr_equal(get(0), w);
	cf_windows_put(w, true);
	assert_int_equal(counts().open, 0);
	assert_int_equal(nr_hidden, 0);
	cf_windows_put(w, true);
	assert_int_equal(nr_hidden, 1);
	assert_int_equal(counts().stale, 2);
	wait_for(&nr_closed, 1);
}

static void one_that_the_driver_has_lost_is_stale(void **state)
{
	(void)state;
	open_all(1);
	atomic_store(&is_lost, true);
	assert_int_equal(try_chunk(0), -ESTALE);
	assert_int_equal(counts().stale, 1);
	assert_int_equal(counts().open, 0);
	wait_for(&nr_closed, 1);
}

/* ------------------------------------------------------------------- room */

static void the_oldest_goes_for_a_newcomer(void **state)
{
	(void)state;
	open_all(ROOM);
	survey_of(0, CHUNK, true);
	assert_true(is_open(0));
	assert_int_equal(try_chunk(ROOM), 0);
	assert_int_equal(counts().open, ROOM);
	assert_int_equal(counts().bytes, ROOM * CHUNK);
	assert_int_equal(nr_closed, 1);
	assert_false(pthread_equal(closer, pthread_self()));
	for (unsigned i = 0; i <= ROOM; i++)
		assert_int_equal(is_open(i), i != 1);
}

/* However many they are, and with nobody else to wait for. */
static void what_is_pinned_is_closed_by_who_needs_the_room(void **state)
{
	struct cf_windows_limits limits = plain;

	(void)state;
	limits.max_bytes = ROOM * CHUNK - 4096;
	cf_windows_configure(&limits);
	atomic_store(&is_pinned, true);
	atomic_store(&in_vain, true);
	survey_of(40 * CHUNK, 5000, true);
	assert_int_equal(try_chunk(40), 0); /* of two pages */
	for (unsigned i = 0; i < ROOM - 1; i++) {
		survey_of(i * CHUNK, CHUNK, true);
		assert_int_equal(try_chunk(i), 0);
	}
	assert_int_equal(nr_closed, 0);
	assert_int_equal(try_chunk(ROOM), 0);
	assert_int_equal(nr_closed, 2);
	assert_int_equal(nr_hidden, 2);
	assert_true(pthread_equal(closer, pthread_self()));
	assert_int_equal(counts().bytes, (ROOM - 1) * CHUNK);
}

static void nothing_goes_for_what_is_used_less(void **state)
{
	struct cf_piece piece =
		read_of(&one, ROOM * CHUNK, CHUNK, CF_SIGHT_WORTH);

	(void)state;
	open_all(ROOM);
	piece.view.since = 0;
	assert_int_equal(try(piece), -ENOSPC);
	assert_int_equal(counts().open, ROOM);
	assert_int_equal(counts().refused, 1);
	assert_int_equal(counts().bytes, ROOM * CHUNK);
	assert_int_equal(nr_opened, ROOM);
	assert_int_equal(nr_noted, 0);
}

static void nothing_goes_that_is_in_use(void **state)
{
	struct cf_window *held[ROOM];

	(void)state;
	for (unsigned i = 0; i < ROOM; i++)
		held[i] = get(i);
	assert_int_equal(try_chunk(ROOM), -ENOSPC);
	for (unsigned i = 0; i < ROOM; i++)
		assert_false(held[i]->retired);
	cf_windows_put(held[2], false);
	assert_int_equal(try_chunk(ROOM), 0);
	assert_false(is_open(2));
	for (unsigned i = 0; i < ROOM; i++)
		if (i != 2)
			cf_windows_put(held[i], false);
}

static void one_larger_than_all_room_is_not_opened(void **state)
{
	struct cf_windows_limits limits = plain;

	(void)state;
	limits.max_bytes = CHUNK - 1;
	cf_windows_configure(&limits);
	assert_int_equal(try_chunk(0), -ENOSPC);
	assert_int_equal(nr_opened, 0);
	limits.max_bytes = CHUNK;
	cf_windows_configure(&limits);
	assert_int_equal(try_chunk(0), 0);
	assert_int_equal(try_chunk(1), 0);
	assert_int_equal(counts().bytes, CHUNK);
}

/* The bound is one of what is pinned. */
static void what_is_being_closed_counts_until_it_is(void **state)
{
	(void)state;
	open_all(ROOM);
	atomic_store(&holds_closes, true);
	cf_windows_retire(&one);
	assert_int_equal(counts().open, 0);
	cf_windows_reap();
	assert_int_equal(nr_hidden, ROOM);
	assert_int_equal(counts().bytes, ROOM * CHUNK);
	atomic_store(&in_vain, true);
	assert_int_equal(try_chunk(9), -ENOSPC);
	assert_int_equal(counts().refused, 1);
	atomic_store(&holds_closes, false);
	wait_for_bytes(0);
	assert_int_equal(try_chunk(9), 0);
}

/* ----------------------------------------------------------------- ending */

static void a_handle_takes_its_own_along(void **state)
{
	struct cf_piece others = read_of(&other, CHUNK, CHUNK, CF_SIGHT_WORTH);
	struct cf_window *held = get(0);

	(void)state;
	assert_int_equal(try(others), 0);
	cf_windows_put(get(2), false);
	cf_windows_retire(&one);
	cf_windows_reap();
	assert_int_equal(counts().open, 1);
	assert_true(is_open(1));
	wait_for_bytes(2 * CHUNK);
	assert_int_equal(nr_closed, 1);
	cf_windows_put(held, false);
	wait_for(&nr_closed, 2);
}

static void a_drop_leaves_what_is_in_use(void **state)
{
	struct cf_window *held = get(2);

	(void)state;
	cf_windows_put(get(0), false);
	cf_windows_put(get(1), false);
	cf_windows_drop();
	assert_int_equal(counts().open, 1);
	wait_for(&nr_closed, 2);
	assert_true(is_open(2));
	cf_windows_put(held, false);
	assert_true(is_open(2));
}

static void a_close_waits_and_forgets(void **state)
{
	struct cf_piece piece = read_of(&one, 0, CHUNK, CF_SIGHT_NONE);
	struct cf_survey survey;

	(void)state;
	open_all(2);
	cf_windows_survey(&piece, CHUNK, true, &plain, &survey);
	cf_windows_close();
	assert_int_equal(nr_closed, 2);
	assert_int_equal(nr_forgotten, 1);
	assert_int_equal(nr_maps_closed, 1);
	assert_int_equal(counts().opened + counts().used, 0);
	cf_windows_survey(&piece, CHUNK, false, &plain, &survey);
	assert_false(survey.again);
}

/* ----------------------------------------------------------------- survey */

static void all_is_open_if_each_chunk_is(void **state)
{
	struct cf_piece later = read_of(&one, 0, CHUNK, CF_SIGHT_NONE);
	struct cf_survey survey;

	(void)state;
	open_all(2);
	assert_true(survey_of(0, 2 * CHUNK, false).all_open);
	assert_true(survey_of(CHUNK - 1, 2, false).all_open);
	assert_false(survey_of(0, 2 * CHUNK + 1, false).all_open);
	assert_false(survey_of(2 * CHUNK, 1, false).all_open);
	later.view.stamp.ctime++;
	cf_windows_survey(&later, CHUNK, false, &plain, &survey);
	assert_false(survey.all_open);
}

static void what_was_read_is_known_by_its_bytes(void **state)
{
	size_t half = CHUNK / 2;

	(void)state;
	assert_false(survey_of(0, half, false).again);
	assert_false(survey_of(0, half, true).again);
	assert_true(survey_of(0, half, false).again);
	assert_false(survey_of(0, half, false).whole);
	assert_false(survey_of(half, half, true).again);
	assert_true(survey_of(0, CHUNK, false).again);
	assert_true(survey_of(0, CHUNK, false).whole);
	/* all of the chunks that it touches */
	assert_false(survey_of(half, CHUNK, false).again);
	assert_false(survey_of(half, CHUNK, true).again);
	assert_true(survey_of(half, CHUNK, false).again);
	assert_false(survey_of(half, CHUNK, false).whole);
	/* what is smaller is not noted */
	assert_true(survey_of(9 * CHUNK, 4 * TH_KIB - 1, true).again);
	assert_true(survey_of(9 * CHUNK, 4 * TH_KIB - 1, true).whole);
	assert_false(survey_of(9 * CHUNK, 4 * TH_KIB, false).again);
}

static void it_was_read_when_the_first_of_its_chunks_was(void **state)
{
	struct cf_piece piece = read_of(&one, 0, 3 * CHUNK, CF_SIGHT_NONE);
	struct cf_windows_limits always = plain;
	struct cf_survey survey;
	uint64_t first;

	(void)state;
	always.mode = CF_WINDOWS_ALWAYS;
	survey_of(CHUNK, CHUNK, true);
	first = survey_of(CHUNK, CHUNK, false).since;
	survey_of(0, CHUNK, true);
	survey_of(2 * CHUNK, CHUNK, true);
	assert_int_equal(survey_of(0, CHUNK, false).since, first + CHUNK);
	assert_int_equal(survey_of(2 * CHUNK, CHUNK, false).since,
			 first + 2 * CHUNK);
	assert_int_equal(survey_of(0, 3 * CHUNK, false).since, first);
	cf_windows_survey(&piece, 3 * CHUNK, false, &always, &survey);
	assert_true(survey.since == UINT64_MAX);
}

static void there_is_room_where_one_is_open_or_may_go(void **state)
{
	struct cf_window *held[ROOM];

	(void)state;
	for (unsigned i = 0; i < ROOM; i++) {
		assert_true(survey_of(ROOM * CHUNK, CHUNK, false).room);
		held[i] = get(i);
	}
	assert_false(survey_of(ROOM * CHUNK, CHUNK, false).room);
	assert_true(survey_of(CHUNK, 4 * CHUNK, false).room);
	for (unsigned i = 0; i < ROOM; i++)
		cf_windows_put(held[i], false);
	/* never read: any may go for it in no case */
	assert_false(survey_of(ROOM * CHUNK, CHUNK, false).room);
	/* too small to be weighed */
	assert_true(survey_of(ROOM * CHUNK, TH_KIB, false).room);
}

/* ------------------------------------------------------------------- fork */

static int live_as_child(void)
{
	struct cf_windows_counts c = counts();

	if (c.open || c.bytes || c.opened || c.used)
		return 1;
	if (is_open(0) || try_chunk(0) || nr_opened != 3)
		return 2;
	cf_windows_close();
	return nr_closed == 1 ? 0 : 3;
}

static void a_child_has_none_of_its_parents_windows(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	/* tsan ends a child that starts a thread; asan's allocator is locked in
	 * one that was made while a thread of its parent ended */
	if (TH_SANITIZED)
		skip();
	open_all(2);
	cf_windows_fork_prepare();
	pid = fork();
	if (!pid) {
		cf_windows_fork_child();
		_exit(live_as_child());
	}
	cf_windows_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(is_open(0) && is_open(1));
}

/*
 * By the parent's descriptor it would see pages that it has no more; and its
 * close would end what pins the parent's.
 */
static void a_child_sees_its_own_pages_and_has_no_pins(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = mmap(NULL, page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	(void)state;
	assert_ptr_not_equal(mem, MAP_FAILED);
	*mem = 1;
	assert_int_equal(cf_pagemap_present(mem, page), 1);
	cf_windows_fork_prepare();
	pid = th_fork();
	if (!pid) {
		cf_windows_fork_child();
		madvise(mem, page, MADV_DONTNEED);
		_exit(cf_pagemap_present(mem, page) != 0 || nr_pins_lost != 1 ||
		      nr_wishes_lost != 1);
	}
	cf_windows_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(cf_pagemap_present(mem, page), 1);
	assert_int_equal(nr_pins_lost + nr_wishes_lost, 0);
	munmap(mem, page);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_chunk_has_one_window_for_all_handles),
		TEST(each_chunk_of_each_file_has_its_own),
		TEST(the_last_one_ends_with_the_page_where_the_file_ends),
		TEST(one_that_is_being_opened_is_nobodys),
		TEST(one_that_cannot_be_opened_leaves_nothing),
		TEST(another_thread_closes_what_the_driver_has_yet),
		TEST(one_may_be_retired_while_it_is_opened),
		TEST(one_is_current_while_its_pages_are_there),
		TEST(a_file_that_changed_gets_another),
		TEST(nobody_waits_to_close_one_that_was_opened_for_later),
		TEST(mode_auto_opens_none_that_are_not_pinned),
		TEST(who_asks_is_told_whether_they_may_be_pinned),
		TEST(what_is_pinned_ends_with_a_whole_granule),
		TEST(what_is_pinned_is_looked_after),
		TEST(one_of_a_file_that_changed_is_closed_at_once),
		TEST(several_may_find_it_stale),
		TEST(one_that_the_driver_has_lost_is_stale),
		TEST(the_oldest_goes_for_a_newcomer),
		TEST(what_is_pinned_is_closed_by_who_needs_the_room),
		TEST(nothing_goes_for_what_is_used_less),
		TEST(nothing_goes_that_is_in_use),
		TEST(one_larger_than_all_room_is_not_opened),
		TEST(what_is_being_closed_counts_until_it_is),
		TEST(a_handle_takes_its_own_along),
		TEST(a_drop_leaves_what_is_in_use),
		TEST(a_close_waits_and_forgets),
		TEST(all_is_open_if_each_chunk_is),
		TEST(what_was_read_is_known_by_its_bytes),
		TEST(it_was_read_when_the_first_of_its_chunks_was),
		TEST(there_is_room_where_one_is_open_or_may_go),
		TEST(a_child_has_none_of_its_parents_windows),
		TEST(a_child_sees_its_own_pages_and_has_no_pins),
	};

	th_start(60);
	return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
