// SPDX-License-Identifier: Apache-2.0
/* after - see after.h. */
#include "after.h"

#include <stdlib.h>
#include <unistd.h>
#include "doors.h"

void after_init(struct after *a, const struct scenario *s, int byte)
{
	*a = (struct after){ 0 };
	th_mem_alloc(&a->mem, s->mem_kind, FILE_SIZE);
	a->bytes = th_same(byte, SIZE);
	a->got = th_bytes(FILE_SIZE);
}

void after_fini(struct after *a)
{
	th_mem_free(&a->mem);
	free(a->bytes);
	free(a->got);
}

void after_begin(struct after *a)
{
	a->read_more = a->mem_used = a->file_used = false;
}

static bool moved_nothing(ssize_t n, const size_t parts[SCENARIO_PARTS])
{
	for (unsigned i = 0; i < SCENARIO_PARTS; i++)
		if (parts[i])
			return false;
	return n < 0;
}

/* No assert from here on: these are not the test's thread. */
void after_read(struct after *a, struct scenario *s)
{
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)s->mem.ptr + READ_AT;

	/* a count may be there before its stream has passed the operation */
	a->mem_used = moved_nothing(s->a.read, s->a.part_read) &&
		      (s->door != STREAMED || door_await(s->stream)) &&
		      th_fake()->write(at, a->bytes, SIZE) == 0;
}

void after_write(struct after *a, struct scenario *s)
{
	a->file_used = moved_nothing(s->a.write, s->a.part_written) &&
		       pwrite(s->file.plain, a->bytes, SIZE, WRITE_OFF) == SIZE;
}

void after_all(struct after *a, CUfileHandle_t fh)
{
	a->read_more = true;
	a->n = cuFileRead(fh, a->mem.ptr, FILE_SIZE, 0, 0);
}

static void check_more(struct after *a, struct scenario *s,
		       const struct failures *f, const char *what)
{
	if (a->n != (ssize_t)FILE_SIZE && !f->row)
		fail_msg("%s: the next read answers %zd", what, a->n);
	if (a->n <= 0)
		return;
	th_mem_get(&a->mem, 0, a->got, FILE_SIZE);
	th_file_get(&s->file, 0, s->got, FILE_SIZE);
	th_equal(what, a->got, s->got, (size_t)a->n);
}

void after_check(struct after *a, struct scenario *s, const struct failures *f,
		 const char *what)
{
	if (a->file_used) {
		th_file_get(&s->file, WRITE_OFF, a->got, SIZE);
		th_equal(what, a->got, a->bytes, SIZE);
	}
	if (failures_hide_copies(f))
		return;
	if (a->mem_used) {
		th_mem_get(&s->mem, READ_AT, a->got, SIZE);
		th_equal(what, a->got, a->bytes, SIZE);
	}
	if (a->read_more)
		check_more(a, s, f, what);
}
