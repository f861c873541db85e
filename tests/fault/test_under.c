// SPDX-License-Identifier: Apache-2.0
/*
 * What goes away under a request: its descriptor is closed, or its memory
 * freed, at the first of its system calls, at the second, and so on until it
 * is over before. An answer is an error or an honest count, nothing is left,
 * no other file is touched, and the next request works.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fault.h"
#include "harness.h"
#include "leases.h"
#include "seam/os.h"
#include "seam/uring.h"

#define SIZE (2 * TH_MIB + 77)
#define PAD 4096
#define MEM_SIZE (SIZE + 2 * PAD)
#define NR 4 /* entries of a batch */

struct world {
	struct th_mem mem;
	struct th_file file, other;
	CUfileHandle_t fh;
	unsigned char *content, *elsewhere, *source, *got;
	bool write;
};

/* -------------------------------------------------------- when it happens */

static void (*event)(struct world *w);
static struct world *world;
static atomic_int calls_to_go;

static void count_call(void)
{
	if (atomic_fetch_sub(&calls_to_go, 1) == 1)
		event(world);
}

static ssize_t counted_pread(int fd, void *buf, size_t size, off_t off)
{
	if (size > 8 * TH_KIB) /* no look at a table of the kernel's */
		count_call();
	return cf_os_real.pread(fd, buf, size, off);
}

static ssize_t counted_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	count_call();
	return cf_os_real.pwrite(fd, buf, size, off);
}

static int counted_submit(struct cf_kring *ring, bool wait)
{
	count_call();
	return cf_uring_real.submit(ring, wait);
}

/* False: the nth call never came. */
static bool happens_at(struct world *w, unsigned nth,
		       void (*what)(struct world *),
		       void (*request)(struct world *))
{
	static struct cf_uring ring;
	static struct cf_os os;

	os = cf_os_real;
	os.pread = counted_pread;
	os.pwrite = counted_pwrite;
	ring = cf_uring_real;
	ring.submit = counted_submit;
	event = what;
	world = w;
	atomic_store(&calls_to_go, (int)nth);
	cf_os = &os;
	cf_uring = &ring;
	request(w);
	leases_check("after it went away");
	/* no worker looks at the tables any more */
	th_close();
	cf_os = &cf_os_real;
	cf_uring = &cf_uring_real;
	fault_count(atomic_load(&calls_to_go) <= 0);
	return atomic_load(&calls_to_go) <= 0;
}

/* --------------------------------------------------------------- the world */

static void begin(struct world *w, enum th_mem_kind kind,
		  enum th_file_kind file_kind, bool write)
{
	*w = (struct world){ .write = write };
	th_mem_need(kind);
	th_open();
	w->content = th_bytes(SIZE);
	w->elsewhere = th_bytes(SIZE);
	w->source = th_bytes(SIZE);
	w->got = malloc(MEM_SIZE);
	assert_non_null(w->got);
	th_file_make(&w->other, file_kind, O_RDWR, w->elsewhere, SIZE);
	th_file_make(&w->file, file_kind, O_RDWR, w->content, SIZE);
	th_mem_alloc(&w->mem, kind, MEM_SIZE);
	th_mem_set(&w->mem, 0xa5);
	if (write)
		th_mem_put(&w->mem, PAD, w->source, SIZE);
	w->fh = th_handle(w->file.fd);
}

/* The next request, of a file opened anew, works. */
static void check_next(struct world *w)
{
	CUfileHandle_t fh;
	struct th_mem mem;

	th_open();
	th_mem_alloc(&mem, w->mem.kind, MEM_SIZE);
	fh = th_handle(w->other.fd);
	assert_int_equal(cuFileRead(fh, mem.ptr, SIZE, 0, PAD), SIZE);
	th_mem_get(&mem, PAD, w->got, SIZE);
	th_equal("the next read", w->got, w->elsewhere, SIZE);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_close();
}

static void end(struct world *w)
{
	th_file_get(&w->other, 0, w->got, SIZE);
	th_equal("the other file", w->got, w->elsewhere, SIZE);
	check_next(w);
	if (w->mem.ptr)
		th_mem_free(&w->mem);
	th_file_end(&w->file);
	th_file_end(&w->other);
	free(w->content);
	free(w->elsewhere);
	free(w->source);
	free(w->got);
}

/* n bytes at at of the request's range have arrived. */
static void check_moved(struct world *w, size_t at, ssize_t n)
{
	if (n <= 0)
		return;
	if (w->write) {
		th_file_get(&w->file, 0, w->got, SIZE);
		th_equal("written", w->got + at, w->source + at, (size_t)n);
	} else if (w->mem.ptr) {
		th_mem_get(&w->mem, PAD, w->got, SIZE);
		th_equal("read", w->got + at, w->content + at, (size_t)n);
	}
}

static void check_answer(const char *what, ssize_t n, int err, size_t size)
{
	if (n == 0 || n < -1 || n > (ssize_t)size)
		fail_msg("%s: answers %zd", what, n);
	if (n == -1 && err != EBADF && err != EFAULT && err < CUFILEOP_BASE_ERR)
		fail_msg("%s: errno %d", what, err);
}

