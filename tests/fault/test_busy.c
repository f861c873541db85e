// SPDX-License-Identifier: Apache-2.0
/* Ends that meet work in progress: they wait, and the work comes out right. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "fault.h"
#include "harness.h"
#include "leases.h"

#define SIZE (TH_MIB + 17)
#define WORK_MS 300

struct work {
	struct th_bad bad;
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned char *content;
	bool by_close;
	unsigned long steps; /* that had been made before the read */
};

/* A slow step of a read: a copy, or a call of the disk's. */
static unsigned long steps_made(void)
{
	return fault_calls(FAULT_PREAD) + (th_fake() ? th_copies_in() : 0);
}

/* The read is in the first of its slow steps, or further. */
static void await_read(const struct work *w)
{
	while (steps_made() == w->steps)
		th_sleep_ms(1);
}

/* The handle is on its way out: nobody else gets in by it. */
static void await_deregister(const struct work *w)
{
	char byte;

	while (cuFileRead(w->fh, &byte, 1, 0, 0) == 1)
		th_sleep_ms(1);
}

static void *read_slowly(void *arg)
{
	struct work *w = arg;
	ssize_t n = cuFileRead(w->fh, w->mem.ptr, SIZE, 0, 0);

	if (n != (ssize_t)SIZE)
		th_bad_note(&w->bad, "read: %zd, errno %d", n, errno);
	return NULL;
}

static void end_must_wait(struct work *w, bool by_close)
{
	unsigned char *got = malloc(SIZE);

	if (by_close)
		th_close();
	else
		cuFileHandleDeregister(w->fh);
	/*
	 * Nobody is inside any more, so all bytes are where they belong: at
	 * once, not when one more slow copy has been behind the others.
	 */
	if (th_fake())
		th_fake()->read((uintptr_t)w->mem.ptr, got, SIZE);
	else
		th_mem_get(&w->mem, 0, got, SIZE);
	if (memcmp(got, w->content, SIZE))
		th_bad_note(&w->bad, "%s did not wait for the read",
			    by_close ? "close" : "deregister");
	free(got);
}

/* 0 reads; 1 ends the handle or the driver meanwhile; 2 ends both. */
static void play(void *arg, unsigned i)
{
	struct work *w = arg;

	if (!i) {
		read_slowly(w);
		return;
	}
	await_read(w);
	if (i == 2)
		await_deregister(w);
	end_must_wait(w, i == 2 || w->by_close);
}

static void run(struct work *w, unsigned nr_threads)
{
	unsigned char *got = malloc(SIZE);

	assert_non_null(got);
	th_open();
	w->content = th_bytes(SIZE);
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, w->content, SIZE);
	th_mem_alloc(&w->mem, TH_DEVICE, SIZE);
	w->fh = th_handle(w->file.fd);
	w->steps = steps_made();
	th_threads(nr_threads, play, w);
	th_bad_check(&w->bad);
	th_mem_get(&w->mem, 0, got, SIZE);
	th_equal("the read that was waited for", got, w->content, SIZE);
	assert_int_equal(cuFileRead(w->fh, w->mem.ptr, 1, 0, 0), -1);
	assert_int_equal(errno, EINVAL);
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->content);
	free(got);
	leases_check("after the waits");
	th_close();
}

static void slow_copies(void)
{
	th_need_fake()->copy_delay_us(WORK_MS * 1000 / 2);
}

static void deregister_waits_for_slow_copies(void **state)
{
	struct work w = { 0 };

	(void)state;
	slow_copies();
	run(&w, 2);
}

static void close_waits_for_slow_copies(void **state)
{
	struct work w = { .by_close = true };

	(void)state;
	slow_copies();
	run(&w, 2);
}

static void deregister_waits_for_slow_disks(void **state)
{
	const struct fault fault = { .slow_ms = WORK_MS / 2 };
	struct work w = { 0 };

	(void)state;
	th_need_gpu();
	fault_begin(&fault);
	run(&w, 2);
	fault_end();
}

/* A handle that is on its way out is still somebody's. */
static void close_waits_where_a_deregister_waits_already(void **state)
{
	struct work w = { 0 };

	(void)state;
	slow_copies();
	run(&w, 3);
}

/* ---------------------------------------------- buffers on their way out */

static void buffer_deregister_during_a_read_harms_nobody(void **state)
{
	struct work w = { 0 };
	unsigned char *got = malloc(SIZE);

	(void)state;
	assert_non_null(got);
	slow_copies();
	th_open();
	w.content = th_bytes(SIZE);
	th_file_make(&w.file, TH_BUFFERED, O_RDWR, w.content, SIZE);
	th_mem_alloc(&w.mem, TH_DEVICE, SIZE);
	assert_int_equal(cuFileBufRegister(w.mem.ptr, SIZE, 0).err, 0);
	w.fh = th_handle(w.file.fd);
	for (int i = 0; i < 2; i++) {
		pthread_t thread;

		w.steps = steps_made();
		assert_int_equal(pthread_create(&thread, NULL, read_slowly, &w),
				 0);
		await_read(&w);
		assert_int_equal(i ? cuFileBufRegister(w.mem.ptr, SIZE, 0).err :
				     cuFileBufDeregister(w.mem.ptr).err,
				 0);
		pthread_join(thread, NULL);
		th_bad_check(&w.bad);
		th_mem_get(&w.mem, 0, got, SIZE);
		th_equal("the read", got, w.content, SIZE);
	}
	assert_int_equal(cuFileBufDeregister(w.mem.ptr).err, 0);
	cuFileHandleDeregister(w.fh);
	th_mem_free(&w.mem);
	th_file_end(&w.file);
	free(w.content);
	free(got);
	th_close();
}

#define TEST(test) cmocka_unit_test_teardown(test, teardown)

static int teardown(void **state)
{
	fault_end();
	return th_teardown_close(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(deregister_waits_for_slow_copies),
		TEST(close_waits_for_slow_copies),
		TEST(deregister_waits_for_slow_disks),
		TEST(buffer_deregister_during_a_read_harms_nobody),
		TEST(close_waits_where_a_deregister_waits_already),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("busy", tests, NULL, NULL));
}
