// SPDX-License-Identifier: Apache-2.0
/* mapped_world - one file, whose windows are of the smallest size there is. */
#include "mapped_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/pins.h"
#include "fake_rm.h"

bool mw_pins;
size_t mw_chunk_size = 128 * TH_KIB;
const char *mw_idle_ms = "0";
size_t mw_open_from = 64 * TH_KIB, mw_use_from = 4 * TH_KIB;
struct th_mem mw_mem;
struct th_file mw_file;
CUfileHandle_t mw_fh;
unsigned char *mw_content, *mw_want, *mw_got;
static void *held; /* our own mapping of the file */
const struct cf_os *mw_usual = &cf_os_real;
static struct cf_os os;
static bool faked; /* the kernel driver */

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
	set_kib("OCF_MAPPED_CHUNK_KB", MW_CHUNK);
	set_kib("OCF_MAPPED_MIN_KB", mw_open_from);
	set_kib("OCF_MAPPED_USE_KB", mw_use_from);
	setenv("OCF_MAPPED_SETTLE_MS", "20", 1);
	setenv("OCF_MAPPED_IDLE_MS", mw_idle_ms, 1);
}

void mw_hold_pages(void)
{
	held = mmap(NULL, MW_SIZE, PROT_READ, MAP_SHARED | MAP_POPULATE,
		    mw_file.plain, 0);
	assert_ptr_not_equal(held, MAP_FAILED);
	/* mapped they stay where it is not allowed */
	(void)mlock(held, MW_SIZE);
}

void mw_let_pages_go(void)
{
	if (held)
		munmap(held, MW_SIZE);
	held = NULL;
}

void mw_end(void)
{
	mw_let_pages_go();
	cuFileHandleDeregister(mw_fh);
	th_mem_free(&mw_mem);
	th_file_end(&mw_file);
	free(mw_content);
	free(mw_want);
	free(mw_got);
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
	mw_end();
	th_skip("the kernel driver pins no pages");
}

static void (*_Atomic change)(void);

/* The first look at the page table: the first copy is done. */
static ssize_t pread_and_change(int fd, void *buf, size_t size, off_t off)
{
	void (*now)(void) = atomic_exchange(&change, NULL);

	if (now)
		now();
	return cf_os_real.pread(fd, buf, size, off);
}

static atomic_ulong looks;

static int statx_and_count(int fd, unsigned mask, struct statx *stx)
{
	atomic_fetch_add(&looks, 1);
	return cf_os_real.statx(fd, mask, stx);
}

unsigned long mw_looks(void)
{
	return atomic_load(&looks);
}

/* For as long as the test lasts, while no thread of the library is there. */
static void take_os(void)
{
	if (mw_usual != &cf_os_real)
		return;
	faked = mw_pins && th_fake();
	if (faked)
		fake_rm_begin();
	os = *cf_os;
	os.pread = pread_and_change;
	os.statx = statx_and_count;
	mw_usual = cf_os = &os;
}

void mw_begin_with(const char *mode, size_t cache, enum th_file_kind kind)
{
	th_need_gpu();
	configure(mode, cache);
	take_os();
	th_open();
	mw_content = th_bytes(MW_SIZE);
	mw_want = malloc(MW_SIZE + 2 * MW_PAD);
	mw_got = malloc(MW_SIZE + 2 * MW_PAD);
	assert_non_null(mw_want);
	assert_non_null(mw_got);
	th_file_make(&mw_file, kind, O_RDWR, mw_content, MW_SIZE);
	th_mem_alloc(&mw_mem, TH_DEVICE, MW_SIZE + 2 * MW_PAD);
	mw_fh = th_handle(mw_file.fd);
	/* what is read there others test */
	if (!th_file_mappable(&mw_file)) {
		mw_end();
		th_skip("no ext4, XFS or btrfs in TMPDIR, or no cachestat");
	}
	mw_hold_pages();
	th_sleep_ms(MW_REST_MS);
	if (mw_pins && strcmp(mode, "auto"))
		try_pins();
}

void mw_begin(void)
{
	mw_begin_with("kept", 32 * MW_CHUNK, TH_BUFFERED);
}

const char *mw_kept_as(void)
{
	return mw_pins ? "vmm_map" : "host_register";
}

const char *mw_registers(void)
{
	return mw_pins ? "cuMemImportFromShareableHandle" :
			 "cuMemHostRegister_v2";
}

struct cf_windows_counts mw_counts(void)
{
	struct cf_windows_counts c;

	cf_windows_count(&c);
	return c;
}

void mw_read_is(CUfileHandle_t handle, size_t size, size_t off,
		const unsigned char *bytes, size_t n)
{
	th_fill(mw_want, MW_SIZE + 2 * MW_PAD);
	th_mem_put(&mw_mem, 0, mw_want, MW_SIZE + 2 * MW_PAD);
	assert_int_equal(
		cuFileRead(handle, mw_mem.ptr, size, (off_t)off, MW_PAD),
		(ssize_t)n);
	memcpy(mw_want + MW_PAD, bytes, n);
	th_mem_get(&mw_mem, 0, mw_got, MW_SIZE + 2 * MW_PAD);
	th_equal("in front", mw_got, mw_want, MW_PAD);
	th_equal("the read", mw_got + MW_PAD, mw_want + MW_PAD, n);
	th_equal("behind", mw_got + MW_PAD + size, mw_want + MW_PAD + size,
		 MW_SIZE + MW_PAD - size);
}

