// SPDX-License-Identifier: Apache-2.0
/*
 * The alias path: GPU memory that the CPU can address. Who offers the
 * address, how it is tested, what travels by it and what does not, and when a
 * mapping ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "alias_world.h"

static ssize_t no_pages(int pipe, const void *mem, size_t size)
{
	return -EFAULT;
}

/* ----------------------------------------------------------------- tests */

static void direct_io_goes_straight_into_the_memory(void **state)
{
	const char *why;
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    "alias");
	assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why), "alias");
	assert_true(aw_both_ways(&w) >= 6);
	aw_end(&w);
}

/* Only blocks: what is aw_straight is never an edge. */
static void edges_take_the_staged_way(void **state)
{
	unsigned long copies;
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	copies = th_copies_in();
	aw_read_is_right(&w, 64 * TH_KIB, 0, 0);
	assert_int_equal(th_copies_in(), copies);
	aw_read_is_right(&w, 64 * TH_KIB, 100, 100);
	assert_int_equal(th_copies_in(), copies + 2);
	aw_end(&w);
}

/* The file ends in the piece's tail, in its blocks, and in its head. */
static void a_read_across_the_end_counts_from_its_start(void **state)
{
	static const size_t ends[] = { 100 * TH_KIB + 30, 20 * TH_KIB + 100,
				       200 };
	const size_t size = 100 * TH_KIB, at = 100;
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t n = ends[i] - at;

		assert_int_equal(ftruncate(w.file.plain, (off_t)ends[i]), 0);
		th_mem_set(&w.mem, 0xa5);
		assert_int_equal(cuFileRead(w.fh, w.mem.ptr, size, at, at), n);
		th_mem_get(&w.mem, 0, w.got, 2 * size);
		th_all("before", w.got, 0xa5, at);
		th_equal("up to the end", w.got + at, w.content + at, n);
		th_all("behind", w.got + at + size, 0xa5, size - at);
	}
	aw_end(&w);
}

static void a_wrong_address_is_found_out_at_registration(void **state)
{
	static const enum aw_lie lies[] = { AW_OTHER_MEMORY, AW_NO_MEMORY,
					    AW_SHIFTED, AW_NO_LAST_PAGE };
	/* the last makes us read what is nobody's: a sanitizer would object */
	size_t nr = sizeof(lies) / sizeof(lies[0]) - TH_ASAN;
	const char *why;
	struct aw_world w;

	for (size_t i = 0; i < nr; i++) {
		aw_begin(&w, lies[i], TH_ODIRECT);
		assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
				    "staged");
		assert_non_null(strstr(why, "shows other bytes"));
		assert_int_equal(aw_both_ways(&w), 0);
		aw_end(&w);
	}
}

static void registration_leaves_the_memory_as_it_is(void **state)
{
	unsigned char *bytes = th_bytes(AW_MEM_SIZE),
		      *got = malloc(AW_MEM_SIZE);
	struct aw_world w;

	assert_non_null(got);
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_int_equal(cuFileBufDeregister(w.mem.ptr).err, 0);
	th_mem_put(&w.mem, 0, bytes, AW_MEM_SIZE);
	aw_register_memory(&w);
	th_mem_get(&w.mem, 0, got, AW_MEM_SIZE);
	th_equal("after the registration", got, bytes, AW_MEM_SIZE);
	aw_end(&w);
	free(bytes);
	free(got);
}

static void a_provider_that_has_none_leaves_memory_staged(void **state)
{
	const char *why;
	struct aw_world w;

	if (getenv("FAKECUDA_VERSION"))
		th_skip("the driver has one");
	aw_begin(&w, AW_REFUSES, TH_ODIRECT);
	assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, "no address"));
	assert_int_equal(aw_both_ways(&w), 0);
	aw_end(&w);
}

static void memory_that_is_not_registered_is_staged(void **state)
{
	const char *why;
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_int_equal(cuFileBufDeregister(w.mem.ptr).err, 0);
	assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, "not registered"));
	assert_int_equal(aw_both_ways(&w), 0);
	aw_end(&w);
}

