// SPDX-License-Identifier: Apache-2.0
/*
 * soak SECONDS [where] - everything at once, again and again, and memory must
 * not grow.
 *
 * Workers read, write, batch, queue in streams, register and verify. Now and
 * then all pause, and the driver is closed and opened under them. The memory in
 * use is looked at then, at the same point each time: resident pages, or under
 * the address sanitizer the bytes that are allocated. Stacks are left out (as
 * many are kept as there ever were threads at a time), but threads are counted.
 * The last line says what was done. Exit status 0: all bytes were right,
 * nothing was left behind, no threads are left over, and memory has not grown:
 * the least that the last fifth of the looks saw is no more than the least of
 * the second fifth, to 1 % and to what NVIDIA's driver keeps. If it has grown,
 * or "where" is given, each fifth of the time says where its memory was.
 */
#include "soak.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR_WORKERS 8
#define NR_SAMPLES 1024
#define LEAST_LOOKS 15 /* however slow the machine is */
#define FIFTHS 5

static struct soak {
	struct th_bad bad;
	struct soak_worker workers[NR_WORKERS];
	pthread_rwlock_t session; /* held for reading by each op */
	_Atomic unsigned long done[16], sessions;
	atomic_bool over;
	uint64_t begin_ns, end_ns;
	struct sample {
		long kib, threads;
	} samples[NR_SAMPLES];
	unsigned nr_samples, looks, stride; /* each stride-th look is kept */
	struct soak_memory fifths[FIFTHS];  /* as each begins */
	bool where;			    /* they are asked for */
} soak;

static long resident_kib(void)
{
	struct soak_memory m;
	long kib = 0;

	soak_memory_look(&m);
	for (unsigned i = 0; i < SOAK_NR_KINDS; i++)
		kib += i == SOAK_STACK ? 0 : m.kinds[i].kib;
	return kib;
}

/* Not by listing /proc/self/task: that misses some while others end. */
static long threads_now(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long nr = 0;

	while (f && fgets(line, sizeof(line), f) &&
	       sscanf(line, "Threads: %ld", &nr) != 1)
		;
	if (f)
		fclose(f);
	return nr;
}

/* Waits a little: threads of destroyed streams end in their own time. */
static long threads_left(void)
{
	static long least = LONG_MAX;
	long nr = threads_now();

	for (int i = 0; i < 2000 && nr - 2 > least; i++) {
		th_sleep_ms(1);
		nr = threads_now();
	}
	least = nr < least ? nr : least;
	return nr;
}

/* ---------------------------------------------------------------- work */

static unsigned some_op(const struct soak_worker *w)
{
	for (;;) {
		size_t at = th_below(100);
		unsigned i = 0;

		while (i < soak_nr_ops && at >= soak_ops[i].weight)
			at -= soak_ops[i++].weight;
		if (i < soak_nr_ops && (!soak_ops[i].needs_gpu || w->stream))
			return i;
	}
}

/* A driver may have a thread for each default stream since its first use. */
static void use_default_streams(struct soak_worker *w, CUcontext ctx)
{
	const CUstream per_thread = (CUstream)2;
	CUcontext popped;
	CUdeviceptr byte;

	if (cuCtxPushCurrent(ctx) || cuMemAlloc(&byte, 1) ||
	    cuMemsetD8Async(byte, 0, 1, NULL) ||
	    cuMemsetD8Async(byte, 0, 1, per_thread) || cuMemFree(byte) ||
	    cuCtxPopCurrent(&popped))
		th_bad_note(w->bad, "a default stream cannot be used");
}

static void work(struct soak_worker *w)
{
	if (w->stream) {
		use_default_streams(w, th_primary());
		use_default_streams(w, th_second_ctx());
	}
	while (!atomic_load(&soak.over) && !atomic_load(&soak.bad.nr)) {
		unsigned op;

		pthread_rwlock_rdlock(&soak.session);
		op = some_op(w);
		soak_ops[op].run(w);
		pthread_rwlock_unlock(&soak.session);
		atomic_fetch_add(&soak.done[op], 1);
	}
}

