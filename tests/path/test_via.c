// SPDX-License-Identifier: Apache-2.0
/*
 * Page cache or O_DIRECT: which bytes went which way, seen at the system
 * calls, and that they are the right ones either way.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"
#include "seam/uring.h"

#define SIZE (16 * TH_MIB)
#define BLOCK 4096

/* ---------------------------------------------- who moves how many bytes */

static struct cf_os os;
static struct cf_uring uring;
static _Atomic size_t direct, buffered;
static bool no_cachestat, no_open, is_overlay, no_direct, set_aside;
static int open_err;	       /* of no_open */
static int twin;	       /* the last one that was opened, or why not */
static atomic_bool seen_dirty; /* what the library saw of the page cache */

/* Pages that were written each way, of the first 64 MiB. */
static _Atomic unsigned char pages[2][1 << 14];

static void mark(int fd, size_t size, off_t off)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	bool way = fcntl(fd, F_GETFL) & O_DIRECT;

	for (size_t i = (size_t)off / page; i * page < (size_t)off + size; i++)
		atomic_store(&pages[way][i], 1);
}

static void count(int fd, size_t size)
{
	atomic_fetch_add(fcntl(fd, F_GETFL) & O_DIRECT ? &direct : &buffered,
			 size);
}

/* What XFS may not like of a direct read. */
static bool passes_end(int fd, size_t size, off_t off)
{
	struct stat st;

	return fcntl(fd, F_GETFL) & O_DIRECT && !fstat(fd, &st) &&
	       off + (off_t)size > (st.st_size + BLOCK - 1) / BLOCK * BLOCK;
}

static ssize_t count_pread(int fd, void *buf, size_t size, off_t off)
{
	count(fd, size);
	if (no_direct && fcntl(fd, F_GETFL) & O_DIRECT)
		return -EINVAL;
	if (set_aside && passes_end(fd, size, off))
		return -EIO;
	return cf_os_real.pread(fd, buf, size, off);
}

static ssize_t count_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	count(fd, size);
	mark(fd, size, off);
	return cf_os_real.pwrite(fd, buf, size, off);
}

static bool count_queue(struct cf_kring *ring, bool write, int fd, void *mem,
			size_t size, off_t off, uint64_t cookie)
{
	count(fd, size);
	if (write)
		mark(fd, size, off);
	return cf_uring_real.queue(ring, write, fd, mem, size, off, cookie);
}

static int maybe_cachestat(int fd, off_t off, size_t len,
			   struct cf_cachestat *out)
{
	int err = no_cachestat ? -ENOSYS :
				 cf_os_real.cachestat(fd, off, len, out);

	if (!err && (out->dirty || out->writeback))
		atomic_store(&seen_dirty, true);
	return err;
}

static int maybe_overlay(int fd, struct statfs *fs)
{
	int err = cf_os_real.fstatfs(fd, fs);

	if (is_overlay)
		fs->f_type = OVERLAYFS_SUPER_MAGIC;
	return err;
}

static int maybe_open(const char *path, int flags, mode_t mode)
{
	if (!strstr(path, "/proc/thread-self/fd/"))
		return cf_os_real.open(path, flags, mode);
	return twin = no_open ? open_err : cf_os_real.open(path, flags, mode);
}

/* ------------------------------------------------------------------ bench */

static struct th_mem mem;
static struct th_file file;
static CUfileHandle_t fh;
static unsigned char *content, *got;

static int setup(void **state)
{
	os = cf_os_real;
	os.pread = count_pread;
	os.pwrite = count_pwrite;
	os.cachestat = maybe_cachestat;
	os.open = maybe_open;
	os.fstatfs = maybe_overlay;
	uring = cf_uring_real;
	uring.queue = count_queue;
	cf_os = &os;
	cf_uring = &uring;
	no_cachestat = no_open = is_overlay = no_direct = set_aside = false;
	open_err = -EACCES;
	fh = NULL;
	return 0;
}

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	cf_os = &cf_os_real;
	cf_uring = &cf_uring_real;
	return err;
}

static bool disk_is_known(void)
{
	struct cf_cachestat stat;
	struct statfs fs;

	assert_int_equal(cf_os_real.fstatfs(file.plain, &fs), 0);
	return !cf_os_real.cachestat(file.plain, 0, 0, &stat) &&
	       (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == 0x58465342 ||
		fs.f_type == BTRFS_SUPER_MAGIC);
}

