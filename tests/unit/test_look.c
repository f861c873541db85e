// SPDX-License-Identifier: Apache-2.0
/*
 * test_look - when windows are worth opening for a read: which file it is, how
 * lately it changed, and how much of it is cached. The kernel's answers about
 * the file are the test's.
 */
#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "core/piece.h"
#include "core/pins.h"
#include "core/windows.h"
#include "harness.h"
#include "seam/os.h"

#define CHUNK (256 * TH_KIB)
#define FILE_SIZE (8 * CHUNK + 5000)
#define SETTLE_NS 1000000000
#define NOW 1000 /* seconds */

static struct cf_os os;
static unsigned minor_number;
static int64_t changed;	 /* seconds */
static int cache_says;	 /* -errno, or 0 */
static uint64_t lacking; /* pages of what is asked for */
static off_t asked_off;
static size_t asked_size;

static int tell_file(int fd, unsigned mask, struct statx *stx)
{
	(void)mask;
	assert_int_equal(fd, 42);
	*stx = (struct statx){
		.stx_mode = S_IFREG,
		.stx_dev_major = 3,
		.stx_dev_minor = minor_number,
		.stx_ino = 7,
		.stx_size = FILE_SIZE,
		.stx_ctime = { .tv_sec = changed, .tv_nsec = 1 },
	};
	return 0;
}

static int tell_cache(int fd, off_t off, size_t len, struct cf_cachestat *out)
{
	assert_int_equal(fd, 42);
	asked_off = off;
	asked_size = len;
	*out = (struct cf_cachestat){ .cached = len / th_page() - lacking };
	return cache_says;
}

/* What says whether memory is short: here it is not, whatever runs beside. */
static int open_nothing(const char *path, int flags, mode_t mode)
{
	(void)path;
	(void)flags;
	(void)mode;
	return -ENOENT;
}

static int tell_time(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_REALTIME)
		return cf_os_real.clock_gettime(clock, ts);
	*ts = (struct timespec){ .tv_sec = NOW };
	return 0;
}

static struct cf_handle handle;

static void configure(enum cf_windows_mode mode)
{
	const struct cf_windows_limits limits = {
		.mode = mode,
		.max_bytes = 4 * CHUNK,
		.chunk = CHUNK,
		.open_from = 64 * TH_KIB,
		.use_from = 64 * TH_KIB,
		.settle_ns = SETTLE_NS,
	};

	cf_windows_configure(&limits);
}

