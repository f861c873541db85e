// SPDX-License-Identifier: Apache-2.0
/*
 * Mapped reads (cufile-routes(7), "Mapped reads"): they never show bytes that a
 * plain read would not, whatever becomes of the file.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fake_rm.h"
#include "mapped_world.h"

static void a_truncated_file_ends_where_it_ends(void **state)
{
	const size_t ends[] = { 4 * MW_CHUNK + 1, 2 * MW_CHUNK, 5000, 0 };

	mw_begin();
	mw_warm();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(ftruncate(mw_file.plain, (off_t)ends[i]), 0);
		mw_read_is(mw_fh, MW_SIZE, 0, mw_content, ends[i]);
		th_sleep_ms(MW_REST_MS);
		mw_read_is(mw_fh, MW_SIZE, 0, mw_content, ends[i]);
		mw_read_is(mw_fh, MW_SIZE, 0, mw_content, ends[i]);
	}
	assert_int_equal(mw_counts().refused, 0);
	mw_end();
}

static void a_file_that_shrank_and_grew_shows_zeros(void **state)
{
	mw_begin();
	mw_warm();
	assert_int_equal(ftruncate(mw_file.plain, MW_CHUNK + 10), 0);
	assert_int_equal(ftruncate(mw_file.plain, MW_SIZE), 0);
	memset(mw_content + MW_CHUNK + 10, 0, MW_SIZE - MW_CHUNK - 10);
	mw_read_all();
	th_sleep_ms(MW_REST_MS);
	mw_read_all();
	mw_read_all();
	mw_end();
}

static void a_punched_hole_shows_zeros(void **state)
{
	mw_begin();
	mw_warm();
	if (fallocate(mw_file.plain, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      MW_CHUNK, MW_CHUNK)) {
		mw_end();
		th_skip("the file system punches no holes");
	}
	memset(mw_content + MW_CHUNK, 0, MW_CHUNK);
	mw_read_all();
	th_sleep_ms(MW_REST_MS);
	mw_read_all();
	mw_end();
}

static void what_others_write_with_o_direct_is_read(void **state)
{
	int fd;

	mw_begin();
	fd = mw_open_direct();
	mw_warm();
	for (int i = 0; i < 5; i++) {
		mw_write_direct(fd, 8192 + (size_t)i * MW_CHUNK / 2, 4096);
		mw_read_all();
		th_sleep_ms(MW_REST_MS);
		mw_read_all();
	}
	assert_true(mw_counts().opened > MW_NR_CHUNKS);
	close(fd);
	mw_end();
}

static void pages_that_were_replaced_are_seen_without_any_times(void **state)
{
	static struct cf_os frozen;
	int fd;

	mw_begin();
	frozen = *mw_usual;
	frozen.statx = mw_statx_frozen;
	fd = mw_open_direct();
	cf_os = &frozen;
	mw_warm();
	mw_read_all();
	mw_write_direct(fd, MW_CHUNK, 4096);
	mw_read_all();
	assert_true(mw_counts().stale >= 1);
	assert_int_equal(ftruncate(mw_file.plain, MW_CHUNK + 10), 0);
	assert_int_equal(ftruncate(mw_file.plain, MW_SIZE), 0);
	memset(mw_content + MW_CHUNK + 10, 0, MW_SIZE - MW_CHUNK - 10);
	mw_read_all();
	close(fd);
	mw_end();
}

static void what_others_write_through_the_page_cache_is_read(void **state)
{
	pid_t child;
	int status;

	mw_begin();
	mw_warm();
	th_fill(mw_content + 300, MW_CHUNK);
	th_file_put(&mw_file, 300, mw_content + 300, MW_CHUNK);
	mw_read_all();
	th_sleep_ms(MW_REST_MS);
	mw_warm();
	th_fill(mw_content + 70000, MW_CHUNK);
	child = fork();
	if (!child)
		_exit(pwrite(mw_file.plain, mw_content + 70000, MW_CHUNK,
			     70000) != (ssize_t)MW_CHUNK);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	mw_read_all();
	th_sleep_ms(MW_REST_MS);
	mw_warm();
	mw_end();
}

static void what_we_write_ourselves_is_read(void **state)
{
	mw_begin();
	mw_warm();
	for (int i = 0; i < 3; i++) {
		size_t at = th_below(MW_SIZE - MW_CHUNK);

		th_fill(mw_content + at, MW_CHUNK);
		th_mem_put(&mw_mem, 0, mw_content + at, MW_CHUNK);
		assert_int_equal(
			cuFileWrite(mw_fh, mw_mem.ptr, MW_CHUNK, (off_t)at, 0),
			MW_CHUNK);
		mw_read_all();
		th_sleep_ms(MW_REST_MS);
		mw_warm();
	}
	mw_end();
}

static void a_name_that_moves_on_leaves_the_handle_its_file(void **state)
{
	struct th_file other;
	unsigned char *bytes;
	CUfileHandle_t second;
	int fd;

	mw_begin();
	bytes = th_bytes(MW_SIZE);
	mw_warm();
	th_file_make(&other, TH_BUFFERED, O_RDWR, bytes, MW_SIZE);
	assert_int_equal(rename(other.path, mw_file.path), 0);
	*other.path = '\0';
	mw_read_all();
	fd = open(mw_file.path, O_RDONLY | O_CLOEXEC);
	second = th_handle(fd);
	th_sleep_ms(MW_REST_MS);
	for (int i = 0; i < 3; i++) {
		mw_read_is(second, MW_SIZE, 0, bytes, MW_SIZE);
		mw_read_all();
	}
	assert_int_equal(mw_counts().open, 2 * MW_NR_CHUNKS);
	unlink(mw_file.path);
	mw_read_is(second, MW_SIZE, 0, bytes, MW_SIZE);
	cuFileHandleDeregister(second);
	close(fd);
	th_file_end(&other);
	free(bytes);
	mw_end();
}

/* The number now names another file, and nobody told the library. */
static void a_descriptor_that_was_replaced_shows_its_new_file(void **state)
{
	struct th_file other;

	mw_begin();
	mw_warm();
	th_fill(mw_content, MW_SIZE);
	th_file_make(&other, TH_BUFFERED, O_RDWR, mw_content, MW_SIZE);
	assert_true(dup2(other.fd, mw_file.fd) >= 0);
	mw_read_all();
	/* the windows of the old one are gone, and it gets none */
	mw_all_are_closed();
	th_sleep_ms(MW_REST_MS);
	mw_read_all();
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	th_file_end(&other);
	mw_end();
}

