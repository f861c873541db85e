// SPDX-License-Identifier: Apache-2.0
/*
 * test_shares - pieces read by halves answer what one read of each would, in
 * whichever order the halves come and whatever goes wrong in one of them.
 */
#include "path/shares.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"

#define FILE_SIZE (4 * TH_MIB)
#define LARGE (64 * TH_KIB)
#define SMALL (8 * TH_KIB)
#define MAX_GAP 100
#define MAX_READS 1000
#define MARK 0xa5

/* ---------------------------------------------------------- the machine */

struct range {
	off_t from, to;
	int code;
};

/* A call of the system, as the test has seen it. */
struct call {
	off_t off;
	size_t size;
};

static struct cf_os os;
static struct call calls[MAX_READS];
static atomic_uint nr_calls;
static struct range bad[2];	  /* bytes of the file that cannot be read */
static size_t most;		  /* of a call; 0: any */
static int64_t read_ns;		  /* a call takes so long */
static void (*before)(off_t off); /* a call; or NULL */

static struct cf_shares shares;

static ssize_t read_of_the_test(int fd, void *buf, size_t size, off_t off)
{
	unsigned nr = atomic_fetch_add(&nr_calls, 1);

	if (nr < MAX_READS)
		calls[nr] = (struct call){ off, size };
	if (before)
		before(off);
	if (read_ns)
		th_clock_ns += read_ns;
	if (most && size > most)
		size = most;
	for (unsigned i = 0; i < 2; i++) {
		if (off >= bad[i].from && off < bad[i].to)
			return bad[i].code;
		if (off < bad[i].from && off + (off_t)size > bad[i].from)
			size = (size_t)(bad[i].from - off);
	}
	return cf_os_real.pread(fd, buf, size, off);
}

/* Called instead of cf_cache_demote; nobody can see the instruction at work. */
void __wrap_cf_cache_demote(const void *mem, size_t size);

static _Atomic size_t demoted; /* bytes */

void __wrap_cf_cache_demote(const void *mem, size_t size)
{
	(void)mem;
	atomic_fetch_add(&demoted, size);
}

/* ---------------------------------------------------------------- world */

static struct world {
	struct th_file file;
	unsigned char *bytes; /* of it */
	struct cf_handle handle;
	struct cf_crew crew;
	struct cf_piece piece[CF_BUNDLE_MAX];
	const struct cf_piece *pieces[CF_BUNDLE_MAX];
	ssize_t results[CF_BUNDLE_MAX];
	struct cf_bundle b;
	char *slot; /* its pieces have gaps between them */
	size_t used;
} w;

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.bytes = th_bytes(FILE_SIZE);
	th_file_make(&w.file, TH_BUFFERED, O_RDWR, w.bytes, FILE_SIZE);
	w.handle = (struct cf_handle){ .fd = w.file.fd, .twin = -1 };
	w.slot = malloc(CF_BUNDLE_MAX * (LARGE + MAX_GAP) + MAX_GAP);
	w.used = MAX_GAP;
	w.b = (struct cf_bundle){ .pieces = w.pieces,
				  .results = w.results,
				  .crew = &w.crew };
	memset(bad, 0, sizeof(bad));
	most = 0;
	read_ns = 0;
	before = NULL;
	atomic_store(&demoted, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	th_file_end(&w.file);
	free(w.bytes);
	free(w.slot);
	return 0;
}

/* Its bytes of the slot lie behind those of the one before it, but for a gap.
 */
static struct cf_piece *add(size_t off, size_t size, size_t gap)
{
	struct cf_piece *piece = &w.piece[w.b.nr];

	*piece = (struct cf_piece){ .op = CF_READ,
				    .handle = &w.handle,
				    .file_off = (off_t)off,
				    .size = size };
	w.pieces[w.b.nr] = piece;
	w.b.at[w.b.nr++] = w.slot + w.used + gap;
	w.used += gap + size;
	return piece;
}

