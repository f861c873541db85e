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
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/lane.h"
#include "core/pins.h"
#include "core/window_table.h"
#include "core/windows.h"
#include "fake_rm.h"
#include "harness.h"
#include "seam/os.h"

#define CHUNK chunk_size
#define NR_CHUNKS 5
#define SIZE (NR_CHUNKS * CHUNK - 1000) /* the last one is short */
#define PAD 4096
#define REST_MS 40 /* a file is left alone for so long, then mapped */

static bool pins; /* TEST_PINS: the kernel driver pins pages, in granules */
static size_t chunk_size = 128 * TH_KIB;
static struct th_mem mem;
static struct th_file file;
static CUfileHandle_t fh;
static unsigned char *content, *want, *got;
static void *held; /* our own mapping of the file */
static const struct cf_os *usual = &cf_os_real;

/* ---------------------------------------------------------------- bench */

static void set_kib(const char *name, size_t bytes)
{
	char text[24];

	snprintf(text, sizeof(text), "%zu", bytes / TH_KIB);
	setenv(name, text, 1);
}

static void configure(const char *mode, size_t cache)
{
	setenv("OCF_MAPPED", mode, 1);
	set_kib("OCF_MAPPED_CACHE_KB", cache);
	set_kib("OCF_MAPPED_CHUNK_KB", CHUNK);
	setenv("OCF_MAPPED_MIN_KB", "64", 1);
	setenv("OCF_MAPPED_USE_KB", "4", 1);
	setenv("OCF_MAPPED_SETTLE_MS", "20", 1);
}

/* A kernel short of memory takes pages back, but not those that are locked. */
static void hold_pages(void)
{
	held = mmap(NULL, SIZE, PROT_READ, MAP_SHARED | MAP_POPULATE,
		    file.plain, 0);
	assert_ptr_not_equal(held, MAP_FAILED);
	(void)mlock(held, SIZE); /* mapped they stay where it is not allowed */
}

static void let_pages_go(void)
{
	if (held)
		munmap(held, SIZE);
	held = NULL;
}

static void end(void)
{
	let_pages_go();
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_file_end(&file);
	free(content);
	free(want);
	free(got);
	th_close();
}

/* So that a test's plan is for what comes then. */
static void try_pins(void)
{
	CUstream stream;

	assert_int_equal(cuStreamCreate(&stream, 1), 0);
	cf_pins_try(0, stream);
	assert_int_equal(cuStreamDestroy(stream), 0);
	if (cf_pins_state() == CF_PINS_GOOD)
		return;
	end();
	th_skip("the kernel driver pins no pages");
}

static void begin_with(const char *mode, size_t cache, enum th_file_kind kind)
{
	th_need_gpu();
	configure(mode, cache);
	if (pins && th_fake() && usual == &cf_os_real) {
		fake_rm_begin();
		usual = cf_os;
	}
	th_open();
	content = th_bytes(SIZE);
	want = malloc(SIZE + 2 * PAD);
	got = malloc(SIZE + 2 * PAD);
	assert_non_null(want);
	assert_non_null(got);
	th_file_make(&file, kind, O_RDWR, content, SIZE);
	th_mem_alloc(&mem, TH_DEVICE, SIZE + 2 * PAD);
	fh = th_handle(file.fd);
	/* what is read there others test */
	if (!th_file_mappable(&file)) {
		end();
		th_skip("no ext4, XFS or btrfs in TMPDIR, or no cachestat");
	}
	hold_pages();
	th_sleep_ms(REST_MS);
	if (pins && strcmp(mode, "auto"))
		try_pins();
}

static void begin(void)
{
	begin_with("kept", 32 * CHUNK, TH_BUFFERED);
}

/* As the driver counts windows, and what opens one. */
static const char *kept_as(void)
{
	return pins ? "vmm_map" : "host_register";
}

static const char *registers(void)
{
	return pins ? "cuMemImportFromShareableHandle" : "cuMemHostRegister_v2";
}

static struct cf_windows_counts counts(void)
{
	struct cf_windows_counts c;

	cf_windows_count(&c);
	return c;
}

/* A read of handle that must answer n bytes, these, and touch no others. */
static void read_is(CUfileHandle_t handle, size_t size, size_t off,
		    const unsigned char *bytes, size_t n)
{
	th_fill(want, SIZE + 2 * PAD);
	th_mem_put(&mem, 0, want, SIZE + 2 * PAD);
	assert_int_equal(cuFileRead(handle, mem.ptr, size, (off_t)off, PAD),
			 (ssize_t)n);
	memcpy(want + PAD, bytes, n);
	th_mem_get(&mem, 0, got, SIZE + 2 * PAD);
	th_equal("in front", got, want, PAD);
	th_equal("the read", got + PAD, want + PAD, n);
	th_equal("behind", got + PAD + size, want + PAD + size,
		 SIZE + PAD - size);
}

static void read_all(void)
{
	read_is(fh, SIZE, 0, content, SIZE);
}

/* A thread of their own closes windows. */
static void all_are_closed(void)
{
	for (int ms = 0; ms < 30000 && counts().bytes; ms++)
		th_sleep_ms(1);
	assert_int_equal(counts().open, 0);
	assert_int_equal(counts().bytes, 0);
}

/* Twice, so that windows are open. */
static void warm(void)
{
	read_all();
	read_all();
	assert_int_equal(counts().open, NR_CHUNKS);
}

/* ------------------------------------------------------- when it is taken */

static void the_second_read_maps_and_the_third_uses_what_is_kept(void **state)
{
	unsigned long registered;

	begin();
	read_all();
	assert_int_equal(counts().opened, 0);
	read_all();
	assert_int_equal(counts().opened, NR_CHUNKS);
	assert_int_equal(counts().used, NR_CHUNKS);
	registered = th_fake() ? th_fake()->calls(registers()) : 0;
	read_all();
	assert_int_equal(counts().opened, NR_CHUNKS);
	assert_int_equal(counts().used, 2 * NR_CHUNKS);
	if (th_fake())
		assert_int_equal(th_fake()->calls(registers()), registered);
	end();
}

