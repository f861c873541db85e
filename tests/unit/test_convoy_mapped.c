// SPDX-License-Identifier: Apache-2.0
/*
 * test_convoy_mapped - pieces that are drawn one behind the other: each ends
 * once, with what made it from its front, and the log has why the rest did not.
 * Draws stand here, and are lost where the test says so.
 */
#include "path/convoy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "core/log.h"
#include "core/visit.h"
#include "harness.h"
#include "path/draws.h"

#define CHUNK (64 * TH_KIB)
#define DEPTH 4
#define MAX_NR 8
#define FILE_SIZE (100 * CHUNK)

static struct cf_handle file;

/* One test's pieces, and what its draws meet. */
static struct world {
	struct cf_convoy convoy; /* first, for those who call back */
	struct cf_piece pieces[MAX_NR];
	ssize_t results[MAX_NR];
	unsigned nr, taken, ended;
	uint64_t drawn[MAX_NR]; /* bytes of each that were begun */
	unsigned nr_draws;
	unsigned lost;	 /* the draw that finds no window; or NR_DRAWS */
	bool loss_waits; /* for all that is under way, as it needs room */
	unsigned spoilt; /* that does not count; or NR_DRAWS */
	unsigned ends_at_looks;		/* draws */
	const struct cf_piece *changed; /* of its file; or NULL */
	bool no_device;
} w;
#define NR_DRAWS 1000u

/* --------------------------------------------------- instead of real draws */

static unsigned nr_lines;
static char last_line[256];

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __wrap_cf_visit(const struct cf_memory *mem, cf_visit_fn *visit,
		    void *visitor);
int __wrap_cf_draws_open(struct cf_draws *draws, struct cf_device *dev);
void __wrap_cf_draws_close(struct cf_draws *draws);
size_t __wrap_cf_draw_begin(struct cf_draws *draws,
			    const struct cf_piece *piece,
			    const struct cf_part *part, const char **why);
void __wrap_cf_draws_look(struct cf_draws *draws);
void __wrap_cf_draws_wait(struct cf_draws *draws);
bool __wrap_cf_draw_file_stands(const struct cf_piece *piece);
unsigned __wrap_cf_handle_number(const struct cf_handle *handle);
void __wrap_cf_log_write(enum cf_log_level level, const char *src, int line,
			 const char *fmt, ...);
#pragma GCC visibility pop

int __wrap_cf_visit(const struct cf_memory *mem, cf_visit_fn *visit,
		    void *visitor)
{
	bool begun = false;

	assert_ptr_equal(mem, &w.pieces[0].mem);
	return w.no_device ? -ENOMEM : visit(NULL, visitor, &begun);
}

int __wrap_cf_draws_open(struct cf_draws *draws, struct cf_device *dev)
{
	assert_null(dev);
	draws->chunk = CHUNK;
	draws->depth = DEPTH;
	draws->begun = draws->ended = 0;
	return 0;
}

static void end_oldest(struct cf_draws *draws)
{
	const struct cf_draw *one =
		&draws->draws[draws->ended++ % draws->depth];

	draws->over(draws, one);
}

static void end_all(struct cf_draws *draws)
{
	while (draws->ended < draws->begun)
		end_oldest(draws);
}

void __wrap_cf_draws_close(struct cf_draws *draws)
{
	assert_int_equal(draws->ended, draws->begun);
}

size_t __wrap_cf_draw_begin(struct cf_draws *draws,
			    const struct cf_piece *piece,
			    const struct cf_part *part, const char **why)
{
	uint64_t from = (uint64_t)piece->file_off + part->at;
	unsigned nr = w.nr_draws++;

	if (draws->begun - draws->ended == DEPTH)
		end_oldest(draws);
	/* of one chunk, and behind the part before */
	assert_int_equal(from / CHUNK, (from + part->size - 1) / CHUNK);
	assert_int_equal(part->at, w.drawn[piece - w.pieces]);
	*why = "no window";
	if (nr == w.lost && w.loss_waits)
		end_all(draws);
	if (nr == w.lost)
		return 0;
	w.drawn[piece - w.pieces] += part->size;
	draws->draws[draws->begun++ % DEPTH] = (struct cf_draw){
		.piece = piece,
		.at = part->at,
		.size = part->size,
		.why = nr == w.spoilt ? "pages were replaced" : NULL,
	};
	return part->size;
}

void __wrap_cf_draws_look(struct cf_draws *draws)
{
	for (unsigned i = 0; i < w.ends_at_looks; i++)
		if (draws->ended < draws->begun)
			end_oldest(draws);
}

void __wrap_cf_draws_wait(struct cf_draws *draws)
{
	end_all(draws);
}

bool __wrap_cf_draw_file_stands(const struct cf_piece *piece)
{
	return piece != w.changed;
}

unsigned __wrap_cf_handle_number(const struct cf_handle *handle)
{
	assert_ptr_equal(handle, &file);
	return 7;
}

void __wrap_cf_log_write(enum cf_log_level level, const char *src, int line,
			 const char *fmt, ...)
{
	va_list args;

	assert_int_equal(level, CF_LOG_DEBUG);
	va_start(args, fmt);
	vsnprintf(last_line, sizeof(last_line), fmt, args);
	va_end(args);
	nr_lines++;
}

/* ------------------------------------------------------------------ world */