static int setup(void **state)
{
	(void)state;
	os = cf_os_real;
	os.statx = tell_file;
	os.cachestat = tell_cache;
	os.clock_gettime = tell_time;
	os.open = open_nothing;
	cf_os = &os;
	handle = (struct cf_handle){ .fd = 42,
				     .twin = -1,
				     .fs_magic = TMPFS_MAGIC,
				     .dev = makedev(3, 4),
				     .ino = 7 };
	minor_number = 4;
	changed = NOW - 100;
	cache_says = 0;
	lacking = 0;
	configure(CF_WINDOWS_ALWAYS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cf_windows_close();
	cf_os = &cf_os_real;
	return 0;
}

static struct cf_piece piece_of(off_t off, size_t size)
{
	return (struct cf_piece){ .op = CF_READ,
				  .handle = &handle,
				  .via = CF_VIA_CACHE,
				  .mem = { .kind = CF_MEMORY_DEVICE },
				  .file_off = off,
				  .size = size };
}

static enum cf_sight look(off_t off, size_t size)
{
	struct cf_piece piece = piece_of(off, size);

	cf_windows_look(&piece, CF_AMONG_NONE, NULL);
	return piece.view.sight;
}

static void a_file_must_have_stood_for_a_while(void **state)
{
	assert_int_equal(look(0, CHUNK), CF_SIGHT_WORTH);
	changed = NOW - 1;
	assert_int_equal(look(0, CHUNK), CF_SIGHT_CHANGING);
	changed = NOW - 2;
	assert_int_equal(look(0, CHUNK), CF_SIGHT_WORTH);
}

static void whole_chunks_must_be_cached(void **state)
{
	lacking = 1;
	assert_int_equal(look(CHUNK, CHUNK), CF_SIGHT_NOT_CACHED);
	lacking = 0;
	assert_int_equal(look(CHUNK + 4096, 64 * TH_KIB), CF_SIGHT_WORTH);
	assert_int_equal(asked_off, CHUNK);
	assert_int_equal(asked_size, CHUNK);
	assert_int_equal(look(2 * CHUNK - 4096, 64 * TH_KIB), CF_SIGHT_WORTH);
	assert_int_equal(asked_off, CHUNK);
	assert_int_equal(asked_size, 2 * CHUNK);
}

static void read_now(off_t off, size_t size)
{
	struct cf_piece piece = piece_of(off, size);

	cf_windows_look(&piece, CF_AMONG_NONE, NULL);
	cf_windows_note(&piece);
}

/* With the read that is looked at. */
static void who_may_not_ask_must_have_read_whole_chunks(void **state)
{
	cache_says = -ENOSYS;
	assert_int_equal(look(0, CHUNK), CF_SIGHT_CANNOT_TELL);
	cache_says = -EPERM;
	assert_int_equal(look(CHUNK, CHUNK / 2), CF_SIGHT_CANNOT_TELL);
	read_now(CHUNK, CHUNK / 2);
	assert_int_equal(look(CHUNK, CHUNK / 2), CF_SIGHT_CANNOT_TELL);
	assert_int_equal(look(CHUNK * 3 / 2, CHUNK / 2), CF_SIGHT_WORTH);
	read_now(CHUNK * 3 / 2, CHUNK / 2);
	assert_int_equal(look(CHUNK, CHUNK / 2), CF_SIGHT_WORTH);
	assert_int_equal(look(CHUNK / 2, CHUNK), CF_SIGHT_CANNOT_TELL);
}

static void all_chunks_must_have_been_read_before_and_fit(void **state)
{
	configure(CF_WINDOWS_KEPT);
	assert_int_equal(look(CHUNK, CHUNK), CF_SIGHT_FIRST_READ);
	read_now(CHUNK, 4 * CHUNK);
	assert_int_equal(look(CHUNK, 4 * CHUNK), CF_SIGHT_WORTH);
	assert_int_equal(look(CHUNK / 2, CHUNK), CF_SIGHT_FIRST_READ);
	read_now(0, CHUNK);
	assert_int_equal(look(CHUNK / 2, CHUNK), CF_SIGHT_WORTH);
	assert_int_equal(look(CHUNK / 2, 4 * CHUNK), CF_SIGHT_NO_ROOM);
}

/* Of reads that are large enough for each to be looked at. */
static void by_itself_for_what_is_hot_and_only_with_pins(void **state)
{
	const size_t size = 4 * CHUNK;

	configure(CF_WINDOWS_AUTO);
	assert_int_equal(look(0, size), CF_SIGHT_FIRST_READ);
	for (int i = 0; i < 3; i++) {
		if (i)
			assert_int_equal(look(0, size), CF_SIGHT_COOL);
		read_now(0, size);
	}
	assert_int_equal(look(0, size), CF_SIGHT_WORTH);
	cf_pins_fork_child(); /* has none */
	assert_int_equal(look(0, size), CF_SIGHT_NO_PINS);
	cf_pins_close();
}

static void another_file_or_none_of_its_bytes_is_no_matter(void **state)
{
	minor_number = 5;
	assert_int_equal(look(0, CHUNK), CF_SIGHT_NO_PAGES);
	minor_number = 4;
	assert_int_equal(look(FILE_SIZE, CHUNK), CF_SIGHT_NO_PAGES);
	handle.ino = 8;
	assert_int_equal(look(0, CHUNK), CF_SIGHT_NO_PAGES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_must_have_stood_for_a_while),
		TEST(whole_chunks_must_be_cached),
		TEST(who_may_not_ask_must_have_read_whole_chunks),
		TEST(all_chunks_must_have_been_read_before_and_fit),
		TEST(by_itself_for_what_is_hot_and_only_with_pins),
		TEST(another_file_or_none_of_its_bytes_is_no_matter),
	};

	return cmocka_run_group_tests_name("look", tests, NULL, NULL);
}
