// SPDX-License-Identifier: Apache-2.0
/*
 * Mapped reads: when they are taken, that they never show bytes a plain read
 * would not, whatever becomes of the file, and that nothing outlives its time
 * (cufile-routes(7), "Mapped reads").
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/fs_magic.h"
#include "core/lane.h"
#include "core/pins.h"
#include "core/window_table.h"
#include "fake_rm.h"
#include "mapped_world.h"

/* As the driver counts windows, and what opens one. */
static const char *kept_as(void)
{
	return mw_pins ? "vmm_map" : "host_register";
}

static const char *registers(void)
{
	return mw_pins ? "cuMemImportFromShareableHandle" :
			 "cuMemHostRegister_v2";
}

/* ------------------------------------------------------- when it is taken */

static void the_second_read_maps_and_the_third_uses_what_is_kept(void **state)
{
	unsigned long registered;

	mw_begin();
	mw_read_all();
	assert_int_equal(mw_counts().opened, 0);
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	assert_int_equal(mw_counts().used, MW_NR_CHUNKS);
	registered = th_fake() ? th_fake()->calls(registers()) : 0;
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	assert_int_equal(mw_counts().used, 2 * MW_NR_CHUNKS);
	if (th_fake())
		assert_int_equal(th_fake()->calls(registers()), registered);
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

/* Each second of these lies in two chunks. */
static size_t small_at(unsigned i, unsigned lap)
{
	return (i + lap) % 7 * 2 * TH_MIB + 3 * TH_MIB / 2 + i * 4096;
}

#define NR_LAPS 3

#define NR_BESIDE 8

struct small_reads {
	enum th_mem_kind kind;
	pthread_barrier_t lap; /* all NR_BESIDE read at once */
	struct th_bad bad;
};

static bool is_all(const unsigned char *bytes, unsigned char byte, size_t n)
{
	return !n || (bytes[0] == byte && !memcmp(bytes, bytes + 1, n - 1));
}

/* Of VMM memory, which has a seam in the middle: before, over, behind it. */
static void read_small_ones(void *arg, unsigned i)
{
	struct small_reads *reads = arg;
	unsigned char *bytes = malloc(4 * TH_MIB);
	struct th_mem own;

	th_mem_alloc(&own, reads->kind, 4 * TH_MIB);
	for (unsigned lap = 0; lap < NR_LAPS; lap++) {
		size_t at = small_at(i, lap);
		size_t to = (1 + 2 * (lap % 3)) * TH_MIB / 2;
		ssize_t n;

		th_mem_set(&own, 0xa5);
		pthread_barrier_wait(&reads->lap);
		n = cuFileRead(mw_fh, own.ptr, TH_MIB, (off_t)at, (off_t)to);
		th_mem_get(&own, 0, bytes, 4 * TH_MIB);
		if (n != (ssize_t)TH_MIB ||
		    memcmp(bytes + to, mw_content + at, TH_MIB) ||
		    !is_all(bytes, 0xa5, to) ||
		    !is_all(bytes + to + TH_MIB, 0xa5, 3 * TH_MIB - to))
			th_bad_note(&reads->bad, "thread %u lap %u: %zd", i,
				    lap, n);
	}
	th_mem_free(&own);
	free(bytes);
}

static void read_beside(enum th_mem_kind kind)
{
	struct small_reads reads = { .kind = kind };

	pthread_barrier_init(&reads.lap, NULL, NR_BESIDE);
	th_threads(NR_BESIDE, read_small_ones, &reads);
	pthread_barrier_destroy(&reads.lap);
	th_bad_check(&reads.bad);
}

static void small_reads_of_many_threads_have_their_bytes(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_DEVICE, TH_VMM, TH_POOL,
						  TH_MANAGED };

	mw_begin_hot();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		read_beside(kinds[i]);
	mw_end();
}

/*
 * Copies take so long that all are under way at once. How many calls made
 * several; *spared: how many fewer waits for the driver than copies there were.
 */