/* ------------------------------------------------------------- sessions */

/* Each kind of memory on two kinds of files, of a GPU's each of two GPUs'. */
static void make_worker(unsigned i)
{
	unsigned long bytes = soak.workers[i].bytes;

	soak_worker_make(&soak.workers[i], i + i / 4 * 20, &soak.bad);
	soak.workers[i].bytes = bytes;
}

/* The table is thinned when it is full, so it has samples of all the time. */
static void thin(void)
{
	for (unsigned i = 0; i < NR_SAMPLES / 2; i++)
		soak.samples[i] = soak.samples[2 * i];
	soak.nr_samples = NR_SAMPLES / 2;
	soak.stride *= 2;
}

static uint64_t fifth_ns(void)
{
	return (soak.end_ns - soak.begin_ns) / FIFTHS;
}

static void look_where(void)
{
	uint64_t fifth = (th_now_ns() - soak.begin_ns) / fifth_ns();

	if (fifth >= FIFTHS || soak.fifths[fifth].seen)
		return;
	soak_memory_look(&soak.fifths[fifth]);
	soak.fifths[fifth].sessions = soak.sessions;
}

/* What a thread that is about to end has in use is no growth: waits for it. */
static void sample(void)
{
	long threads = threads_left();

	malloc_trim(0);
	look_where();
	if (soak.looks++ % soak.stride)
		return;
	if (soak.nr_samples == NR_SAMPLES)
		thin();
	/* a sanitizer's heap keeps pages as it likes */
	soak.samples[soak.nr_samples++] = (struct sample){
		.kib = TH_ASAN ? soak_malloced_kib() : resident_kib(),
		.threads = threads,
	};
}

/*
 * All workers pause. The close ends what they had registered. Every fourth time
 * they give all of it back before and get it anew; memory is looked at in
 * between.
 */
static void close_and_open(void)
{
	bool all = atomic_load(&soak.sessions) % 4 == 3;

	pthread_rwlock_wrlock(&soak.session);
	for (unsigned i = 0; all && i < NR_WORKERS; i++)
		soak_worker_end(&soak.workers[i]);
	th_close();
	if (cuFileUseCount())
		th_bad_note(&soak.bad, "still in use after the close");
	if (all)
		sample();
	th_open();
	for (unsigned i = 0; i < NR_WORKERS; i++)
		if (all)
			make_worker(i);
		else
			soak_worker_renew(&soak.workers[i]);
	pthread_rwlock_unlock(&soak.session);
	atomic_fetch_add(&soak.sessions, 1);
}

static void keep_time(void)
{
	while ((th_now_ns() < soak.end_ns || soak.looks < LEAST_LOOKS) &&
	       !atomic_load(&soak.bad.nr)) {
		th_sleep_ms(50);
		close_and_open();
	}
	atomic_store(&soak.over, true);
}

static void run(void *arg, unsigned i)
{
	(void)arg;
	if (i == NR_WORKERS)
		keep_time();
	else
		work(&soak.workers[i]);
}

/* -------------------------------------------------------------- results */

static long less(long a, long b)
{
	return a < b ? a : b;
}

/* What stays is in each look of that fifth, so in the one that saw least. */
static struct sample least_of(unsigned fifth)
{
	unsigned from = soak.nr_samples * fifth / FIFTHS;
	unsigned end = soak.nr_samples * (fifth + 1) / FIFTHS;
	struct sample least = soak.samples[from];

	for (unsigned i = from + 1; i < end; i++) {
		least.kib = less(least.kib, soak.samples[i].kib);
		least.threads = less(least.threads, soak.samples[i].threads);
	}
	return least;
}

