// SPDX-License-Identifier: Apache-2.0
/*
 * ring - flights through a kernel that answers as the test says: late, in
 * another order, in part, with errors, or not at all; and through the real
 * one where it may be asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/ring.h"
#include "harness.h"
#include "seam/os.h"
#include "seam/uring.h"

#define BLOCK th_page() /* a write of less does not fly */
#define NR 16		/* flights of most tests */
#define PART (8 * BLOCK)
#define SIZE (NR * PART)

/* ------------------------------------------------------- a made-up kernel */

struct queued {
	bool write;
	int fd;
	char *mem;
	size_t size;
	off_t off;
	uint64_t cookie;
};

struct cf_kring {
	struct queued queued[CF_RING_DEPTH], taken[2 * CF_RING_DEPTH];
	unsigned nr_queued, nr_taken;
};

/* How it answers; all zero is a good kernel that ends the last call first. */
static struct {
	int make_err;
	unsigned submit_takes; /* at most so many at once; 0: all */
	unsigned submit_fails_from, submit_fails_to, wait_fails;
	int submit_err;
	int wait_err; /* 0: EBADF */
	size_t portion;
	unsigned result_nth, result_every; /* which results are made up */
	int result;
	unsigned makes, ends, submits, results, waits; /* counted */
} kernel;

static int fake_make(unsigned depth, struct cf_kring **ring)
{
	kernel.makes++;
	if (kernel.make_err)
		return -kernel.make_err;
	assert_int_equal(depth, CF_RING_DEPTH);
	*ring = calloc(1, sizeof(**ring));
	return *ring ? 0 : -ENOMEM;
}

static void fake_end(struct cf_kring *ring)
{
	kernel.ends++;
	assert_int_equal(ring->nr_taken, 0);
	free(ring);
}

static bool fake_queue(struct cf_kring *ring, bool write, int fd, void *mem,
		       size_t size, off_t off, uint64_t cookie)
{
	if (ring->nr_queued == CF_RING_DEPTH)
		return false;
	ring->queued[ring->nr_queued++] =
		(struct queued){ write, fd, mem, size, off, cookie };
	return true;
}

static int fake_submit(struct cf_kring *ring, bool wait)
{
	unsigned nr = ring->nr_queued;

	kernel.submits++;
	if (kernel.submit_fails_from &&
	    kernel.submits >= kernel.submit_fails_from &&
	    (!kernel.submit_fails_to ||
	     kernel.submits <= kernel.submit_fails_to))
		return -kernel.submit_err;
	if (kernel.submit_takes && nr > kernel.submit_takes)
		nr = kernel.submit_takes;
	assert_true(ring->nr_taken + nr <= 2 * CF_RING_DEPTH);
	memcpy(ring->taken + ring->nr_taken, ring->queued,
	       nr * sizeof(struct queued));
	memmove(ring->queued, ring->queued + nr,
		(ring->nr_queued - nr) * sizeof(struct queued));
	ring->nr_taken += nr;
	ring->nr_queued -= nr;
	return (int)nr;
}

static int fake_wait(struct cf_kring *ring)
{
	kernel.waits++;
	assert_true(ring->nr_taken > 0);
	if (kernel.wait_fails && kernel.waits <= kernel.wait_fails)
		return kernel.wait_err ? -kernel.wait_err : -EBADF;
	return 0;
}

static int answer_to(const struct queued *q)
{
	size_t size = q->size;
	ssize_t n;

	kernel.results++;
	if (kernel.results == kernel.result_nth ||
	    (kernel.result_every && kernel.results % kernel.result_every == 0))
		return -kernel.result;
	if (kernel.portion && size > kernel.portion)
		size = kernel.portion;
	n = q->write ? cf_os_real.pwrite(q->fd, q->mem, size, q->off) :
		       cf_os_real.pread(q->fd, q->mem, size, q->off);
	return (int)n;
}

