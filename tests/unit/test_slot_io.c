// SPDX-License-Identifier: Apache-2.0
/*
 * slot_io - bytes of a slot are where its part's belong, whole blocks or not,
 * and reads by way of spare bytes are as one read to their place.
 */
#include "path/slot_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/cache.h"
#include "harness.h"
#include "seam/os.h"

#define SIZE (300 * TH_KIB + 777)
#define PAD ((size_t)4096)

/* Called instead of cf_cache_store_past; nobody can see where bytes went by. */
void __wrap_cf_cache_store_past(void *to, const void *from, size_t size);
void __real_cf_cache_store_past(void *to, const void *from, size_t size);

static size_t past;

void __wrap_cf_cache_store_past(void *to, const void *from, size_t size)
{
	past += size;
	__real_cf_cache_store_past(to, from, size);
}

/* Called instead of cf_cache_demote, likewise. */
void __wrap_cf_cache_demote(const void *mem, size_t size);

static size_t demoted, demotes;

void __wrap_cf_cache_demote(const void *mem, size_t size)
{
	(void)mem;
	demoted += size;
	demotes++;
}

struct world {
	struct th_file file;
	CUfileHandle_t value;
	struct cf_piece piece;
	unsigned char *bytes, *mem, *spare; /* PAD before and behind either */
};

static unsigned char *padded(size_t size)
{
	unsigned char *mem = aligned_alloc(PAD, size + 3 * PAD);

	assert_non_null(mem);
	memset(mem, 0xa5, size + 3 * PAD);
	return mem + PAD;
}

static void world_make_of(struct world *w, enum th_file_kind kind, size_t at)
{
	th_open();
	past = demoted = demotes = 0;
	w->bytes = th_bytes(SIZE);
	th_file_make(&w->file, kind, O_RDWR, w->bytes, SIZE);
	w->value = th_handle(w->file.fd);
	w->piece = (struct cf_piece){
		.op = CF_READ,
		.handle = cf_handle_get(w->value),
		.size = SIZE - at,
		.file_off = (off_t)at,
		.demote = CF_DEMOTE_ALL,
		.past = true,
	};
	w->mem = padded((SIZE + PAD) & ~(PAD - 1));
	w->spare = padded(CF_SLOT_SPARE);
}

static void world_make(struct world *w, size_t at)
{
	world_make_of(w, TH_BUFFERED, at);
}

static void world_end(struct world *w)
{
	th_all("before spare", w->spare - PAD, 0xa5, PAD);
	th_all("behind spare", w->spare + CF_SLOT_SPARE, 0xa5, PAD);
	cf_handle_put(w->piece.handle);
	cuFileHandleDeregister(w->value);
	th_file_end(&w->file);
	free(w->bytes);
	free(w->mem - PAD);
	free(w->spare - PAD);
	th_close();
}

static ssize_t fill(struct world *w, const struct cf_part *part)
{
	return cf_slot_fill_past(&w->piece, part, (char *)w->mem,
				 (char *)w->spare);
}

/* So much of the part is in its place, and nothing else was touched. */
static void has(const struct world *w, const struct cf_part *part, size_t size)
{
	size_t delta = cf_slot_delta(&w->piece, part);
	const unsigned char *from =
		w->bytes + (size_t)w->piece.file_off + part->at;

	th_all("before", w->mem - PAD, 0xa5, PAD + delta);
	th_equal("the part", w->mem + delta, from, size);
	th_all("behind", w->mem + delta + size, 0xa5,
	       cf_slot_whole(&w->piece, part) - delta - size + PAD);
}

