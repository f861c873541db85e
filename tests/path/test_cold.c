// SPDX-License-Identifier: Apache-2.0
/*
 * Reads that the disk has to bring are left to one thread, in one call, and
 * larger ones to two, with their pages asked for; others are split as ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "harness.h"
#include "seam/os.h"

#define WORKERS 6 /* asked for, so that the machine does not matter */
#define PAD TH_MIB
#define SIZE (4 * TH_MIB + 1 + 2 * PAD)

static struct cf_os os;
static _Atomic int64_t read_ns; /* a call takes so long */
static atomic_bool cached;
static atomic_uint calls, asked;
static _Atomic size_t ahead; /* bytes that were asked for */
static int refusal;
static _Atomic size_t longest;

static ssize_t read_of_the_test(int fd, void *buf, size_t size, off_t off)
{
	size_t most = atomic_load(&longest);

	while (size > most &&
	       !atomic_compare_exchange_weak(&longest, &most, size))
		continue;
	atomic_fetch_add(&calls, 1);
	atomic_fetch_add(&th_clock_ns, atomic_load(&read_ns));
	return cf_os_real.pread(fd, buf, size, off);
}

static int cache_of_the_test(int fd, off_t off, size_t len,
			     struct cf_cachestat *out)
{
	(void)fd, (void)off, (void)len;
	atomic_fetch_add(&asked, 1);
	*out = (struct cf_cachestat){ .cached = atomic_load(&cached) };
	return 0;
}

static int ahead_of_the_test(int fd, off_t off, size_t size)
{
	assert_true(fd >= 0 && off >= (off_t)PAD);
	atomic_fetch_add(&ahead, size);
	return refusal ? refusal : cf_os_real.read_ahead(fd, off, size);
}

/* One of whose pages the kernel tells, wherever the tests are run. */
static int fs_of_the_test(int fd, struct statfs *fs)
{
	int err = cf_os_real.fstatfs(fd, fs);

	fs->f_type = EXT4_SUPER_MAGIC;
	return err;
}

static int setup(void **state)
{
	os = cf_os_real;
	os.clock_gettime = th_clock;
	os.pread = read_of_the_test;
	os.cachestat = cache_of_the_test;
	os.read_ahead = ahead_of_the_test;
	os.fstatfs = fs_of_the_test;
	cf_os = &os;
	atomic_store(&th_clock_ns, 1000000000);
	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, WORKERS)
				 .err,
			 0);
	return th_setup_open(state);
}

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	cf_os = &cf_os_real;
	return err;
}

struct world {
	unsigned char *bytes, *got; /* the file's; room for the memory's */
	struct th_file file;
	CUfileHandle_t fh;
	struct th_mem mem;
};

/* Reads size bytes from where the pad ends to where it does. */
static void read_some(struct world *w, size_t size)
{
	atomic_store(&calls, 0);
	atomic_store(&asked, 0);
	atomic_store(&longest, 0);
	atomic_store(&ahead, 0);
	th_mem_set(&w->mem, 0xa5);
	assert_int_equal(cuFileRead(w->fh, w->mem.ptr, size, PAD, PAD), size);
	th_mem_get(&w->mem, 0, w->got, SIZE);
	th_equal("the bytes", w->got + PAD, w->bytes + PAD, size);
	for (size_t i = 0; i < PAD; i++)
		assert_true(w->got[i] == 0xa5 &&
			    w->got[PAD + size + i] == 0xa5);
}

static void is_split(struct world *w, size_t size)
{
	read_some(w, size);
	assert_true(atomic_load(&calls) >= WORKERS);
	assert_true(atomic_load(&longest) < TH_MIB);
	assert_int_equal(atomic_load(&ahead), 0);
}

static unsigned carriers_of(struct world *w, size_t size)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };

	assert_int_equal(
		ocf_explain_read(w->fh, w->mem.ptr, size, PAD, PAD, &e).err, 0);
	return e.carriers;
}

/* At a place where the reads before did not end, see core/ahead.h. */
static void is_asked_for(struct world *w, size_t size, unsigned nr_calls)
{
	read_some(w, size);
	assert_int_equal(atomic_load(&calls), nr_calls);
	assert_int_equal(atomic_load(&ahead), size);
}

static void goes_cold_and_warm_again(struct world *w)
{
	atomic_store(&cached, false);
	atomic_store(&read_ns, 1000000000);
	is_split(w, TH_MIB);
	assert_int_equal(atomic_load(&asked), 0);
	/* in one call, unless it is large */
	read_some(w, TH_MIB);
	assert_int_equal(atomic_load(&calls), 1);
	assert_int_equal(carriers_of(w, TH_MIB), 1);
	assert_int_equal(atomic_load(&ahead), 0);
	is_asked_for(w, 4 * TH_MIB, 1);
	for (refusal = 0; refusal >= -EINVAL; refusal -= EINVAL) {
		is_asked_for(w, 4 * TH_MIB + 1, 9);
		assert_int_equal(atomic_load(&longest), TH_MIB / 2);
		assert_int_equal(carriers_of(w, 4 * TH_MIB + 1), 2);
	}
	refusal = 0;
	/* it was slow, and is there now */
	atomic_store(&cached, true);
	assert_int_equal(carriers_of(w, TH_MIB), 1 + WORKERS);
	is_split(w, TH_MIB);
	assert_true(atomic_load(&asked) > 0);
	atomic_store(&read_ns, 0);
	is_split(w, TH_MIB);
	assert_true(atomic_load(&asked) > 0);
	/* quick: nobody asks any more */
	atomic_store(&cached, false);
	is_split(w, TH_MIB);
	assert_int_equal(atomic_load(&asked), 0);
}

static void a_cold_read_is_left_to_one(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_MALLOC, TH_DEVICE };
	struct world w = { .bytes = th_bytes(SIZE), .got = malloc(SIZE) };

	(void)state;
	assert_non_null(w.got);
	th_file_make(&w.file, TH_BUFFERED, O_RDONLY, w.bytes, SIZE);
	w.fh = th_handle(w.file.fd);
	for (unsigned i = 0; i < 2; i++) {
		if (th_mem_is_device(kinds[i]) && !th_gpu(NULL))
			continue;
		th_mem_alloc(&w.mem, kinds[i], SIZE);
		goes_cold_and_warm_again(&w);
		th_mem_free(&w.mem);
	}
	cuFileHandleDeregister(w.fh);
	th_file_end(&w.file);
	free(w.bytes);
	free(w.got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_cold_read_is_left_to_one,
						setup, teardown),
	};

	th_start(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