/* ------------------------------------------------------------- requests */

static void one_request(struct world *w)
{
	ssize_t n;
	int err;

	errno = 0;
	n = w->write ? cuFileWrite(w->fh, w->mem.ptr, SIZE, 0, PAD) :
		       cuFileRead(w->fh, w->mem.ptr, SIZE, 0, PAD);
	err = errno;
	check_answer(w->write ? "write" : "read", n, err, SIZE);
	check_moved(w, 0, n);
}

static void one_batch(struct world *w)
{
	CUfileIOParams_t params[NR] = { 0 };
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t batch;
	const size_t each = SIZE / NR;
	unsigned nr = NR;

	for (size_t i = 0; i < NR; i++) {
		params[i].mode = CUFILE_BATCH;
		params[i].fh = w->fh;
		params[i].opcode = w->write ? CUFILE_WRITE : CUFILE_READ;
		params[i].cookie = (void *)i;
		params[i].u.batch.devPtr_base = w->mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)(PAD + i * each);
		params[i].u.batch.file_offset = (off_t)(i * each);
		params[i].u.batch.size = each;
	}
	assert_int_equal(cuFileBatchIOSetUp(&batch, NR).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, NR, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, NR, &nr, events, NULL).err, 0);
	assert_int_equal(nr, NR);
	for (size_t i = 0; i < NR; i++) {
		ssize_t n = (ssize_t)events[i].ret;

		check_answer("an entry", n < 0 ? -1 : n, (int)-n, each);
		check_moved(w, (size_t)events[i].cookie * each, n);
	}
	cuFileBatchIODestroy(batch);
}

/* ------------------------------------------------------------- the tests */

struct cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
	void (*request)(struct world *w);
};

/* By itself: that others are using it is what the thread sanitizer reports. */
static void close_it(struct world *w)
{
	syscall(SYS_close, w->file.fd);
	w->file.fd = -1;
}

/* On whatever thread the call is made. */
static void free_it(struct world *w)
{
	void *ptr = w->mem.ptr;
	CUcontext popped;

	w->mem.ptr = NULL;
	if (w->mem.kind == TH_MMAP) {
		munmap(ptr, MEM_SIZE);
		return;
	}
	(void)cuCtxPushCurrent(th_primary());
	(void)cuMemFree((CUdeviceptr)(uintptr_t)ptr);
	(void)cuCtxPopCurrent(&popped);
}

static void goes_away(const struct cell *cell, void (*what)(struct world *w))
{
	for (int write = 0; write < 2; write++) {
		unsigned nth = 1;
		bool happened;

		do {
			int fds = th_count_fds();
			struct world w;

			begin(&w, cell->mem_kind, cell->file_kind, write);
			happened = happens_at(&w, nth++, what, cell->request);
			end(&w);
			/* the fake has one for each piece of device memory */
			if (th_count_fds() != fds) {
				th_print_fds();
				fail_msg("%d descriptors, not %d",
					 th_count_fds(), fds);
			}
		} while (happened && nth < 30);
		assert_true(nth > 2);
	}
}

static void a_descriptor_closed_under_io_ends_it(void **state)
{
	goes_away(*state, close_it);
}

static void memory_freed_under_io_ends_it(void **state)
{
	goes_away(*state, free_it);
	/* a copy to or from what is freed is the client's misuse, and told */
	if (th_fake())
		th_fake()->complaints_clear();
}

static int teardown(void **state)
{
	cf_os = &cf_os_real;
	cf_uring = &cf_uring_real;
	return th_teardown_close(state);
}

#define CELL(test, mem, file, request) \
	{ \
		.name = #test " (" #mem ", " #file ", " #request ")", \
		.test_func = test, .teardown_func = teardown, \
		.initial_state = &(struct cell) \
		{ \
			mem, file, request \
		} \
	}
#define BOTH(test, mem, file) \
	CELL(test, mem, file, one_request), CELL(test, mem, file, one_batch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_descriptor_closed_under_io_ends_it, TH_DEVICE,
		     TH_ODIRECT),
		BOTH(a_descriptor_closed_under_io_ends_it, TH_DEVICE,
		     TH_BUFFERED),
		BOTH(a_descriptor_closed_under_io_ends_it, TH_MMAP, TH_ODIRECT),
		BOTH(a_descriptor_closed_under_io_ends_it, TH_MMAP,
		     TH_BUFFERED),
		CELL(a_descriptor_closed_under_io_ends_it, TH_DEVICE, TH_TMPFS,
		     one_request),
		BOTH(memory_freed_under_io_ends_it, TH_DEVICE, TH_ODIRECT),
		BOTH(memory_freed_under_io_ends_it, TH_DEVICE, TH_BUFFERED),
		BOTH(memory_freed_under_io_ends_it, TH_MMAP, TH_BUFFERED),
	};

	th_start(280);
	return th_finish(
		cmocka_run_group_tests_name("under", tests, NULL, NULL));
}