/* ------------------------------------------------------- during a read */

static ssize_t during; /* what a read answered while the file changed */

static void read_meanwhile(void)
{
	during = cuFileRead(mw_fh, mw_mem.ptr, MW_SIZE, 0, MW_PAD);
}

static void cut_off(void)
{
	(void)!ftruncate(mw_file.plain, 2 * MW_CHUNK + 5);
}

static void a_truncation_during_a_read_gives_no_stale_byte(void **state)
{
	th_need_fake();
	mw_begin();
	mw_warm();
	mw_change_during(cut_off, read_meanwhile);
	assert_true(mw_counts().stale >= 1);
	assert_int_equal(during, 2 * MW_CHUNK + 5);
	th_mem_get(&mw_mem, MW_PAD, mw_got, MW_SIZE);
	th_equal("what is left", mw_got, mw_content, (size_t)during);
	mw_end();
}

static unsigned char block[4096] __attribute__((aligned(4096)));
static int direct_fd;

static void write_block(void)
{
	(void)!pwrite(direct_fd, block, sizeof(block), MW_CHUNK);
}

static void a_direct_write_during_a_read_is_seen_or_not_but_whole(void **state)
{
	th_need_fake();
	mw_begin();
	direct_fd = mw_open_direct();
	mw_warm();
	th_fill(block, sizeof(block));
	mw_change_during(write_block, read_meanwhile);
	assert_int_equal(during, MW_SIZE);
	th_mem_get(&mw_mem, MW_PAD, mw_got, MW_SIZE);
	if (memcmp(mw_got + MW_CHUNK, block, sizeof(block)))
		th_equal("the old block", mw_got + MW_CHUNK,
			 mw_content + MW_CHUNK, sizeof(block));
	memcpy(mw_content + MW_CHUNK, block, sizeof(block));
	th_equal("before", mw_got, mw_content, MW_CHUNK);
	th_equal("after", mw_got + MW_CHUNK + 4096,
		 mw_content + MW_CHUNK + 4096, MW_SIZE - MW_CHUNK - 4096);
	mw_read_all();
	close(direct_fd);
	mw_end();
}

