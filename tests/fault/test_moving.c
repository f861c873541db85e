// SPDX-License-Identifier: Apache-2.0
/*
 * Files that change under a read: truncated and grown in the middle. An
 * answer is never more than there was, bytes are the file's or the zeros of
 * a hole, and neighbours stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fault.h"
#include "harness.h"

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
	};

	th_start(280);
	return th_finish(
		cmocka_run_group_tests_name("moving", tests, NULL, NULL));
}