static void a_small_read_uses_a_window_but_opens_none(void **state)
{
	begin();
	for (int i = 0; i < 4; i++)
		read_is(fh, 32 * TH_KIB, 999, content + 999, 32 * TH_KIB);
	assert_int_equal(counts().opened, 0);
	warm();
	assert_int_equal(counts().used, NR_CHUNKS);
	read_is(fh, 32 * TH_KIB, 999, content + 999, 32 * TH_KIB);
	assert_int_equal(counts().used, NR_CHUNKS + 1);
	/* across a seam: two copies */
	read_is(fh, 8192, CHUNK - 77, content + CHUNK - 77, 8192);
	assert_int_equal(counts().used, NR_CHUNKS + 3);
	/* smaller than mapped_use_kb */
	read_is(fh, 4095, 0, content, 4095);
	assert_int_equal(counts().used, NR_CHUNKS + 3);
	end();
}

/* In sequence each byte is read for the first time, chunk or no chunk. */
static void a_first_pass_in_small_steps_is_no_second_read(void **state)
{
	const size_t step = 64 * TH_KIB;

	begin();
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(counts().opened, 0);
		for (size_t at = 0; at + step < SIZE; at += step)
			read_is(fh, step, at, content + at, step);
	}
	assert_true(counts().opened >= NR_CHUNKS - 1);
	end();
}

static const char *route_of(size_t size)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };

	assert_int_equal(ocf_explain_read(fh, mem.ptr, size, 0, PAD, &e).err,
			 CU_FILE_SUCCESS);
	return e.path;
}

static void asking_for_the_route_is_no_read(void **state)
{
	begin();
	for (int i = 0; i < 3; i++)
		assert_string_equal(route_of(SIZE), "staged");
	read_all();
	assert_int_equal(counts().opened, 0);
	for (int i = 0; i < 3; i++)
		assert_string_equal(route_of(SIZE), "mapped");
	assert_int_equal(counts().opened, 0);
	read_all();
	assert_int_equal(counts().opened, NR_CHUNKS);
	end();
}

static void an_element_of_a_vector_is_read_once(void **state)
{
	CUfileIOVec_t iov = { .len = SIZE };
	const int opened[] = { 0, NR_CHUNKS };

	begin();
	iov.base = (char *)mem.ptr + PAD;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cuFileReadv(fh, &iov, 1, 0, 0), SIZE);
		th_mem_get(&mem, PAD, got, SIZE);
		th_equal("the vector", got, content, SIZE);
		assert_int_equal(counts().opened, opened[i]);
	}
	end();
}

static void always_maps_the_first_read_and_off_never(void **state)
{
	begin_with("always", 32 * CHUNK, TH_BUFFERED);
	read_all();
	assert_int_equal(counts().used, NR_CHUNKS);
	end();
	begin_with("off", 32 * CHUNK, TH_BUFFERED);
	for (int i = 0; i < 3; i++)
		read_all();
	assert_int_equal(counts().used, 0);
	end();
}

static void auto_maps_what_is_hot_where_pages_can_be_pinned(void **state)
{
	begin_with("auto", 32 * CHUNK, TH_BUFFERED);
	for (int i = 0; i < 3; i++) {
		read_all();
		assert_int_equal(counts().opened, 0);
	}
	read_all();
	if (pins && cf_pins_state() == CF_PINS_GOOD) {
		read_all();
		assert_int_equal(counts().opened, NR_CHUNKS);
		assert_int_equal(counts().used, 2 * NR_CHUNKS);
	} else {
		/* nothing of it is registered, however often it is read */
		for (int i = 0; i < 3; i++)
			read_all();
		assert_int_equal(counts().opened, 0);
		assert_int_equal(counts().refused, 0);
	}
	end();
}

/* Windows are open by themselves. */
static void begin_hot(void)
{
	if (!pins)
		th_skip("chunks are too small to be pinned");
	begin_with("auto", 32 * CHUNK, TH_BUFFERED);
	for (int i = 0; i < 4; i++)
		read_all();
	assert_int_equal(counts().opened, NR_CHUNKS);
}

/* Others that are read at the moment: a window is held for each. */
static void small_reads_of_a_crowd_are_staged(void **state)
{
	const size_t small = 2 * TH_MIB;
	struct cf_stamp stamp;
	struct cf_window *w;

	begin_hot();
	assert_int_equal(counts().opened, NR_CHUNKS);
	assert_int_equal(cf_stamp_take(file.fd, &stamp), 0);
	w = cf_window_table_find(&stamp, 1);
	assert_non_null(w);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(route_of(small), "mapped");
		cf_window_table_hold(w);
	}
	assert_string_equal(route_of(small), "staged");
	assert_string_equal(route_of(2 * small), "mapped");
	read_is(fh, small, 0, content, small);
	for (int i = 0; i < 4; i++)
		cf_window_table_let_go(w);
	assert_int_equal(cf_window_table_uses(), 0);
	assert_string_equal(route_of(small), "mapped");
	read_is(fh, small, 0, content, small);
	end();
}

/* A window would go with each of them, and be opened in vain. */
static void auto_maps_nothing_for_who_opens_a_file_for_each_read(void **state)
{
	if (!pins)
		th_skip("chunks are too small to be pinned");
	begin_with("auto", 32 * CHUNK, TH_BUFFERED);
	for (int i = 0; i < 8; i++) {
		read_all();
		cuFileHandleDeregister(fh);
		fh = th_handle(file.fd);
	}
	for (int i = 0; i < 2; i++)
		read_all();
	assert_int_equal(counts().opened, 0);
	read_all();
	assert_int_equal(counts().opened, NR_CHUNKS);
	end();
}