static void fini(void)
{
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_file_end(&file);
	free(content);
	free(got);
	th_close();
}

static void init(const char *hybrid, enum th_file_kind kind)
{
	if (hybrid)
		setenv("OCF_HYBRID", hybrid, 1);
	else
		unsetenv("OCF_HYBRID");
	th_need_gpu();
	th_open_for(kind);
	content = th_bytes(SIZE);
	got = malloc(SIZE);
	assert_non_null(got);
	th_file_make(&file, kind, O_RDWR, content, SIZE);
	th_mem_alloc(&mem, TH_DEVICE, SIZE);
	fh = th_handle(file.fd);
	if (disk_is_known())
		return;
	fini();
	th_skip("no ext4, XFS or btrfs in TMPDIR, or no cachestat");
}

/* On the disk, and in the page cache or not. */
static void clean(void)
{
	assert_int_equal(fsync(file.plain), 0);
}

static void cache(void)
{
	clean();
	th_file_get(&file, 0, got, SIZE);
}

/* A busy kernel may have a page in hand, and then keeps it. */
static void drop(size_t off, size_t size)
{
	struct cf_cachestat stat = { .cached = 1 };

	for (unsigned lap = 0; lap < 100 && stat.cached; lap++) {
		usleep(1000 * lap);
		clean();
		assert_int_equal(posix_fadvise(file.plain, (off_t)off,
					       (off_t)size,
					       POSIX_FADV_DONTNEED),
				 0);
		assert_int_equal(cf_os_real.cachestat(file.plain, (off_t)off,
						      size, &stat),
				 0);
	}
	assert_int_equal(stat.cached, 0);
}

static struct cf_cachestat ask(void)
{
	struct cf_cachestat stat;

	assert_int_equal(cf_os_real.cachestat(file.plain, 0, SIZE, &stat), 0);
	return stat;
}

static uint64_t cached_pages(void)
{
	return ask().cached;
}

static bool all_clean(void)
{
	struct cf_cachestat stat = ask();

	return stat.cached == SIZE / th_page() && !stat.dirty &&
	       !stat.writeback;
}

static void read_at(size_t off, size_t size)
{
	th_mem_set(&mem, 0xa5);
	atomic_store(&direct, 0);
	atomic_store(&buffered, 0);
	assert_int_equal(cuFileRead(fh, mem.ptr, size, (off_t)off, 0), size);
	th_mem_get(&mem, 0, got, SIZE);
	th_equal("read", got, content + off, size);
	th_all("behind the read", got + size, 0xa5, SIZE - size);
}

static void went(size_t by_direct, size_t by_buffered)
{
	assert_int_equal(atomic_load(&direct), by_direct);
	assert_int_equal(atomic_load(&buffered), by_buffered);
}

/* Why a read would go through the page cache; NULL: it would not. */
static const char *reason(void)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };

	assert_int_equal(
		ocf_explain_read(fh, mem.ptr, 8 * TH_MIB, 0, 0, &e).err,
		CU_FILE_SUCCESS);
	return e.page_cache;
}

/*
 * A read of what is cached and clean, which a busy kernel may undo at any
 * moment: such a read says nothing, and is made again. Returns the reason.
 */
static const char *read_cached(size_t off, size_t size)
{
	struct cf_cachestat stat;
	const char *why;

	for (unsigned lap = 0; lap < 100; lap++) {
		bool before;

		cache();
		before = all_clean();
		read_at(off, size);
		why = reason();
		if (before && all_clean())
			return why;
		usleep(1000 * lap);
	}
	stat = ask();
	fail_msg("never cached and clean: %llu pages, %llu dirty, %llu written",
		 (unsigned long long)stat.cached,
		 (unsigned long long)stat.dirty,
		 (unsigned long long)stat.writeback);
	return NULL;
}

/* ------------------------------------------------------------------ tests */

static void what_is_cached_and_clean_is_not_read_again(void **state)
{
	const char *why;

	init(NULL, TH_ODIRECT);
	read_cached(BLOCK, 8 * TH_MIB);
	went(0, 8 * TH_MIB);
	why = read_cached(100, 1000);
	went(0, 1000);
	assert_string_equal(why, "all of the range is cached and clean");
	drop(0, SIZE);
	assert_null(reason());
	fini();
}

