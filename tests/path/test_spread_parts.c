// SPDX-License-Identifier: Apache-2.0
/*
 * Who carries the parts of a large write to tmpfs: as many as it was planned
 * for, each one at a time, and one alone where too few would come or others
 * run.
 */
#include <fcntl.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <unistd.h>
#include "seam/os.h"
#include "spread_world.h"

#define PATIENCE_MS 10000

static struct cf_os os;
static _Atomic unsigned here, most, wanted;

/* Nobody goes on before all are there that are wanted. */
static ssize_t meet(void *mem, const void *buf, size_t size)
{
	unsigned nr = atomic_fetch_add(&here, 1) + 1;

	for (unsigned i = 0; i < PATIENCE_MS && most < wanted; i++) {
		if (nr >= wanted)
			atomic_store(&most, nr);
		th_sleep_ms(1);
	}
	atomic_fetch_sub(&here, 1);
	return cf_os_real.copy_to(mem, buf, size);
}

static int setup_meeting(void **state)
{
	int err = setup(state);

	os = *cf_os;
	os.copy_to = meet;
	cf_os = &os;
	here = most = wanted = 0;
	return err;
}

/* A carrier that took parts ahead would leave none to others. */
static void all_who_come_have_a_part(void **state)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };
	struct world w;

	world_of(&w, TH_DEVICE, 7);
	assert_int_equal(ocf_explain_write(w.fh, w.mem.ptr, SIZE, 0, 0, &e).err,
			 0);
	assert_int_equal(e.carriers, 8);
	wanted = e.carriers;
	assert_int_equal(write_new(&w, 0, SIZE, 0), SIZE);
	assert_int_equal(most, wanted);
	check_file(&w);
	world_end(&w);
}

static void two_are_too_few(void **state)
{
	static const unsigned maps_with[] = { 0, 0, 1 };
	struct world w;

	for (size_t workers = 0; workers < 3; workers++) {
		world_of(&w, TH_DEVICE, workers);
		mapped = 0;
		assert_int_equal(write_new(&w, 0, LARGE, 0), LARGE);
		assert_int_equal(mapped, maps_with[workers]);
		check_file(&w);
		world_end(&w);
	}
}

/* What somebody asked for is not passed over. */
static void small_slots_and_one_part_are_for_one(void **state)
{
	struct world w;

	th_slots_of(512 * TH_KIB);
	world_of(&w, TH_DEVICE, 7);
	assert_int_equal(write_new(&w, 0, LARGE, 0), LARGE);
	check_file(&w);
	world_end(&w);
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB,
			LARGE / TH_KIB + 1)
			.err,
		0);
	world_of(&w, TH_DEVICE, 7);
	assert_int_equal(write_new(&w, 0, LARGE, 0), LARGE);
	check_file(&w);
	world_end(&w);
	assert_int_equal(mapped, 0);
}

/* Where the kernel has it for tmpfs: since 6.6. */
static void so_is_what_goes_direct(void **state)
{
	CUfileHandle_t plain;
	struct world w;
	int fd;

	world_of(&w, TH_DEVICE, 7);
	fd = open(w.file.path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (fd < 0) {
		world_end(&w);
		th_skip("no O_DIRECT on tmpfs");
	}
	plain = w.fh;
	w.fh = th_handle(fd);
	assert_int_equal(write_new(&w, 0, LARGE, 0), LARGE);
	assert_int_equal(mapped, 0);
	check_file(&w);
	cuFileHandleDeregister(w.fh);
	assert_int_equal(close(fd), 0);
	w.fh = plain;
	world_end(&w);
}

#define OTHERS 4

/* Reads that are held up as long as somebody wants. */
static struct beside {
	struct world *w;
	CUfileHandle_t fh;
	_Atomic unsigned reading;
	_Atomic bool over;
	size_t others;
	ssize_t n;
} beside;

static ssize_t hold_pread(int fd, void *buf, size_t size, off_t off)
{
	atomic_fetch_add(&beside.reading, 1);
	for (unsigned i = 0; i < PATIENCE_MS && !beside.over; i++)
		th_sleep_ms(1);
	return cf_os_real.pread(fd, buf, size, off);
}

static void run_beside(void *arg, unsigned i)
{
	struct world *w = beside.w;
	char *mem = w->mem.ptr;

	if (i < beside.others) {
		(void)cuFileRead(beside.fh, mem, 4096, 0,
				 (off_t)(LARGE + i * 4096));
		return;
	}
	for (unsigned k = 0; k < PATIENCE_MS && beside.reading < i; k++)
		th_sleep_ms(1);
	beside.n = cuFileWrite(w->fh, mem, LARGE, 0, 0);
	atomic_store(&beside.over, true);
}

/* They have the processors. */
static void beside_many_one_writes_alone(void **state)
{
	struct th_file file;
	struct world w;

	for (size_t others = OTHERS - 1; others <= OTHERS; others++) {
		world_of(&w, TH_DEVICE, 15); /* three for each */
		th_file_make(&file, TH_TMPFS, O_RDWR, w.model, TH_MIB);
		beside = (struct beside){ .w = &w,
					  .fh = th_handle(file.fd),
					  .others = others };
		th_fill(w.model, LARGE);
		th_mem_put(&w.mem, 0, w.model, LARGE);
		mapped = 0;
		os.pread = hold_pread;
		th_threads((unsigned)others + 1, run_beside, NULL);
		os.pread = cf_os_real.pread;
		assert_int_equal(beside.n, LARGE);
		assert_int_equal(mapped, others < OTHERS);
		check_file(&w);
		cuFileHandleDeregister(beside.fh);
		th_file_end(&file);
		world_end(&w);
	}
}

#define MEETING_TEST(name) \
	cmocka_unit_test_setup_teardown(name, setup_meeting, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MEETING_TEST(all_who_come_have_a_part),
		MEETING_TEST(two_are_too_few),
		MEETING_TEST(small_slots_and_one_part_are_for_one),
		MEETING_TEST(so_is_what_goes_direct),
		MEETING_TEST(beside_many_one_writes_alone),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("spread_parts", tests, NULL, NULL));
}
