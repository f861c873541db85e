// SPDX-License-Identifier: Apache-2.0
/*
 * Mapped reads (cufile-routes(7), "Mapped reads"): when they are taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <unistd.h>
#include "core/fs_magic.h"
#include "core/pins.h"
#include "fake_rm.h"
#include "mapped_world.h"

static void the_second_read_maps_and_the_third_uses_what_is_kept(void **state)
{
	unsigned long registered;

	mw_begin();
	mw_read_all();
	assert_int_equal(mw_counts().opened, 0);
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	assert_int_equal(mw_counts().used, MW_NR_CHUNKS);
	registered = th_fake() ? th_fake()->calls(mw_registers()) : 0;
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	assert_int_equal(mw_counts().used, 2 * MW_NR_CHUNKS);
	if (th_fake())
		assert_int_equal(th_fake()->calls(mw_registers()), registered);
	mw_end();
}

static void a_small_read_uses_a_window_but_opens_none(void **state)
{
	mw_begin();
	for (int i = 0; i < 4; i++)
		mw_read_is(mw_fh, 32 * TH_KIB, 999, mw_content + 999,
			   32 * TH_KIB);
	assert_int_equal(mw_counts().opened, 0);
	mw_warm();
	assert_int_equal(mw_counts().used, MW_NR_CHUNKS);
	mw_read_is(mw_fh, 32 * TH_KIB, 999, mw_content + 999, 32 * TH_KIB);
	assert_int_equal(mw_counts().used, MW_NR_CHUNKS + 1);
	/* across a seam: two copies */
	mw_read_is(mw_fh, 8192, MW_CHUNK - 77, mw_content + MW_CHUNK - 77,
		   8192);
	assert_int_equal(mw_counts().used, MW_NR_CHUNKS + 3);
	/* smaller than mapped_use_kb */
	mw_read_is(mw_fh, 4095, 0, mw_content, 4095);
	assert_int_equal(mw_counts().used, MW_NR_CHUNKS + 3);
	mw_end();
}

/* Of a read across the end of what windows show only the front can be there. */
/* The CPU would read it, which must not touch a mapping. */
static void a_single_byte_of_a_mapping_goes_another_way(void **state)
{
	const size_t at = MW_CHUNK - 8191;

	mw_begin();
	mw_warm();
	mw_read_is(mw_fh, 8192, at, mw_content + at, 8192);
	assert_int_equal(mw_counts().stale, 0);
	/* and nobody keeps its window */
	cuFileHandleDeregister(mw_fh);
	mw_all_are_closed();
	mw_end();
}

static void a_read_counts_by_what_windows_can_show_of_it(void **state)
{
	size_t end = mw_pins ? MW_SIZE & -CF_PIN_GRANULE : MW_SIZE;
	size_t at = end - 1000, size = 2 * mw_open_from;
	size_t n = size < MW_SIZE - at ? size : MW_SIZE - at;

	mw_begin();
	for (int i = 0; i < 4; i++)
		mw_read_is(mw_fh, size, at, mw_content + at, n);
	assert_int_equal(mw_counts().opened, 0);
	mw_end();
}

/* In sequence each byte is read for the first time, chunk or no chunk. */
static void a_first_pass_in_small_steps_is_no_second_read(void **state)
{
	const size_t step = 64 * TH_KIB;

	mw_begin();
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(mw_counts().opened, 0);
		for (size_t at = 0; at + step < MW_SIZE; at += step)
			mw_read_is(mw_fh, step, at, mw_content + at, step);
	}
	assert_true(mw_counts().opened >= MW_NR_CHUNKS - 1);
	mw_end();
}

static const char *route_of(size_t size)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };

	assert_int_equal(
		ocf_explain_read(mw_fh, mw_mem.ptr, size, 0, MW_PAD, &e).err,
		CU_FILE_SUCCESS);
	return e.path;
}

static void asking_for_the_route_is_no_read(void **state)
{
	mw_begin();
	for (int i = 0; i < 3; i++)
		assert_string_equal(route_of(MW_SIZE), "staged");
	mw_read_all();
	assert_int_equal(mw_counts().opened, 0);
	for (int i = 0; i < 3; i++)
		assert_string_equal(route_of(MW_SIZE), "mapped");
	assert_int_equal(mw_counts().opened, 0);
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	mw_end();
}

static void an_element_of_a_vector_is_read_once(void **state)
{
	CUfileIOVec_t iov = { .len = MW_SIZE };
	const int opened[] = { 0, MW_NR_CHUNKS };

	mw_begin();
	iov.base = (char *)mw_mem.ptr + MW_PAD;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cuFileReadv(mw_fh, &iov, 1, 0, 0), MW_SIZE);
		th_mem_get(&mw_mem, MW_PAD, mw_got, MW_SIZE);
		th_equal("the vector", mw_got, mw_content, MW_SIZE);
		assert_int_equal(mw_counts().opened, opened[i]);
	}
	mw_end();
}