static void a_part_is_in_its_place(void **state)
{
	static const struct cf_part parts[] = {
		{ 0, 1 },
		{ 5, CF_SLOT_SPARE - 1 },
		{ 4096, CF_SLOT_SPARE },
		{ 4097, CF_SLOT_SPARE + 1 },
		{ 0, 3 * CF_SLOT_SPARE },
		{ 4095, 4 * CF_SLOT_SPARE - 77 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (size_t at = 0; at < 3; at++) {
			struct world w;

			world_make(&w, at * 511);
			assert_int_equal(fill(&w, &parts[i]),
					 (ssize_t)parts[i].size);
			assert_int_equal(past, parts[i].size);
			has(&w, &parts[i], parts[i].size);
			world_end(&w);
		}
}

static void what_is_not_demoted_goes_as_ever(void **state)
{
	static const struct cf_part middle = { 64 * TH_KIB, 64 * TH_KIB };
	struct world w;

	(void)state;
	world_make(&w, 3);
	w.piece.demote = 16 * TH_KIB;
	assert_int_equal(fill(&w, &middle), (ssize_t)middle.size);
	assert_int_equal(past, 0);
	has(&w, &middle, middle.size);
	world_end(&w);
}

static void a_file_that_ends_ends_it(void **state)
{
	static const struct cf_part part = { 0, SIZE };
	const size_t ends[] = { 0, 1, CF_SLOT_SPARE, 2 * CF_SLOT_SPARE + 9 };

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct world w;

		world_make(&w, 0);
		assert_int_equal(ftruncate(w.file.plain, (off_t)ends[i]), 0);
		assert_int_equal(fill(&w, &part), (ssize_t)ends[i]);
		has(&w, &part, ends[i]);
		world_end(&w);
	}
}

static const struct cf_os *plain;
static unsigned good; /* so many reads more */

static ssize_t read_some(int fd, void *buf, size_t size, off_t off)
{
	if (!good)
		return -EIO;
	good--;
	return plain->pread(fd, buf, size, off);
}

/* So many reads succeed, and then none. */
static ssize_t fill_failing(unsigned nr, struct world *w,
			    const struct cf_part *part,
			    ssize_t (*how)(struct world *w,
					   const struct cf_part *part))
{
	struct cf_os failing = *cf_os;
	ssize_t n;

	plain = cf_os;
	failing.pread = read_some;
	good = nr;
	cf_os = &failing;
	n = how(w, part);
	cf_os = plain;
	return n;
}

static void what_came_before_an_error_counts(void **state)
{
	static const struct cf_part part = { 0, SIZE };

	(void)state;
	for (unsigned nr = 0; nr < 3; nr++) {
		struct world w;
		ssize_t n;

		world_make(&w, 0);
		n = fill_failing(nr, &w, &part, fill);
		assert_int_equal(n, nr ? (ssize_t)(nr * CF_SLOT_SPARE) : -EIO);
		has(&w, &part, nr * CF_SLOT_SPARE);
		world_end(&w);
	}
}

/* The part's first byte is behind so many that came along. */
static void what_counts_begins_behind_what_came_along(void **state)
{
	static const struct {
		ssize_t result;
		int code;
		ssize_t counts;
	} rows[] = { { 99, 0, 0 },     { 100, 0, 0 },	    { 101, 0, 1 },
		     { 200, 0, 50 },   { 99, -EIO, -EIO },  { 100, -EIO, -EIO },
		     { 101, -EIO, 1 }, { -EIO, -EIO, -EIO } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct cf_transfer t = { .result = rows[i].result,
					       .code = rows[i].code };

		assert_int_equal(cf_slot_counts(&t, 100, 50), rows[i].counts);
	}
}

/* ------------------------------------------------- with no spare bytes */

static ssize_t fill_plainly(struct world *w, const struct cf_part *part)
{
	return cf_slot_fill(&w->piece, part, (char *)w->mem);
}

static void a_slot_has_all_blocks_that_a_part_touches(void **state)
{
	static const struct {
		off_t off;
		struct cf_part part;
		size_t delta, whole;
	} rows[] = {
		{ 0, { 0, 1 }, 0, 4096 },
		{ 0, { 0, 4096 }, 0, 4096 },
		{ 0, { 0, 4097 }, 0, 8192 },
		{ 0, { 4095, 1 }, 4095, 4096 },
		{ 4095, { 0, 2 }, 4095, 8192 },
		{ 4000, { 95, 4097 }, 4095, 8192 },
		{ 4000, { 95, 4098 }, 4095, 12288 },
		{ 4000, { 96, 4096 }, 0, 4096 },
		{ 512, { 8192, 3584 }, 512, 4096 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct cf_piece piece = { .file_off = rows[i].off };

		assert_int_equal(cf_slot_delta(&piece, &rows[i].part),
				 rows[i].delta);
		assert_int_equal(cf_slot_whole(&piece, &rows[i].part),
				 rows[i].whole);
	}
}

/* The blocks around it come along, and no more; whoever lends spare bytes. */
static void a_direct_part_is_in_its_place(void **state)
{
	static const struct cf_part parts[] = {
		{ 0, 1 },	 { 4095, 2 },	       { 4096, 4096 },
		{ 100, 8192 },	 { 4095, 4098 },       { 5000, 200 * TH_KIB },
		{ SIZE - 9, 9 }, { SIZE - 9000, 9000 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct cf_part *part = &parts[i];
		size_t delta, whole;
		struct world w;

		world_make_of(&w, TH_ODIRECT, 0);
		w.piece.via = CF_VIA_DIRECT;
		delta = cf_slot_delta(&w.piece, part);
		whole = cf_slot_whole(&w.piece, part);
		assert_int_equal(i % 2 ? fill(&w, part) :
					 fill_plainly(&w, part),
				 part->size);
		assert_int_equal(past, 0);
		th_all("before", w.mem - PAD, 0xa5, PAD);
		th_equal("the part", w.mem + delta, w.bytes + part->at,
			 part->size);
		th_all("behind", w.mem + whole, 0xa5, PAD);
		world_end(&w);
	}
}

/* Of a failed read there are no bytes to be counted in size_t. */
static void what_was_read_is_demoted_and_no_more(void **state)
{
	static const struct cf_part part = { 5, 9000 };
	struct world w;

	(void)state;
	world_make(&w, 3);
	assert_int_equal(fill_plainly(&w, &part), 9000);
	has(&w, &part, 9000);
	assert_int_equal(demoted, 9000);
	assert_int_equal(fill_failing(0, &w, &part, fill_plainly), -EIO);
	assert_int_equal(demotes, 1);
	assert_int_equal(ftruncate(w.file.plain, 3 + 5 + 100), 0);
	assert_int_equal(fill_plainly(&w, &part), 100);
	assert_int_equal(demoted, 9100);
	assert_int_equal(ftruncate(w.file.plain, 0), 0);
	assert_int_equal(fill_plainly(&w, &part), 0);
	assert_int_equal(demotes, 2);
	world_end(&w);
}

/* ------------------------------------------------------------- writing */

static void what_is_drained_is_in_its_place(void **state)
{
	static const struct cf_part parts[] = {
		{ 0, 1 }, { 4095, 2 }, { 5, 70000 }, { SIZE - 10, 6 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct cf_part *part = &parts[i];
		size_t at = 3 + part->at;
		unsigned char *got = malloc(SIZE);
		struct world w;

		assert_non_null(got);
		world_make(&w, 3);
		w.piece.op = CF_WRITE;
		th_fill(w.mem, SIZE);
		assert_int_equal(
			cf_slot_drain(&w.piece, part, (const char *)w.mem),
			part->size);
		assert_int_equal(th_file_size(&w.file), SIZE);
		th_file_get(&w.file, 0, got, SIZE);
		th_equal("before", got, w.bytes, at);
		th_equal("the part", got + at,
			 w.mem + cf_slot_delta(&w.piece, part), part->size);
		th_equal("behind", got + at + part->size,
			 w.bytes + at + part->size, SIZE - at - part->size);
		world_end(&w);
		free(got);
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_counts_begins_behind_what_came_along),
		TEST(a_part_is_in_its_place),
		TEST(what_is_not_demoted_goes_as_ever),
		TEST(a_file_that_ends_ends_it),
		TEST(what_came_before_an_error_counts),
		TEST(a_slot_has_all_blocks_that_a_part_touches),
		TEST(a_direct_part_is_in_its_place),
		TEST(what_was_read_is_demoted_and_no_more),
		TEST(what_is_drained_is_in_its_place),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("slot_io", tests, NULL, NULL));
}