static void what_is_not_cached_comes_from_the_disk(void **state)
{
	const size_t page = th_page();

	init(NULL, TH_ODIRECT);
	drop(0, SIZE);
	read_at(0, 8 * TH_MIB);
	went(8 * TH_MIB, 0);
	assert_int_equal(cached_pages(), 0);
	/* page by page: what comes as a large folio goes as a whole or not */
	assert_int_equal(posix_fadvise(file.plain, 0, 0, POSIX_FADV_RANDOM), 0);
	/* a page is missing: at the front, in the middle, at the end */
	for (size_t at = 0; at < 3; at++) {
		cache();
		drop(at * (4 * TH_MIB - page / 2) / page * page, page);
		read_at(0, 8 * TH_MIB);
		went(8 * TH_MIB, 0);
	}
	fini();
}

/* A busy kernel may have written it by the time that the read looks. */
static void what_is_dirty_goes_to_the_disk_first(void **state)
{
	init(NULL, TH_ODIRECT);
	atomic_store(&seen_dirty, false);
	for (unsigned lap = 0; lap < 100 && !atomic_load(&seen_dirty); lap++) {
		cache();
		th_fill(content + TH_MIB, 100);
		th_file_put(&file, TH_MIB, content + TH_MIB, 100);
		read_at(0, 8 * TH_MIB);
	}
	assert_true(atomic_load(&seen_dirty));
	went(8 * TH_MIB, 0);
	fini();
}

static void configuration_can_leave_files_as_they_were_opened(void **state)
{
	init("off", TH_ODIRECT);
	cache();
	read_at(0, 8 * TH_MIB);
	went(8 * TH_MIB, 0);
	fini();
}

static void a_forced_file_follows_the_same_rule(void **state)
{
	init(NULL, TH_FORCED);
	read_cached(0, 8 * TH_MIB);
	went(0, 8 * TH_MIB);
	drop(0, SIZE);
	read_at(0, 8 * TH_MIB);
	went(8 * TH_MIB, 0);
	fini();
}

static void a_write_stays_direct_and_is_seen_by_the_next_read(void **state)
{
	init(NULL, TH_ODIRECT);
	for (int lap = 0; lap < 4; lap++) {
		size_t off = th_below(7) * TH_MIB, size = 4 * TH_MIB;

		cache();
		th_fill(content + off, size);
		th_mem_put(&mem, 0, content + off, size);
		atomic_store(&buffered, 0);
		assert_int_equal(cuFileWrite(fh, mem.ptr, size, (off_t)off, 0),
				 size);
		assert_int_equal(atomic_load(&buffered), 0);
		read_at(off, size);
		read_at(0, SIZE);
	}
	fini();
}

/* What a page that is written both ways ends up with is anybody's guess. */
static void no_page_is_written_both_ways(void **state)
{
	init("off", TH_ODIRECT);
	for (int lap = 0; lap < 40; lap++) {
		size_t off = th_below(3 * TH_MIB);
		size_t size = TH_MIB + th_below(8 * TH_MIB);

		memset((void *)pages, 0, sizeof(pages));
		/* edges of all kinds: odd, a small block, a page */
		if (lap % 3 == 1)
			off = off / 512 * 512;
		if (lap % 4 == 1)
			size = size / 512 * 512 - off % 512;
		th_fill(content + off, size);
		th_mem_put(&mem, 0, content + off, size);
		assert_int_equal(cuFileWrite(fh, mem.ptr, size, (off_t)off, 0),
				 size);
		for (size_t i = 0; i < sizeof(pages[0]); i++)
			assert_false(pages[0][i] && pages[1][i]);
		th_file_get(&file, 0, got, SIZE);
		th_equal("written", got, content, SIZE);
	}
	fini();
}

/* lacks: what is missing from when the file is there. */
static void stays_as_it_is(bool *lacks)
{
	init("both", TH_ODIRECT);
	*lacks = true;
	cache();
	read_at(0, 8 * TH_MIB);
	went(8 * TH_MIB, 0);
	fini();
	setup(NULL);
	init("both", TH_BUFFERED);
	*lacks = true;
	drop(0, SIZE);
	read_at(0, 8 * TH_MIB);
	went(0, 8 * TH_MIB);
	fini();
}

static void a_kernel_that_cannot_tell_changes_nothing(void **state)
{
	stays_as_it_is(&no_cachestat);
}