static bool fake_reap(struct cf_kring *ring, struct cf_uring_done *done)
{
	const struct queued *q;

	/* a wait that fails hides what is there for a while */
	if (!ring->nr_taken ||
	    (kernel.wait_fails && kernel.waits < kernel.wait_fails))
		return false;
	q = &ring->taken[--ring->nr_taken];
	done->cookie = q->cookie;
	done->result = answer_to(q);
	return true;
}

static const struct cf_uring fake = {
	.make = fake_make,
	.end = fake_end,
	.queue = fake_queue,
	.submit = fake_submit,
	.wait = fake_wait,
	.reap = fake_reap,
};

/* -------------------------------------------------------------- the file */

static struct th_file file;
static CUfileHandle_t fh;
static struct cf_handle *handle;
static unsigned char *content;
static char *mem; /* SIZE + 2 blocks, aligned */

static int setup(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	content = th_bytes(SIZE);
	th_open();
	th_file_make(&file, TH_ODIRECT, O_RDWR, content, SIZE);
	fh = th_handle(file.fd);
	handle = cf_handle_get(fh);
	mem = aligned_alloc(BLOCK, SIZE + 2 * BLOCK);
	if (!handle || !mem)
		return -1;
	memset(mem, 0xa5, SIZE + 2 * BLOCK);
	cf_uring = &fake;
	cf_rings_configure(true);
	return 0;
}

static int teardown(void **state)
{
	cf_rings_close();
	cf_uring = &cf_uring_real;
	if (handle)
		cf_handle_put(handle);
	handle = NULL;
	cuFileHandleDeregister(fh);
	th_close();
	th_file_end(&file);
	free(content);
	free(mem);
	return kernel.ends == kernel.makes || kernel.make_err ? 0 : -1;
}

/* Flight i is part i of the file, and of mem. */
static struct cf_flight flights[4 * CF_RING_DEPTH];

static void begin(struct cf_ring *ring, unsigned i, bool write, size_t at,
		  size_t size)
{
	flights[i].t = (struct cf_transfer){ .handle = handle,
					     .write = write,
					     .via = CF_VIA_DIRECT,
					     .buf = mem + at,
					     .size = size,
					     .off = (off_t)at };
	cf_ring_begin(ring, &flights[i]);
}

/* All flights up and down; each lands once. */
static void fly(bool write)
{
	struct cf_ring *ring = cf_ring_lease();
	struct cf_flight *flight;
	unsigned nr = 0;

	assert_non_null(ring);
	for (unsigned i = 0; i < NR; i++)
		begin(ring, i, write, i * PART, PART);
	while ((flight = cf_ring_reap(ring, true))) {
		assert_true(flight >= flights && flight < flights + NR);
		assert_true(flight->t.over);
		flight->t.over = false;
		nr++;
	}
	assert_int_equal(nr, NR);
	cf_ring_give_back(ring);
}

static void all_read(void)
{
	fly(false);
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(flights[i].t.result, PART);
	th_equal("read", mem, content, SIZE);
	th_all("behind the read", mem + SIZE, 0xa5, 2 * BLOCK);
}

static void all_written(void)
{
	unsigned char *got = malloc(SIZE);

	assert_non_null(got);
	th_fill(mem, SIZE);
	fly(true);
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(flights[i].t.result, PART);
	assert_int_equal(th_file_size(&file), SIZE);
	th_file_get(&file, 0, got, SIZE);
	th_equal("written", got, mem, SIZE);
	free(got);
}

static void both(void)
{
	all_read();
	all_written();
}

/* ------------------------------------------------------------- the tests */

static void flights_land_in_any_order_with_their_own_bytes(void **state)
{
	both();
	assert_int_equal(kernel.results, 2 * NR);
}

static void a_kernel_that_takes_some_is_given_the_rest(void **state)
{
	kernel.submit_takes = 3;
	both();
}

static void short_counts_are_gone_on_from(void **state)
{
	kernel.portion = BLOCK;
	both();
	assert_int_equal(kernel.results, 2 * NR * PART / BLOCK);
}