static void begin(void)
{
	memset(w.slot, MARK, w.used + MAX_GAP);
	for (unsigned i = 0; i < w.b.nr; i++)
		w.results[i] = (ssize_t)w.piece[i].size;
	atomic_store(&nr_calls, 0);
	cf_shares_init(&shares, &w.b);
}

static void fill_all(void)
{
	while (cf_shares_fill_next(&shares))
		continue;
}

static void collect_all(void)
{
	for (unsigned i = 0; i < w.b.nr; i++)
		assert_true(cf_shares_collect(&shares, i));
}

/* All that counts is there, and nothing lies between the pieces. */
static void bytes_are_right(void)
{
	const char *end = w.slot;

	for (unsigned i = 0; i < w.b.nr; i++) {
		const struct cf_piece *piece = &w.piece[i];

		th_all("a gap", end, MARK, (size_t)(w.b.at[i] - end));
		if (w.results[i] > 0)
			th_equal("a piece", w.b.at[i],
				 w.bytes + piece->file_off,
				 (size_t)w.results[i]);
		end = w.b.at[i] + piece->size;
	}
	th_all("behind all", end, MARK, MAX_GAP);
}

static void read_all(void)
{
	begin();
	fill_all();
	collect_all();
	bytes_are_right();
}

static void all_are_whole(void)
{
	for (unsigned i = 0; i < w.b.nr; i++)
		assert_int_equal(w.results[i], w.piece[i].size);
}

/* ---------------------------------------------------------------- order */

static unsigned entered;

/* The call that is first goes on when all others have ended. */
static void others_first(off_t off)
{
	(void)off;
	if (entered++)
		return;
	fill_all();
}

static void read_all_backwards(void)
{
	entered = 0;
	before = others_first;
	read_all();
	before = NULL;
	assert_true(entered > 1);
}

/* ------------------------------------------------------------ the cuts */

static void calls_are(const struct call *want, unsigned nr)
{
	assert_int_equal(atomic_load(&nr_calls), nr);
	for (unsigned i = 0; i < nr; i++) {
		assert_int_equal(calls[i].off, want[i].off);
		assert_int_equal(calls[i].size, want[i].size);
	}
}