static void a_mapping_without_pages_is_for_cached_reads_alone(void **state)
{
	const char *why;
	struct aw_world w;

	aw_os.splice_pages = no_pages;
	setenv("OCF_ALIAS", "on", 1);
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, "wants pages"));
	assert_int_equal(aw_both_ways(&w), 0);
	aw_end(&w);
	aw_begin(&w, AW_HONEST, TH_BUFFERED);
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    "alias");
	assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_true(aw_both_ways(&w) >= 3);
	aw_end(&w);
}

static void the_page_cache_is_left_to_copies_unless_asked(void **state)
{
	const char *why;
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_BUFFERED);
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, "page cache"));
	assert_int_equal(aw_both_ways(&w), 0);
	aw_end(&w);
}

static void switched_off_nobody_is_asked(void **state)
{
	const char *why;
	struct aw_world w;

	setenv("OCF_ALIAS", "off", 1);
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_int_equal(atomic_load(&aw_provider.maps), 0);
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, "opencufile.alias is off"));
	aw_end(&w);
}

static void memory_that_lies_otherwise_in_a_block_is_staged(void **state)
{
	const char *why;
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_string_equal(aw_path_of(&w, false, AW_BLOCK, 0, 8, &why),
			    "staged");
	assert_non_null(strstr(why, "no whole block"));
	aw_read_is_right(&w, 2 * AW_BLOCK, 0, 8);
	aw_end(&w);
}

static void strict_mode_takes_the_alias_for_whole_blocks_alone(void **state)
{
	struct aw_world w;

	assert_int_equal(
		cuFileSetParameterBool(
			CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false)
			.err,
		0);
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	aw_read_is_right(&w, AW_SIZE, 0, 0);
	errno = 0;
	assert_true(cuFileRead(w.fh, w.mem.ptr, AW_SIZE - 100, 100, 100) < 0);
	aw_end(&w);
}

static void statistics_tell_straight_from_copied(void **state)
{
	CUfileStatsLevel3_t stats;
	struct aw_world w;

	assert_int_equal(cuFileSetStatsLevel(3).err, 0);
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_int_equal(cuFileStatsStart().err, 0);
	aw_read_is_right(&w, AW_SIZE, 0, 0);
	aw_write_is_right(&w, AW_SIZE, 0, 0);
	aw_write_is_right(&w, AW_BLOCK, 0, 0);
	assert_int_equal(cuFileBufDeregister(w.mem.ptr).err, 0);
	aw_read_is_right(&w, AW_SIZE, 0, 0);
	assert_int_equal(cuFileGetStatsL3(&stats).err, 0);
	assert_int_equal(stats.per_gpu_stats[0].n_p2p_reads, 1);
	assert_int_equal(stats.per_gpu_stats[0].n_posix_reads, 1);
	assert_int_equal(stats.per_gpu_stats[0].n_p2p_writes, 2);
	assert_int_equal(stats.per_gpu_stats[0].n_posix_writes, 0);
	aw_end(&w);
}

/* -------------------------------------------- addresses of the driver's */

/* What aw_begin() does, without a provider and with this memory. */
static void begin_with(struct aw_world *w, enum th_mem_kind kind)
{
	th_open_for(TH_ODIRECT);
	ocf_alias_set_provider(NULL);
	w->content = th_bytes(AW_SIZE);
	w->got = malloc(AW_SIZE);
	assert_non_null(w->got);
	th_file_make(&w->file, TH_ODIRECT, O_RDWR, w->content, AW_SIZE);
	th_mem_alloc(&w->mem, kind, AW_MEM_SIZE);
	w->fh = th_handle(w->file.fd);
	assert_int_equal(cuFileBufRegister(w->mem.ptr, AW_MEM_SIZE, 0).err, 0);
}