static void interruptions_are_gone_on_from(void **state)
{
	kernel.result_every = 2;
	kernel.result = EINTR;
	both();
}

static void what_a_ring_will_not_do_a_plain_call_does(void **state)
{
	static const int errs[] = { EAGAIN, ENOMEM, ECANCELED, EOPNOTSUPP };

	for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		kernel.result_every = 3;
		kernel.result = errs[i];
		both();
		th_file_put(&file, 0, content, SIZE);
		memset(mem, 0xa5, SIZE);
	}
}

static void refused_direct_io_goes_through_the_page_cache(void **state)
{
	kernel.result_nth = 1;
	kernel.result = EINVAL;
	both();
	assert_false(cf_file_is_direct(handle, CF_VIA_DIRECT));
	/* nothing has been queued since */
	assert_true(kernel.results <= NR);
}

static void an_error_is_its_flights_own(void **state)
{
	unsigned failed = 0;

	kernel.result_nth = 5;
	kernel.result = EIO;
	fly(false);
	for (unsigned i = 0; i < NR; i++) {
		if (flights[i].t.result == -EIO) {
			failed++;
			continue;
		}
		assert_int_equal(flights[i].t.result, PART);
		th_equal("read", mem + i * PART, content + i * PART, PART);
	}
	assert_int_equal(failed, 1);
}

static void the_bytes_before_an_error_are_kept(void **state)
{
	struct cf_ring *ring = cf_ring_lease();

	assert_non_null(ring);
	kernel.portion = 3 * BLOCK;
	kernel.result_nth = 2;
	kernel.result = EIO;
	begin(ring, 0, false, 0, PART);
	assert_ptr_equal(cf_ring_reap(ring, true), &flights[0]);
	assert_int_equal(flights[0].t.result, 3 * BLOCK);
	assert_null(cf_ring_reap(ring, true));
	cf_ring_give_back(ring);
}

static void the_file_ends_where_it_ends(void **state)
{
	struct cf_ring *ring = cf_ring_lease();

	assert_non_null(ring);
	assert_int_equal(ftruncate(file.plain, PART + 777), 0);
	for (unsigned i = 0; i < 3; i++)
		begin(ring, i, false, i * PART, PART);
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(cf_ring_reap(ring, true));
	assert_int_equal(flights[0].t.result, PART);
	assert_int_equal(flights[1].t.result, 777);
	assert_int_equal(flights[2].t.result, 0);
	th_equal("read", mem, content, PART + 777);
	cf_ring_give_back(ring);
}

static void a_kernel_that_takes_nothing_loses_no_flight(void **state)
{
	kernel.submit_err = EBADF;
	kernel.submit_takes = 4;
	for (unsigned from = 1; from < 4; from++) {
		unsigned makes = kernel.makes;

		kernel.submits = 0;
		kernel.submit_fails_from = from;
		all_read();
		/* such a ring is not lent again */
		assert_int_equal(kernel.ends, kernel.makes);
		assert_int_equal(kernel.makes, makes + 1);
		memset(mem, 0xa5, SIZE);
	}
}

/* Nor is one that says nothing is wrong asked for ever. */
static void a_kernel_that_takes_none_without_an_error_is_one_too(void **state)
{
	kernel.submit_fails_from = 1;
	all_read();
	assert_int_equal(kernel.submits, 1);
	assert_int_equal(kernel.ends, kernel.makes);
}

/* Else each request would make a ring for nothing, and say so in the log. */
static void who_may_not_submit_makes_no_more_rings(void **state)
{
	kernel.submit_err = EPERM;
	kernel.submit_fails_from = 1;
	all_read();
	assert_int_equal(kernel.ends, 1);
	assert_false(cf_rings_usable());
	assert_null(cf_ring_lease());
	assert_int_equal(kernel.makes, 1);
	kernel.submit_fails_from = 0;
	cf_rings_configure(true);
	all_read();
}

