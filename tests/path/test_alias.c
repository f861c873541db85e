// SPDX-License-Identifier: Apache-2.0
/*
 * The alias path: GPU memory that the CPU can address. Who offers the
 * address, how it is tested, what travels by it and what does not, what is
 * remembered of pairs that do not go, and when a mapping ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/alias.h"
#include "harness.h"
#include "seam/os.h"
#include "seam/uring.h"

#define BLOCK ((size_t)4096)
#define SIZE (8 * TH_MIB)
#define MEM_SIZE (SIZE + 2 * BLOCK)

/* ------------------------------------------------------------ a provider */

enum lie {
	HONEST,
	REFUSES,
	OTHER_MEMORY, /* some other memory, with the same place in a page */
	NO_MEMORY,    /* nothing is mapped there */
	SHIFTED,      /* another place in a page */
	NO_LAST_PAGE, /* honest about memory of the library's own */
};

static struct {
	enum lie lie;
	atomic_int maps, unmaps;
	void *other;
} provider;

static int map(void *arg, int gpu, const void *device, size_t size, void **cpu)
{
	char *at = th_fake()->alias((CUdeviceptr)(uintptr_t)device, size);
	size_t in_page = (uintptr_t)device & (BLOCK - 1);

	assert_ptr_equal(arg, &provider);
	assert_int_equal(gpu, 0);
	if (!at || provider.lie == REFUSES)
		return -ENOTSUP;
	if (provider.lie == OTHER_MEMORY)
		at = (char *)provider.other + in_page;
	else if (provider.lie == NO_MEMORY)
		at = (char *)(uintptr_t)(BLOCK + in_page);
	else if (provider.lie == SHIFTED)
		at += 8;
	else if (provider.lie == NO_LAST_PAGE && size == MEM_SIZE)
		at -= BLOCK;
	atomic_fetch_add(&provider.maps, 1);
	*cpu = at;
	return 0;
}

static void unmap(void *arg, void *cpu, size_t size)
{
	atomic_fetch_add(&provider.unmaps, 1);
}

static void offer(enum lie lie)
{
	const ocf_alias_provider_t by = { .struct_size = sizeof(by),
					  .arg = &provider,
					  .map = map,
					  .unmap = unmap };

	provider.lie = lie;
	assert_int_equal(ocf_alias_set_provider(&by).err, CU_FILE_SUCCESS);
}

/* --------------------------------------------- system calls that are seen */

static struct cf_os os;
static struct cf_uring ring;
static atomic_uint straight; /* transfers between a file and the alias */
static atomic_int refusal;   /* what the next ones answer, or 0 */
static uintptr_t from, to;   /* where the alias is */

static bool is_alias(const void *buf)
{
	return (uintptr_t)buf >= from && (uintptr_t)buf < to;
}

static ssize_t see_pread(int fd, void *buf, size_t size, off_t off)
{
	if (is_alias(buf)) {
		atomic_fetch_add(&straight, 1);
		if (atomic_load(&refusal))
			return -atomic_load(&refusal);
	}
	return cf_os_real.pread(fd, buf, size, off);
}

static ssize_t see_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	if (is_alias(buf)) {
		atomic_fetch_add(&straight, 1);
		if (atomic_load(&refusal))
			return -atomic_load(&refusal);
	}
	return cf_os_real.pwrite(fd, buf, size, off);
}

static bool see_queue(struct cf_kring *kring, bool write, int fd, void *mem,
		      size_t size, off_t off, uint64_t cookie)
{
	if (is_alias(mem))
		atomic_fetch_add(&straight, 1);
	return cf_uring_real.queue(kring, write, fd, mem, size, off, cookie);
}

static ssize_t no_pages(int pipe, const void *mem, size_t size)
{
	return -EFAULT;
}

/* ---------------------------------------------------------------- set up */

struct world {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned char *content, *got;
};