static unsigned long together(enum th_mem_kind kind, long *spared)
{
	unsigned long calls = th_need_fake()->calls("cuMemcpyBatchAsync");
	unsigned long waits = th_fake()->calls("cuEventSynchronize");
	uint64_t used = mw_counts().used;

	th_fake()->copy_delay_us(20000);
	read_beside(kind);
	th_fake()->copy_delay_us(0);
	used = mw_counts().used - used;
	waits = th_fake()->calls("cuEventSynchronize") - waits;
	*spared = (long)used - (long)waits;
	assert_true(used >= NR_BESIDE * NR_LAPS); /* none was staged */
	return th_fake()->calls("cuMemcpyBatchAsync") - calls;
}

static void small_reads_of_many_threads_go_together(void **state)
{
	long spared;

	mw_begin_hot();
	assert_true(together(TH_DEVICE, &spared) > 0);
	assert_true(spared > 0);
	assert_true(together(TH_VMM, &spared) > 0);
	assert_int_equal(together(TH_MANAGED, &spared), 0);
	mw_end();
}

/* Who rides with a copy that fails, or waits for it, is none the worse. */
static void a_call_that_fails_costs_nobody_a_byte(void **state)
{
	static const char *const calls[] = {
		"cuStreamCreateWithPriority", "cuMemcpyDtoDAsync_v2",
		"cuMemcpyBatchAsync", "cuEventRecord", "cuEventSynchronize"
	};
	char plan[80];

	mw_begin_hot();
	th_need_fake()->copy_delay_us(500);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (unsigned nr = 1; nr < 8; nr += 3) {
			snprintf(plan, sizeof(plan), "%s:%u=1", calls[i], nr);
			assert_int_equal(th_fake()->plan(plan), 0);
			read_beside(TH_DEVICE);
			th_fake()->plan_clear();
		}
	th_fake()->copy_delay_us(0);
	/* the first copy, its event and the wait for it were the lift's */
	assert_true(mw_counts().stale >= 3);
	mw_end();
}

/* A copy that its driver refuses is read another way, and no other is. */
static void a_small_read_that_cannot_go_is_staged(void **state)
{
	const char *fails = "cuMemcpyDtoDAsync_v2:1=1";

	mw_begin_hot();
	assert_int_equal(th_need_fake()->plan(fails), 0);
	mw_read_is(mw_fh, TH_MIB, 4096, mw_content + 4096, TH_MIB);
	assert_int_equal(mw_counts().stale, 1);
	th_fake()->plan_clear();
	mw_read_is(mw_fh, TH_MIB, 8192, mw_content + 8192, TH_MIB);
	assert_int_equal(mw_counts().stale, 1);
	mw_end();
}

