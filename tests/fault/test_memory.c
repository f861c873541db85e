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
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "fault.h"
#include "scenario.h"
#include "seam/os.h"

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
		scenario_run_clean(s, "after a refusal");
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
	scenario_run_clean(&s, "before any refusal");
	for (int kind = 0; kind < NR_KINDS; kind++)
		for (int persist = 0; persist < 2; persist++)
			for (unsigned nth = 1;
			     nth_fails(&s, kind, nth, persist); nth++)
				failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 10);
	scenario_fini(&s);
}

static void refuse_from(unsigned nth, bool persist)
{
	atomic_store(&asked[MEMORY], 0);
	atomic_store(&persists, persist);
	atomic_store(&fail_nth[MEMORY], nth);
}

/* Places of batches are never freed, so the scenario makes no new ones. */
static void each_of_many_batches_may_find_no_memory(void **state)
{
	CUfileBatchHandle_t batches[40];
	const unsigned nr = sizeof(batches) / sizeof(batches[0]);
	unsigned failures = 0;

	th_open();
	is_test = false;
	for (unsigned i = 0; i < nr; i++) {
		CUfileError_t e = { .err = CU_FILE_NOMEM_ERROR };

		for (unsigned nth = 1; e.err; nth++) {
			assert_int_equal(e.err, CU_FILE_NOMEM_ERROR);
			refuse_from(nth, false);
			e = cuFileBatchIOSetUp(&batches[i], 4);
			failures += atomic_load(&asked[MEMORY]) >= nth;
			refuse_from(0, false);
			assert_true(nth < 100);
		}
	}
	is_test = true;
	assert_true(failures > nr);
	fault_count(failures);
	for (unsigned i = 0; i < nr; i++)
		cuFileBatchIODestroy(batches[i]);
	th_close();
}

struct gets {
	size_t size, sizes[3], counts[3];
};

static CUfileError_t get_all(struct gets *gets)
{
	CUfileError_t e = cuFileGetParameterSizeT(
		CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &gets->size);

	return e.err ? e :
		       cuFileGetParameterPosixPoolSlabArray(gets->sizes,
							    gets->counts, 3);
}

/* Each reads the file for itself then. */
static void a_get_before_the_open_may_find_no_memory(void **state)
{
	unsigned failures = 0;
	bool happened = true;
	struct gets right;

	assert_int_equal(get_all(&right).err, 0);
	for (unsigned nth = 1; happened; nth++) {
		struct gets got = { 0 };
		CUfileError_t e;

		is_test = false;
		refuse_from(nth, false);
		e = get_all(&got);
		happened = atomic_load(&asked[MEMORY]) >= nth;
		refuse_from(0, false);
		is_test = true;
		if (e.err)
			assert_int_equal(e.err, CU_FILE_NOMEM_ERROR);
		else
			assert_memory_equal(&got, &right, sizeof(right));
		failures += e.err != 0;
	}
	assert_true(failures > 2);
	fault_count(failures);
}

#define LAUNCH_SIZE 4096

static atomic_bool held, let_go;

/* The first that is a launch's stands still until it is let go. */
static ssize_t held_pread(int fd, void *buf, size_t size, off_t off)
{
	if (size == LAUNCH_SIZE && !atomic_exchange(&held, true))
		while (!atomic_load(&let_go))
			th_sleep_ms(1);
	return cf_os_real.pread(fd, buf, size, off);
}

static void hold_reads(void)
{
	static struct cf_os os;

	os = cf_os_real;
	os.pread = held_pread;
	atomic_store(&let_go, true);
	cf_os = &os;
}

static int let_reads_go(void **state)
{
	int res;

	atomic_store(&let_go, true);
	res = th_teardown_close(state);
	cf_os = &cf_os_real;
	return res;
}

/*
 * Two graphs made of one capture, where no kernel is behind the gate: the
 * second launch needs memory while the first is at it, and says that it has
 * none. The first one goes on.
 */
static void a_launch_beside_another_may_find_no_memory(void **state)
{
	size_t size = LAUNCH_SIZE;
	unsigned char bytes[LAUNCH_SIZE], got[LAUNCH_SIZE];
	off_t zero = 0;
	ssize_t n = -1;
	struct th_file file;
	struct th_mem mem;
	CUstream streams[2];
	CUgraphExec execs[2];
	CUgraph graph;

	th_mem_need(TH_DEVICE);
	th_need_fake();
	setenv("OCF_STREAM_FERRY", "0", 1);
	hold_reads();
	th_open();
	th_fill(bytes, size);
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, size);
	th_mem_alloc(&mem, TH_DEVICE, size);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			cuStreamCreate(&streams[i], CF_CU_STREAM_NON_BLOCKING),
			0);
	assert_int_equal(cuStreamBeginCapture(streams[0], 2), 0);
	assert_int_equal(cuFileReadAsync(th_handle(file.fd), mem.ptr, &size,
					 &zero, &zero, &n, streams[0])
				 .err,
			 0);
	assert_int_equal(cuStreamEndCapture(streams[0], &graph), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(cuGraphInstantiate(&execs[i], graph, 0), 0);
	/* what only a first launch does is done */
	assert_int_equal(cuGraphLaunch(execs[0], streams[0]), 0);
	assert_int_equal(cuStreamSynchronize(streams[0]), 0);
	assert_int_equal(n, size);
	n = -1;
	atomic_store(&let_go, false);
	atomic_store(&held, false);
	assert_int_equal(cuGraphLaunch(execs[0], streams[0]), 0);
	while (!atomic_load(&held))
		th_sleep_ms(1);
	refuse_from(1, true);
	assert_int_equal(cuGraphLaunch(execs[1], streams[1]), 0);
	while (__atomic_load_n(&n, __ATOMIC_ACQUIRE) == -1)
		th_sleep_ms(1);
	assert_int_equal(n, -ENOMEM);
	fault_count(atomic_load(&asked[MEMORY]));
	refuse_from(0, false);
	atomic_store(&let_go, true);
	/* the gate is the first one's, and so are the bytes */
	for (int i = 0; i < 2; i++)
		assert_int_equal(cuStreamSynchronize(streams[i]), 0);
	assert_int_equal(n, size);
	th_mem_get(&mem, 0, got, size);
	th_equal("memory", got, bytes, size);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cuGraphExecDestroy(execs[i]), 0);
		assert_int_equal(cuStreamDestroy(streams[i]), 0);
	}
	assert_int_equal(cuGraphDestroy(graph), 0);
	while (th_fake()->live("user_object"))
		th_sleep_ms(1);
	th_mem_free(&mem);
	th_file_end(&file);
	unsetenv("OCF_STREAM_FERRY");
	th_close();
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
		cmocka_unit_test_teardown(
			each_of_many_batches_may_find_no_memory,
			th_teardown_close),
		cmocka_unit_test(a_get_before_the_open_may_find_no_memory),
		cmocka_unit_test_teardown(
			a_launch_beside_another_may_find_no_memory,
			let_reads_go),
	};

	th_start(280);
	return th_finish(
		cmocka_run_group_tests_name("memory", tests, NULL, NULL));
}
#endif