static int setup(void **state)
{
	os = cf_os_real;
	os.pread = see_pread;
	os.pwrite = see_pwrite;
	cf_os = &os;
	ring = cf_uring_real;
	ring.queue = see_queue;
	cf_uring = &ring;
	atomic_store(&straight, 0);
	atomic_store(&refusal, 0);
	atomic_store(&provider.maps, 0);
	atomic_store(&provider.unmaps, 0);
	return 0;
}

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	ocf_alias_set_provider(NULL);
	unsetenv("OCF_ALIAS");
	unsetenv("OCF_PATH");
	cf_os = &cf_os_real;
	cf_uring = &cf_uring_real;
	return err;
}

static void register_memory(struct world *w)
{
	from = (uintptr_t)th_fake()->alias((CUdeviceptr)(uintptr_t)w->mem.ptr,
					   w->mem.size);
	to = from + w->mem.size;
	assert_int_equal(cuFileBufRegister(w->mem.ptr, w->mem.size, 0).err,
			 CU_FILE_SUCCESS);
}

static void begin(struct world *w, enum lie lie, enum th_file_kind file_kind)
{
	th_need_fake();
	th_open_for(file_kind);
	provider.other = mmap(NULL, MEM_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(provider.other, MAP_FAILED);
	offer(lie);
	w->content = th_bytes(SIZE);
	w->got = malloc(SIZE);
	assert_non_null(w->got);
	th_file_make(&w->file, file_kind, O_RDWR, w->content, SIZE);
	th_mem_alloc(&w->mem, TH_DEVICE, MEM_SIZE);
	/* without it the wrong memory may look the same */
	th_mem_put(&w->mem, 0, w->content, SIZE);
	w->fh = th_handle(w->file.fd);
	register_memory(w);
}

static void end(struct world *w)
{
	cuFileHandleDeregister(w->fh);
	(void)cuFileBufDeregister(w->mem.ptr);
	assert_int_equal(atomic_load(&provider.maps),
			 atomic_load(&provider.unmaps));
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	munmap(provider.other, MEM_SIZE);
	free(w->content);
	free(w->got);
	th_close();
}

/* The path a request would take; *why: the alias's refusal, or NULL. */
static const char *path_of(struct world *w, bool write, size_t size, off_t off,
			   off_t at, const char **why)
{
	static ocf_explain_t e;

	e.struct_size = sizeof(e);
	assert_int_equal((write ? ocf_explain_write : ocf_explain_read)(
				 w->fh, w->mem.ptr, size, off, at, &e)
				 .err,
			 0);
	*why = NULL;
	for (unsigned i = 0; i < e.nr_refusals; i++)
		if (!strcmp(e.refusals[i].path, "alias"))
			*why = e.refusals[i].reason;
	return e.path ? e.path : "none";
}

static void read_is_right(struct world *w, size_t size, size_t off, size_t at)
{
	th_mem_set(&w->mem, 0xa5);
	assert_int_equal(
		cuFileRead(w->fh, w->mem.ptr, size, (off_t)off, (off_t)at),
		size);
	th_mem_get(&w->mem, at, w->got, size);
	th_equal("read", w->got, w->content + off, size);
	if (at) {
		th_mem_get(&w->mem, 0, w->got, at);
		th_all("before the read", w->got, 0xa5, at);
	}
	th_mem_get(&w->mem, at + size, w->got, MEM_SIZE - SIZE - at);
	th_all("behind the read", w->got, 0xa5, MEM_SIZE - SIZE - at);
}

static void write_is_right(struct world *w, size_t size, size_t off, size_t at)
{
	th_fill(w->content + off, size);
	th_mem_put(&w->mem, at, w->content + off, size);
	assert_int_equal(
		cuFileWrite(w->fh, w->mem.ptr, size, (off_t)off, (off_t)at),
		size);
	assert_int_equal(th_file_size(&w->file), SIZE);
	th_file_get(&w->file, 0, w->got, SIZE);
	th_equal("the file", w->got, w->content, SIZE);
}

/* Both ways, whole blocks and edges; whether any of it went straight. */
static unsigned both_ways(struct world *w)
{
	atomic_store(&straight, 0);
	read_is_right(w, SIZE, 0, 0);
	read_is_right(w, 64 * TH_KIB, BLOCK, BLOCK);
	read_is_right(w, 3 * TH_MIB - 700, 100, 100);
	write_is_right(w, SIZE, 0, 0);
	write_is_right(w, 64 * TH_KIB, 3 * BLOCK, BLOCK);
	write_is_right(w, 3 * TH_MIB - 700, 5000, 904);
	return atomic_load(&straight);
}

/* ----------------------------------------------------------------- tests */

static void direct_io_goes_straight_into_the_memory(void **state)
{
	const char *why;
	struct world w;

	begin(&w, HONEST, TH_ODIRECT);
	assert_string_equal(path_of(&w, false, SIZE, 0, 0, &why), "alias");
	assert_string_equal(path_of(&w, true, SIZE, 0, 0, &why), "alias");
	assert_true(both_ways(&w) >= 6);
	end(&w);
}

/* Only blocks: what is straight is never an edge. */
static void edges_take_the_staged_way(void **state)
{
	unsigned long copies;
	struct world w;

	begin(&w, HONEST, TH_ODIRECT);
	copies = th_fake()->calls("cuMemcpyHtoDAsync_v2");
	read_is_right(&w, 64 * TH_KIB, 0, 0);
	assert_int_equal(th_fake()->calls("cuMemcpyHtoDAsync_v2"), copies);
	read_is_right(&w, 64 * TH_KIB, 100, 100);
	assert_int_equal(th_fake()->calls("cuMemcpyHtoDAsync_v2"), copies + 2);
	end(&w);
}

static void a_wrong_address_is_found_out_at_registration(void **state)
{
	static const enum lie lies[] = { OTHER_MEMORY, NO_MEMORY, SHIFTED,
					 NO_LAST_PAGE };
	/* the last makes us read what is nobody's: a sanitizer would object */
	size_t nr = sizeof(lies) / sizeof(lies[0]) - TH_ASAN;
	const char *why;
	struct world w;

	for (size_t i = 0; i < nr; i++) {
		begin(&w, lies[i], TH_ODIRECT);
		assert_string_equal(path_of(&w, false, SIZE, 0, 0, &why),
				    "staged");
		assert_non_null(strstr(why, "shows other bytes"));
		assert_int_equal(both_ways(&w), 0);
		end(&w);
	}
}

static void registration_leaves_the_memory_as_it_is(void **state)
{
	unsigned char *bytes = th_bytes(MEM_SIZE), *got = malloc(MEM_SIZE);
	struct world w;

	assert_non_null(got);
	begin(&w, HONEST, TH_ODIRECT);
	assert_int_equal(cuFileBufDeregister(w.mem.ptr).err, 0);
	th_mem_put(&w.mem, 0, bytes, MEM_SIZE);
	register_memory(&w);
	th_mem_get(&w.mem, 0, got, MEM_SIZE);
	th_equal("after the registration", got, bytes, MEM_SIZE);
	end(&w);
	free(bytes);
	free(got);
}

static void a_provider_that_has_none_leaves_memory_staged(void **state)
{
	const char *why;
	struct world w;

	if (getenv("FAKECUDA_VERSION"))
		th_skip("the driver has one");
	begin(&w, REFUSES, TH_ODIRECT);
	assert_string_equal(path_of(&w, true, SIZE, 0, 0, &why), "staged");
	assert_non_null(strstr(why, "no address"));
	assert_int_equal(both_ways(&w), 0);
	end(&w);
}

static void memory_that_is_not_registered_is_staged(void **state)
{
	const char *why;
	struct world w;

	begin(&w, HONEST, TH_ODIRECT);
	assert_int_equal(cuFileBufDeregister(w.mem.ptr).err, 0);
	assert_string_equal(path_of(&w, true, SIZE, 0, 0, &why), "staged");
	assert_non_null(strstr(why, "not registered"));
	assert_int_equal(both_ways(&w), 0);
	end(&w);
}

static void a_mapping_without_pages_is_for_cached_reads_alone(void **state)
{
	const char *why;
	struct world w;

	os.splice_pages = no_pages;
	setenv("OCF_ALIAS", "on", 1);
	begin(&w, HONEST, TH_ODIRECT);
	assert_string_equal(path_of(&w, false, SIZE, 0, 0, &why), "staged");
	assert_non_null(strstr(why, "wants pages"));
	assert_int_equal(both_ways(&w), 0);
	end(&w);
	begin(&w, HONEST, TH_BUFFERED);
	assert_string_equal(path_of(&w, false, SIZE, 0, 0, &why), "alias");
	assert_string_equal(path_of(&w, true, SIZE, 0, 0, &why), "staged");
	assert_true(both_ways(&w) >= 3);
	end(&w);
}

static void the_page_cache_is_left_to_copies_unless_asked(void **state)
{
	const char *why;
	struct world w;

	begin(&w, HONEST, TH_BUFFERED);
	assert_string_equal(path_of(&w, false, SIZE, 0, 0, &why), "staged");
	assert_non_null(strstr(why, "page cache"));
	assert_int_equal(both_ways(&w), 0);
	end(&w);
}

static void switched_off_nobody_is_asked(void **state)
{
	const char *why;
	struct world w;

	setenv("OCF_ALIAS", "off", 1);
	begin(&w, HONEST, TH_ODIRECT);
	assert_int_equal(atomic_load(&provider.maps), 0);
	assert_string_equal(path_of(&w, false, SIZE, 0, 0, &why), "staged");
	assert_non_null(strstr(why, "opencufile.alias is off"));
	end(&w);
}

static void memory_that_lies_otherwise_in_a_block_is_staged(void **state)
{
	const char *why;
	struct world w;

	begin(&w, HONEST, TH_ODIRECT);
	assert_string_equal(path_of(&w, false, BLOCK, 0, 8, &why), "staged");
	assert_non_null(strstr(why, "no whole block"));
	read_is_right(&w, 2 * BLOCK, 0, 8);
	end(&w);
}

/* What the kernel says of a pair of disk and GPU that does not go. */
static void a_refusal_is_routed_around_and_remembered(void **state)
{
	static const struct {
		int err;
		const char *text;
	} cases[] = { { EREMOTEIO, "EREMOTEIO" },
		      { EFAULT, "EFAULT" },
		      { EINVAL, "EINVAL" } };
	const char *why;
	struct world w;

	setenv("OCF_IO_URING", "0", 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int write = 0; write < 2; write++) {
			begin(&w, HONEST, TH_ODIRECT);
			assert_string_equal(
				path_of(&w, write, SIZE, 0, 0, &why), "alias");
			atomic_store(&refusal, cases[i].err);
			if (write)
				write_is_right(&w, SIZE - 200, 100, 100);
			else
				read_is_right(&w, SIZE - 200, 100, 100);
			assert_true(atomic_load(&straight) > 0);
			assert_string_equal(
				path_of(&w, !write, SIZE, 0, 0, &why),
				"staged");
			assert_non_null(strstr(why, cases[i].text));
			assert_int_equal(both_ways(&w), 0);
			/* the file itself still goes direct */
			atomic_store(&refusal, 0);
			end(&w);
		}
	unsetenv("OCF_IO_URING");
}

static void other_errors_are_the_requests_own(void **state)
{
	const char *why;
	struct world w;

	setenv("OCF_IO_URING", "0", 1);
	begin(&w, HONEST, TH_ODIRECT);
	atomic_store(&refusal, ENOSPC);
	errno = 0;
	assert_int_equal(cuFileWrite(w.fh, w.mem.ptr, SIZE, 0, 0), -1);
	assert_int_equal(errno, ENOSPC);
	atomic_store(&refusal, 0);
	assert_string_equal(path_of(&w, true, SIZE, 0, 0, &why), "alias");
	assert_true(both_ways(&w) > 0);
	end(&w);
	unsetenv("OCF_IO_URING");
}

static void strict_mode_takes_the_alias_for_whole_blocks_alone(void **state)
{
	struct world w;

	assert_int_equal(
		cuFileSetParameterBool(
			CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false)
			.err,
		0);
	begin(&w, HONEST, TH_ODIRECT);
	read_is_right(&w, SIZE, 0, 0);
	errno = 0;
	assert_true(cuFileRead(w.fh, w.mem.ptr, SIZE - 100, 100, 100) < 0);
	end(&w);
}

static void statistics_tell_straight_from_copied(void **state)
{
	CUfileStatsLevel3_t stats;
	struct world w;

	assert_int_equal(cuFileSetStatsLevel(3).err, 0);
	begin(&w, HONEST, TH_ODIRECT);
	assert_int_equal(cuFileStatsStart().err, 0);
	read_is_right(&w, SIZE, 0, 0);
	write_is_right(&w, SIZE, 0, 0);
	write_is_right(&w, BLOCK, 0, 0);
	assert_int_equal(cuFileBufDeregister(w.mem.ptr).err, 0);
	read_is_right(&w, SIZE, 0, 0);
	assert_int_equal(cuFileGetStatsL3(&stats).err, 0);
	assert_int_equal(stats.per_gpu_stats[0].n_p2p_reads, 1);
	assert_int_equal(stats.per_gpu_stats[0].n_posix_reads, 1);
	assert_int_equal(stats.per_gpu_stats[0].n_p2p_writes, 2);
	assert_int_equal(stats.per_gpu_stats[0].n_posix_writes, 0);
	end(&w);
}

/* -------------------------------------------- addresses of the driver's */

/* What begin() does, without a provider and with this memory. */
static void begin_with(struct world *w, enum th_mem_kind kind)
{
	th_open_for(TH_ODIRECT);
	ocf_alias_set_provider(NULL);
	w->content = th_bytes(SIZE);
	w->got = malloc(SIZE);
	assert_non_null(w->got);
	th_file_make(&w->file, TH_ODIRECT, O_RDWR, w->content, SIZE);
	th_mem_alloc(&w->mem, kind, MEM_SIZE);
	w->fh = th_handle(w->file.fd);
	assert_int_equal(cuFileBufRegister(w->mem.ptr, MEM_SIZE, 0).err, 0);
}

static void the_driver_is_asked_for(enum th_mem_kind kind, const char *variable)
{
	const char *can = getenv(variable), *why;
	CUfileStatsLevel3_t stats;
	struct world w;

	th_need_fake();
	assert_int_equal(cuFileSetStatsLevel(3).err, 0);
	begin_with(&w, kind);
	assert_int_equal(cuFileStatsStart().err, 0);
	assert_string_equal(path_of(&w, false, SIZE, 0, 0, &why),
			    can ? "alias" : "staged");
	if (!can)
		assert_non_null(strstr(why, "no address"));
	both_ways(&w);
	assert_int_equal(cuFileGetStatsL3(&stats).err, 0);
	assert_int_equal(stats.per_gpu_stats[0].n_p2p_reads, can ? 3 : 0);
	assert_int_equal(stats.per_gpu_stats[0].n_p2p_writes, can ? 3 : 0);
	provider.other = mmap(NULL, MEM_SIZE, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	end(&w);
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
	if (is_alias(buf)) {
		atomic_store(&slow, true);
		th_sleep_ms(200);
		assert_int_equal(atomic_load(&provider.unmaps), 1);
	}
	return cf_os_real.pread(fd, buf, size, off);
}

static void read_or_deregister(void *arg, unsigned i)
{
	struct world *w = arg;

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
	struct world w;

	os.pread = slow_pread;
	begin(&w, HONEST, TH_ODIRECT);
	assert_int_equal(atomic_load(&provider.unmaps), 1);
	th_threads(2, read_or_deregister, &w);
	assert_int_equal(atomic_load(&provider.unmaps), 2);
	th_mem_get(&w.mem, 0, w.got, 64 * TH_KIB);
	th_equal("read", w.got, w.content, 64 * TH_KIB);
	end(&w);
}

static void the_last_close_ends_what_was_left_registered(void **state)
{
	struct world w;

	begin(&w, HONEST, TH_ODIRECT);
	th_close();
	assert_int_equal(atomic_load(&provider.maps),
			 atomic_load(&provider.unmaps));
	end(&w);
}

/* The address is another buffer's now: its registration does not count. */
static void freed_memory_is_not_reached_by_its_alias(void **state)
{
	const char *why;
	struct world w;

	begin(&w, HONEST, TH_ODIRECT);
	assert_int_equal(cuMemFree((CUdeviceptr)(uintptr_t)w.mem.ptr), 0);
	assert_true(cuFileRead(w.fh, w.mem.ptr, BLOCK, 0, 0) < 0);
	assert_int_equal(atomic_load(&straight), 0);
	(void)cuFileBufDeregister(w.mem.ptr);
	th_mem_alloc(&w.mem, TH_DEVICE, MEM_SIZE);
	assert_string_equal(path_of(&w, false, BLOCK, 0, 0, &why), "staged");
	end(&w);
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

/* ----------------------------------------------------------------- pairs */

static void a_pair_is_remembered_with_its_reason(void **state)
{
	assert_int_equal(cf_alias_refused(7, 0), 0);
	cf_alias_refuse(7, 0, -EREMOTEIO);
	cf_alias_refuse(7, 1, -EFAULT);
	cf_alias_refuse(7, 1, -EINVAL); /* the first reason stays */
	assert_int_equal(cf_alias_refused(7, 0), -EREMOTEIO);
	assert_int_equal(cf_alias_refused(7, 1), -EFAULT);
	assert_int_equal(cf_alias_refused(8, 0), 0);
	for (dev_t dev = 100; dev < 1000; dev++)
		cf_alias_refuse(dev, 0, -EFAULT); /* more than there is room */
	assert_int_equal(cf_alias_refused(7, 0), -EREMOTEIO);
	cf_alias_refused_close();
	assert_int_equal(cf_alias_refused(7, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(direct_io_goes_straight_into_the_memory),
		TEST(edges_take_the_staged_way),
		TEST(a_wrong_address_is_found_out_at_registration),
		TEST(registration_leaves_the_memory_as_it_is),
		TEST(a_provider_that_has_none_leaves_memory_staged),
		TEST(memory_that_is_not_registered_is_staged),
		TEST(a_mapping_without_pages_is_for_cached_reads_alone),
		TEST(the_page_cache_is_left_to_copies_unless_asked),
		TEST(switched_off_nobody_is_asked),
		TEST(memory_that_lies_otherwise_in_a_block_is_staged),
		TEST(a_refusal_is_routed_around_and_remembered),
		TEST(other_errors_are_the_requests_own),
		TEST(strict_mode_takes_the_alias_for_whole_blocks_alone),
		TEST(statistics_tell_straight_from_copied),
		TEST(a_dma_buf_that_can_be_mapped_is_an_alias),
		TEST(managed_memory_of_a_coherent_gpu_is_its_own_alias),
		TEST(a_mapping_outlives_its_registration_while_io_uses_it),
		TEST(the_last_close_ends_what_was_left_registered),
		TEST(freed_memory_is_not_reached_by_its_alias),
		TEST(a_provider_is_checked),
		TEST(a_pair_is_remembered_with_its_reason),
	};

	th_start(120);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}
