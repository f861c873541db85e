// SPDX-License-Identifier: Apache-2.0
/*
 * Files that change under a request: truncated and grown in the middle, and
 * closed behind the library's back. An answer is never more than there was,
 * bytes are the file's or the zeros of a hole, and neighbours stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fault.h"
#include "harness.h"
#include "leases.h"

#define SIZE (3 * TH_MIB + 77)
#define PAD 4096
#define ROUNDS TH_SCALE(40)

struct world {
	struct th_bad bad;
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned char *content, *got;
	atomic_bool over;
};

struct cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
};

static void check_read(struct world *w, ssize_t n)
{
	if (n < 0 || n > (ssize_t)SIZE) {
		th_bad_note(&w->bad, "read: %zd, errno %d", n, errno);
		return;
	}
	th_mem_get(&w->mem, 0, w->got, SIZE + 2 * PAD);
	for (ssize_t i = 0; i < n; i++)
		if (w->got[PAD + i] != w->content[i] && w->got[PAD + i]) {
			th_bad_note(&w->bad, "byte %zd is %02x, not %02x", i,
				    w->got[PAD + i], w->content[i]);
			return;
		}
	for (size_t i = 0; i < PAD; i++)
		if (w->got[i] != 0xa5 || w->got[PAD + SIZE + i] != 0xa5)
			th_bad_note(&w->bad, "a neighbour, %zu", i);
}

/* Thread 0 reads; the other cuts the file off and lets it grow again. */
static void read_while_it_changes(void *arg, unsigned i)
{
	struct world *w = arg;

	for (int n = 0; !i && n < ROUNDS; n++) {
		th_mem_set(&w->mem, 0xa5);
		check_read(w, cuFileRead(w->fh, w->mem.ptr, SIZE, 0, PAD));
	}
	if (!i)
		atomic_store(&w->over, true);
	while (i && !atomic_load(&w->over)) {
		size_t at = th_below(SIZE);

		if (ftruncate(w->file.plain, (off_t)at) ||
		    ftruncate(w->file.plain, SIZE) ||
		    pwrite(w->file.plain, w->content + at, SIZE - at,
			   (off_t)at) != (ssize_t)(SIZE - at))
			th_bad_note(&w->bad, "cannot change the file");
		fault_count(1);
	}
}

static void begin(struct world *w, const struct cell *cell)
{
	memset(w, 0, sizeof(*w));
	th_mem_need(cell->mem_kind);
	th_open();
	w->content = th_bytes(SIZE);
	w->got = malloc(SIZE + 2 * PAD);
	th_file_make(&w->file, cell->file_kind, O_RDWR, w->content, SIZE);
	th_mem_alloc(&w->mem, cell->mem_kind, SIZE + 2 * PAD);
	w->fh = th_handle(w->file.fd);
}

static void end(struct world *w)
{
	cuFileHandleDeregister(w->fh);
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->content);
	free(w->got);
	leases_check("after the changes");
	th_close();
}

static void reading_a_file_that_shrinks_and_grows_is_honest(void **state)
{
	struct world w;

	begin(&w, *state);
	th_threads(2, read_while_it_changes, &w);
	th_bad_check(&w.bad);
	/* and now that it is quiet, all of it */
	th_file_put(&w.file, 0, w.content, SIZE);
	assert_int_equal(cuFileRead(w.fh, w.mem.ptr, SIZE, 0, PAD), SIZE);
	th_mem_get(&w.mem, PAD, w.got, SIZE);
	th_equal("read when it is quiet", w.got, w.content, SIZE);
	end(&w);
}

/*
 * A worker that begins looks at the process's threads, and has a descriptor
 * for that: all that there will be have begun.
 */
static void begin_workers(struct world *w)
{
	for (int i = 0; i < 10; i++) {
		assert_int_equal(cuFileRead(w->fh, w->mem.ptr, SIZE, 0, PAD),
				 SIZE);
		th_sleep_ms(TH_SANITIZED ? 100 : 20);
	}
}

/* Some begin late on a busy machine: for a moment, then, and no longer. */
static bool is_free(int fd)
{
	for (int ms = 0; ms < 10000 && fcntl(fd, F_GETFD) >= 0; ms++)
		th_sleep_ms(1);
	return fcntl(fd, F_GETFD) < 0;
}