void mw_read_all(void)
{
	mw_read_is(mw_fh, MW_SIZE, 0, mw_content, MW_SIZE);
}

void mw_all_are_closed(void)
{
	for (int ms = 0; ms < 30000 && mw_counts().bytes; ms++)
		th_sleep_ms(1);
	assert_int_equal(mw_counts().open, 0);
	assert_int_equal(mw_counts().bytes, 0);
}

/*
 * Reads again where the kernel took a page back meanwhile, and so a window; on
 * a machine that is busy with others that takes its time.
 */
void mw_warm(void)
{
	mw_read_all();
	mw_read_all();
	for (int i = 0; i < 500 && mw_counts().open < MW_NR_CHUNKS; i++) {
		if (i >= 8)
			th_sleep_ms(10);
		mw_read_all();
	}
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
}

void mw_begin_hot(void)
{
	if (!mw_pins)
		th_skip("chunks are too small to be pinned");
	mw_begin_with("auto", 32 * MW_CHUNK, TH_BUFFERED);
	for (int i = 0; i < 4; i++)
		mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
}

int mw_open_direct(void)
{
	int fd = open(mw_file.path, O_RDWR | O_DIRECT | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	mw_end();
	th_skip("the file system has no O_DIRECT");
	return -1;
}

void mw_write_direct(int fd, size_t at, size_t size)
{
	void *block = NULL;

	assert_int_equal(posix_memalign(&block, 4096, size), 0);
	th_fill(block, size);
	memcpy(mw_content + at, block, size);
	assert_int_equal(pwrite(fd, block, size, (off_t)at), (ssize_t)size);
	free(block);
}

int mw_statx_frozen(int fd, unsigned mask, struct statx *stx)
{
	int err = cf_os_real.statx(fd, mask, stx);

	stx->stx_ctime = stx->stx_mtime =
		(struct statx_timestamp){ .tv_sec = 1000 };
	return err;
}

void mw_storm_begin(struct mw_storm *s)
{
	s->direct = open(mw_file.path, O_RDWR | O_DIRECT | O_CLOEXEC);
	memset(mw_content, 0, MW_SIZE);
	th_file_put(&mw_file, 0, mw_content, MW_SIZE);
}

static bool storm_lasts(const struct mw_storm *s, uint64_t ns)
{
	struct cf_windows_counts c = mw_counts();

	if (ns < (TH_SANITIZED ? 3000 : 1500) * 1000000ull)
		return true;
	return (!c.used || c.opened <= s->opens) && ns < 30000000000ull;
}

void mw_storm_write(struct mw_storm *s)
{
	uint32_t *page = aligned_alloc(4096, s->size);
	uint64_t begun = th_now_ns();

	for (uint32_t v = 1; storm_lasts(s, th_now_ns() - begun); v++) {
		for (size_t i = 0; i < s->size / sizeof(v); i++)
			page[i] = v;
		atomic_store(&s->begun, v);
		if (v % 3 == 2)
			(void)!ftruncate(mw_file.plain, (off_t)s->size);
		if (pwrite(v & 1 && s->direct >= 0 ? s->direct : mw_file.plain,
			   page, s->size, 0) != (ssize_t)s->size)
			th_bad_note(&s->bad, "write %u: %d", v, errno);
		atomic_store(&s->done, v);
		th_sleep_ms((unsigned)th_below(s->gap_ms));
	}
	atomic_store(&s->over, true);
	free(page);
}

void mw_storm_look(struct mw_storm *s, const uint32_t *words, size_t size,
		   uint32_t low)
{
	uint32_t high = atomic_load(&s->begun);

	for (size_t at = 0; at < size / 4; at++)
		if (words[at] < low || words[at] > high)
			th_bad_note(&s->bad, "word %zu is %u, not %u to %u", at,
				    words[at], low, high);
}

void mw_storm_end(struct mw_storm *s)
{
	th_bad_check(&s->bad);
	if (s->direct >= 0)
		close(s->direct);
}

void mw_change_during(void (*changes)(void), void (*reads)(void))
{
	atomic_store(&change, changes);
	th_need_fake()->copy_delay_us(5000); /* the others are on their way */
	reads();
	th_need_fake()->copy_delay_us(0);
	assert_null(atomic_load(&change));
}

int mw_teardown(void **state)
{
	int err = th_teardown_close(state);

	if (faked)
		fake_rm_end();
	faked = false;
	mw_usual = cf_os = &cf_os_real;
	mw_open_from = 64 * TH_KIB;
	mw_use_from = 4 * TH_KIB;
	return err;
}

void mw_start(void)
{
	mw_pins = getenv("TEST_PINS");
	mw_chunk_size = mw_pins ? 4 * TH_MIB : 128 * TH_KIB;
	th_start(120);
}