static void write_first_chunk(void)
{
	th_fill(mw_content, MW_CHUNK);
	(void)!pwrite(mw_file.plain, mw_content, MW_CHUNK, 0);
}

/* The first chunk is copied by then, of pages that are still the file's. */
static void a_file_that_changes_during_a_read_is_read_again(void **state)
{
	th_need_fake();
	mw_begin();
	mw_warm();
	mw_change_during(write_first_chunk, read_meanwhile);
	assert_int_equal(during, MW_SIZE);
	th_mem_get(&mw_mem, MW_PAD, mw_got, MW_SIZE);
	th_equal("the new bytes", mw_got, mw_content, MW_SIZE);
	mw_end();
}

static CUfileHandle_t owner;

static void owner_goes(void)
{
	cuFileHandleDeregister(owner);
}

static void windows_in_use_outlive_their_handle_for_the_copy(void **state)
{
	int fd;

	th_need_fake();
	mw_begin();
	mw_warm();
	owner = mw_fh;
	fd = open(mw_file.path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	mw_fh = th_handle(fd);
	mw_change_during(owner_goes, read_meanwhile);
	assert_int_equal(during, MW_SIZE);
	th_mem_get(&mw_mem, MW_PAD, mw_got, MW_SIZE);
	th_equal("the read", mw_got, mw_content, MW_SIZE);
	mw_all_are_closed();
	mw_end();
	close(fd);
}

static void storm_read(struct mw_storm *s, unsigned i)
{
	size_t size = i == 1 ? 4 * MW_CHUNK : 64 * TH_KIB;
	uint32_t *words = malloc(size);
	struct th_mem own;

	th_mem_alloc(&own, TH_DEVICE, size);
	while (!atomic_load(&s->over)) {
		uint32_t low = atomic_load(&s->done);
		ssize_t n = cuFileRead(mw_fh, own.ptr, size, 0, 0);

		if (n != (ssize_t)size)
			th_bad_note(&s->bad, "read answers %zd", n);
		th_mem_get(&own, 0, words, size);
		mw_storm_look(s, words, size, low);
	}
	th_mem_free(&own);
	free(words);
}

static void storm_thread(void *arg, unsigned i)
{
	if (i)
		storm_read(arg, i);
	else
		mw_storm_write(arg);
}

static void a_read_never_shows_less_than_was_written_before_it(void **state)
{
	struct mw_storm s = { .size = 4 * MW_CHUNK,
			      .gap_ms = 60,
			      .opens = MW_NR_CHUNKS };
	struct cf_windows_counts c;

	mw_begin_with("always", 4 * MW_CHUNK, TH_BUFFERED);
	mw_storm_begin(&s);
	th_threads(4, storm_thread, &s);
	mw_storm_end(&s);
	c = mw_counts();
	print_message("opened %lu used %lu stale %lu\n",
		      (unsigned long)c.opened, (unsigned long)c.used,
		      (unsigned long)c.stale);
	assert_true(c.used > 0);
	assert_true(c.opened > MW_NR_CHUNKS);
	mw_end();
}

#define TEST(name) cmocka_unit_test_teardown(name, mw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_truncated_file_ends_where_it_ends),
		TEST(a_file_that_shrank_and_grew_shows_zeros),
		TEST(a_punched_hole_shows_zeros),
		TEST(what_others_write_with_o_direct_is_read),
		TEST(pages_that_were_replaced_are_seen_without_any_times),
		TEST(what_others_write_through_the_page_cache_is_read),
		TEST(what_we_write_ourselves_is_read),
		TEST(a_name_that_moves_on_leaves_the_handle_its_file),
		TEST(a_descriptor_that_was_replaced_shows_its_new_file),
		TEST(a_truncation_during_a_read_gives_no_stale_byte),
		TEST(a_direct_write_during_a_read_is_seen_or_not_but_whole),
		TEST(a_file_that_changes_during_a_read_is_read_again),
		TEST(a_read_never_shows_less_than_was_written_before_it),
		TEST(windows_in_use_outlive_their_handle_for_the_copy),
	};

	mw_start();
	return th_finish(
		cmocka_run_group_tests_name("mapped_files", tests, NULL, NULL));
}