static void the_driver_is_asked_for(enum th_mem_kind kind, const char *variable)
{
	const char *can = getenv(variable), *why;
	CUfileStatsLevel3_t stats;
	struct aw_world w;

	th_need_fake();
	assert_int_equal(cuFileSetStatsLevel(3).err, 0);
	begin_with(&w, kind);
	assert_int_equal(cuFileStatsStart().err, 0);
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    can ? "alias" : "staged");
	if (!can)
		assert_non_null(strstr(why, "no address"));
	aw_both_ways(&w);
	assert_int_equal(cuFileGetStatsL3(&stats).err, 0);
	assert_int_equal(stats.per_gpu_stats[0].n_p2p_reads, can ? 3 : 0);
	assert_int_equal(stats.per_gpu_stats[0].n_p2p_writes, can ? 3 : 0);
	aw_provider.other = mmap(NULL, AW_MEM_SIZE, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	aw_end(&w);
}

/* Their driver is too old but in the run that says otherwise. */
static void a_dma_buf_that_can_be_mapped_is_an_alias(void **state)
{
	the_driver_is_asked_for(TH_DEVICE, "FAKECUDA_VERSION");
}

static void managed_memory_of_a_coherent_gpu_is_its_own_alias(void **state)
{
	the_driver_is_asked_for(TH_MANAGED, "FAKECUDA_COHERENT");
}

/* ------------------------------------------------------------ life times */

static atomic_bool slow;

static ssize_t slow_pread(int fd, void *buf, size_t size, off_t off)
{
	if (aw_is_alias(buf)) {
		atomic_store(&slow, true);
		th_sleep_ms(200);
		assert_int_equal(atomic_load(&aw_provider.unmaps), 1);
	}
	return cf_os_real.pread(fd, buf, size, off);
}

static void read_or_deregister(void *arg, unsigned i)
{
	struct aw_world *w = arg;

	if (!i) {
		cuFileRead(w->fh, w->mem.ptr, 64 * TH_KIB, 0, 0);
		return;
	}
	while (!atomic_load(&slow))
		th_sleep_ms(1);
	(void)cuFileBufDeregister(w->mem.ptr);
}

/* The first unmap was of the library's own memory, after its test. */
static void a_mapping_outlives_its_registration_while_io_uses_it(void **state)
{
	struct aw_world w;

	aw_os.pread = slow_pread;
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_int_equal(atomic_load(&aw_provider.unmaps), 1);
	th_threads(2, read_or_deregister, &w);
	assert_int_equal(atomic_load(&aw_provider.unmaps), 2);
	th_mem_get(&w.mem, 0, w.got, 64 * TH_KIB);
	th_equal("read", w.got, w.content, 64 * TH_KIB);
	aw_end(&w);
}

/* Of its second half, again and again, while the first thread reads there. */
static void register_or_read(void *arg, unsigned i)
{
	struct aw_world *w = arg;
	char *half = (char *)w->mem.ptr + AW_MEM_SIZE / 2;

	for (int lap = 0; lap < 50; lap++) {
		if (i) {
			assert_int_equal(
				cuFileBufRegister(half, AW_BLOCK, 0).err, 0);
			assert_int_equal(cuFileBufDeregister(half).err, 0);
			continue;
		}
		assert_int_equal(cuFileRead(w->fh, half, 64 * TH_KIB, 0, 0),
				 64 * TH_KIB);
	}
}

/*
 * The trial of an alias looks at memory that is the client's, and in use. By
 * system calls, so that a race detector that watches ours has nothing to say.
 */
static void memory_in_use_can_be_registered(void **state)
{
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	th_threads(2, register_or_read, &w);
	th_mem_get(&w.mem, AW_MEM_SIZE / 2, w.got, 64 * TH_KIB);
	th_equal("read", w.got, w.content, 64 * TH_KIB);
	aw_end(&w);
}

static void the_last_close_ends_what_was_left_registered(void **state)
{
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	th_close();
	assert_int_equal(atomic_load(&aw_provider.maps),
			 atomic_load(&aw_provider.unmaps));
	aw_end(&w);
}