/* A request says so, and nothing of the library's keeps the number. */
static void a_closed_descriptor_harms_no_other_file(void **state)
{
	struct world w;
	struct th_file other;
	unsigned char *bytes = th_bytes(SIZE), *after = malloc(SIZE);
	ssize_t n;

	begin(&w, *state);
	th_file_make(&other, TH_BUFFERED, O_RDWR, bytes, SIZE);
	begin_workers(&w);
	close(w.file.fd);
	fault_count(1);
	for (int i = 0; i < 4; i++) {
		errno = 0;
		n = i & 1 ? cuFileWrite(w.fh, w.mem.ptr, SIZE, 0, PAD) :
			    cuFileRead(w.fh, w.mem.ptr, SIZE, 0, PAD);
		assert_int_equal(n, -1);
		assert_int_equal(errno, EBADF);
		assert_true(is_free(w.file.fd));
	}
	th_file_get(&other, 0, after, SIZE);
	th_equal("the other file", after, bytes, SIZE);
	w.file.fd = -1;
	th_file_end(&other);
	free(bytes);
	free(after);
	end(&w);
}

/* ------------------------------------------- numbers that others have got */

#define SMALL 4096
#define NR_SMALL 48
#define NR_OTHERS 7

/* What a number names by now, and its other end. */
struct other {
	const char *name;
	int fd, peer;
};

static struct other pipe_of(const char *name, int flags, bool reader)
{
	int fds[2];

	assert_int_equal(pipe2(fds, flags | O_CLOEXEC), 0);
	return (struct other){ name, fds[!reader], fds[reader] };
}

static struct other make_other(unsigned which)
{
	int fds[2];

	switch (which) {
	case 0:
		return pipe_of("a pipe's reader", 0, true);
	case 1:
		return pipe_of("a pipe's writer", 0, false);
	case 2:
		return pipe_of("a reader of packets", O_DIRECT, true);
	case 3:
		return pipe_of("a writer of packets", O_DIRECT, false);
	case 4:
		assert_int_equal(
			socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds),
			0);
		return (struct other){ "a socket", fds[0], fds[1] };
	case 5:
		return (struct other){ "a counter", eventfd(0, EFD_CLOEXEC),
				       -1 };
	case 6:
		return (struct other){
			"a directory",
			open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), -1
		};
	default:
		fail_msg("no such thing");
		return (struct other){ .name = NULL };
	}
}

/* Bytes that went astray, on either end. */
static void check_untouched(const struct other *o)
{
	int ends[] = { o->fd, o->peer };

	for (int i = 0; i < 2 && o->peer >= 0; i++) {
		int nr = -1;

		assert_int_equal(ioctl(ends[i], FIONREAD, &nr), 0);
		if (nr)
			fail_msg("%s has got %d bytes", o->name, nr);
	}
}

static void refuse_all(struct world *w, const char *name)
{
	CUfileIOParams_t params[NR_SMALL];
	CUfileIOEvents_t events[NR_SMALL];
	CUfileBatchHandle_t batch;
	unsigned nr = NR_SMALL;

	for (int write = 0; write < 2; write++) {
		ssize_t n;

		errno = 0;
		n = write ? cuFileWrite(w->fh, w->mem.ptr, SIZE, 0, PAD) :
			    cuFileRead(w->fh, w->mem.ptr, SIZE, 0, PAD);
		if (n != -1 || errno != EBADF)
			fail_msg("%s: %zd, errno %d", name, n, errno);
	}
	for (size_t i = 0; i < NR_SMALL; i++) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = w->fh,
						.opcode = CUFILE_READ };
		params[i].u.batch.devPtr_base = w->mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)(i * SMALL);
		params[i].u.batch.file_offset = (off_t)(2 * i * SMALL);
		params[i].u.batch.size = SMALL;
	}
	assert_int_equal(cuFileBatchIOSetUp(&batch, NR_SMALL).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, NR_SMALL, params, 0).err,
			 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, NR_SMALL, &nr, events, NULL).err,
		0);
	assert_int_equal(nr, NR_SMALL);
	for (size_t i = 0; i < NR_SMALL; i++)
		if ((ssize_t)events[i].ret >= 0)
			fail_msg("%s: an entry answers %zd", name,
				 (ssize_t)events[i].ret);
	cuFileBatchIODestroy(batch);
}

/*
 * Neither waits for bytes that never come, nor takes and gives what is not
 * the file's: by a handle that has never moved a byte, and by one that has.
 */