/* It says that nothing is cached: the pages are those of the file below. */
static void an_overlay_that_says_nothing_is_cached_is_not_believed(void **state)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };

	is_overlay = true;
	init("both", TH_BUFFERED);
	drop(0, SIZE);
	assert_int_equal(ocf_explain_memory(fh, OCF_READ, OCF_MEMORY_DEVICE,
					    SIZE, 0, 0, &e)
				 .err,
			 0);
	assert_int_equal(e.cached_bytes, OCF_UNKNOWN);
	read_at(0, SIZE);
	went(0, SIZE);
	fini();
}

static void a_file_that_cannot_be_opened_again_stays_as_it_is(void **state)
{
	stays_as_it_is(&no_open);
}

static void write_at(size_t off, size_t size)
{
	th_fill(content + off, size);
	th_mem_put(&mem, 0, content + off, size);
	assert_int_equal(cuFileWrite(fh, mem.ptr, size, (off_t)off, 0), size);
	read_at(off, size);
}

/* As where a process may not open it any more. */
static void a_forced_file_that_cannot_be_opened_again_is_cached(void **state)
{
	init(NULL, TH_FORCED);
	no_open = true;
	read_at(0, 8 * TH_MIB);
	went(0, 8 * TH_MIB);
	write_at(BLOCK, 4 * TH_MIB);
	write_at(100, 1000);
	assert_string_equal(reason(), "the file system refused O_DIRECT");
	fini();
}

/* Until there is a descriptor again. */
static void without_descriptors_a_forced_file_is_cached_meanwhile(void **state)
{
	init(NULL, TH_FORCED);
	no_open = true;
	open_err = -EMFILE;
	read_at(0, 8 * TH_MIB);
	went(0, 8 * TH_MIB);
	write_at(BLOCK, 4 * TH_MIB);
	no_open = false;
	drop(0, SIZE);
	read_at(0, 8 * TH_MIB);
	went(8 * TH_MIB, 0);
	fini();
}

static void without_descriptors_a_cold_read_is_cached_meanwhile(void **state)
{
	init("both", TH_BUFFERED);
	no_open = true;
	open_err = -EMFILE;
	drop(0, SIZE);
	read_at(0, SIZE);
	went(0, SIZE);
	no_open = false;
	drop(0, SIZE);
	read_at(0, SIZE);
	went(SIZE, 0);
	fini();
}

/* Bytes that make no whole block have no descriptor of the page cache. */
static void what_cannot_be_opened_again_is_read_in_blocks(void **state)
{
	static const struct {
		size_t off, size;
	} rows[] = {
		{ 0, 1 },
		{ 1, BLOCK - 1 },
		{ 100, 1000 },
		{ BLOCK - 1, 2 },
		{ 100, 5 * TH_MIB + 7 },
		{ BLOCK, 2 * TH_MIB + 1 },
		{ SIZE - 1, 1 },
		{ SIZE - BLOCK - 5, BLOCK + 5 },
		{ SIZE - TH_MIB - 3, TH_MIB + 3 },
	};
	unsigned char *host;

	init("off", TH_ODIRECT);
	no_open = true;
	host = malloc(SIZE);
	assert_non_null(host);
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		size_t off = rows[i / 2].off, size = rows[i / 2].size;
		/* in the block as the file's bytes are, and not */
		unsigned char *at = host + (i % 2 ? off % BLOCK : 3);

		memset(host, 0xa5, SIZE);
		assert_int_equal(cuFileRead(fh, at, size, (off_t)off, 0), size);
		th_equal("read", at, content + off, size);
		th_all("before it", host, 0xa5, (size_t)(at - host));
		th_all("behind it", at + size, 0xa5, BLOCK);
		read_at(off, size);
	}
	/* behind the end there is nothing, and before it what there is */
	assert_int_equal(cuFileRead(fh, host, 100, SIZE + 1, 0), 0);
	assert_int_equal(cuFileRead(fh, host, 100, SIZE - 9, 0), 9);
	th_equal("the end", host, content + SIZE - 9, 9);
	assert_int_equal(cuFileRead(fh, host, 100, LLONG_MAX - 100, 0), 0);
	assert_int_equal(ftruncate(file.plain, SIZE - BLOCK + 10), 0);
	assert_int_equal(cuFileRead(fh, host, 100, SIZE - BLOCK + 50, 0), 0);
	/* there it would have to write neighbours */
	assert_int_equal(cuFileWrite(fh, host, 100, 50, 0), -1);
	assert_int_equal(errno, EACCES);
	free(host);
	fini();
}