static void auto_without_the_kernel_driver_maps_nothing(void **state)
{
	if (!pins)
		th_skip("chunks are too small to be pinned");
	th_need_fake();
	begin_with("auto", 32 * CHUNK, TH_BUFFERED);
	fake_rm.refusal[FAKE_RM_CTL] = -ENOENT;
	for (int i = 0; i < 6; i++)
		read_all();
	assert_int_equal(cf_pins_state(), CF_PINS_NONE);
	assert_int_equal(fake_rm_asked(FAKE_RM_CTL), 1);
	assert_int_equal(counts().opened, 0);
	assert_int_equal(counts().refused, 0);
	assert_string_equal(route_of(SIZE), "staged");
	end();
}

/* Of each whole chunk the front, again and again. */
static void read_by_batch(size_t size)
{
	CUfileIOParams_t params[16];
	CUfileIOEvents_t events[16];
	CUfileBatchHandle_t batch;
	unsigned nr = 16;

	for (unsigned i = 0; i < nr; i++) {
		size_t at = i % (NR_CHUNKS - 1) * CHUNK;

		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = fh,
						.opcode = CUFILE_READ };
		params[i].u.batch.devPtr_base = mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)at + PAD;
		params[i].u.batch.file_offset = (off_t)at;
		params[i].u.batch.size = size;
	}
	th_fill(want, SIZE);
	th_mem_put(&mem, PAD, want, SIZE);
	for (size_t at = 0; at < (NR_CHUNKS - 1) * CHUNK; at += CHUNK)
		memcpy(want + at, content + at, size);
	assert_int_equal(cuFileBatchIOSetUp(&batch, nr).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, nr, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, nr, &nr, events, NULL).err, 0);
	assert_int_equal(nr, 16);
	cuFileBatchIODestroy(batch);
	th_mem_get(&mem, PAD, got, SIZE);
	th_equal("the batch", got, want, SIZE);
}

static void small_reads_of_a_batch_are_staged(void **state)
{
	begin_hot();
	assert_int_equal(counts().used, NR_CHUNKS);
	read_by_batch(CHUNK / 2);
	assert_int_equal(counts().used, NR_CHUNKS);
	read_by_batch(CHUNK);
	assert_int_equal(counts().used, NR_CHUNKS + 16);
	end();
}

static void what_a_convoy_brings_is_read_too(void **state)
{
	if (!pins)
		th_skip("chunks are too small for a convoy");
	begin();
	read_by_batch(CHUNK); /* 64 MiB together */
	assert_int_equal(counts().opened, 0);
	for (int i = 0; i < 3; i++)
		read_by_batch(CHUNK);
	assert_int_equal(counts().opened, NR_CHUNKS - 1);
	assert_true(counts().used >= NR_CHUNKS - 1);
	end();
}

static void writes_host_memory_and_o_direct_are_not_mapped(void **state)
{
	begin_with("always", 32 * CHUNK, TH_ODIRECT);
	read_all();
	assert_int_equal(counts().used, 0);
	assert_int_equal(cuFileWrite(fh, mem.ptr, SIZE, 0, PAD), SIZE);
	assert_int_equal(counts().opened, 0);
	end();
	begin_with("always", 32 * CHUNK, TH_BUFFERED);
	assert_int_equal(cuFileRead(fh, got, SIZE, 0, 0), SIZE);
	th_equal("host memory", got, content, SIZE);
	assert_int_equal(counts().used, 0);
	end();
}

/* A busy kernel may have a page in hand, and a tmpfs lets none go. */
static bool drop(void)
{
	struct cf_cachestat stat = { .cached = 1 };

	let_pages_go();
	for (int lap = 0; lap < 100 && stat.cached; lap++) {
		assert_int_equal(fsync(file.plain), 0);
		th_sleep_ms(REST_MS);
		assert_int_equal(
			posix_fadvise(file.plain, 0, 0, POSIX_FADV_DONTNEED),
			0);
		assert_int_equal(
			cf_os_real.cachestat(file.plain, 0, SIZE, &stat), 0);
	}
	return !stat.cached;
}

static void what_is_not_cached_is_not_mapped(void **state)
{
	begin_with("always", 32 * CHUNK, TH_BUFFERED);
	if (!drop()) {
		end();
		th_skip("the file system does not drop what it has cached");
	}
	read_all();
	assert_int_equal(counts().opened, 0);
	hold_pages();
	read_all();
	assert_int_equal(counts().opened, NR_CHUNKS);
	end();
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
	struct cf_os other = *usual;

	other.fstatfs = fstatfs_other;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin_with("always", 32 * CHUNK, TH_BUFFERED);
		cuFileHandleDeregister(fh);
		fs_type = cases[i].type;
		cf_os = &other;
		fh = th_handle(file.fd);
		cf_os = usual;
		assert_string_equal(route_of(SIZE),
				    cases[i].mapped ? "mapped" : "staged");
		read_all();
		assert_int_equal(counts().opened,
				 cases[i].mapped ? NR_CHUNKS : 0);
		end();
	}
}

static void memory_files_are_mapped_too(void **state)
{
	static const enum th_file_kind kinds[] = { TH_TMPFS, TH_MEMFD };

	for (int i = 0; i < 2; i++) {
		begin_with("kept", 32 * CHUNK, kinds[i]);
		warm();
		read_all();
		assert_int_equal(counts().used, 2 * NR_CHUNKS);
		assert_int_equal(ftruncate(file.plain, CHUNK), 0);
		read_is(fh, SIZE, 0, content, CHUNK);
		end();
	}
}

/* ------------------------------------------------- files under our feet */