static void print_where(void)
{
	for (unsigned i = 0; i < FIFTHS; i++) {
		if (!soak.fifths[i].seen)
			continue;
		printf("fifth %u, after %lu sessions: ", i + 1,
		       soak.fifths[i].sessions);
		soak_memory_print(&soak.fifths[i]);
	}
}

/*
 * A real driver keeps some 600 bytes of each life of ours: so much did a
 * program leave behind that only made a life's driver calls, each in a thread
 * of its own (driver 580). From the middle of the second fifth to that of the
 * last are six tenths of the lives.
 */
static long kept_by_driver_kib(void)
{
	return th_fake() || !th_gpu(NULL) ?
		       0 :
		       (long)(soak.sessions * 6 / 10 * 640 / 1024);
}

/*
 * The thread sanitizer's own memory grows with what it has seen. Of threads
 * some may be about to end, or a driver's: fewer than one in ten lives.
 */
static const char *what_grows(struct sample warm, struct sample last, long kept)
{
	if (!TH_TSAN &&
	    (!warm.kib || last.kib > warm.kib + warm.kib / 100 + kept))
		return "memory";
	return last.threads > warm.threads + (long)soak.sessions / 10 ?
		       "threads" :
		       NULL;
}

static int report(void)
{
	struct sample warm = least_of(1), last = least_of(4);
	long kept = kept_by_driver_kib();
	unsigned long bytes = 0;
	const char *wrong;

	for (unsigned i = 0; i < NR_WORKERS; i++)
		bytes += soak.workers[i].bytes;
	for (unsigned i = 0; i < soak_nr_ops; i++)
		printf("%s %lu, ", soak_ops[i].name, soak.done[i]);
	printf("sessions %lu\n%lu MiB moved; memory %ld KiB, then %ld KiB "
	       "(%+.2f %%); threads %ld, then %ld\n",
	       soak.sessions, bytes >> 20, warm.kib, last.kib,
	       warm.kib ? 100.0 * (double)(last.kib - warm.kib) /
				  (double)warm.kib :
			  0.0,
	       warm.threads, last.threads);
	if (kept)
		printf("of that the driver may keep %ld KiB\n", kept);
	if (atomic_load(&soak.bad.nr)) {
		printf("WRONG %u times; first: %s\n", soak.bad.nr,
		       soak.bad.text);
		return 1;
	}
	wrong = what_grows(warm, last, kept);
	if (wrong || soak.where)
		print_where();
	if (wrong)
		printf("WRONG: more and more %s\n", wrong);
	return wrong != NULL;
}

/*
 * Each thread of glibc's keeps freed blocks for itself, up to some 230 KiB,
 * which count as in use and take a long time to fill. That they are not kept
 * must be said before the program begins.
 */
static void without_caches(char **argv)
{
	if (TH_SANITIZED || getenv("GLIBC_TUNABLES"))
		return;
	setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
	execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 20;
	pthread_rwlockattr_t attr;
	int failed;

	without_caches(argv);
	soak.where = argc > 2 && !strcmp(argv[2], "where");
	th_start(seconds + 120);
	if (!th_gpu(NULL))
		printf("no GPU: host memory only\n");
	if (th_fake())
		th_fake()->reuse_handles(1); /* dead ones cost memory */
	/* one heap, and large blocks go back: what grows then is ours */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(
		&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&soak.session, &attr);
	th_second_elsewhere();
	th_thread_gpu();
	th_open();
	for (unsigned i = 0; i < NR_WORKERS; i++)
		make_worker(i);
	soak.stride = 1;
	soak.begin_ns = th_now_ns();
	soak.end_ns = soak.begin_ns + seconds * 1000000000ull;
	th_threads(NR_WORKERS + 1, run, NULL);
	for (unsigned i = 0; i < NR_WORKERS; i++)
		soak_worker_end(&soak.workers[i]);
	failed = th_finish(report());
	printf("[  %s  ] 1 test(s).\n", failed ? "FAILED" : "PASSED");
	return failed != 0;
}