static void an_interrupted_submit_is_made_again(void **state)
{
	kernel.submit_err = EINTR;
	kernel.submit_fails_from = 1;
	kernel.submit_fails_to = 7;
	all_read();
	assert_true(kernel.submits > 7);
	assert_int_equal(kernel.ends, 0);
}

static void a_wait_that_fails_gives_no_memory_up(void **state)
{
	kernel.wait_fails = 5;
	all_read();
	assert_int_equal(kernel.waits, 5);
	assert_int_equal(kernel.ends, kernel.makes);
}

static void an_interrupted_wait_is_no_failure(void **state)
{
	kernel.wait_fails = 5;
	kernel.wait_err = EINTR;
	all_read();
	assert_int_equal(kernel.waits, 5);
	assert_int_equal(kernel.ends, 0);
	all_written();
	assert_int_equal(kernel.results, 2 * NR);
}

/* What was a file at the last submit may be closed, and a pipe by now. */
static void a_number_is_asked_about_after_each_submit(void **state)
{
	struct cf_ring *ring = cf_ring_lease();
	int kept = dup(file.fd), pipes[2];

	assert_non_null(ring);
	assert_int_equal(pipe(pipes), 0);
	begin(ring, 0, false, 0, PART);
	assert_ptr_equal(cf_ring_reap(ring, true), &flights[0]);
	assert_int_equal(flights[0].t.result, PART);
	assert_int_equal(kernel.submits, 1);
	assert_int_equal(dup2(pipes[0], file.fd), file.fd);
	begin(ring, 1, false, PART, PART);
	assert_ptr_equal(cf_ring_reap(ring, true), &flights[1]);
	assert_int_equal(flights[1].t.result, -EBADF);
	assert_int_equal(kernel.submits, 1);
	cf_ring_give_back(ring);
	assert_int_equal(dup2(kept, file.fd), file.fd);
	close(kept);
	close(pipes[0]);
	close(pipes[1]);
}

static void more_flights_than_there_is_room_are_carried_at_once(void **state)
{
	struct cf_ring *ring = cf_ring_lease();
	struct cf_flight *flight;
	unsigned nr = 0;

	assert_non_null(ring);
	for (unsigned i = 0; i < SIZE / BLOCK; i++)
		begin(ring, i, false, i * BLOCK, BLOCK);
	while ((flight = cf_ring_reap(ring, true))) {
		assert_int_equal(flight->t.result, BLOCK);
		nr++;
	}
	assert_int_equal(nr, SIZE / BLOCK);
	assert_int_equal(kernel.results, CF_RING_DEPTH);
	th_equal("read", mem, content, SIZE);
	cf_ring_give_back(ring);
}

static void edges_and_odd_memory_go_through_the_page_cache(void **state)
{
	struct cf_ring *ring = cf_ring_lease();
	struct cf_flight *flight;

	assert_non_null(ring);
	begin(ring, 0, false, 100, PART); /* a head and a tail */
	flights[1].t = (struct cf_transfer){ .handle = handle,
					     .via = CF_VIA_DIRECT,
					     .buf = mem + 2 * PART + 1,
					     .size = PART,
					     .off = 2 * PART };
	cf_ring_begin(ring, &flights[1]);
	while ((flight = cf_ring_reap(ring, true)))
		assert_int_equal(flight->t.result, PART);
	assert_int_equal(kernel.results, 1);
	th_equal("with edges", mem + 100, content + 100, PART);
	th_equal("odd memory", mem + 2 * PART + 1, content + 2 * PART, PART);
	th_all("before", mem, 0xa5, 100);
	th_all("between", mem + 100 + PART, 0xa5, PART + 1 - 100);
	th_all("behind", mem + 3 * PART + 1, 0xa5, PART);
	cf_ring_give_back(ring);
}

/*
 * Whatever came before. Else the page's other bytes, which somebody may write
 * through the page cache meanwhile, would not be kept apart from these.
 */