static void a_truncated_file_ends_where_it_ends(void **state)
{
	const size_t ends[] = { 4 * CHUNK + 1, 2 * CHUNK, 5000, 0 };

	begin();
	warm();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(ftruncate(file.plain, (off_t)ends[i]), 0);
		read_is(fh, SIZE, 0, content, ends[i]);
		th_sleep_ms(REST_MS);
		read_is(fh, SIZE, 0, content, ends[i]);
		read_is(fh, SIZE, 0, content, ends[i]);
	}
	assert_int_equal(counts().refused, 0);
	end();
}

static void a_file_that_shrank_and_grew_shows_zeros(void **state)
{
	begin();
	warm();
	assert_int_equal(ftruncate(file.plain, CHUNK + 10), 0);
	assert_int_equal(ftruncate(file.plain, SIZE), 0);
	memset(content + CHUNK + 10, 0, SIZE - CHUNK - 10);
	read_all();
	th_sleep_ms(REST_MS);
	read_all();
	read_all();
	end();
}

static void a_punched_hole_shows_zeros(void **state)
{
	begin();
	warm();
	if (fallocate(file.plain, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      CHUNK, CHUNK)) {
		end();
		th_skip("the file system punches no holes");
	}
	memset(content + CHUNK, 0, CHUNK);
	read_all();
	th_sleep_ms(REST_MS);
	read_all();
	end();
}

