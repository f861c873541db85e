// SPDX-License-Identifier: Apache-2.0
/*
 * Fail everything of the path by nvidia-fs, one call at a time, once and from
 * then on: the bytes are right all the same, or an honest error is told, and
 * nothing is left behind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"
#include "core/nvfs_io.h"
#include "core/nvfs_mapping.h"

#define SIZE (3 * TH_MIB)

/* What may fail with what; the path by host memory stays. */
static const struct row {
	enum fake_row row;
	int err;
	bool io_may_fail; /* that path needs the call, too */
} rows[] = {
	{ FAKE_OPEN, EMFILE, true },	    { FAKE_IOCTL, EIO, false },
	{ FAKE_IOCTL, EPERM, false },	    { FAKE_IOCTL, EBUSY, false },
	{ FAKE_MAP_SHARED, ENOMEM, false }, { FAKE_MAP_ANON, ENOMEM, true },
	{ FAKE_MADVISE, ENOMEM, false },    { FAKE_FSTAT, EIO, true },
	{ FAKE_CLOCK, EINVAL, false },
};

static ssize_t checked(ssize_t n, size_t size, const char *what)
{
	if (n < -1 || n > (ssize_t)size)
		fail_msg("%s: answers %zd", what, n);
	return n > 0 ? n : 0;
}

/* A short life: a read and a write, each partly, wholly or not at all. */
static bool live(const struct row *row, unsigned nth, bool persist)
{
	size_t size = 2 * TH_MIB + 100;
	char what[64];
	ssize_t n;
	bool fired;
	struct rig r;

	snprintf(what, sizeof(what), "row %d call %u%s", row->row, nth,
		 persist ? " and on" : "");
	fake_nvfs_begin();
	fake_nvfs_fail(row->row, nth, persist, row->err);
	rig_begin(&r, SIZE);
	n = cuFileRead(r.fh, r.mem.ptr, size, 4096, 8192);
	if (n != (ssize_t)size && !row->io_may_fail)
		fail_msg("%s: read %zd", what, n);
	memcpy(r.gpu + 8192, r.bytes + 4096, (size_t)checked(n, size, what));
	n = cuFileWrite(r.fh, r.mem.ptr, size, 0, 0);
	if (n != (ssize_t)size && !row->io_may_fail)
		fail_msg("%s: write %zd", what, n);
	memcpy(r.bytes, r.gpu, (size_t)checked(n, size, what));
	fired = fake_nvfs_fired();
	fake_nvfs_fail(row->row, 0, false, 0);
	rig_check(&r, what);
	/* and then it works, by the driver where that was there */
	rig_read(&r, TH_MIB, 0, 4096, TH_MIB);
	rig_end(&r);
	fake_nvfs_end();
	return fired;
}

static void any_call_of_the_path_may_fail(void **state)
{
	unsigned failures = 0;

	(void)th_need_fake();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int persist = 0; persist < 2; persist++)
			for (unsigned nth = 1;
			     nth < TH_SCALE(12) && live(&rows[i], nth, persist);
			     nth++)
				failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 30);
}

/* A shadow that cannot be unmapped keeps its fence page pinned: it stays. */
static void an_unmap_that_fails_stops_nobody(void **state)
{
	struct rig r;

	(void)th_need_fake();
	fake_nvfs_begin();
	rig_begin(&r, SIZE);
	rig_read(&r, TH_MIB, 0, 0, TH_MIB);
	fake_nvfs_fail(FAKE_UNMAP, 1, true, EINVAL);
	assert_int_equal(cuFileBufDeregister(r.mem.ptr).err, 0);
	assert_int_equal(fake_nvfs_live(), 1);
	assert_int_equal(fake_nvfs_violations(), 0);
	fake_nvfs_fail(FAKE_UNMAP, 0, false, 0);
	assert_int_equal(cuFileBufRegister(r.mem.ptr, SIZE, 0).err, 0);
	rig_read(&r, TH_MIB, 4096, 0, TH_MIB);
	rig_end(&r);
	assert_int_equal(fake_nvfs_live(), 1);
	assert_int_equal(fake_nvfs_violations(), 0);
}

/* How many of the bytes of a read are holes by this fence. */
static size_t holes_in(struct cf_nvfs_op *op, size_t n)
{
	size_t at = 0, size, sum = 0, before = 0;

	while (cf_nvfs_next_hole(op, n, &at, &size)) {
		if (at < before || !size || size > n - at)
			fail_msg("a hole of %zu at %zu, behind %zu of %zu",
				 size, at, before, n);
		before = at += size;
		sum += size;
	}
	return sum;
}

static int64_t any_start(off_t off)
{
	static const int64_t starts[] = { INT64_MIN, -1, 0, INT64_MAX - 4095,
					  INT64_MAX };
	size_t i = th_random() % 8;

	return i < 5 ? starts[i] : off + (int64_t)(i - 6) * 8192;
}

/*
 * Whatever the page of a fence says, holes are bytes of the read, each once;
 * where it does not say which, all of them are.
 */
static void a_fence_of_any_bytes_names_bytes_of_the_read(void **state)
{
	static struct cf_nvfs_fence fence;
	struct cf_nvfs_mapping map = { .fence = &fence };
	struct cf_nvfs_op op = { .map = &map, .off = 1 << 20 };
	size_t n = 64 * TH_KIB;

	for (int i = 0; i < 20000; i++) {
		for (unsigned k = 0; k < CF_NVFS_MAX_HOLES && !(i & 0xff); k++)
			fence.holes[k] =
				(struct cf_nvfs_hole){ (uint16_t)th_random(),
						       (uint16_t)th_random() };
		fence.holes[i % 4].first = (uint16_t)(i % 20);
		fence.holes[i % 4].nr = (uint16_t)(i % 3);
		fence.state = CF_NVFS_SPARSE;
		fence.magic = CF_NVFS_FENCE_MAGIC;
		fence.version = CF_NVFS_FENCE_VERSION;
		fence.nr_holes =
			(uint32_t)(th_random() % (CF_NVFS_MAX_HOLES + 3));
		fence.start = any_start(op.off);
		if (!fence.nr_holes || fence.nr_holes > CF_NVFS_MAX_HOLES ||
		    fence.start < 0 || fence.start > op.off + (int64_t)n)
			assert_int_equal(holes_in(&op, n), n);
		else
			assert_true(holes_in(&op, n) <= n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(any_call_of_the_path_may_fail),
		RIG_TEST(an_unmap_that_fails_stops_nobody),
		RIG_TEST(a_fence_of_any_bytes_names_bytes_of_the_read),
	};

	th_start(250);
	return th_finish(
		cmocka_run_group_tests_name("nvfs_fault", tests, NULL, NULL));
}