/* The address is another buffer's now: its registration does not count. */
static void freed_memory_is_not_reached_by_its_alias(void **state)
{
	const char *why;
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_int_equal(cuMemFree((CUdeviceptr)(uintptr_t)w.mem.ptr), 0);
	assert_true(cuFileRead(w.fh, w.mem.ptr, AW_BLOCK, 0, 0) < 0);
	assert_int_equal(atomic_load(&aw_straight), 0);
	(void)cuFileBufDeregister(w.mem.ptr);
	th_mem_alloc(&w.mem, TH_DEVICE, AW_MEM_SIZE);
	assert_string_equal(aw_path_of(&w, false, AW_BLOCK, 0, 0, &why),
			    "staged");
	aw_end(&w);
}

/* Nobody deregistered what was there; its mapping ends all the same. */
static void the_alias_of_freed_memory_ends_when_its_place_is_registered(
	void **state)
{
	struct aw_world w;
	void *before;
	int unmaps;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	th_fake()->reuse_handles(1);
	before = w.mem.ptr;
	for (int i = 0; i < 100; i++) {
		th_mem_free(&w.mem);
		th_mem_alloc(&w.mem, TH_DEVICE, AW_MEM_SIZE);
		if (w.mem.ptr == before)
			break;
	}
	th_fake()->reuse_handles(0);
	if (w.mem.ptr != before) {
		(void)cuFileBufDeregister(before);
		aw_end(&w);
		th_skip("the memory does not come to the same place again");
	}
	unmaps = atomic_load(&aw_provider.unmaps);
	aw_register_memory(&w);
	assert_int_equal(atomic_load(&aw_provider.maps),
			 atomic_load(&aw_provider.unmaps) + 1);
	assert_true(atomic_load(&aw_provider.unmaps) > unmaps);
	assert_true(aw_both_ways(&w));
	aw_end(&w);
}

static int map(void *arg, int gpu, const void *device, size_t size, void **cpu)
{
	return -ENOTSUP;
}

static void unmap(void *arg, void *cpu, size_t size)
{
}

static void a_provider_is_checked(void **state)
{
	ocf_alias_provider_t by = { .struct_size = sizeof(by), .map = map };

	assert_int_equal(ocf_alias_set_provider(&by).err,
			 CU_FILE_INVALID_VALUE);
	by.unmap = unmap;
	by.map = NULL;
	assert_int_equal(ocf_alias_set_provider(&by).err,
			 CU_FILE_INVALID_VALUE);
	by.map = map;
	by.struct_size--;
	assert_int_equal(ocf_alias_set_provider(&by).err,
			 CU_FILE_INVALID_VALUE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, aw_setup, aw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(direct_io_goes_straight_into_the_memory),
		TEST(edges_take_the_staged_way),
		TEST(a_read_across_the_end_counts_from_its_start),
		TEST(a_wrong_address_is_found_out_at_registration),
		TEST(registration_leaves_the_memory_as_it_is),
		TEST(a_provider_that_has_none_leaves_memory_staged),
		TEST(memory_that_is_not_registered_is_staged),
		TEST(a_mapping_without_pages_is_for_cached_reads_alone),
		TEST(the_page_cache_is_left_to_copies_unless_asked),
		TEST(switched_off_nobody_is_asked),
		TEST(memory_that_lies_otherwise_in_a_block_is_staged),
		TEST(strict_mode_takes_the_alias_for_whole_blocks_alone),
		TEST(statistics_tell_straight_from_copied),
		TEST(a_dma_buf_that_can_be_mapped_is_an_alias),
		TEST(managed_memory_of_a_coherent_gpu_is_its_own_alias),
		TEST(a_mapping_outlives_its_registration_while_io_uses_it),
		TEST(memory_in_use_can_be_registered),
		TEST(the_last_close_ends_what_was_left_registered),
		TEST(freed_memory_is_not_reached_by_its_alias),
		TEST(the_alias_of_freed_memory_ends_when_its_place_is_registered),
		TEST(a_provider_is_checked),
	};

	th_start(120);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}
