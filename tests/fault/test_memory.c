// SPDX-License-Identifier: Apache-2.0
/*
 * No memory, and no thread: each allocation that the library makes in the
 * scenario fails, one at a time, once or from then on, and each thread that
 * it starts. Answers are honest, nothing is left behind, and the same
 * scenario works afterwards.
 *
 * The library is part of this program, the driver and libc are not: who asks
 * is told by the address of the call. Not under a sanitizer, whose allocator
 * this is then.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "fault.h"
#include "scenario.h"

#if TH_SANITIZED
int main(void)
{
	printf("needs an allocator of its own\n[  PASSED  ] 0 test(s).\n");
	return 0;
}
#else

/* ------------------------------------------------------- who asks for what */

enum kind { MEMORY, THREAD, NR_KINDS };

extern char __executable_start, etext;

static atomic_uint fail_nth[NR_KINDS]; /* 0: none */
static atomic_uint asked[NR_KINDS];
static atomic_bool persists;
static _Thread_local bool is_test; /* this thread's own are not counted */

static bool fails(enum kind kind, const void *caller)
{
	unsigned nth = atomic_load(&fail_nth[kind]), nr;
	const char *at = caller;

	if (!nth || is_test || at < &__executable_start || at >= &etext)
		return false;
	nr = atomic_fetch_add(&asked[kind], 1) + 1;
	return nr == nth || (nr > nth && atomic_load(&persists));
}

#define ASKS(kind) fails(kind, __builtin_return_address(0))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *mem, size_t size);
void *__libc_memalign(size_t align, size_t size);

static void *refuse(void)
{
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t size)
{
	return ASKS(MEMORY) ? refuse() : __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	return ASKS(MEMORY) ? refuse() : __libc_calloc(nr, size);
}

void *realloc(void *mem, size_t size)
{
	return ASKS(MEMORY) ? refuse() : __libc_realloc(mem, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return ASKS(MEMORY) ? refuse() : __libc_memalign(align, size);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*run)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *,
			   void *(*)(void *), void *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return ASKS(THREAD) ? EAGAIN : real(thread, attr, run, arg);
}

/* ---------------------------------------------------------------- the sweep */

static const char *const names[NR_KINDS] = { "allocation", "thread" };

static void run_clean(struct scenario *s, const char *what)
{
	scenario_prepare(s);
	scenario_run(s);
	scenario_check_clean(s, what);
}

/* False: it was not asked for so often. */
static bool nth_fails(struct scenario *s, enum kind kind, unsigned nth,
		      bool persist)
{
	char what[80];
	bool happened;

	snprintf(what, sizeof(what), "%s %u%s is refused", names[kind], nth,
		 persist ? " and all later ones" : "");
	scenario_prepare(s);
	s->may_answer = kind == MEMORY ? CU_FILE_NOMEM_ERROR : CU_FILE_SUCCESS;
	atomic_store(&asked[kind], 0);
	atomic_store(&persists, persist);
	atomic_store(&fail_nth[kind], nth);
	scenario_run(s);
	atomic_store(&fail_nth[kind], 0);
	happened = atomic_load(&asked[kind]) >= nth;
	fault_count(happened);
	scenario_check(s, what, NULL);
	s->may_answer = CU_FILE_SUCCESS;
	if (happened)
		run_clean(s, "after a refusal");
	return happened;
}

struct cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
	enum door door;
};

static void any_of_it_may_be_refused(void **state)
{
	const struct cell *cell = *state;
	unsigned failures = 0;
	struct scenario s;

	th_mem_need(cell->mem_kind);
	if (cell->door)
		th_need_gpu();
	is_test = true;
	scenario_init(&s, cell->mem_kind, cell->file_kind);
	s.door = cell->door;
	run_clean(&s, "before any refusal");
	for (int kind = 0; kind < NR_KINDS; kind++)
		for (int persist = 0; persist < 2; persist++)
			for (unsigned nth = 1;
			     nth_fails(&s, kind, nth, persist); nth++)
				failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 10);
	scenario_fini(&s);
}

#define CELL(mem, file, door) \
	{ \
		.name = "any_of_it_may_be_refused (" #mem ", " #file \
			", " #door ")", \
		.test_func = any_of_it_may_be_refused, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(struct cell) \
		{ \
			mem, file, door \
		} \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CELL(TH_DEVICE, TH_ODIRECT, PLAIN),
		CELL(TH_DEVICE, TH_BUFFERED, VECTORED),
		CELL(TH_MALLOC, TH_ODIRECT, PLAIN),
		CELL(TH_DEVICE, TH_BUFFERED, STREAMED),
		CELL(TH_DEVICE, TH_BUFFERED, STREAMED_BATCH),
		CELL(TH_DEVICE, TH_BUFFERED, BATCHED),
	};

	th_start(280);
	return th_finish(
		cmocka_run_group_tests_name("memory", tests, NULL, NULL));
}
#endif