static int open_direct(void)
{
	int fd = open(file.path, O_RDWR | O_DIRECT | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	end();
	th_skip("the file system has no O_DIRECT");
	return -1;
}

static void write_direct(int fd, size_t at, size_t size)
{
	void *block = NULL;

	assert_int_equal(posix_memalign(&block, 4096, size), 0);
	th_fill(block, size);
	memcpy(content + at, block, size);
	assert_int_equal(pwrite(fd, block, size, (off_t)at), (ssize_t)size);
	free(block);
}

static void what_others_write_with_o_direct_is_read(void **state)
{
	int fd;

	begin();
	fd = open_direct();
	warm();
	for (int i = 0; i < 5; i++) {
		write_direct(fd, 8192 + (size_t)i * CHUNK / 2, 4096);
		read_all();
		th_sleep_ms(REST_MS);
		read_all();
	}
	assert_true(counts().opened > NR_CHUNKS);
	close(fd);
	end();
}

/* A clock that stands still: only the page table can tell. */
static int statx_frozen(int fd, unsigned mask, struct statx *stx)
{
	int err = cf_os_real.statx(fd, mask, stx);

	stx->stx_ctime = stx->stx_mtime =
		(struct statx_timestamp){ .tv_sec = 1000 };
	return err;
}

static void pages_that_were_replaced_are_seen_without_any_times(void **state)
{
	struct cf_os frozen;
	int fd;

	begin();
	frozen = *usual;
	frozen.statx = statx_frozen;
	fd = open_direct();
	cf_os = &frozen;
	warm();
	read_all();
	write_direct(fd, CHUNK, 4096);
	read_all();
	assert_true(counts().stale >= 1);
	assert_int_equal(ftruncate(file.plain, CHUNK + 10), 0);
	assert_int_equal(ftruncate(file.plain, SIZE), 0);
	memset(content + CHUNK + 10, 0, SIZE - CHUNK - 10);
	read_all();
	cf_os = usual;
	close(fd);
	end();
}

static void what_others_write_through_the_page_cache_is_read(void **state)
{
	pid_t child;
	int status;

	begin();
	warm();
	th_fill(content + 300, CHUNK);
	th_file_put(&file, 300, content + 300, CHUNK);
	read_all();
	th_sleep_ms(REST_MS);
	warm();
	th_fill(content + 70000, CHUNK);
	child = fork();
	if (!child)
		_exit(pwrite(file.plain, content + 70000, CHUNK, 70000) !=
		      (ssize_t)CHUNK);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	read_all();
	th_sleep_ms(REST_MS);
	warm();
	end();
}

static void what_we_write_ourselves_is_read(void **state)
{
	begin();
	warm();
	for (int i = 0; i < 3; i++) {
		size_t at = th_below(SIZE - CHUNK);

		th_fill(content + at, CHUNK);
		th_mem_put(&mem, 0, content + at, CHUNK);
		assert_int_equal(cuFileWrite(fh, mem.ptr, CHUNK, (off_t)at, 0),
				 CHUNK);
		read_all();
		th_sleep_ms(REST_MS);
		warm();
	}
	end();
}

static void a_name_that_moves_on_leaves_the_handle_its_file(void **state)
{
	struct th_file other;
	unsigned char *bytes;
	CUfileHandle_t second;
	int fd;

	begin();
	bytes = th_bytes(SIZE);
	warm();
	th_file_make(&other, TH_BUFFERED, O_RDWR, bytes, SIZE);
	assert_int_equal(rename(other.path, file.path), 0);
	*other.path = '\0';
	read_all();
	fd = open(file.path, O_RDONLY | O_CLOEXEC);
	second = th_handle(fd);
	th_sleep_ms(REST_MS);
	for (int i = 0; i < 3; i++) {
		read_is(second, SIZE, 0, bytes, SIZE);
		read_all();
	}
	assert_int_equal(counts().open, 2 * NR_CHUNKS);
	unlink(file.path);
	read_is(second, SIZE, 0, bytes, SIZE);
	cuFileHandleDeregister(second);
	close(fd);
	th_file_end(&other);
	free(bytes);
	end();
}

/* The number now names another file, and nobody told the library. */
static void a_descriptor_that_was_replaced_shows_its_new_file(void **state)
{
	struct th_file other;

	begin();
	warm();
	th_fill(content, SIZE);
	th_file_make(&other, TH_BUFFERED, O_RDWR, content, SIZE);
	assert_true(dup2(other.fd, file.fd) >= 0);
	read_all();
	/* the windows of the old one are gone, and it gets none */
	all_are_closed();
	th_sleep_ms(REST_MS);
	read_all();
	read_all();
	assert_int_equal(counts().opened, NR_CHUNKS);
	th_file_end(&other);
	end();
}

/* ------------------------------------------------------- during a read */

static ssize_t during; /* what a read answered while the file changed */
static void (*_Atomic change)(void);

/* The first look at the page table of a read: its first copy is done. */
static ssize_t pread_and_change(int fd, void *buf, size_t size, off_t off)
{
	void (*now)(void) = atomic_exchange(&change, NULL);

	if (now)
		now();
	return cf_os_real.pread(fd, buf, size, off);
}

/* Reads all of the file, whose windows are open, and which changes then. */
static void read_while(void (*changes)(void))
{
	static struct cf_os changing; /* until the last window is closed */

	changing = *usual;
	changing.pread = pread_and_change;
	atomic_store(&change, changes);
	th_need_fake()->copy_delay_us(5000); /* the others are on their way */
	cf_os = &changing;
	during = cuFileRead(fh, mem.ptr, SIZE, 0, PAD);
	th_need_fake()->copy_delay_us(0);
	assert_null(atomic_load(&change));
}

static void cut_off(void)
{
	(void)!ftruncate(file.plain, 2 * CHUNK + 5);
}

static void a_truncation_during_a_read_gives_no_stale_byte(void **state)
{
	th_need_fake();
	begin();
	warm();
	read_while(cut_off);
	assert_true(counts().stale >= 1);
	assert_int_equal(during, 2 * CHUNK + 5);
	th_mem_get(&mem, PAD, got, SIZE);
	th_equal("what is left", got, content, (size_t)during);
	end();
}

static unsigned char block[4096] __attribute__((aligned(4096)));
static int direct_fd;

static void write_block(void)
{
	(void)!pwrite(direct_fd, block, sizeof(block), CHUNK);
}

static void a_direct_write_during_a_read_is_seen_or_not_but_whole(void **state)
{
	th_need_fake();
	begin();
	direct_fd = open_direct();
	warm();
	th_fill(block, sizeof(block));
	read_while(write_block);
	assert_int_equal(during, SIZE);
	th_mem_get(&mem, PAD, got, SIZE);
	if (memcmp(got + CHUNK, block, sizeof(block)))
		th_equal("the old block", got + CHUNK, content + CHUNK,
			 sizeof(block));
	memcpy(content + CHUNK, block, sizeof(block));
	th_equal("before", got, content, CHUNK);
	th_equal("after", got + CHUNK + 4096, content + CHUNK + 4096,
		 SIZE - CHUNK - 4096);
	read_all();
	close(direct_fd);
	end();
}

static void write_first_chunk(void)
{
	th_fill(content, CHUNK);
	(void)!pwrite(file.plain, content, CHUNK, 0);
}

/* The first chunk is copied by then, of pages that are still the file's. */
static void a_file_that_changes_during_a_read_is_read_again(void **state)
{
	th_need_fake();
	begin();
	warm();
	read_while(write_first_chunk);
	assert_int_equal(during, SIZE);
	th_mem_get(&mem, PAD, got, SIZE);
	th_equal("the new bytes", got, content, SIZE);
	end();
}

/* Each page is full of the number of the write that made it. */
struct storm {
	_Atomic uint32_t begun, done;
	_Atomic bool over;
	struct th_bad bad;
	int direct;
};

/* A busy machine has more time for what there must have been. */
static bool storm_lasts(uint64_t ns)
{
	struct cf_windows_counts c = counts();

	if (ns < (TH_SANITIZED ? 3000 : 1500) * 1000000ull)
		return true;
	return (!c.used || c.opened <= NR_CHUNKS) && ns < 30000000000ull;
}

static void storm_write(struct storm *s)
{
	uint32_t *page = aligned_alloc(4096, 4 * CHUNK);
	uint64_t begun = th_now_ns();

	for (uint32_t v = 1; storm_lasts(th_now_ns() - begun); v++) {
		for (size_t i = 0; i < 4 * CHUNK / sizeof(v); i++)
			page[i] = v;
		atomic_store(&s->begun, v);
		if (v % 3 == 2)
			(void)!ftruncate(file.plain, 4 * CHUNK);
		if (pwrite(v & 1 && s->direct >= 0 ? s->direct : file.plain,
			   page, 4 * CHUNK, 0) != (ssize_t)(4 * CHUNK))
			th_bad_note(&s->bad, "write %u: %d", v, errno);
		atomic_store(&s->done, v);
		th_sleep_ms((unsigned)th_below(60));
	}
	atomic_store(&s->over, true);
	free(page);
}

static void storm_read(struct storm *s, unsigned i)
{
	size_t size = i == 1 ? 4 * CHUNK : 64 * TH_KIB;
	uint32_t *words = malloc(size);
	struct th_mem own;

	th_mem_alloc(&own, TH_DEVICE, size);
	while (!atomic_load(&s->over)) {
		uint32_t low = atomic_load(&s->done), high;
		ssize_t n = cuFileRead(fh, own.ptr, size, 0, 0);

		high = atomic_load(&s->begun);
		if (n != (ssize_t)size)
			th_bad_note(&s->bad, "read answers %zd", n);
		th_mem_get(&own, 0, words, size);
		for (size_t at = 0; at < size / 4; at++)
			if (words[at] < low || words[at] > high)
				th_bad_note(&s->bad,
					    "word %zu is %u, not %u to %u", at,
					    words[at], low, high);
	}
	th_mem_free(&own);
	free(words);
}

static void storm_thread(void *arg, unsigned i)
{
	if (i)
		storm_read(arg, i);
	else
		storm_write(arg);
}

static void a_read_never_shows_less_than_was_written_before_it(void **state)
{
	struct storm s = { .direct = -1 };
	struct cf_windows_counts c;

	begin_with("always", 4 * CHUNK, TH_BUFFERED);
	s.direct = open(file.path, O_RDWR | O_DIRECT | O_CLOEXEC);
	memset(content, 0, SIZE);
	th_file_put(&file, 0, content, SIZE);
	th_threads(4, storm_thread, &s);
	th_bad_check(&s.bad);
	c = counts();
	print_message("opened %lu used %lu stale %lu\n",
		      (unsigned long)c.opened, (unsigned long)c.used,
		      (unsigned long)c.stale);
	assert_true(c.used > 0);
	assert_true(c.opened > NR_CHUNKS);
	if (s.direct >= 0)
		close(s.direct);
	end();
}

/* --------------------------------------------------------- room, and time */

static void watch_bound(void *arg, unsigned i)
{
	_Atomic unsigned *running = arg;
	struct th_mem own;

	if (!i) {
		while (atomic_load(running))
			assert_true(counts().bytes <= 3 * CHUNK);
		return;
	}
	th_mem_alloc(&own, TH_DEVICE, SIZE);
	for (int n = 0; n < 20; n++) {
		unsigned char *bytes = malloc(SIZE);

		assert_int_equal(cuFileRead(fh, own.ptr, SIZE, 0, 0), SIZE);
		th_mem_get(&own, 0, bytes, SIZE);
		th_equal("a read", bytes, content, SIZE);
		free(bytes);
	}
	th_mem_free(&own);
	atomic_fetch_sub(running, 1);
}

static void the_bound_holds_with_many_threads(void **state)
{
	_Atomic unsigned running = 4;

	begin_with("always", 3 * CHUNK, TH_BUFFERED);
	th_threads(5, watch_bound, &running);
	assert_true(counts().used > 0);
	end();
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
	unsigned char *bytes = malloc(SIZE);
	struct th_mem own;

	th_mem_alloc(&own, TH_DEVICE, SIZE);
	pthread_barrier_wait(all_here);
	assert_int_equal(cuFileRead(fh, own.ptr, SIZE, 0, 0), SIZE);
	th_mem_get(&own, 0, bytes, SIZE);
	th_equal("a read", bytes, content, SIZE);
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
	begin();
	warm();
	assert_int_equal(asleep_of(3), 0);
	assert_in_range(asleep_of(6), 1, 6 * NR_CHUNKS);
	assert_int_equal(asleep_of(1), 0);
	end();
}

static int clock_ahead(clockid_t id, struct timespec *ts)
{
	int err = cf_os_real.clock_gettime(id, ts);

	ts->tv_sec += id == CLOCK_REALTIME ? 60 : 0;
	return err;
}

/*
 * A busy machine may close a window late: who wants its room waits for it, in
 * all of the test.
 */
static void wait_for_room_however_long(void)
{
	static struct cf_os patient;

	patient = *usual;
	patient.clock_gettime = clock_ahead;
	cf_os = &patient;
}

static void a_read_larger_than_the_bound_goes_chunk_by_chunk(void **state)
{
	begin_with("always", 2 * CHUNK, TH_BUFFERED);
	wait_for_room_however_long();
	read_all();
	assert_int_equal(counts().used, NR_CHUNKS);
	assert_int_equal(counts().open, 2);
	end();
	/* kept: it would only push out others */
	begin_with("kept", 2 * CHUNK, TH_BUFFERED);
	for (int i = 0; i < 3; i++)
		read_all();
	assert_int_equal(counts().opened, 0);
	end();
}

/* Two chunks of room, five chunks in turns: the first two stay. */
static void chunks_read_in_turns_do_not_push_each_other_out(void **state)
{
	begin_with("kept", 2 * CHUNK, TH_BUFFERED);
	for (int turn = 0; turn < 6; turn++)
		for (size_t at = 0; at + CHUNK < SIZE; at += CHUNK)
			read_is(fh, CHUNK, at, content + at, CHUNK);
	assert_int_equal(counts().opened, 2);
	assert_int_equal(counts().used, 2 * 5);
	/* when those are read no more, another gets in */
	wait_for_room_however_long();
	for (int n = 0; n < 60; n++)
		read_is(fh, CHUNK, 2 * CHUNK, content + 2 * CHUNK, CHUNK);
	assert_int_equal(counts().opened, 3);
	assert_int_equal(counts().open, 2);
	end();
}

static void chunks_read_at_random_change_places_seldom(void **state)
{
	const unsigned nr = 400;

	begin_with("kept", 2 * CHUNK, TH_BUFFERED);
	for (unsigned n = 0; n < nr; n++) {
		size_t at = th_below(NR_CHUNKS - 1) * CHUNK;

		read_is(fh, CHUNK, at, content + at, CHUNK);
	}
	assert_true(counts().used > nr / 4);
	assert_true(counts().opened < nr / 20);
	end();
}

/* One window for all of them, until the one that opened it goes. */
static void handles_of_a_file_share_its_windows(void **state)
{
	CUfileHandle_t second;
	int fd;

	begin();
	fd = open(file.path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	second = th_handle(fd);
	read_all();
	read_is(second, SIZE, 0, content, SIZE);
	read_all();
	assert_int_equal(counts().opened, NR_CHUNKS);
	assert_int_equal(counts().used, 2 * NR_CHUNKS);
	cuFileHandleDeregister(second);
	close(fd);
	assert_int_equal(counts().open, 0);
	read_all();
	assert_int_equal(counts().opened, 2 * NR_CHUNKS);
	end();
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
	unsigned char *bytes = malloc(SIZE);
	CUdeviceptr own;

	if (!bytes || cuCtxSetCurrent(beside->ctx[i % 2]) ||
	    cuMemAlloc(&own, SIZE))
		th_bad_note(&beside->bad, "thread %u has no memory", i);
	for (int pass = 0; pass < TH_SCALE(12); pass++) {
		ssize_t n = cuFileRead(fh, (void *)(uintptr_t)own, SIZE, 0, 0);

		if (n != (ssize_t)SIZE || cuMemcpyDtoH(bytes, own, SIZE) ||
		    memcmp(bytes, content, SIZE))
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

	begin();
	if (cuDeviceGetCount(&nr) || nr < 2) {
		end();
		th_skip("needs two GPUs");
	}
	beside.ctx[0] = th_primary();
	assert_int_equal(cuDevicePrimaryCtxRetain(&beside.ctx[1], 1), 0);
	warm();
	th_threads(4, read_into_a_gpu, &beside);
	th_bad_check(&beside.bad);
	read_all();
	assert_int_equal(counts().open, NR_CHUNKS);
	end();
	assert_int_equal(cuDevicePrimaryCtxRelease(1), 0);
}

static void windows_in_use_outlive_their_handle_for_the_copy(void **state)
{
	int fd;

	th_need_fake();
	begin();
	warm();
	owner = fh;
	fd = open(file.path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	fh = th_handle(fd);
	read_while(owner_goes);
	assert_int_equal(during, SIZE);
	th_mem_get(&mem, PAD, got, SIZE);
	th_equal("the read", got, content, SIZE);
	all_are_closed();
	end();
	close(fd);
}

static void windows_go_with_their_handle(void **state)
{
	long live = th_fake() ? th_fake()->live(kept_as()) : 0;
	int fd;

	begin();
	warm();
	assert_int_equal(flock(file.fd, LOCK_EX), 0);
	if (th_fake())
		assert_true(th_fake()->live(kept_as()) >= live + NR_CHUNKS);
	cuFileHandleDeregister(fh);
	/* nothing of ours keeps the file open, and its lock held */
	close(file.fd);
	assert_int_equal(flock(file.plain, LOCK_EX | LOCK_NB), 0);
	all_are_closed();
	fd = file.fd = open(file.path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	fh = th_handle(fd);
	warm();
	end();
}

/* --------------------------------------------------------- when it cannot */

static void a_registration_that_fails_is_not_tried_again(void **state)
{
	const struct th_fake *fake = th_need_fake();
	char plan[64];

	begin();
	read_all(); /* and its slots are pinned */
	snprintf(plan, sizeof(plan), "%s:*=801", registers());
	assert_int_equal(fake->plan(plan), 0);
	for (int i = 0; i < 3; i++)
		read_all();
	assert_int_equal(counts().refused, 1);
	assert_int_equal(counts().bytes, 0);
	fake->plan_clear();
	read_all();
	assert_int_equal(counts().opened, 0);
	end();
	begin();
	warm();
	end();
}

static void without_memory_to_pin_it_waits_a_while(void **state)
{
	const struct th_fake *fake = th_need_fake();
	char plan[64];

	begin();
	read_all();
	snprintf(plan, sizeof(plan), "%s:3=2", registers());
	assert_int_equal(fake->plan(plan), 0);
	read_all(); /* two chunks mapped, the rest staged */
	assert_int_equal(counts().used, 2);
	read_all();
	assert_int_equal(counts().refused, 1);
	fake->plan_clear();
	th_sleep_ms(1100);
	read_all();
	assert_int_equal(counts().open, NR_CHUNKS);
	end();
}

static void a_copy_that_fails_is_made_again_another_way(void **state)
{
	const struct th_fake *fake = th_need_fake();

	for (int nth = 1; nth <= NR_CHUNKS; nth++) {
		char plan[64];

		begin();
		warm();
		snprintf(plan, sizeof(plan), "%s:%d=999",
			 pins ? "cuMemcpyDtoDAsync_v2" : "cuMemcpyHtoDAsync_v2",
			 nth);
		assert_int_equal(fake->plan(plan), 0);
		read_all();
		fake->plan_clear();
		snprintf(plan, sizeof(plan), "cuEventSynchronize:%d=999", nth);
		assert_int_equal(fake->plan(plan), 0);
		read_all();
		fake->plan_clear();
		end();
	}
}

/* But those that are pinned are of no context. */
static void a_reset_gpu_has_no_windows(void **state)
{
	CUcontext again;
	CUdevice dev;

	(void)th_need_fake();
	begin();
	warm();
	assert_int_equal(cuDeviceGet(&dev, 0), 0);
	assert_int_equal(cuDevicePrimaryCtxReset(dev), 0);
	assert_int_equal(cuDevicePrimaryCtxRetain(&again, dev), 0);
	assert_ptr_equal(again, th_primary());
	assert_int_equal(cuCtxSetCurrent(again), 0);
	th_mem_alloc(&mem, TH_DEVICE, SIZE + 2 * PAD);
	/* the driver would take its pages for plain memory */
	read_all();
	assert_true(pins ? !counts().stale : counts().stale >= 1);
	for (int i = 0; i < NR_CHUNKS; i++)
		read_all();
	assert_int_equal(counts().open, NR_CHUNKS);
	end();
}

static int cachestat_missing(int fd, off_t off, size_t len,
			     struct cf_cachestat *out)
{
	(void)fd, (void)off, (void)len, (void)out;
	return -ENOSYS;
}

static int pagemap_missing(const char *path, int flags, mode_t mode)
{
	if (!strcmp(path, "/proc/self/pagemap"))
		return -EACCES;
	return usual->open(path, flags, mode);
}

static int populate_missing(void *at, size_t size, int advice)
{
	(void)at, (void)size, (void)advice;
	return -EINVAL;
}

static void a_kernel_that_cannot_leaves_it_to_the_staged_path(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct cf_os poor;

		begin();
		poor = *usual;
		if (i == 0)
			poor.cachestat = cachestat_missing;
		else if (i == 1)
			poor.open = pagemap_missing;
		else
			poor.madvise = populate_missing;
		cf_os = &poor;
		for (int n = 0; n < 4; n++)
			read_all();
		assert_int_equal(counts().opened, 0);
		assert_true(counts().refused <= 1);
		cf_os = usual;
		end();
	}
}

static int meminfo_short(const char *path, int flags, mode_t mode)
{
	static const char text[] = "MemTotal:       1600 kB\n"
				   "MemFree:          50 kB\n"
				   "MemAvailable:     99 kB\n";
	int fd;

	if (strcmp(path, "/proc/meminfo") != 0)
		return usual->open(path, flags, mode);
	fd = memfd_create("meminfo", MFD_CLOEXEC);
	assert_int_equal(pwrite(fd, text, sizeof(text) - 1, 0),
			 sizeof(text) - 1);
	return fd;
}

static void a_machine_short_of_memory_keeps_no_windows(void **state)
{
	struct cf_os tight;

	begin();
	tight = *usual;
	tight.open = meminfo_short;
	warm();
	cf_os = &tight;
	th_sleep_ms(120);
	read_all();
	all_are_closed();
	read_all();
	assert_int_equal(counts().open, 0);
	cf_os = usual;
	th_sleep_ms(120);
	warm();
	end();
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

	if (!pins) /* a real one waits when a registration ends */
		th_need_fake();
	begin_with("always", 2 * CHUNK, TH_BUFFERED);
	assert_int_equal(cuMemHostAlloc((void **)&gate, 4096, 0), 0);
	*gate = 0;
	assert_int_equal(cuStreamCreate(&busy, 1), 0);
	assert_int_equal(cuStreamWaitValue32(busy, (uintptr_t)gate, 1, 0), 0);
	start = th_now_ns();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(cuFileRead(fh, mem.ptr, SIZE, 0, PAD), SIZE);
		th_file_put(&file, 0, content, 100);
		th_sleep_ms(REST_MS);
	}
	cuFileHandleDeregister(fh);
	ns = th_now_ns() - start;
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
	assert_true(ns < 30000000000ull);
	assert_int_equal(cuStreamSynchronize(busy), 0);
	th_mem_get(&mem, PAD, got, SIZE);
	th_equal("the read", got, content, SIZE);
	all_are_closed();
	assert_int_equal(cuStreamDestroy(busy), 0);
	assert_int_equal(cuMemFreeHost(gate), 0);
	fh = th_handle(file.fd);
	end();
}

/* Registering, and its end on a thread of ours, are no part of a graph. */
static void windows_open_and_close_while_the_program_captures(void **state)
{
	CUgraph graph;
	CUstream stream;
	long live;

	if (!pins)
		th_need_fake();
	begin();
	read_all();
	live = th_fake() ? th_fake()->live(kept_as()) : 0;
	assert_int_equal(cuStreamCreate(&stream, 1), 0);
	assert_int_equal(cuStreamBeginCapture(stream, 0 /* global */), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(cuFileRead(fh, mem.ptr, SIZE, 0, PAD), SIZE);
	assert_int_equal(counts().open, NR_CHUNKS);
	if (th_fake())
		assert_int_equal(th_fake()->live(kept_as()), live + NR_CHUNKS);
	cuFileHandleDeregister(fh);
	all_are_closed();
	if (th_fake())
		assert_int_equal(th_fake()->live(kept_as()), live);
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	assert_non_null(graph);
	assert_int_equal(cuGraphDestroy(graph), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	th_mem_get(&mem, PAD, got, SIZE);
	th_equal("the read", got, content, SIZE);
	fh = th_handle(file.fd);
	end();
}

/* Descriptors are not ours to trust: somebody may close them all. */
static void a_client_that_closes_our_descriptor_changes_nothing(void **state)
{
	int fd, other;

	begin();
	fd = dup(file.fd); /* the lowest that is free: the pagemap's next */
	close(fd);
	warm();
	other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_true(dup2(other, fd) == fd);
	close(other);
	read_all();
	assert_int_equal(ftruncate(file.plain, CHUNK), 0);
	read_is(fh, SIZE, 0, content, CHUNK);
	close(fd);
	end();
}

/* Small reads: a child of many threads may not start any under TSan. */
static void a_child_has_no_windows_and_its_parent_keeps_them(void **state)
{
	pid_t child;
	int status;

	begin();
	warm();
	child = fork();
	if (!child) {
		bool bad = counts().open || counts().bytes ||
			   cuFileRead(fh, mem.ptr, CHUNK, 0, PAD) != -1 ||
			   cuFileRead(fh, got, PAD, 0, 0) != PAD ||
			   memcmp(got, content, PAD) != 0;

		cuFileHandleDeregister(fh);
		_exit(bad);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	read_all();
	assert_int_equal(counts().used, 2 * NR_CHUNKS);
	end();
}

static int teardown(void **state)
{
	int err;

	cf_os = usual;
	err = th_teardown_close(state);
	if (usual != &cf_os_real)
		fake_rm_end();
	usual = &cf_os_real;
	return err;
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_second_read_maps_and_the_third_uses_what_is_kept),
		TEST(a_small_read_uses_a_window_but_opens_none),
		TEST(a_first_pass_in_small_steps_is_no_second_read),
		TEST(asking_for_the_route_is_no_read),
		TEST(an_element_of_a_vector_is_read_once),
		TEST(always_maps_the_first_read_and_off_never),
		TEST(auto_maps_what_is_hot_where_pages_can_be_pinned),
		TEST(small_reads_of_a_crowd_are_staged),
		TEST(auto_maps_nothing_for_who_opens_a_file_for_each_read),
		TEST(auto_without_the_kernel_driver_maps_nothing),
		TEST(small_reads_of_a_batch_are_staged),
		TEST(what_a_convoy_brings_is_read_too),
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
		TEST(handles_of_a_file_share_its_windows),
		TEST(gpus_share_the_windows_of_a_file),
		TEST(windows_in_use_outlive_their_handle_for_the_copy),
		TEST(windows_go_with_their_handle),
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

	pins = getenv("TEST_PINS");
	chunk_size = pins ? 4 * TH_MIB : 128 * TH_KIB;
	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("mapped", tests, NULL, NULL));
}