static void a_write_of_part_of_a_page_is_over_when_it_is_begun(void **state)
{
	struct cf_ring *ring = cf_ring_lease();

	assert_non_null(ring);
	handle->dio_align = 512;
	begin(ring, 0, true, 512, PART);
	assert_int_equal(kernel.results, 0);
	assert_ptr_equal(cf_ring_reap(ring, false), &flights[0]);
	/* the second call begins in the page in which the first one ended */
	kernel.portion = 512;
	cf_file_limit(PART);
	begin(ring, 1, true, 2 * PART, PART + 512);
	assert_ptr_equal(cf_ring_reap(ring, true), &flights[1]);
	cf_file_limit(16 << 20);
	assert_int_equal(flights[1].t.result, PART + 512);
	assert_int_equal(kernel.results, 1);
	cf_ring_give_back(ring);
}

static void a_refusal_is_asked_for_once(void **state)
{
	kernel.make_err = EPERM;
	for (int i = 0; i < 3; i++) {
		assert_false(cf_rings_usable());
		assert_null(cf_ring_lease());
	}
	assert_int_equal(kernel.makes, 1);
	cf_rings_configure(true);
	assert_false(cf_rings_usable());
	assert_int_equal(kernel.makes, 2);
}

static void want_of_descriptors_is_no_refusal(void **state)
{
	struct cf_ring *ring;

	kernel.make_err = EMFILE;
	assert_false(cf_rings_usable());
	assert_null(cf_ring_lease());
	kernel.make_err = 0;
	assert_true(cf_rings_usable());
	ring = cf_ring_lease();
	assert_non_null(ring);
	cf_ring_give_back(ring);
	kernel.makes = kernel.ends + 1;
}

static void configuration_can_do_without(void **state)
{
	cf_rings_configure(false);
	assert_false(cf_rings_usable());
	assert_null(cf_ring_lease());
	assert_int_equal(kernel.makes, 0);
}

static void a_ring_has_one_leaser_and_comes_back_for_the_next(void **state)
{
	struct cf_ring *all[100], *again;
	unsigned nr = 0;

	while (nr < 100 && (all[nr] = cf_ring_lease()))
		nr++;
	assert_in_range(nr, 16, 64);
	for (unsigned i = 0; i < nr; i++)
		for (unsigned k = 0; k < i; k++)
			assert_ptr_not_equal(all[i], all[k]);
	cf_ring_give_back(all[--nr]);
	again = cf_ring_lease();
	assert_ptr_equal(again, all[nr]);
	cf_ring_give_back(again);
	while (nr)
		cf_ring_give_back(all[--nr]);
}

/* --------------------------------------------------------- the real kernel */

static void need_real(void)
{
	cf_uring = &cf_uring_real;
	cf_rings_configure(true);
	if (!cf_rings_usable())
		th_skip("this machine refuses io_uring");
}

/* From here on our descriptors are, in a table for 64. */
#ifdef CF_RING_STAYS
#define HIGH_FD 3
#else
#define HIGH_FD 48
#endif

static bool is_ring(int fd)
{
	char path[40], target[40] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       strstr(target, "io_uring");
}

static void the_real_kernel_does_the_same(void **state)
{
	need_real();
	all_read();
	the_file_ends_where_it_ends(state);
	th_file_put(&file, 0, content, SIZE);
	all_written();
}