static void always_maps_the_first_read_and_off_never(void **state)
{
	mw_begin_with("always", 32 * MW_CHUNK, TH_BUFFERED);
	mw_read_all();
	assert_int_equal(mw_counts().used, MW_NR_CHUNKS);
	mw_end();
	mw_begin_with("off", 32 * MW_CHUNK, TH_BUFFERED);
	for (int i = 0; i < 3; i++)
		mw_read_all();
	assert_int_equal(mw_counts().used, 0);
	mw_end();
}

static void auto_maps_what_is_hot_where_pages_can_be_pinned(void **state)
{
	mw_begin_with("auto", 32 * MW_CHUNK, TH_BUFFERED);
	for (int i = 0; i < 3; i++) {
		mw_read_all();
		assert_int_equal(mw_counts().opened, 0);
	}
	mw_read_all();
	if (mw_pins && cf_pins_state() == CF_PINS_GOOD) {
		mw_read_all();
		assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
		assert_int_equal(mw_counts().used, 2 * MW_NR_CHUNKS);
	} else {
		/* nothing of it is registered, however often it is read */
		for (int i = 0; i < 3; i++)
			mw_read_all();
		assert_int_equal(mw_counts().opened, 0);
		assert_int_equal(mw_counts().refused, 0);
	}
	mw_end();
}

/* A window would go with each of them, and be opened in vain. */
static void auto_maps_nothing_for_who_opens_a_file_for_each_read(void **state)
{
	if (!mw_pins)
		th_skip("chunks are too small to be pinned");
	mw_begin_with("auto", 32 * MW_CHUNK, TH_BUFFERED);
	for (int i = 0; i < 8; i++) {
		mw_read_all();
		cuFileHandleDeregister(mw_fh);
		mw_fh = th_handle(mw_file.fd);
	}
	for (int i = 0; i < 2; i++)
		mw_read_all();
	assert_int_equal(mw_counts().opened, 0);
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	mw_end();
}

/* And none is being closed. */
static void await_no_window(void)
{
	while (mw_counts().open || mw_counts().bytes)
		th_sleep_ms(1);
}

static void begin_hot_for(const char *idle_ms)
{
	if (!mw_pins)
		th_skip("windows that libcuda registers stay");
	mw_idle_ms = idle_ms;
	mw_begin_hot();
	mw_idle_ms = "0";
}

static void windows_go_when_none_is_used(void **state)
{
	uint64_t opened;

	(void)state;
	begin_hot_for("50");
	for (int i = 0; i < 3; i++) {
		await_no_window();
		opened = mw_counts().opened;
		mw_read_all();
		assert_true(mw_counts().opened > opened);
		mw_read_is(mw_fh, TH_MIB, 8192, mw_content + 8192, TH_MIB);
	}
	await_no_window();
	mw_end();
}

static void but_not_while_one_is_used(void **state)
{
	uint64_t opened;

	(void)state;
	begin_hot_for("1500");
	opened = mw_counts().opened;
	for (int i = 0; i < 200; i++) {
		mw_read_is(mw_fh, TH_MIB, 4096, mw_content + 4096, TH_MIB);
		th_sleep_ms(10);
	}
	assert_int_equal(mw_counts().opened, opened);
	assert_true(mw_counts().open > 1);
	mw_end();
}

static void auto_without_the_kernel_driver_maps_nothing(void **state)
{
	if (!mw_pins)
		th_skip("chunks are too small to be pinned");
	th_need_fake();
	mw_begin_with("auto", 32 * MW_CHUNK, TH_BUFFERED);
	fake_rm.refusal[FAKE_RM_CTL] = -ENOENT;
	for (int i = 0; i < 6; i++)
		mw_read_all();
	assert_int_equal(cf_pins_state(), CF_PINS_NONE);
	assert_int_equal(fake_rm_asked(FAKE_RM_CTL), 1);
	assert_int_equal(mw_counts().opened, 0);
	assert_int_equal(mw_counts().refused, 0);
	assert_string_equal(route_of(MW_SIZE), "staged");
	mw_end();
}

static void writes_host_memory_and_o_direct_are_not_mapped(void **state)
{
	mw_begin_with("always", 32 * MW_CHUNK, TH_ODIRECT);
	mw_read_all();
	assert_int_equal(mw_counts().used, 0);
	assert_int_equal(cuFileWrite(mw_fh, mw_mem.ptr, MW_SIZE, 0, MW_PAD),
			 MW_SIZE);
	assert_int_equal(mw_counts().opened, 0);
	mw_end();
	mw_begin_with("always", 32 * MW_CHUNK, TH_BUFFERED);
	assert_int_equal(cuFileRead(mw_fh, mw_got, MW_SIZE, 0, 0), MW_SIZE);
	th_equal("host memory", mw_got, mw_content, MW_SIZE);
	assert_int_equal(mw_counts().used, 0);
	mw_end();
}