static const struct cf_piece *next(struct cf_convoy *convoy)
{
	assert_ptr_equal(convoy, &w.convoy);
	return w.taken == w.nr ? NULL : &w.pieces[w.taken++];
}

static void ended(struct cf_convoy *convoy, const struct cf_piece *piece,
		  ssize_t result)
{
	assert_ptr_equal(convoy, &w.convoy);
	assert_int_equal(w.results[piece - w.pieces], -1);
	w.results[piece - w.pieces] = result;
	w.ended++;
}

static int begin(void **state)
{
	(void)state;
	w = (struct world){ .convoy = { .next = next, .ended = ended },
			    .lost = NR_DRAWS,
			    .spoilt = NR_DRAWS };
	for (unsigned i = 0; i < MAX_NR; i++)
		w.results[i] = -1;
	nr_lines = 0;
	atomic_store(&cf_log_threshold, CF_LOG_DEBUG);
	return 0;
}

static int end(void **state)
{
	(void)state;
	atomic_store(&cf_log_threshold, -1);
	return 0;
}

static void add(size_t at, size_t size)
{
	w.pieces[w.nr++] = (struct cf_piece){
		.op = CF_READ,
		.handle = &file,
		.size = size,
		.file_off = (off_t)at,
		.view.stamp.size = FILE_SIZE,
	};
}

static void run(void)
{
	w.taken = 1;
	cf_convoy_run_mapped(&w.convoy, &w.pieces[0]);
	assert_int_equal(w.ended, w.taken);
}

static void line_is(const char *line)
{
	assert_int_equal(nr_lines, 1);
	assert_string_equal(last_line, line);
}

/* Two chunks each, one behind the other. */
static void add_three(void)
{
	for (unsigned i = 0; i < 3; i++)
		add(2 * i * CHUNK, 2 * CHUNK);
}

/* ------------------------------------------------------------------ tests */

static void each_ends_once_with_all_its_bytes(void **state)
{
	(void)state;
	for (unsigned looks = 0; looks <= DEPTH; looks++) {
		begin(state);
		w.ends_at_looks = looks;
		for (unsigned i = 0; i < MAX_NR; i++)
			add(th_below(FILE_SIZE / 2),
			    1 + th_below(2 * DEPTH * CHUNK));
		run();
		assert_int_equal(w.ended, MAX_NR);
		for (unsigned i = 0; i < MAX_NR; i++)
			assert_int_equal(w.results[i], w.pieces[i].size);
		assert_int_equal(nr_lines, 0);
	}
}

static void one_that_loses_a_window_keeps_its_front(void **state)
{
	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		begin(state);
		w.ends_at_looks = i / 2;
		w.loss_waits = i % 2;
		add_three();
		w.lost = 3;
		run();
		assert_int_equal(w.ended, 3);
		assert_int_equal(w.results[0], 2 * CHUNK);
		assert_int_equal(w.results[1], CHUNK);
		assert_int_equal(w.results[2], 2 * CHUNK);
		line_is("mapped: handle 7 off 196608: no window, gives up");
	}
}

static void one_without_any_has_none(void **state)
{
	(void)state;
	add(0, 2 * CHUNK);
	w.lost = 0;
	run();
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.results[0], 0);
	line_is("mapped: handle 7 off 0: no window, gives up");
}

/* What comes behind it in the piece does not, however it went. */
static void what_does_not_count_ends_the_front(void **state)
{
	(void)state;
	add(0, 3 * CHUNK);
	add(3 * CHUNK, CHUNK);
	w.spoilt = 1;
	run();
	assert_int_equal(w.ended, 2);
	assert_int_equal(w.results[0], CHUNK);
	assert_int_equal(w.results[1], CHUNK);
	line_is("mapped: handle 7 off 65536: pages were replaced, gives up");
}

static void nothing_counts_of_a_file_that_changed(void **state)
{
	(void)state;
	add_three();
	w.changed = &w.pieces[1];
	run();
	assert_int_equal(w.ended, 3);
	assert_int_equal(w.results[0], 2 * CHUNK);
	assert_int_equal(w.results[1], 0);
	assert_int_equal(w.results[2], 2 * CHUNK);
	line_is("mapped: handle 7 off 131072: the file changed, gives up");
}

static void one_ends_where_its_file_ends(void **state)
{
	(void)state;
	add(FILE_SIZE - CHUNK - 5, 2 * CHUNK);
	add(FILE_SIZE, CHUNK);
	run();
	assert_int_equal(w.ended, 2);
	assert_int_equal(w.results[0], CHUNK + 5);
	assert_int_equal(w.results[1], 0);
	assert_int_equal(nr_lines, 0);
}

static void without_a_device_the_first_ends_and_no_other_is_taken(void **state)
{
	(void)state;
	add_three();
	w.no_device = true;
	run();
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.results[0], 0);
	line_is("mapped: handle 7 off 0: no stream, gives up");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_ends_once_with_all_its_bytes),
		TEST(one_that_loses_a_window_keeps_its_front),
		TEST(one_without_any_has_none),
		TEST(what_does_not_count_ends_the_front),
		TEST(nothing_counts_of_a_file_that_changed),
		TEST(one_ends_where_its_file_ends),
		TEST(without_a_device_the_first_ends_and_no_other_is_taken),
	};

	th_start(60);
	return cmocka_run_group_tests_name("convoy_mapped", tests, NULL, NULL);
}