static void a_child_has_rings_of_its_own(void **state)
{
	int fds, status;
	pid_t pid;

	need_real();
	all_read();
	fds = th_count_fds();
	memset(mem, 0, SIZE);
	pid = fork();
	if (!pid) {
		/* the parent's idle ring is not here; one of its own is made */
		int before = th_count_fds();
		struct cf_ring *ring = cf_ring_lease();
		bool good = ring && th_count_fds() == before + 1;

		for (unsigned i = 0; good && i < NR; i++)
			begin(ring, i, false, i * PART, PART);
		while (good && cf_ring_reap(ring, true))
			continue;
		_exit(before == fds - 1 && good && !memcmp(mem, content, SIZE) ?
			      0 :
			      1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(th_count_fds(), fds);
	all_read();
}

/* Or a file of its own that got the number is closed. */
static void who_closes_all_descriptors_keeps_what_comes_there(void **state)
{
	struct cf_ring *ring;
	int fd, high;

	need_real();
	ring = cf_ring_lease();
	assert_non_null(ring);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (high = HIGH_FD; !is_ring(high); high++)
		assert_in_range(high, HIGH_FD, HIGH_FD + 1000);
	assert_int_equal(dup2(fd, high), high);
	assert_int_equal(close(fd), 0);
	cf_ring_give_back(ring);
	cf_rings_close();
	assert_int_equal(close(high), 0);
}

struct crowd {
	struct th_bad bad;
};

/* A thread's own part of file and memory, over and over. */
static void one_of_a_crowd(void *arg, unsigned i)
{
	struct crowd *crowd = arg;
	size_t at = i % NR * PART;
	char *own = aligned_alloc(BLOCK, PART);

	for (int lap = 0; lap < TH_SCALE(40) && own; lap++) {
		struct cf_ring *ring = cf_ring_lease();
		struct cf_flight flight = { .t = { .handle = handle,
						   .via = CF_VIA_DIRECT,
						   .buf = own,
						   .size = PART,
						   .off = (off_t)at } };

		if (!ring)
			continue;
		memset(own, 0, PART);
		cf_ring_begin(ring, &flight);
		if (cf_ring_reap(ring, true) != &flight ||
		    flight.t.result != (ssize_t)PART ||
		    memcmp(own, content + at, PART))
			th_bad_note(&crowd->bad, "thread %u lap %d: %zd", i,
				    lap, flight.t.result);
		cf_ring_give_back(ring);
	}
	free(own);
}

static void a_crowd_of_threads_gets_its_own_bytes(void **state)
{
	struct crowd crowd = { 0 };

	need_real();
	th_threads(64, one_of_a_crowd, &crowd);
	th_bad_check(&crowd.bad);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flights_land_in_any_order_with_their_own_bytes),
		TEST(a_kernel_that_takes_some_is_given_the_rest),
		TEST(short_counts_are_gone_on_from),
		TEST(interruptions_are_gone_on_from),
		TEST(what_a_ring_will_not_do_a_plain_call_does),
		TEST(refused_direct_io_goes_through_the_page_cache),
		TEST(an_error_is_its_flights_own),
		TEST(the_bytes_before_an_error_are_kept),
		TEST(the_file_ends_where_it_ends),
		TEST(a_kernel_that_takes_nothing_loses_no_flight),
		TEST(a_kernel_that_takes_none_without_an_error_is_one_too),
		TEST(who_may_not_submit_makes_no_more_rings),
		TEST(an_interrupted_submit_is_made_again),
		TEST(a_wait_that_fails_gives_no_memory_up),
		TEST(an_interrupted_wait_is_no_failure),
		TEST(a_number_is_asked_about_after_each_submit),
		TEST(more_flights_than_there_is_room_are_carried_at_once),
		TEST(edges_and_odd_memory_go_through_the_page_cache),
		TEST(a_write_of_part_of_a_page_is_over_when_it_is_begun),
		TEST(a_refusal_is_asked_for_once),
		TEST(want_of_descriptors_is_no_refusal),
		TEST(configuration_can_do_without),
		TEST(a_ring_has_one_leaser_and_comes_back_for_the_next),
		TEST(the_real_kernel_does_the_same),
		TEST(a_child_has_rings_of_its_own),
		TEST(who_closes_all_descriptors_keeps_what_comes_there),
		TEST(a_crowd_of_threads_gets_its_own_bytes),
	};

	th_start(100);
	return th_finish(
		cmocka_run_group_tests_name("ring", tests, NULL, NULL));
}