/* Where no window is; and then all are. */
static void small_reads_are_looked_at_now_and_then(void **state)
{
	const size_t small = 512 * TH_KIB;
	unsigned long before;
	uint64_t used;
	int reads = 0;

	if (!mw_pins)
		th_skip("chunks are too small to be pinned");
	mw_begin_with("auto", 32 * MW_CHUNK, TH_BUFFERED);
	before = mw_looks();
	for (size_t i = 0; i < 16; i++)
		mw_read_is(mw_fh, small, i * small, mw_content + i * small,
			   small);
	assert_int_equal(mw_looks() - before, 2);
	while (mw_counts().opened < MW_NR_CHUNKS - 1 && reads++ < 10000) {
		size_t at = th_below((MW_NR_CHUNKS - 1) * MW_CHUNK / small);

		if (cf_pins_state() == CF_PINS_NONE) {
			mw_end();
			th_skip("the kernel driver pins no pages");
		}
		(void)cuFileRead(mw_fh, mw_mem.ptr, small, (off_t)(at * small),
				 0);
	}
	used = mw_counts().used;
	assert_true(used > 0);
	for (size_t i = 0; i < 16; i++)
		mw_read_is(mw_fh, small, i * small, mw_content + i * small,
			   small);
	assert_int_equal(mw_counts().used - used, 16);
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

/* ------------------------------------------------- files under our feet */

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

/* --------------------------------------------------------- room, and time */

static void watch_bound(void *arg, unsigned i)
{
	_Atomic unsigned *running = arg;
	struct th_mem own;

	if (!i) {
		while (atomic_load(running))
			assert_true(mw_counts().bytes <= 3 * MW_CHUNK);
		return;
	}
	th_mem_alloc(&own, TH_DEVICE, MW_SIZE);
	for (int n = 0; n < 20; n++) {
		unsigned char *bytes = malloc(MW_SIZE);

		assert_int_equal(cuFileRead(mw_fh, own.ptr, MW_SIZE, 0, 0),
				 MW_SIZE);
		th_mem_get(&own, 0, bytes, MW_SIZE);
		th_equal("a read", bytes, mw_content, MW_SIZE);
		free(bytes);
	}
	th_mem_free(&own);
	atomic_fetch_sub(running, 1);
}

static void the_bound_holds_with_many_threads(void **state)
{
	_Atomic unsigned running = 4;

	mw_begin_with("always", 3 * MW_CHUNK, TH_BUFFERED);
	th_threads(5, watch_bound, &running);
	assert_true(mw_counts().used > 0);
	mw_end();
}

/* How a thread waits no program sees: it is told here. */
static atomic_uint asleep;

CUevent __real_cf_lane_sleeper(struct cf_lane *lane, size_t k);
CUevent __wrap_cf_lane_sleeper(struct cf_lane *lane, size_t k);
CUevent __wrap_cf_lane_sleeper(struct cf_lane *lane, size_t k)
{
	atomic_fetch_add(&asleep, 1);
	return __real_cf_lane_sleeper(lane, k);
}

static void read_beside_others(void *all_here, unsigned i)
{
	unsigned char *bytes = malloc(MW_SIZE);
	struct th_mem own;

	th_mem_alloc(&own, TH_DEVICE, MW_SIZE);
	pthread_barrier_wait(all_here);
	assert_int_equal(cuFileRead(mw_fh, own.ptr, MW_SIZE, 0, 0), MW_SIZE);
	th_mem_get(&own, 0, bytes, MW_SIZE);
	th_equal("a read", bytes, mw_content, MW_SIZE);
	th_mem_free(&own);
	free(bytes);
}

/* Copies take so long that all are under way at once. */
static unsigned asleep_of(unsigned nr)
{
	pthread_barrier_t all_here;

	atomic_store(&asleep, 0);
	pthread_barrier_init(&all_here, NULL, nr);
	th_need_fake()->copy_delay_us(20000);
	th_threads(nr, read_beside_others, &all_here);
	th_need_fake()->copy_delay_us(0);
	pthread_barrier_destroy(&all_here);
	return atomic_load(&asleep);
}

static void who_waits_beside_many_sleeps(void **state)
{
	mw_begin();
	mw_warm();
	assert_int_equal(asleep_of(3), 0);
	assert_in_range(asleep_of(6), 1, 6 * MW_NR_CHUNKS);
	assert_int_equal(asleep_of(1), 0);
	mw_end();
}

static atomic_bool patient;

bool __real_cf_reaper_wait(void);
bool __wrap_cf_reaper_wait(void);
bool __wrap_cf_reaper_wait(void)
{
	bool went = __real_cf_reaper_wait();

	if (!went && atomic_load(&patient))
		th_sleep_ms(1);
	return went || atomic_load(&patient);
}

/* A busy machine may close a window late: who wants its room tries again. */
static void wait_for_room_however_long(void)
{
	atomic_store(&patient, true);
}

static int hurry(void **state)
{
	atomic_store(&patient, false);
	return mw_teardown(state);
}

static void a_read_larger_than_the_bound_goes_chunk_by_chunk(void **state)
{
	mw_begin_with("always", 2 * MW_CHUNK, TH_BUFFERED);
	wait_for_room_however_long();
	mw_read_all();
	assert_int_equal(mw_counts().used, MW_NR_CHUNKS);
	assert_int_equal(mw_counts().open, 2);
	mw_end();
	/* kept: it would only push out others */
	mw_begin_with("kept", 2 * MW_CHUNK, TH_BUFFERED);
	for (int i = 0; i < 3; i++)
		mw_read_all();
	assert_int_equal(mw_counts().opened, 0);
	mw_end();
}

/* Two chunks of room, five chunks in turns: the first two stay. */
static void chunks_read_in_turns_do_not_push_each_other_out(void **state)
{
	mw_begin_with("kept", 2 * MW_CHUNK, TH_BUFFERED);
	wait_for_room_however_long();
	for (int turn = 0; turn < 6; turn++)
		for (size_t at = 0; at + MW_CHUNK < MW_SIZE; at += MW_CHUNK)
			mw_read_is(mw_fh, MW_CHUNK, at, mw_content + at,
				   MW_CHUNK);
	assert_int_equal(mw_counts().opened, 2);
	assert_int_equal(mw_counts().used, 2 * 5);
	/* when those are read no more, another gets in */
	for (int n = 0; n < 70; n++)
		mw_read_is(mw_fh, MW_CHUNK, 2 * MW_CHUNK,
			   mw_content + 2 * MW_CHUNK, MW_CHUNK);
	assert_int_equal(mw_counts().opened, 3);
	assert_int_equal(mw_counts().open, 2);
	mw_end();
}

static void chunks_read_at_random_change_places_seldom(void **state)
{
	const unsigned nr = 400;

	mw_begin_with("kept", 2 * MW_CHUNK, TH_BUFFERED);
	for (unsigned n = 0; n < nr; n++) {
		size_t at = th_below(MW_NR_CHUNKS - 1) * MW_CHUNK;

		mw_read_is(mw_fh, MW_CHUNK, at, mw_content + at, MW_CHUNK);
	}
	assert_true(mw_counts().used > nr / 4);
	assert_true(mw_counts().opened < nr / 20);
	mw_end();
}

static void read_parts(unsigned nr)
{
	const size_t part = MW_CHUNK / 16;

	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(
			cuFileRead(mw_fh, mw_mem.ptr, part,
				   (off_t)(2 * MW_CHUNK + i % 16 * part), 0),
			(ssize_t)part);
}

/* Bytes tell how long a window was idle: 32 times the room, 64 chunks. */
static void parts_push_out_what_is_idle_for_long(void **state)
{
	mw_open_from = MW_CHUNK / 16;
	mw_begin_with("kept", 2 * MW_CHUNK, TH_BUFFERED);
	wait_for_room_however_long();
	for (int lap = 0; lap < 2; lap++)
		mw_read_is(mw_fh, 2 * MW_CHUNK, 0, mw_content, 2 * MW_CHUNK);
	assert_int_equal(mw_counts().opened, 2);
	read_parts(60 * 16);
	assert_int_equal(mw_counts().opened, 2);
	read_parts(6 * 16);
	assert_int_equal(mw_counts().opened, 3);
	mw_end();
}

/* One window for all of them, until the one that opened it goes. */
static void handles_of_a_file_share_its_windows(void **state)
{
	CUfileHandle_t second;
	int fd;

	mw_begin();
	fd = open(mw_file.path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	second = th_handle(fd);
	mw_read_all();
	mw_read_is(second, MW_SIZE, 0, mw_content, MW_SIZE);
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	assert_int_equal(mw_counts().used, 2 * MW_NR_CHUNKS);
	cuFileHandleDeregister(second);
	close(fd);
	assert_int_equal(mw_counts().open, 0);
	mw_read_all();
	assert_int_equal(mw_counts().opened, 2 * MW_NR_CHUNKS);
	mw_end();
}

static CUfileHandle_t owner;

static void owner_goes(void)
{
	cuFileHandleDeregister(owner);
}

/* Its windows are just being copied from through another. */
struct beside {
	CUcontext ctx[2];
	struct th_bad bad;
};

/* In the memory of one GPU or the other. */
static void read_into_a_gpu(void *arg, unsigned i)
{
	struct beside *beside = arg;
	unsigned char *bytes = malloc(MW_SIZE);
	CUdeviceptr own;

	if (!bytes || cuCtxSetCurrent(beside->ctx[i % 2]) ||
	    cuMemAlloc(&own, MW_SIZE))
		th_bad_note(&beside->bad, "thread %u has no memory", i);
	for (int pass = 0; pass < TH_SCALE(12); pass++) {
		ssize_t n = cuFileRead(mw_fh, (void *)(uintptr_t)own, MW_SIZE,
				       0, 0);

		if (n != (ssize_t)MW_SIZE ||
		    cuMemcpyDtoH(bytes, own, MW_SIZE) ||
		    memcmp(bytes, mw_content, MW_SIZE))
			th_bad_note(&beside->bad, "thread %u: read %zd", i, n);
	}
	cuMemFree(own);
	free(bytes);
}

/*
 * Windows that one has opened are no good to the other, and may not be made so
 * while they are read: they give way to some that are.
 */
static void gpus_share_the_windows_of_a_file(void **state)
{
	static struct beside beside;
	int nr = 0;

	mw_begin();
	if (cuDeviceGetCount(&nr) || nr < 2) {
		mw_end();
		th_skip("needs two GPUs");
	}
	beside.ctx[0] = th_primary();
	assert_int_equal(cuDevicePrimaryCtxRetain(&beside.ctx[1], 1), 0);
	mw_warm();
	th_threads(4, read_into_a_gpu, &beside);
	th_bad_check(&beside.bad);
	mw_read_all();
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
	mw_end();
	assert_int_equal(cuDevicePrimaryCtxRelease(1), 0);
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

static void windows_go_with_their_handle(void **state)
{
	long live = th_fake() ? th_fake()->live(kept_as()) : 0;
	int fd;

	mw_begin();
	mw_warm();
	assert_int_equal(flock(mw_file.fd, LOCK_EX), 0);
	if (th_fake())
		assert_true(th_fake()->live(kept_as()) >= live + MW_NR_CHUNKS);
	cuFileHandleDeregister(mw_fh);
	/* nothing of ours keeps the file open, and its lock held */
	close(mw_file.fd);
	assert_int_equal(flock(mw_file.plain, LOCK_EX | LOCK_NB), 0);
	mw_all_are_closed();
	fd = mw_file.fd = open(mw_file.path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	mw_fh = th_handle(fd);
	mw_warm();
	mw_end();
}

/* A shared mapping is one that might be written through, to the kernel. */
static void a_file_with_windows_is_sealed_when_its_handle_is_gone(void **state)
{
	mw_begin_with("kept", 32 * MW_CHUNK, TH_MEMFD);
	mw_warm();
	mw_let_pages_go(); /* this test's own mapping */
	assert_int_equal(fcntl(mw_file.plain, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(errno, EBUSY);
	cuFileHandleDeregister(mw_fh);
	mw_all_are_closed();
	assert_int_equal(fcntl(mw_file.plain, F_ADD_SEALS, F_SEAL_WRITE), 0);
	mw_fh = th_handle(mw_file.fd);
	mw_end();
}

/* --------------------------------------------------------- when it cannot */

static void a_registration_that_fails_is_not_tried_again(void **state)
{
	const struct th_fake *fake = th_need_fake();
	char plan[64];

	mw_begin();
	mw_read_all(); /* and its slots are pinned */
	snprintf(plan, sizeof(plan), "%s:*=801", registers());
	assert_int_equal(fake->plan(plan), 0);
	for (int i = 0; i < 3; i++)
		mw_read_all();
	assert_int_equal(mw_counts().refused, 1);
	assert_int_equal(mw_counts().bytes, 0);
	fake->plan_clear();
	mw_read_all();
	assert_int_equal(mw_counts().opened, 0);
	mw_end();
	mw_begin();
	mw_warm();
	mw_end();
}

static void without_memory_to_pin_it_waits_a_while(void **state)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long asked;
	uint64_t begun;
	char plan[64];

	mw_begin();
	mw_read_all();
	snprintf(plan, sizeof(plan), "%s:3=2", registers());
	assert_int_equal(fake->plan(plan), 0);
	begun = th_now_ns();
	mw_read_all(); /* two chunks mapped, the rest staged */
	assert_int_equal(mw_counts().used, 2);
	asked = fake->calls(registers());
	mw_read_all();
	if (th_now_ns() - begun < 1000000000)
		assert_int_equal(fake->calls(registers()), asked);
	assert_int_equal(mw_counts().refused, 1);
	fake->plan_clear();
	th_sleep_ms(1100);
	mw_read_all();
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
	mw_end();
}

static void a_copy_that_fails_is_made_again_another_way(void **state)
{
	const struct th_fake *fake = th_need_fake();

	for (int nth = 1; nth <= MW_NR_CHUNKS; nth++) {
		char plan[64];

		mw_begin();
		mw_warm();
		snprintf(plan, sizeof(plan), "%s:%d=999",
			 mw_pins ? "cuMemcpyDtoDAsync_v2" :
				   "cuMemcpyHtoDAsync_v2",
			 nth);
		assert_int_equal(fake->plan(plan), 0);
		mw_read_all();
		fake->plan_clear();
		snprintf(plan, sizeof(plan), "cuEventSynchronize:%d=999", nth);
		assert_int_equal(fake->plan(plan), 0);
		mw_read_all();
		fake->plan_clear();
		mw_end();
	}
}

/* But those that are pinned are of no context. */
static void a_reset_gpu_has_no_windows(void **state)
{
	CUcontext again;
	CUdevice dev;

	(void)th_need_fake();
	mw_begin();
	mw_warm();
	assert_int_equal(cuDeviceGet(&dev, 0), 0);
	assert_int_equal(cuDevicePrimaryCtxReset(dev), 0);
	assert_int_equal(cuDevicePrimaryCtxRetain(&again, dev), 0);
	assert_ptr_equal(again, th_primary());
	assert_int_equal(cuCtxSetCurrent(again), 0);
	th_mem_alloc(&mw_mem, TH_DEVICE, MW_SIZE + 2 * MW_PAD);
	/* the driver would take its pages for plain memory */
	mw_read_all();
	assert_true(mw_pins ? !mw_counts().stale : mw_counts().stale >= 1);
	for (int i = 0; i < MW_NR_CHUNKS; i++)
		mw_read_all();
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
	mw_end();
}

static int cachestat_missing(int fd, off_t off, size_t len,
			     struct cf_cachestat *out)
{
	(void)fd, (void)off, (void)len, (void)out;
	return -ENOSYS;
}

static int pagemap_missing(const char *path, int flags, mode_t mode)
{
	if (!strcmp(path, "/proc/thread-self/pagemap"))
		return -EACCES;
	return mw_usual->open(path, flags, mode);
}

static int populate_missing(void *at, size_t size, int advice)
{
	(void)at, (void)size, (void)advice;
	return -EINVAL;
}

static void a_kernel_that_cannot_leaves_it_to_the_staged_path(void **state)
{
	for (int i = 0; i < 3; i++) {
		static struct cf_os poor;

		mw_begin();
		poor = *mw_usual;
		if (i == 0)
			poor.cachestat = cachestat_missing;
		else if (i == 1)
			poor.open = pagemap_missing;
		else
			poor.madvise = populate_missing;
		cf_os = &poor;
		for (int n = 0; n < 4; n++)
			mw_read_all();
		assert_int_equal(mw_counts().opened, 0);
		assert_true(mw_counts().refused <= 1);
		mw_end();
		cf_os = mw_usual;
	}
}

static atomic_bool is_short;

static int meminfo_short(const char *path, int flags, mode_t mode)
{
	static const char text[] = "MemTotal:       1600 kB\n"
				   "MemFree:          50 kB\n"
				   "MemAvailable:     99 kB\n";
	int fd;

	if (!atomic_load(&is_short) || strcmp(path, "/proc/meminfo") != 0)
		return mw_usual->open(path, flags, mode);
	fd = memfd_create("meminfo", MFD_CLOEXEC);
	assert_int_equal(pwrite(fd, text, sizeof(text) - 1, 0),
			 sizeof(text) - 1);
	return fd;
}

static void a_machine_short_of_memory_keeps_no_windows(void **state)
{
	static struct cf_os tight;

	mw_begin();
	tight = *mw_usual;
	tight.open = meminfo_short;
	cf_os = &tight;
	mw_warm();
	atomic_store(&is_short, true);
	th_sleep_ms(120);
	mw_read_all();
	mw_all_are_closed();
	mw_read_all();
	assert_int_equal(mw_counts().open, 0);
	atomic_store(&is_short, false);
	th_sleep_ms(120);
	mw_warm();
	mw_end();
}

/*
 * The driver may hold up the end of a registration until the context is idle;
 * here it never is while we read. Nobody may wait for that.
 */
static void a_busy_gpu_holds_nobody_up(void **state)
{
	uint64_t start, ns;
	uint32_t *gate;
	CUstream busy;

	if (!mw_pins) /* a real one waits when a registration ends */
		th_need_fake();
	mw_begin_with("always", 2 * MW_CHUNK, TH_BUFFERED);
	assert_int_equal(cuMemHostAlloc((void **)&gate, 4096, 0), 0);
	*gate = 0;
	assert_int_equal(cuStreamCreate(&busy, 1), 0);
	assert_int_equal(cuStreamWaitValue32(busy, (uintptr_t)gate, 1, 0), 0);
	start = th_now_ns();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(
			cuFileRead(mw_fh, mw_mem.ptr, MW_SIZE, 0, MW_PAD),
			MW_SIZE);
		th_file_put(&mw_file, 0, mw_content, 100);
		th_sleep_ms(MW_REST_MS);
	}
	cuFileHandleDeregister(mw_fh);
	ns = th_now_ns() - start;
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
	assert_true(ns < 30000000000ull);
	assert_int_equal(cuStreamSynchronize(busy), 0);
	th_mem_get(&mw_mem, MW_PAD, mw_got, MW_SIZE);
	th_equal("the read", mw_got, mw_content, MW_SIZE);
	mw_all_are_closed();
	assert_int_equal(cuStreamDestroy(busy), 0);
	assert_int_equal(cuMemFreeHost(gate), 0);
	mw_fh = th_handle(mw_file.fd);
	mw_end();
}

/* Registering, and its end on a thread of ours, are no part of a graph. */
static void windows_open_and_close_while_the_program_captures(void **state)
{
	CUgraph graph;
	CUstream stream;
	long live;

	if (!mw_pins)
		th_need_fake();
	mw_begin();
	mw_read_all();
	live = th_fake() ? th_fake()->live(kept_as()) : 0;
	assert_int_equal(cuStreamCreate(&stream, 1), 0);
	assert_int_equal(cuStreamBeginCapture(stream, 0 /* global */), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			cuFileRead(mw_fh, mw_mem.ptr, MW_SIZE, 0, MW_PAD),
			MW_SIZE);
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
	if (th_fake())
		assert_int_equal(th_fake()->live(kept_as()),
				 live + MW_NR_CHUNKS);
	cuFileHandleDeregister(mw_fh);
	mw_all_are_closed();
	if (th_fake())
		assert_int_equal(th_fake()->live(kept_as()), live);
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	assert_non_null(graph);
	assert_int_equal(cuGraphDestroy(graph), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	th_mem_get(&mw_mem, MW_PAD, mw_got, MW_SIZE);
	th_equal("the read", mw_got, mw_content, MW_SIZE);
	mw_fh = th_handle(mw_file.fd);
	mw_end();
}

/* Descriptors are not ours to trust: somebody may close them all. */
static void a_client_that_closes_our_descriptor_changes_nothing(void **state)
{
	int fd, other;

	mw_begin();
	fd = dup(mw_file.fd); /* the lowest that is free: the pagemap's next */
	close(fd);
	mw_warm();
	other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_true(dup2(other, fd) == fd);
	close(other);
	mw_read_all();
	assert_int_equal(ftruncate(mw_file.plain, MW_CHUNK), 0);
	mw_read_is(mw_fh, MW_SIZE, 0, mw_content, MW_CHUNK);
	close(fd);
	mw_end();
}

/* Small reads: a child of many threads may not start any under TSan. */
static void a_child_has_no_windows_and_its_parent_keeps_them(void **state)
{
	pid_t child;
	int status;

	mw_begin();
	mw_warm();
	child = fork();
	if (!child) {
		bool bad = mw_counts().open || mw_counts().bytes ||
			   cuFileRead(mw_fh, mw_mem.ptr, MW_CHUNK, 0, MW_PAD) !=
				   -1 ||
			   cuFileRead(mw_fh, mw_got, MW_PAD, 0, 0) != MW_PAD ||
			   memcmp(mw_got, mw_content, MW_PAD) != 0;

		cuFileHandleDeregister(mw_fh);
		_exit(bad);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	mw_read_all();
	assert_int_equal(mw_counts().used, 2 * MW_NR_CHUNKS);
	mw_end();
}

#define TEST(name) cmocka_unit_test_teardown(name, hurry)

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
		TEST(small_reads_of_many_threads_have_their_bytes),
		TEST(small_reads_of_many_threads_go_together),
		TEST(a_call_that_fails_costs_nobody_a_byte),
		TEST(a_small_read_that_cannot_go_is_staged),
		TEST(small_reads_are_looked_at_now_and_then),
		TEST(auto_maps_nothing_for_who_opens_a_file_for_each_read),
		TEST(windows_go_when_none_is_used),
		TEST(but_not_while_one_is_used),
		TEST(auto_without_the_kernel_driver_maps_nothing),
		TEST(writes_host_memory_and_o_direct_are_not_mapped),
		TEST(what_is_not_cached_is_not_mapped),
		TEST(strange_file_systems_are_not_mapped),
		TEST(memory_files_are_mapped_too),
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
		TEST(the_bound_holds_with_many_threads),
		TEST(who_waits_beside_many_sleeps),
		TEST(a_read_larger_than_the_bound_goes_chunk_by_chunk),
		TEST(chunks_read_in_turns_do_not_push_each_other_out),
		TEST(chunks_read_at_random_change_places_seldom),
		TEST(parts_push_out_what_is_idle_for_long),
		TEST(handles_of_a_file_share_its_windows),
		TEST(gpus_share_the_windows_of_a_file),
		TEST(windows_in_use_outlive_their_handle_for_the_copy),
		TEST(windows_go_with_their_handle),
		TEST(a_file_with_windows_is_sealed_when_its_handle_is_gone),
		TEST(a_registration_that_fails_is_not_tried_again),
		TEST(without_memory_to_pin_it_waits_a_while),
		TEST(a_copy_that_fails_is_made_again_another_way),
		TEST(a_reset_gpu_has_no_windows),
		TEST(a_kernel_that_cannot_leaves_it_to_the_staged_path),
		TEST(a_machine_short_of_memory_keeps_no_windows),
		TEST(a_busy_gpu_holds_nobody_up),
		TEST(windows_open_and_close_while_the_program_captures),
		TEST(a_client_that_closes_our_descriptor_changes_nothing),
		TEST(a_child_has_no_windows_and_its_parent_keeps_them),
	};

	mw_start();
	return th_finish(
		cmocka_run_group_tests_name("mapped", tests, NULL, NULL));
}
