// SPDX-License-Identifier: Apache-2.0
/*
 * What a window shows is what its file has, whatever its times and its number
 * say.
 *
 * A write with O_DIRECT sets the times when it begins, and takes pages out of
 * the cache when it ends. Here they stand still, so only pages can tell; and
 * what can be touched is, as mlockall(2), a fault next to it or libcuda may do.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/rm_abi.h"
#include "mapped_world.h"

static struct cf_os os;
static int direct;

static void begin(void)
{
	mw_begin();
	mw_let_pages_go();
	direct = mw_open_direct();
	os = *mw_usual;
	os.statx = mw_statx_frozen;
	cf_os = &os;
}

static void end(void)
{
	close(direct);
	mw_end();
}

/* All that is readable of the file's mappings is there then. */
static void touch_all(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[4096], mode;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, strrchr(mw_file.path, '/')) ||
		    sscanf(line, "%lx-%lx %c", &from, &to, &mode) != 3 ||
		    mode != 'r')
			continue;
		for (; from < to; from += 4096)
			(void)*(volatile char *)from;
	}
	fclose(maps);
}

static void replace_pages(void)
{
	mw_write_direct(direct, MW_CHUNK, MW_CHUNK);
}

static void pages_that_are_back_are_not_the_old_ones(void **state)
{
	begin();
	mw_warm();
	replace_pages();
	touch_all();
	mw_read_all();
	assert_true(mw_counts().stale >= 1);
	mw_read_all();
	end();
}

static bool replaces; /* while the next window is opened */

/* The kernel driver's pages are pinned by then, and it is let go of them. */
static int ioctl_and_replace(int fd, unsigned long request, void *arg)
{
	int err = mw_usual->ioctl(fd, request, arg);

	if (request == CF_RM_FREE && replaces) {
		replaces = false;
		replace_pages();
		touch_all();
	}
	return err;
}

static void pages_may_be_replaced_while_they_are_pinned(void **state)
{
	if (!mw_pins)
		th_skip("a registration is no call of the system's");
	begin();
	os.ioctl = ioctl_and_replace;
	mw_read_all();
	/* the second is pinned while its pages go */
	mw_read_is(mw_fh, MW_CHUNK, 0, mw_content, MW_CHUNK);
	replaces = true;
	mw_read_is(mw_fh, MW_CHUNK, MW_CHUNK, mw_content + MW_CHUNK, MW_CHUNK);
	assert_false(replaces);
	mw_read_all();
	mw_read_all();
	end();
}

/* ---------------------------------------------- another file, by its number */

static struct th_file other;

static bool becomes;

/* As after a close(2) and an open(2) in another thread. */
static int become_other_and_map(int fd, off_t off, size_t size, void **mem)
{
	if (becomes && fd == mw_file.fd)
		assert_true(dup2(other.fd, fd) >= 0);
	return mw_usual->map_file(fd, off, size, mem);
}

static void a_number_that_became_another_file_s_opens_no_window(void **state)
{
	unsigned char *bytes = th_bytes(MW_SIZE);
	CUfileHandle_t second;

	mw_begin();
	os = *mw_usual;
	os.map_file = become_other_and_map;
	cf_os = &os;
	th_file_make(&other, TH_BUFFERED, O_RDWR, bytes, MW_SIZE);
	second = th_handle(mw_file.plain);
	mw_read_all();
	th_sleep_ms(MW_REST_MS);
	becomes = true;
	/* what it reads is for who took the number */
	(void)!cuFileRead(mw_fh, mw_mem.ptr, MW_SIZE, 0, MW_PAD);
	becomes = false;
	assert_int_equal(mw_counts().open, 0);
	for (int i = 0; i < 3; i++)
		mw_read_is(second, MW_SIZE, 0, mw_content, MW_SIZE);
	assert_true(mw_counts().used > 0);
	cuFileHandleDeregister(second);
	th_file_end(&other);
	free(bytes);
	mw_end();
}

/* ------------------------------------------------------------ who reads it */

static bool cuts; /* the file, when it was looked at once more */

static int statx_and_cut(int fd, unsigned mask, struct statx *stx)
{
	int err = mw_usual->statx(fd, mask, stx);

	if (cuts)
		assert_int_equal(ftruncate(mw_file.plain, 0), 0);
	cuts = false;
	return err;
}

/* The first part has so many bytes, at the end of a chunk. */
static void read_as_it_is_cut(struct th_mem *mem, size_t part, size_t size,
			      size_t at)
{
	mw_warm();
	cuts = true;
	assert_int_equal(cuFileRead(mw_fh, mem->ptr, size,
				    (off_t)(MW_CHUNK - part), (off_t)at),
			 0);
	assert_false(cuts);
	th_file_put(&mw_file, 0, mw_content, MW_SIZE);
	th_sleep_ms(MW_REST_MS);
}

static void begin_to_cut(void)
{
	mw_begin();
	mw_let_pages_go();
	os = *mw_usual;
	os.statx = statx_and_cut;
	cf_os = &os;
}

static void small_parts_are_not_read_by_the_cpu(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_DEVICE, TH_POOL,
						  TH_MANAGED, TH_VMM };
	static const size_t parts[] = { 1, 2, 4096, 4097, 20 * TH_KIB };

	begin_to_cut();
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct th_mem mem;

		th_mem_alloc(&mem, kinds[k], TH_MIB);
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			read_as_it_is_cut(&mem, parts[i], 64 * TH_KIB, 0);
			/* the first mapping of two ends in it */
			read_as_it_is_cut(&mem, parts[i], 64 * TH_KIB,
					  mem.size / 2 - parts[i] / 2);
		}
		th_mem_free(&mem);
	}
	/* the last of several in one call of the driver */
	read_as_it_is_cut(&mw_mem, 64 * TH_KIB,
			  64 * TH_KIB + 2 * MW_CHUNK + 4096, 0);
	mw_end();
}

static void nor_where_rows_are_refused(void **state)
{
	const struct th_fake *fake = th_need_fake();

	begin_to_cut();
	mw_warm();
	assert_int_equal(fake->plan("cuMemcpy2DAsync_v2:*=801"), 0);
	read_as_it_is_cut(&mw_mem, 4096, 64 * TH_KIB, 0);
	fake->plan_clear();
	mw_end();
}

#define TEST(name) cmocka_unit_test_teardown(name, mw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_that_are_back_are_not_the_old_ones),
		TEST(pages_may_be_replaced_while_they_are_pinned),
		TEST(a_number_that_became_another_file_s_opens_no_window),
		TEST(small_parts_are_not_read_by_the_cpu),
		TEST(nor_where_rows_are_refused),
	};

	mw_start();
	return th_finish(cmocka_run_group_tests_name("mapped_witness", tests,
						     NULL, NULL));
}