static void a_number_that_names_no_file_is_refused(void **state)
{
	struct world w;

	for (unsigned i = 0; i < 2 * NR_OTHERS; i++) {
		struct other o = make_other(i / 2);
		int fd = o.fd;

		begin(&w, *state);
		if (i & 1)
			assert_int_equal(
				cuFileRead(w.fh, w.mem.ptr, SIZE, 0, PAD),
				SIZE);
		o.fd = dup2(fd, w.file.fd);
		assert_int_equal(o.fd, w.file.fd);
		close(fd);
		fault_count(1);
		refuse_all(&w, o.name);
		check_untouched(&o);
		close(o.peer);
		end(&w);
	}
}

/* Opening it to read waits for a writer. */
static void a_fifo_that_has_got_the_number_is_not_opened(void **state)
{
	static char mem[SMALL];
	struct th_file file;
	CUfileHandle_t fh;
	char path[300];
	int fifo;

	th_open();
	th_file_make(&file, TH_ODIRECT, O_RDONLY, NULL, SMALL);
	fh = th_handle(file.fd);
	snprintf(path, sizeof(path), "%s.fifo", file.path);
	assert_int_equal(mkfifo(path, 0600), 0);
	fifo = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(dup2(fifo, file.fd), file.fd);
	fault_count(1);
	/* no whole block, so by a descriptor that is not O_DIRECT */
	assert_int_equal(cuFileRead(fh, mem, 100, 1, 0), -1);
	assert_int_equal(errno, EBADF);
	cuFileHandleDeregister(fh);
	close(fifo);
	th_file_end(&file);
	th_close();
}

/* What it opens for itself cannot move away, but is nobody else's. */
static void a_second_descriptor_is_not_taken_for_a_closed_one(void **state)
{
	unsigned char *bytes = th_bytes(SIZE), *after = malloc(SIZE);
	struct th_file closed, file;
	CUfileHandle_t fh, lost;

	th_open();
	th_file_make(&closed, TH_BUFFERED, O_RDWR, bytes, SIZE);
	th_file_make(&file, TH_ODIRECT, O_RDWR, bytes, SIZE);
	lost = th_handle(closed.fd);
	fh = th_handle(file.fd);
	close(closed.fd);
	fault_count(1);
	assert_int_equal(cuFileRead(fh, after, 100, 1, 0), 100);
	assert_true(fcntl(closed.fd, F_GETFD) >= 0);
	for (int i = 0; i < 2; i++) {
		memset(after, i, SIZE);
		errno = 0;
		assert_int_equal(i ? cuFileWrite(lost, after, SIZE, 0, 0) :
				     cuFileRead(lost, after, SIZE, 0, 0),
				 -1);
		assert_int_equal(errno, EBADF);
	}
	th_file_get(&file, 0, after, SIZE);
	th_equal("the other file", after, bytes, SIZE);
	/* and the number is anybody's again */
	cuFileHandleDeregister(fh);
	assert_int_equal(dup2(closed.plain, closed.fd), closed.fd);
	fh = th_handle(closed.fd);
	assert_int_equal(cuFileRead(fh, after, SIZE, 0, 0), SIZE);
	th_equal("registered again", after, bytes, SIZE);
	cuFileHandleDeregister(fh);
	th_file_end(&closed);
	th_file_end(&file);
	free(bytes);
	free(after);
	th_close();
}

#define CELL(test, mem, file) \
	{ \
		.name = #test " (" #mem ", " #file ")", .test_func = test, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(struct cell) \
		{ \
			mem, file \
		} \
	}
#define ALL(test) \
	CELL(test, TH_DEVICE, TH_ODIRECT), CELL(test, TH_DEVICE, TH_BUFFERED), \
		CELL(test, TH_MALLOC, TH_ODIRECT), \
		CELL(test, TH_MALLOC, TH_BUFFERED), \
		CELL(test, TH_MANAGED, TH_ODIRECT)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALL(reading_a_file_that_shrinks_and_grows_is_honest),
		ALL(a_closed_descriptor_harms_no_other_file),
		ALL(a_number_that_names_no_file_is_refused),
		cmocka_unit_test_teardown(
			a_second_descriptor_is_not_taken_for_a_closed_one,
			th_teardown_close),
		cmocka_unit_test_teardown(
			a_fifo_that_has_got_the_number_is_not_opened,
			th_teardown_close),
	};

	th_start(280);
	return th_finish(
		cmocka_run_group_tests_name("moving", tests, NULL, NULL));
}
