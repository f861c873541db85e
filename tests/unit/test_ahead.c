// SPDX-License-Identifier: Apache-2.0
/* test_ahead - which reads have their pages asked for, and which pages. */
#include "core/ahead.h"

#include <errno.h>
#include <linux/magic.h>
#include "core/cold.h"
#include "harness.h"
#include "seam/os.h"

#define SIZE (16 * TH_MIB)
#define OFF (3 * TH_MIB + 5)
#define CHUNK TH_MIB
#define LEAD (4 * TH_MIB)

static struct cf_os os;
static unsigned looked;	 /* into the page cache */
static bool there;	 /* the first page */
static size_t asked[32]; /* for the chunk of the piece that begins there */
static unsigned nr_asked;
static int refusal;

static struct cf_handle handle;
static struct cf_piece piece;
static struct cf_ahead ahead;

static int cache_of_the_test(int fd, off_t off, size_t len,
			     struct cf_cachestat *out)
{
	assert_int_equal(fd, handle.fd);
	assert_int_equal(off, OFF / th_page() * th_page());
	assert_int_equal(len, th_page());
	looked++;
	*out = (struct cf_cachestat){ .cached = there };
	return 0;
}

static int ahead_of_the_test(int fd, off_t off, size_t size)
{
	size_t at = (size_t)(off - piece.file_off);

	assert_int_equal(fd, handle.fd);
	assert_int_equal(size,
			 piece.size - at < CHUNK ? piece.size - at : CHUNK);
	assert_true(nr_asked < 32);
	asked[nr_asked++] = at;
	return refusal;
}

static int setup(void **state)
{
	(void)state;
	handle = (struct cf_handle){ .fd = 7,
				     .twin = -1,
				     .fs_magic = EXT4_SUPER_MAGIC };
	piece = (struct cf_piece){ .op = CF_READ,
				   .via = CF_VIA_CACHE,
				   .handle = &handle,
				   .file_off = OFF,
				   .size = SIZE };
	cf_cold_note(&handle, 1, 1, 1); /* ages for a byte */
	assert_true(cf_cold_lately(&handle));
	looked = nr_asked = 0;
	there = false;
	refusal = 0;
	return 0;
}

static bool begins(void)
{
	return cf_ahead_begin(&ahead, &piece);
}

static void where_nobody_has_read_it_pays(void **state)
{
	(void)state;
	assert_true(begins());
	assert_int_equal(looked, 1);
	there = true;
	assert_false(begins());
	assert_int_equal(looked, 2);
}

static void who_goes_on_leaves_it_to_the_kernel(void **state)
{
	(void)state;
	/* as the first read of a file does, from its start */
	piece.file_off = 0;
	assert_false(begins());
	piece.file_off = OFF;
	piece.size = 2 * TH_MIB;
	assert_true(begins());
	cf_ahead_end(&piece, TH_MIB); /* short */
	piece.file_off += TH_MIB;
	assert_false(begins());
	/* what says nothing of a place leaves it as it was */
	cf_ahead_end(&piece, 0);
	cf_ahead_end(&piece, -EIO);
	assert_false(begins());
	piece.file_off = OFF;
	assert_true(begins());
	assert_int_equal(looked, 2);
}

static void no_other_read_is_asked_for(void **state)
{
	static const CUfileFSOps_t ops;
	struct cf_handle *h = &handle;

	(void)state;
	for (int i = 0; i < 8; i++) {
		setup(NULL);
		piece.op = i == 0 ? CF_WRITE : CF_READ;
		piece.size = i == 1 ? 2 * TH_MIB - 1 : SIZE;
		piece.ferry = i == 2 ? (struct cf_ferry *)h : NULL;
		handle.fs_ops = i == 3 ? &ops : NULL;
		piece.via = i == 4 ? CF_VIA_DIRECT : CF_VIA_CACHE;
		if (i == 5) /* quick ones came before */
			cf_cold_note(&handle, INT64_MAX / 2, 1, 1);
		if (i == 6)
			handle.fs_magic = NFS_SUPER_MAGIC;
		if (i == 7)
			handle.fs_magic = OVERLAYFS_SUPER_MAGIC;
		assert_false(begins());
		assert_int_equal(looked, 0);
	}
}

/* Of [0, end), in this order, each once. */
static void are_asked(size_t end)
{
	unsigned nr = (unsigned)((end + CHUNK - 1) / CHUNK);

	assert_int_equal(nr_asked, nr);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(asked[i], i * CHUNK);
}

static void pages_are_asked_for_a_little_ahead_and_once(void **state)
{
	(void)state;
	piece.size = SIZE - 1; /* the last chunk is shorter */
	assert_true(begins());
	piece.ahead = &ahead;
	cf_ahead_reach(&piece, 0);
	are_asked(LEAD);
	cf_ahead_reach(&piece, 0);
	are_asked(LEAD);
	cf_ahead_reach(&piece, 1);
	are_asked(LEAD + CHUNK);
	/* whoever comes late, and refused or not */
	refusal = -EINVAL;
	cf_ahead_reach(&piece, 5 * TH_MIB);
	are_asked(5 * TH_MIB + LEAD);
	cf_ahead_reach(&piece, TH_MIB);
	are_asked(5 * TH_MIB + LEAD);
	cf_ahead_reach(&piece, SIZE - 2);
	are_asked(SIZE);
	cf_ahead_reach(&piece, SIZE - 2);
	are_asked(SIZE);
}

static void of_large_ones_more_is_asked_for(void **state)
{
	static const struct {
		size_t size, lead;
	} rows[] = {
		{ 2 * TH_MIB, 2 * TH_MIB },	{ 16 * TH_MIB, 4 * TH_MIB },
		{ 32 * TH_MIB, 8 * TH_MIB },	{ 64 * TH_MIB, 16 * TH_MIB },
		{ 1024 * TH_MIB, 16 * TH_MIB },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(NULL);
		piece.size = rows[i].size;
		assert_true(begins());
		piece.ahead = &ahead;
		cf_ahead_reach(&piece, 0);
		are_asked(rows[i].lead);
	}
}

static void a_piece_without_has_none(void **state)
{
	(void)state;
	cf_ahead_reach(&piece, 0);
	are_asked(0);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(where_nobody_has_read_it_pays),
		TEST(who_goes_on_leaves_it_to_the_kernel),
		TEST(no_other_read_is_asked_for),
		TEST(pages_are_asked_for_a_little_ahead_and_once),
		TEST(of_large_ones_more_is_asked_for),
		TEST(a_piece_without_has_none),
	};

	os = cf_os_real;
	os.cachestat = cache_of_the_test;
	os.read_ahead = ahead_of_the_test;
	cf_os = &os;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
