// SPDX-License-Identifier: Apache-2.0
/*
 * rest - what the library costs a process that asks nothing of it: memory
 * after an open, and processor time after much work.
 */
#include "client.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SIZE ((size_t)16 << 20)

/* KiB of all that is mapped, or of files with this name; what is said so. */
static long mapped_kib(const char *name, const char *what)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	size_t length = strlen(what);
	char line[4096];
	int counts = !name;
	long kib, sum = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			counts = !name || strstr(line, name);
		else if (counts && !strncmp(line, what, length) &&
			 sscanf(line + length, ": %ld kB", &kib) == 1)
			sum += kib;
	}
	fclose(f);
	return sum;
}

static double cpu_ms(void)
{
	struct rusage u;

	CHECK(!getrusage(RUSAGE_SELF, &u));
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-3;
}

/* How often this thread went to or from a processor. */
static long switches_of(const char *tid)
{
	char path[300], line[256];
	long nr, sum = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	f = fopen(path, "r");
	if (!f)
		return 0; /* it has just ended */
	while (fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, "ctxt_switches:");

		if (at && sscanf(at, "ctxt_switches: %ld", &nr) == 1)
			sum += nr;
	}
	fclose(f);
	return sum;
}

/* Of all threads but the first, which looks. */
static long switches_of_others(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	long sum = 0;

	CHECK(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != getpid())
			sum += switches_of(e->d_name);
	closedir(d);
	return sum;
}

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/*
 * Of the libraries of others the kernel maps more or less around what was
 * touched, as they lie in the page cache; all processes have the same pages.
 */
void rest_after_open(void)
{
	long before = mapped_kib(NULL, "Anonymous"), grown, own;
	int fds = count_entries("/proc/self/fd");

	OK(cuFileDriverOpen());
	grown = mapped_kib(NULL, "Anonymous") - before;
	own = mapped_kib("libcufile", "Rss");
	printf("grown %ld KiB, library %ld KiB\n", grown, own);
	CHECK(own > 0 && grown + own < 1024);
	CHECK(count_entries("/proc/self/task") == 1);
	CHECK(count_entries("/proc/self/fd") == fds);
	OK(cuFileDriverClose_v2());
	say_done();
}

static int make_large_file(const char *dir)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/large-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	CHECK(fd >= 0 && !ftruncate(fd, SIZE));
	unlink(path);
	return fd;
}

/* A second in which nothing is done; a thread may be late in lying down. */
static int is_at_rest(void)
{
	long switches = switches_of_others();
	double cpu = cpu_ms();

	sleep_ms(1000);
	cpu = cpu_ms() - cpu;
	switches = switches_of_others() - switches;
	printf("cpu %.3f ms, %ld switches\n", cpu, switches);
	return cpu < 5 && switches == 0;
}

/* A worker that begins has one for a moment, however late it is run. */
static void await_fds(int most)
{
	for (int ms = 0; count_entries("/proc/self/fd") > most; ms++) {
		CHECK(ms < 20000);
		sleep_ms(1);
	}
}

void rest_after_work(const char *dir)
{
	CUfileHandle_t fh;
	int fds, threads, seconds = 0;
	void *mem;

	gpu_open();
	mem = gpu_alloc_size(SIZE);
	OK(cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6));
	OK(cuFileDriverOpen());
	fds = count_entries("/proc/self/fd");
	fh = make_handle(make_large_file(dir));
	threads = count_entries("/proc/self/task");
	for (int i = 0; i < 10; i++)
		CHECK(cuFileRead(fh, mem, SIZE, 0, 0) == (ssize_t)SIZE);
	/* six workers; the file and perhaps its second descriptor */
	CHECK(count_entries("/proc/self/task") >= threads + 6);
	await_fds(fds + 2);
	sleep_ms(200);
	/* who wakes now and then does it in each of them */
	while (!is_at_rest())
		CHECK(++seconds < 20);
	cuFileHandleDeregister(fh);
	OK(cuFileDriverClose_v2());
	CHECK(count_entries("/proc/self/fd") == fds + 1); /* ours */
	say_done();
}