static void such_a_read_into_memory_that_refuses_it_is_efault(void **state)
{
	char *page = mmap(NULL, BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	init("off", TH_ODIRECT);
	assert_ptr_not_equal(page, MAP_FAILED);
	no_open = true;
	assert_int_equal(cuFileRead(fh, page, 100, 50, 0), -1);
	assert_int_equal(errno, EFAULT);
	th_all("memory that refuses", page, 0, BLOCK);
	munmap(page, BLOCK);
	fini();
}

static ssize_t never_heard_of(void *to, const void *from, size_t size)
{
	return -ENOSYS;
}

static void where_no_call_looks_at_the_memory_they_come_too(void **state)
{
	unsigned char host[100];

	init("off", TH_ODIRECT);
	no_open = true;
	os.copy_out = never_heard_of;
	assert_int_equal(cuFileRead(fh, host, 100, 50, 0), 100);
	th_equal("read", host, content + 50, 100);
	fini();
}

/* Bytes of memory that a disk cannot be told of, or NULL. */
static unsigned char *secret(size_t size)
{
	int fd = (int)syscall(SYS_memfd_secret, 0);
	void *at = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static void memory_that_no_disk_reaches_goes_through_the_page_cache(
	void **state)
{
	const size_t most = 4 * TH_MIB; /* half of what is usually allowed */
	unsigned char *host = secret(most);

	if (!host)
		th_skip("no memfd_secret here, or no room for it");
	init("off", TH_ODIRECT);
	for (size_t size = BLOCK; size <= most; size *= 32) {
		memset(host, 0, size);
		assert_int_equal(cuFileRead(fh, host, size, 0, 0), size);
		th_equal("read", host, content, size);
		memcpy(host, content + SIZE - size, size);
		assert_int_equal(cuFileWrite(fh, host, size, 0, 0), size);
		memcpy(content, content + SIZE - size, size);
		th_file_get(&file, 0, got, SIZE);
		th_equal("written", got, content, SIZE);
		/* it says nothing about other memory */
		clean();
		read_at(0, size);
		went(size, 0);
	}
	munmap(host, most);
	fini();
}

/* One block further would be more than an offset can say. */
static void the_last_offsets_leave_a_direct_file_direct(void **state)
{
	unsigned char *host;

	init("off", TH_ODIRECT);
	host = malloc(SIZE);
	assert_non_null(host);
	for (size_t size = 1; size <= 2 * BLOCK; size = size * 2 + 1) {
		off_t off = LLONG_MAX - (off_t)size;

		assert_int_equal(cuFileRead(fh, mem.ptr, size, off, 0), 0);
		assert_int_equal(cuFileRead(fh, host, size, off, 0), 0);
	}
	free(host);
	read_at(0, TH_MIB);
	went(TH_MIB, 0);
	fini();
}

static void a_buffered_file_is_read_through_the_page_cache(void **state)
{
	const size_t all = SIZE / th_page();

	init(NULL, TH_BUFFERED);
	drop(0, SIZE);
	read_at(0, SIZE);
	went(0, SIZE);
	/* the kernel may take them back at any time, and did take two */
	for (unsigned lap = 0; lap < 100 && cached_pages() < all / 2; lap++)
		read_at(0, SIZE);
	assert_in_range(cached_pages(), all / 2, all);
	fini();
}

static void a_large_cold_read_goes_direct_if_asked_for(void **state)
{
	void *held;

	init("both", TH_BUFFERED);
	drop(0, SIZE);
	read_at(0, SIZE);
	went(SIZE, 0);
	assert_int_equal(cached_pages(), 0);
	/* too small, or not quite cold */
	read_at(0, TH_MIB);
	assert_int_equal(atomic_load(&direct), 0);
	held = mmap(NULL, TH_MIB, PROT_READ, MAP_SHARED | MAP_POPULATE,
		    file.plain, 0);
	assert_ptr_not_equal(held, MAP_FAILED);
	(void)mlock(held, TH_MIB); /* for a kernel that takes pages back */
	read_at(0, SIZE);
	went(0, SIZE);
	munmap(held, TH_MIB);
	fini();
}

/* Whose number the client got, having closed all that it found. */
static void a_file_in_the_place_of_the_second_descriptor_is_left_alone(
	void **state)
{
	int other, first, second;

	init(NULL, TH_ODIRECT);
	other = memfd_create("other", MFD_CLOEXEC);
	assert_true(other >= 0 && !ftruncate(other, SIZE));
	read_cached(0, 8 * TH_MIB);
	first = twin;
	assert_int_equal(dup2(other, first), first);
	read_cached(0, 8 * TH_MIB);
	went(0, 8 * TH_MIB);
	second = twin;
	assert_int_not_equal(second, first);

	assert_int_equal(dup2(other, second), second);
	th_fill(content + 100, 1000);
	th_mem_put(&mem, 0, content + 100, 1000);
	assert_int_equal(cuFileWrite(fh, mem.ptr, 1000, 100, 0), 1000);
	th_file_get(&file, 0, got, SIZE);
	th_equal("written", got, content, SIZE);
	assert_int_equal(pread(other, got, SIZE, 0), SIZE);
	th_all("the other file", got, 0, SIZE);
	fini();
	/* the client's they are, and open */
	assert_int_equal(close(first), 0);
	assert_int_equal(close(second), 0);
	close(other);
}

/* So it is where the file system refuses O_DIRECT, and all goes by that one. */
static void a_refused_file_looks_at_its_second_descriptor(void **state)
{
	int other, first;

	setenv("OCF_IO_URING", "0", 1);
	init(NULL, TH_ODIRECT);
	other = memfd_create("other", MFD_CLOEXEC);
	assert_true(other >= 0 && !ftruncate(other, SIZE));
	no_direct = true;
	read_at(0, 8 * TH_MIB);
	first = twin;
	assert_int_equal(dup2(other, first), first);
	read_at(0, 8 * TH_MIB);
	assert_int_not_equal(twin, first);
	fini();
	assert_int_equal(close(first), 0);
	close(other);
	unsetenv("OCF_IO_URING");
}

/* XFS sets blocks aside behind the end, which a direct read may not meet. */
static void a_direct_read_past_the_end_ends_with_the_file(void **state)
{
	const size_t end = SIZE - 3 * BLOCK - 1000;
	const size_t from[] = { 0, BLOCK, 1000, end - 5000, end - 100, end };

	setenv("OCF_IO_URING", "0", 1);
	init("off", TH_ODIRECT);
	assert_int_equal(ftruncate(file.plain, (off_t)end), 0);
	set_aside = true;
	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++) {
		size_t at = from[i], n = end - at;

		th_mem_set(&mem, 0xa5);
		assert_int_equal(
			cuFileRead(fh, mem.ptr, SIZE - at, (off_t)at, 0), n);
		th_mem_get(&mem, 0, got, SIZE);
		th_equal("up to the end", got, content + at, n);
		th_all("behind the end", got + n, 0xa5, SIZE - n);
	}
	assert_int_equal(cuFileRead(fh, mem.ptr, BLOCK, SIZE, 0), 0);
	fini();
	unsetenv("OCF_IO_URING");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_cached_and_clean_is_not_read_again),
		TEST(what_is_not_cached_comes_from_the_disk),
		TEST(what_is_dirty_goes_to_the_disk_first),
		TEST(configuration_can_leave_files_as_they_were_opened),
		TEST(a_forced_file_follows_the_same_rule),
		TEST(a_write_stays_direct_and_is_seen_by_the_next_read),
		TEST(no_page_is_written_both_ways),
		TEST(a_kernel_that_cannot_tell_changes_nothing),
		TEST(an_overlay_that_says_nothing_is_cached_is_not_believed),
		TEST(a_file_that_cannot_be_opened_again_stays_as_it_is),
		TEST(a_forced_file_that_cannot_be_opened_again_is_cached),
		TEST(without_descriptors_a_forced_file_is_cached_meanwhile),
		TEST(without_descriptors_a_cold_read_is_cached_meanwhile),
		TEST(what_cannot_be_opened_again_is_read_in_blocks),
		TEST(such_a_read_into_memory_that_refuses_it_is_efault),
		TEST(where_no_call_looks_at_the_memory_they_come_too),
		TEST(memory_that_no_disk_reaches_goes_through_the_page_cache),
		TEST(the_last_offsets_leave_a_direct_file_direct),
		TEST(a_buffered_file_is_read_through_the_page_cache),
		TEST(a_large_cold_read_goes_direct_if_asked_for),
		TEST(a_file_in_the_place_of_the_second_descriptor_is_left_alone),
		TEST(a_refused_file_looks_at_its_second_descriptor),
		TEST(a_direct_read_past_the_end_ends_with_the_file),
	};

	th_start(200);
	return th_finish(cmocka_run_group_tests_name("via", tests, NULL, NULL));
}
