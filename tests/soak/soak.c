// SPDX-License-Identifier: Apache-2.0
/*
 * soak SECONDS [where] - everything at once, again and again, and the memory
 * flat.
 *
 * Workers read, write, batch, queue in streams, register and verify; now and
 * then all pause, and the driver is closed and opened under them. Memory in use
 * is taken then, at the same point each time: resident pages, or under the
 * address sanitizer the bytes that are allocated. The last line says what
 * was done. Exit status 0: all bytes were right, nothing was left behind, and
 * the last fifth of the time used no more memory than the second, to 1 % and
 * to what NVIDIA's driver keeps. Where it did, or if "where" is asked for, each
 * fifth says where its memory was.
 */
#include "soak.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR_WORKERS 8
#define NR_SAMPLES 1024
#define FIFTHS 5

static struct soak {
	struct th_bad bad;
	struct soak_worker workers[NR_WORKERS];
	pthread_rwlock_t session; /* held for reading by each op */
	_Atomic unsigned long done[16], sessions;
	atomic_bool over;
	uint64_t begin_ns, end_ns;
	struct {
		uint64_t ns;
		long kib;
	} samples[NR_SAMPLES];
	unsigned nr_samples, looks, stride; /* each stride-th look is kept */
	struct soak_memory fifths[FIFTHS];  /* as each begins */
	bool where;			    /* they are asked for */
} soak;

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		th_bad_note(&soak.bad, "no /proc/self/statm");
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
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

static void work(struct soak_worker *w)
{
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

/* Two kinds of memory on each kind of file. */
static void make_worker(unsigned i)
{
	unsigned long bytes = soak.workers[i].bytes;

	soak_worker_make(&soak.workers[i], i + i / 4 * 4, &soak.bad);
	soak.workers[i].bytes = bytes;
}

/* However long it lasts, all of the time is seen: a full table is thinned. */
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

static void sample(void)
{
	malloc_trim(0);
	look_where();
	if (soak.looks++ % soak.stride)
		return;
	if (soak.nr_samples == NR_SAMPLES)
		thin();
	soak.samples[soak.nr_samples].ns = th_now_ns();
	/* a sanitizer's heap keeps pages as it likes */
	soak.samples[soak.nr_samples++].kib =
		TH_ASAN ? soak_malloced_kib() : resident_kib();
}

/*
 * All hands off. The close takes what they had. Every fourth time they give
 * all of it back before and get it anew: memory is looked at in between.
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
	while (th_now_ns() < soak.end_ns && !atomic_load(&soak.bad.nr)) {
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

static int by_size(const void *a, const void *b)
{
	const long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median of what was taken between two fifths of the time. */
static long typical_kib(unsigned from, unsigned to)
{
	static long kib[NR_SAMPLES];
	unsigned nr = 0;

	for (unsigned i = 0; i < soak.nr_samples; i++) {
		uint64_t at = soak.samples[i].ns - soak.begin_ns;

		if (at >= from * fifth_ns() && at < to * fifth_ns())
			kib[nr++] = soak.samples[i].kib;
	}
	qsort(kib, nr, sizeof(kib[0]), by_size);
	return nr ? kib[nr / 2] : 0;
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

static int report(void)
{
	bool grows;
	long warm = typical_kib(1, 2), last = typical_kib(4, 6);
	long kept = kept_by_driver_kib();
	unsigned long bytes = 0;

	for (unsigned i = 0; i < NR_WORKERS; i++)
		bytes += soak.workers[i].bytes;
	for (unsigned i = 0; i < soak_nr_ops; i++)
		printf("%s %lu, ", soak_ops[i].name, soak.done[i]);
	printf("sessions %lu\n%lu MiB moved; memory %ld KiB, then %ld KiB "
	       "(%+.2f %%)\n",
	       soak.sessions, bytes >> 20, warm, last,
	       warm ? 100.0 * (double)(last - warm) / (double)warm : 0.0);
	if (kept)
		printf("of that the driver may keep %ld KiB\n", kept);
	if (atomic_load(&soak.bad.nr)) {
		printf("WRONG %u times; first: %s\n", soak.bad.nr,
		       soak.bad.text);
		return 1;
	}
	/* the thread sanitizer's own memory grows with what it has seen */
	grows = !TH_TSAN && (!warm || !last || last > warm + warm / 100 + kept);
	if (grows || soak.where)
		print_where();
	if (grows) {
		printf("WRONG: memory %s\n",
		       warm && last ? "grows" : "was not seen");
		return 1;
	}
	return 0;
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
	/* the watchdog: four times this under a sanitizer */
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