static void large_ones_are_cut_in_halves_between_blocks(void **state)
{
	static const struct {
		size_t off, size, first; /* first 0: whole */
	} rows[] = {
		{ 0, 64 * TH_KIB, 32 * TH_KIB },
		{ 8192, 64 * TH_KIB - 1, 32 * TH_KIB },
		{ 0, 60 * TH_KIB, 32 * TH_KIB },
		{ 0, 40 * TH_KIB, 20 * TH_KIB },
		{ 4096, 33 * TH_KIB, 20 * TH_KIB },
		{ 0, 32 * TH_KIB + 1, 16 * TH_KIB },
		{ 0, 32 * TH_KIB + 2, 20 * TH_KIB },
		{ 5, 64 * TH_KIB, 36 * TH_KIB - 5 },
		{ 4095, 64 * TH_KIB, 36 * TH_KIB - 4095 },
		{ 4095, 32 * TH_KIB + 1, 20 * TH_KIB - 4095 },
		{ 0, 32 * TH_KIB, 0 },
		{ 77, 32 * TH_KIB, 0 },
		{ 0, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		off_t off = (off_t)rows[i].off;
		size_t size = rows[i].size, first = rows[i].first;
		const struct call want[] = {
			{ off, first ? first : size },
			{ off + (off_t)first, size - first },
		};

		w.b.nr = 0;
		w.used = 0;
		add(rows[i].off, size, 7);
		read_all();
		all_are_whole();
		calls_are(want, first ? 2 : 1);
	}
}

/* Neighbours, of which those of a kind go together. */
static void add_neighbours(const size_t *sizes, unsigned nr)
{
	size_t off = 0;

	for (unsigned i = 0; i < nr; off += sizes[i++])
		add(off, sizes[i], 0);
}

static void small_ones_go_some_at_a_time_and_never_with_a_half(void **state)
{
	static const size_t sizes[] = { SMALL, SMALL, SMALL, LARGE,
					SMALL, SMALL, LARGE, LARGE };
	/* eight for one carrier: four at a time */
	static const struct call want[] = {
		{ 0, 3 * SMALL },
		{ 3 * SMALL, LARGE / 2 },
		{ 3 * SMALL + LARGE / 2, LARGE / 2 },
		{ 3 * SMALL + LARGE, 2 * SMALL },
		{ 5 * SMALL + LARGE, LARGE / 2 },
		{ 5 * SMALL + 3 * LARGE / 2, LARGE / 2 },
		{ 5 * SMALL + 2 * LARGE, LARGE / 2 },
		{ 5 * SMALL + 5 * LARGE / 2, LARGE / 2 },
	};

	(void)state;
	add_neighbours(sizes, 8);
	read_all();
	all_are_whole();
	calls_are(want, 8);
}

/* At least two shares for each carrier, and eight pieces at most. */
static void a_share_has_a_fair_number_of_small_ones(void **state)
{
	static const struct {
		unsigned nr, helpers, shares;
	} rows[] = {
		{ 64, 0, 8 }, { 64, 3, 8 }, { 64, 4, 11 }, { 64, 31, 64 },
		{ 8, 31, 8 }, { 1, 0, 1 },  { 17, 0, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		w.b.nr = 0;
		w.used = 0;
		w.crew.helpers = rows[i].helpers;
		for (unsigned k = 0; k < rows[i].nr; k++)
			add(k * SMALL, SMALL, 0);
		read_all();
		all_are_whole();
		assert_int_equal(atomic_load(&nr_calls), rows[i].shares);
	}
}

/* -------------------------------------------------------------- results */

/* What a call that reads all of the piece answers, on the same machine. */
static ssize_t one_read(const struct cf_piece *piece)
{
	char *buf = malloc(piece->size);
	ssize_t n = cf_file_read(piece->handle, piece->via, buf, piece->size,
				 piece->file_off);

	free(buf);
	return n;
}

static void answers_as_one_read_would(void)
{
	for (unsigned i = 0; i < w.b.nr; i++)
		assert_int_equal(w.results[i], one_read(&w.piece[i]));
}

static void both_orders_answer_as_one_read_would(void)
{
	read_all();
	answers_as_one_read_would();
	read_all_backwards();
	answers_as_one_read_would();
}

/* In the middle of three, which lie together. */
static void a_read_that_fails_ends_its_piece_where_it_failed(void **state)
{
	static const struct {
		off_t from, to; /* of the piece: what cannot be read */
		ssize_t result;
	} rows[] = {
		{ 0, 1, -EIO },
		{ 0, LARGE / 2, -EIO },
		{ 0, LARGE, -EIO },
		{ 1, 2, 1 },
		{ 1, LARGE, 1 },
		{ LARGE / 2 - 1, LARGE / 2, LARGE / 2 - 1 },
		{ LARGE / 2, LARGE / 2 + 1, LARGE / 2 },
		{ LARGE / 2, LARGE, LARGE / 2 },
		{ LARGE / 2 + 1, LARGE, LARGE / 2 + 1 },
		{ LARGE - 1, LARGE, LARGE - 1 },
	};

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		add(i * LARGE, LARGE, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bad[0] = (struct range){ LARGE + rows[i].from,
					 LARGE + rows[i].to, -EIO };
		both_orders_answer_as_one_read_would();
		assert_int_equal(w.results[0], LARGE);
		assert_int_equal(w.results[1], rows[i].result);
		assert_int_equal(w.results[2], LARGE);
	}
}

static void of_two_errors_the_first_bytes_is_told(void **state)
{
	(void)state;
	add(0, LARGE, 0);
	bad[0] = (struct range){ 0, 10, -ENXIO };
	bad[1] = (struct range){ LARGE / 2, LARGE, -EIO };
	both_orders_answer_as_one_read_would();
	assert_int_equal(w.results[0], -ENXIO);
	bad[0].from = 9; /* none is told */
	both_orders_answer_as_one_read_would();
	assert_int_equal(w.results[0], 9);
}

static void a_piece_ends_with_its_file(void **state)
{
	static const off_t ends[] = {
		0, 1, LARGE / 2 - 1, LARGE / 2, LARGE / 2 + 1, LARGE - 1, LARGE
	};

	(void)state;
	add(FILE_SIZE - 2 * LARGE, LARGE, 0);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		w.piece[0].file_off = (off_t)FILE_SIZE - ends[i];
		w.piece[0].file_off &= ~(off_t)4095;
		assert_int_equal(
			ftruncate(w.file.fd, w.piece[0].file_off + ends[i]), 0);
		both_orders_answer_as_one_read_would();
		assert_int_equal(w.results[0], ends[i]);
		th_file_put(&w.file, 0, w.bytes, FILE_SIZE);
	}
}

/* Of any size, with bad bytes and ends of the file anywhere. */
static void whatever_goes_wrong_answers_as_one_read_would(void **state)
{
	(void)state;
	for (unsigned round = 0; round < TH_SCALE(400); round++) {
		size_t span = 16 * LARGE, nr = 2 + th_below(20);

		w.b.nr = 0;
		w.used = 0;
		w.crew.helpers = (unsigned)th_below(8);
		for (size_t i = 0; i < nr; i++) {
			size_t off = th_below(span);

			add(th_below(2) ? off : off & ~(size_t)4095,
			    1 + th_below(th_below(3) ? LARGE : SMALL),
			    th_below(MAX_GAP));
		}
		for (unsigned i = 0; i < 2; i++) {
			off_t from = (off_t)th_below(span);

			bad[i] =
				(struct range){ from, from, i ? -EIO : -ENXIO };
			bad[i].to += (off_t)th_below(LARGE / 4);
		}
		most = th_below(2) ? 0 : 3000 + th_below(LARGE);
		assert_int_equal(ftruncate(w.file.fd,
					   (off_t)(span - th_below(span / 4))),
				 0);
		both_orders_answer_as_one_read_would();
		th_file_put(&w.file, 0, w.bytes, FILE_SIZE);
	}
}

static void short_counts_are_gone_on_from(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add(i * LARGE + 3, LARGE - 1000 * i, 0);
	most = 5000;
	both_orders_answer_as_one_read_would();
	all_are_whole();
}

/* ------------------------------------------------- files that change */

static off_t new_size;
static bool of_first; /* as the first half is read, not the second */

static void cut_the_file(off_t off)
{
	if (off == (of_first ? 0 : (off_t)LARGE / 2))
		assert_int_equal(ftruncate(w.file.fd, new_size), 0);
}

static void others_first_then_cut(off_t off)
{
	others_first(off);
	cut_the_file(off);
}

/* Second halves that got bytes before that do not count. */
static void a_file_that_is_cut_between_the_halves_ends_the_piece(void **state)
{
	static const struct {
		off_t size;
		bool backwards;
		ssize_t result;
	} rows[] = {
		{ LARGE / 2 + 100, false, LARGE / 2 + 100 },
		{ LARGE / 2, false, LARGE / 2 },
		{ 100, false, LARGE / 2 },
		{ 100, true, 100 },
		{ 0, true, 0 },
		{ LARGE / 2 + 100, true, LARGE },
	};

	(void)state;
	add(0, LARGE, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		new_size = rows[i].size;
		of_first = rows[i].backwards;
		entered = 0;
		before = of_first ? others_first_then_cut : cut_the_file;
		read_all();
		before = NULL;
		assert_int_equal(w.results[0], rows[i].result);
		th_file_put(&w.file, 0, w.bytes, FILE_SIZE);
	}
}

static void a_file_that_grows_between_the_halves_has_ended_before(void **state)
{
	(void)state;
	add(0, LARGE, 0);
	assert_int_equal(ftruncate(w.file.fd, 100), 0);
	new_size = FILE_SIZE;
	of_first = false;
	before = cut_the_file;
	read_all();
	assert_int_equal(w.results[0], 100);
}

/* ----------------------------------------------------------- collecting */

static void neither_is_collected(off_t off)
{
	(void)off;
	assert_false(cf_shares_collect(&shares, 0));
	assert_int_equal(w.results[0], LARGE);
}

static void others_first_then_look(off_t off)
{
	others_first(off);
	neither_is_collected(off);
}

static void a_piece_is_collected_when_both_halves_are_there(void **state)
{
	(void)state;
	add(0, LARGE, 0);
	bad[0] = (struct range){ LARGE / 2 + 5, LARGE, -EIO };
	begin();
	neither_is_collected(0);
	before = neither_is_collected;
	fill_all();
	collect_all();
	assert_int_equal(w.results[0], LARGE / 2 + 5);
	entered = 0;
	before = others_first_then_look;
	begin();
	fill_all();
	collect_all();
	collect_all(); /* again is the same */
	assert_int_equal(w.results[0], LARGE / 2 + 5);
}

static void a_small_one_is_collected_when_it_is_there(void **state)
{
	(void)state;
	add(0, SMALL, 0);
	add(SMALL, LARGE, 0);
	begin();
	assert_false(cf_shares_collect(&shares, 0));
	assert_true(cf_shares_fill_next(&shares));
	assert_true(cf_shares_collect(&shares, 0));
	assert_false(cf_shares_collect(&shares, 1));
	fill_all();
	collect_all();
	all_are_whole();
}

/* ---------------------------------------------------------------- cores */

static void what_should_leaves_the_cores_caches_once(void **state)
{
	(void)state;
	add(0, LARGE, 0)->demote = CF_DEMOTE_ALL;
	add(LARGE, LARGE, 0);
	add(2 * LARGE, SMALL, 0)->demote = CF_DEMOTE_ALL;
	add(3 * LARGE, LARGE - 777, 0)->demote = CF_DEMOTE_ALL;
	read_all();
	all_are_whole();
	assert_int_equal(atomic_load(&demoted), 2 * LARGE - 777 + SMALL);
}

static void what_could_not_be_read_is_in_no_cache(void **state)
{
	(void)state;
	add(0, LARGE, 0)->demote = CF_DEMOTE_ALL;
	bad[0] = (struct range){ 0, 1, -EIO };
	bad[1] = (struct range){ LARGE / 2 + 10, LARGE, -EIO };
	read_all();
	assert_int_equal(w.results[0], -EIO);
	assert_int_equal(atomic_load(&demoted), 10);
}

/* ----------------------------------------------------------- slow files */

static unsigned calls_of_one_more(void)
{
	read_all();
	all_are_whole();
	return atomic_load(&nr_calls);
}

/* From the next bundle on: what is being read is cut already. */
static void slow_files_are_read_whole_until_they_are_quick_again(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		add(i * LARGE, LARGE, 0);
	for (unsigned lap = 0; lap < 3; lap++) {
		read_ns = 1000000;
		assert_int_equal(calls_of_one_more(), 6);
		assert_int_equal(calls_of_one_more(), 3);
		read_ns = 0;
		assert_int_equal(calls_of_one_more(), 3);
		assert_int_equal(calls_of_one_more(), 6);
	}
}

/* At 4 GB/s they are slow, but for 50 us. */
static void how_slow_a_read_is_depends_on_its_bytes(void **state)
{
	const int64_t half = 50000 + LARGE / 2 / 4;
	const int64_t eight = 50000 + 8 * LARGE / 4;

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		add(i * LARGE, LARGE, 0);
	read_ns = half;
	assert_int_equal(calls_of_one_more(), 32);
	assert_int_equal(calls_of_one_more(), 32);
	read_ns = half + 1;
	assert_int_equal(calls_of_one_more(), 32);
	read_ns = eight + 1;
	assert_int_equal(calls_of_one_more(), 2);
	read_ns = eight;
	assert_int_equal(calls_of_one_more(), 2);
	assert_int_equal(calls_of_one_more(), 32);
}

/* Or a share that begins with a small one would tell nothing. */
static void large_ones_that_are_whole_go_with_each_other_only(void **state)
{
	static const size_t sizes[] = { SMALL, SMALL, LARGE, LARGE,
					SMALL, LARGE, SMALL, SMALL };
	static const struct call want[] = {
		{ 0, 2 * SMALL },
		{ 2 * SMALL, 2 * LARGE },
		{ 2 * SMALL + 2 * LARGE, SMALL },
		{ 3 * SMALL + 2 * LARGE, LARGE },
		{ 3 * SMALL + 3 * LARGE, 2 * SMALL },
	};

	(void)state;
	add_neighbours(sizes, 8);
	read_ns = 1000000;
	read_all();
	read_all();
	all_are_whole();
	calls_are(want, 5);
}

/* Small ones are read whole anyway. */
static void small_ones_tell_nothing_of_their_file(void **state)
{
	(void)state;
	add(0, SMALL, 0);
	read_ns = 1000000;
	assert_int_equal(calls_of_one_more(), 1);
	add(SMALL, LARGE, 0);
	assert_int_equal(calls_of_one_more(), 3);
}

/* -------------------------------------------------------- from the end */

static void takes_last(unsigned i)
{
	unsigned taken;

	assert_true(cf_shares_take_last(&shares, &taken));
	assert_int_equal(taken, i);
	assert_int_equal(cf_shares_end(&shares), i);
}

static void takes_none(void)
{
	unsigned taken;

	assert_false(cf_shares_take_last(&shares, &taken));
}

static void what_is_taken_from_the_end_is_nobodys_share(void **state)
{
	static const size_t sizes[] = { SMALL, SMALL, SMALL, SMALL,
					SMALL, SMALL, LARGE, LARGE };
	/* four at a time */
	static const struct call want[] = {
		{ 0, 4 * SMALL },
		{ 4 * SMALL, SMALL },
	};

	(void)state;
	add_neighbours(sizes, 8);
	begin();
	takes_last(7);
	takes_last(6);
	takes_last(5);
	fill_all();
	takes_none();
	calls_are(want, 2);
	for (unsigned i = 0; i < 5; i++)
		assert_true(cf_shares_collect(&shares, i));
	begin();
	for (unsigned i = 8; i-- > 0;)
		takes_last(i);
	takes_none();
	assert_false(cf_shares_fill_next(&shares));
}

static void a_piece_of_which_a_half_is_taken_stays(void **state)
{
	(void)state;
	for (unsigned halves = 1; halves <= 3; halves++) {
		w.b.nr = 0;
		w.used = 0;
		for (unsigned i = 0; i < 2; i++)
			add(i * LARGE, LARGE, 0);
		begin();
		for (unsigned i = 0; i < halves; i++)
			assert_true(cf_shares_fill_next(&shares));
		if (halves <= 2)
			takes_last(1);
		takes_none();
		fill_all();
		assert_int_equal(atomic_load(&nr_calls), halves <= 2 ? 2 : 4);
	}
}

static void one_that_should_be_read_whole_stays(void **state)
{
	(void)state;
	add(0, LARGE, 0);
	read_ns = 1000000;
	read_all();
	begin();
	takes_none();
	assert_int_equal(cf_shares_end(&shares), 1);
	assert_int_equal(calls_of_one_more(), 1);
}

/* -------------------------------------------------------------- threads */

static atomic_uint took[CF_BUNDLE_MAX];

static void *take_all(void *arg)
{
	unsigned i;

	(void)arg;
	while (cf_shares_take_last(&shares, &i))
		atomic_fetch_add(&took[i], 1);
	return NULL;
}

static void *fill(void *arg)
{
	(void)arg;
	fill_all();
	return NULL;
}

static void many_may_fill_while_one_collects(void **state)
{
	pthread_t threads[6];

	(void)state;
	for (unsigned round = 0; round < TH_SCALE(60); round++) {
		w.b.nr = 0;
		w.used = 0;
		for (unsigned i = 0; i < 50; i++)
			add(i * LARGE + th_below(2) * 100,
			    th_below(3) ? LARGE : 1 + th_below(LARGE - 100),
			    th_below(MAX_GAP));
		w.crew.helpers = (unsigned)th_below(8);
		begin();
		for (unsigned i = 0; i < 6; i++)
			assert_int_equal(
				pthread_create(&threads[i], NULL, fill, NULL),
				0);
		for (unsigned i = 0; i < w.b.nr;)
			i += cf_shares_collect(&shares, i);
		bytes_are_right();
		for (unsigned i = 0; i < 6; i++)
			pthread_join(threads[i], NULL);
		all_are_whole();
	}
}

static void each_is_taken_from_one_end(void **state)
{
	pthread_t threads[6];

	(void)state;
	for (unsigned round = 0; round < TH_SCALE(60); round++) {
		unsigned nr = 1 + (unsigned)th_below(CF_BUNDLE_MAX), end;

		w.b.nr = 0;
		w.used = 0;
		for (unsigned i = 0; i < nr; i++)
			add(i * SMALL, th_below(2) ? LARGE : SMALL, 0);
		w.crew.helpers = (unsigned)th_below(8);
		begin();
		memset(took, 0, sizeof(took));
		for (unsigned i = 0; i < 6; i++)
			assert_int_equal(pthread_create(&threads[i], NULL,
							i % 2 ? fill : take_all,
							NULL),
					 0);
		for (unsigned i = 0; i < 6; i++)
			pthread_join(threads[i], NULL);
		fill_all(); /* a half may have kept who takes away */
		end = cf_shares_end(&shares);
		for (unsigned i = 0; i < nr; i++) {
			assert_int_equal(atomic_load(&took[i]), i >= end);
			assert_int_equal(cf_shares_collect(&shares, i),
					 i < end);
			if (i >= end)
				th_all("no share", w.b.at[i], MARK,
				       w.piece[i].size);
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(large_ones_are_cut_in_halves_between_blocks),
		TEST(small_ones_go_some_at_a_time_and_never_with_a_half),
		TEST(a_share_has_a_fair_number_of_small_ones),
		TEST(a_read_that_fails_ends_its_piece_where_it_failed),
		TEST(of_two_errors_the_first_bytes_is_told),
		TEST(a_piece_ends_with_its_file),
		TEST(whatever_goes_wrong_answers_as_one_read_would),
		TEST(short_counts_are_gone_on_from),
		TEST(a_file_that_is_cut_between_the_halves_ends_the_piece),
		TEST(a_file_that_grows_between_the_halves_has_ended_before),
		TEST(a_piece_is_collected_when_both_halves_are_there),
		TEST(a_small_one_is_collected_when_it_is_there),
		TEST(what_should_leaves_the_cores_caches_once),
		TEST(what_could_not_be_read_is_in_no_cache),
		TEST(slow_files_are_read_whole_until_they_are_quick_again),
		TEST(how_slow_a_read_is_depends_on_its_bytes),
		TEST(large_ones_that_are_whole_go_with_each_other_only),
		TEST(small_ones_tell_nothing_of_their_file),
		TEST(what_is_taken_from_the_end_is_nobodys_share),
		TEST(a_piece_of_which_a_half_is_taken_stays),
		TEST(one_that_should_be_read_whole_stays),
		TEST(many_may_fill_while_one_collects),
		TEST(each_is_taken_from_one_end),
	};

	th_start(60);
	os = cf_os_real;
	os.clock_gettime = th_clock;
	os.pread = read_of_the_test;
	cf_os = &os;
	return th_finish(
		cmocka_run_group_tests_name("shares", tests, NULL, NULL));
}