/* A busy kernel may have a page in hand, and a tmpfs lets none go. */
static bool drop(void)
{
	struct cf_cachestat stat = { .cached = 1 };

	mw_let_pages_go();
	for (int lap = 0; lap < 100 && stat.cached; lap++) {
		assert_int_equal(fsync(mw_file.plain), 0);
		th_sleep_ms(MW_REST_MS);
		assert_int_equal(
			posix_fadvise(mw_file.plain, 0, 0, POSIX_FADV_DONTNEED),
			0);
		assert_int_equal(
			cf_os_real.cachestat(mw_file.plain, 0, MW_SIZE, &stat),
			0);
	}
	return !stat.cached;
}

static void what_is_not_cached_is_not_mapped(void **state)
{
	mw_begin_with("always", 32 * MW_CHUNK, TH_BUFFERED);
	if (!drop()) {
		mw_end();
		th_skip("the file system does not drop what it has cached");
	}
	mw_read_all();
	assert_int_equal(mw_counts().opened, 0);
	mw_hold_pages();
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	mw_end();
}

static long fs_type;

static int fstatfs_other(int fd, struct statfs *fs)
{
	int err = cf_os_real.fstatfs(fd, fs);

	fs->f_type = fs_type;
	return err;
}

/* Only those of one machine whose mappings are known to be their files. */
static void strange_file_systems_are_not_mapped(void **state)
{
	static const struct {
		long type;
		bool mapped;
	} cases[] = {
		{ OVERLAYFS_SUPER_MAGIC, false }, { NFS_SUPER_MAGIC, false },
		{ 0x2fc12fc1 /* ZFS */, false },  { FUSE_SUPER_MAGIC, false },
		{ EXT4_SUPER_MAGIC, true },	  { TMPFS_MAGIC, true },
	};
	static struct cf_os other;

	other = *mw_usual;
	other.fstatfs = fstatfs_other;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mw_begin_with("always", 32 * MW_CHUNK, TH_BUFFERED);
		cuFileHandleDeregister(mw_fh);
		fs_type = cases[i].type;
		cf_os = &other;
		mw_fh = th_handle(mw_file.fd);
		cf_os = mw_usual;
		assert_string_equal(route_of(MW_SIZE),
				    cases[i].mapped ? "mapped" : "staged");
		mw_read_all();
		assert_int_equal(mw_counts().opened,
				 cases[i].mapped ? MW_NR_CHUNKS : 0);
		mw_end();
	}
}

static void memory_files_are_mapped_too(void **state)
{
	static const enum th_file_kind kinds[] = { TH_TMPFS, TH_MEMFD };

	for (int i = 0; i < 2; i++) {
		mw_begin_with("kept", 32 * MW_CHUNK, kinds[i]);
		mw_warm();
		mw_read_all();
		assert_int_equal(mw_counts().used, 2 * MW_NR_CHUNKS);
		assert_int_equal(ftruncate(mw_file.plain, MW_CHUNK), 0);
		mw_read_is(mw_fh, MW_SIZE, 0, mw_content, MW_CHUNK);
		mw_end();
	}
}

#define TEST(name) cmocka_unit_test_teardown(name, mw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_second_read_maps_and_the_third_uses_what_is_kept),
		TEST(a_small_read_uses_a_window_but_opens_none),
		TEST(a_single_byte_of_a_mapping_goes_another_way),
		TEST(a_read_counts_by_what_windows_can_show_of_it),
		TEST(a_first_pass_in_small_steps_is_no_second_read),
		TEST(asking_for_the_route_is_no_read),
		TEST(an_element_of_a_vector_is_read_once),
		TEST(always_maps_the_first_read_and_off_never),
		TEST(auto_maps_what_is_hot_where_pages_can_be_pinned),
		TEST(auto_maps_nothing_for_who_opens_a_file_for_each_read),
		TEST(windows_go_when_none_is_used),
		TEST(but_not_while_one_is_used),
		TEST(auto_without_the_kernel_driver_maps_nothing),
		TEST(writes_host_memory_and_o_direct_are_not_mapped),
		TEST(what_is_not_cached_is_not_mapped),
		TEST(strange_file_systems_are_not_mapped),
		TEST(memory_files_are_mapped_too),
	};

	mw_start();
	return th_finish(
		cmocka_run_group_tests_name("mapped", tests, NULL, NULL));
}
