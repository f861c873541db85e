// SPDX-License-Identifier: Apache-2.0
/* storm - everything at once from many threads: nothing is lost or mixed up. */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_THREADS 8
#define NR_SHARED 16
#define ROUNDS TH_SCALE(1500)

struct storm {
	int fds[NR_SHARED];
	_Atomic(CUfileHandle_t) handles[NR_SHARED];
	char *host; /* each fd's file holds its number in every byte */
	struct th_mem mem;
	atomic_bool over;
	bool closing; /* others close the driver meanwhile */
	struct th_bad bad;
};

/*
 * A handle that others may deregister meanwhile: the right bytes, or EINVAL.
 */
static void read_shared(struct storm *s, unsigned slot, void *buf, size_t at,
			bool device)
{
	CUfileHandle_t fh = atomic_load(&s->handles[slot]);
	char got[512];
	ssize_t n;

	if (!fh)
		return;
	n = cuFileRead(fh, (char *)buf + at, sizeof(got), 0, 0);
	if (n < 0 && errno == EINVAL)
		return;
	if (n != (ssize_t)sizeof(got)) {
		th_bad_note(&s->bad, "read answers %zd, errno %d", n, errno);
		return;
	}
	if (device)
		th_mem_get(&s->mem, at, got, sizeof(got));
	else
		memcpy(got, (char *)buf + at, sizeof(got));
	for (size_t i = 0; i < sizeof(got); i++)
		if (got[i] != (char)(slot + 1))
			th_bad_note(&s->bad, "file %u gave byte %d", slot,
				    got[i]);
}

static void register_shared(struct storm *s, unsigned slot)
{
	CUfileHandle_t fh, old;
	CUfileError_t error = fresh_register(s->fds[slot], &fh);

	if (error.err == CU_FILE_HANDLE_ALREADY_REGISTERED)
		return;
	if (error.err) {
		th_bad_note(&s->bad, "register answers %d", error.err);
		return;
	}
	old = atomic_exchange(&s->handles[slot], fh);
	if (old == fh)
		th_bad_note(&s->bad, "a value was given twice");
}

static void register_window(struct storm *s, char *base)
{
	CUfileError_t error = cuFileBufRegister(base, 4096, 0);

	if (error.err) {
		th_bad_note(&s->bad, "buffer register answers %d", error.err);
		return;
	}
	error = cuFileBufDeregister(base);
	/* a close in between has forgotten it */
	if (s->closing && (error.err == CU_FILE_MEMORY_NOT_REGISTERED ||
			   error.err == CU_FILE_DRIVER_CLOSING))
		return;
	if (error.err)
		th_bad_note(&s->bad, "buffer deregister answers %d", error.err);
}

static void storm_thread(void *arg, unsigned i)
{
	struct storm *s = arg;
	bool gpu = th_gpu(NULL);

	for (int n = 0; n < ROUNDS; n++) {
		unsigned slot = (unsigned)th_below(NR_SHARED);
		size_t own = 4096 * i;

		switch (th_below(6)) {
		case 0:
			register_shared(s, slot);
			break;
		case 1:
			cuFileHandleDeregister(atomic_load(&s->handles[slot]));
			break;
		case 2:
			register_window(s, s->host + own);
			break;
		case 3:
			if (gpu)
				register_window(s, (char *)s->mem.ptr + own);
			break;
		case 4:
			read_shared(s, slot, s->host, own, false);
			break;
		default:
			if (gpu)
				read_shared(s, slot, s->mem.ptr, own, true);
		}
	}
}

static void storm_make(struct storm *s)
{
	memset(s, 0, sizeof(*s));
	th_thread_gpu();
	assert_ok(cuFileDriverOpen());
	assert_int_equal(
		posix_memalign((void **)&s->host, 4096, 4096 * NR_THREADS), 0);
	for (int i = 0; i < NR_SHARED; i++) {
		unsigned char *bytes = th_same(i + 1, 4096);
		struct th_file file;

		th_file_make(&file, i & 1 ? TH_ODIRECT : TH_BUFFERED, O_RDWR,
			     bytes, 4096);
		s->fds[i] = dup(file.fd);
		th_file_end(&file);
		free(bytes);
	}
	if (th_gpu(NULL))
		th_mem_alloc(&s->mem, TH_DEVICE, 4096 * NR_THREADS);
}

static void storm_end(struct storm *s)
{
	th_bad_check(&s->bad);
	assert_ok(cuFileDriverClose_v2());
	if (s->mem.ptr)
		th_mem_free(&s->mem);
	free(s->host);
	for (int i = 0; i < NR_SHARED; i++)
		close(s->fds[i]);
}

/* Handles rows; lifetime rules of core/handle.h and core/buffer.h. */
static void registering_and_reading_at_once_mixes_nothing_up(void **state)
{
	struct storm s;

	storm_make(&s);
	th_threads(NR_THREADS, storm_thread, &s);
	storm_end(&s);
}

static void close_thread(void *arg, unsigned i)
{
	if (i) {
		storm_thread(arg, i);
		return;
	}
	for (int n = 0; n < 60; n++) {
		(void)cuFileDriverOpen();
		while (cuFileUseCount() > 0)
			(void)cuFileDriverClose_v2();
		th_sleep_ms(1);
	}
}

/* "close ... never hangs": closes in the middle of everything else. */
static void closing_under_others_is_refused_or_waits_never_hangs(void **state)
{
	struct storm s;

	storm_make(&s);
	s.closing = true;
	th_threads(NR_THREADS, close_thread, &s);
	th_bad_check(&s.bad);
	while (cuFileUseCount() > 0)
		assert_ok(cuFileDriverClose_v2());
	if (s.mem.ptr)
		th_mem_free(&s.mem);
	free(s.host);
}

/*
 * What a child can do with a table that was busy when it was born. It brings a
 * descriptor of its own: those of the storm may be registered by values that
 * no thread had noted yet.
 */
static int child_life(struct storm *s)
{
	static char own[4096];
	CUfileHandle_t fh;
	int fd = dup(s->fds[0]);

	alarm(240);
	for (int i = 0; i < NR_SHARED; i++) {
		fh = atomic_load(&s->handles[i]);
		if (fh)
			cuFileHandleDeregister(fh);
	}
	if (fresh_register(fd, &fh).err ||
	    cuFileRead(fh, own, sizeof(own), 0, 0) != sizeof(own) ||
	    own[0] != 1)
		return 2;
	if (cuFileBufRegister(own, sizeof(own), 0).err ||
	    cuFileBufDeregister(own).err)
		return 3;
	if (cuFileDriverClose_v2().err || cuFileUseCount())
		return 4;
	return cuFileDriverOpen().err ? 5 : 0;
}

static void fork_thread(void *arg, unsigned i)
{
	struct storm *s = arg;
	int status;

	if (i) {
		while (!atomic_load(&s->over))
			storm_thread(s, i);
		return;
	}
	for (int n = 0; n < TH_SCALE(40); n++) {
		pid_t pid = fork();

		if (!pid)
			_exit(child_life(s));
		if (waitpid(pid, &status, 0) != pid || status)
			th_bad_note(&s->bad, "child ended with 0x%x", status);
	}
	atomic_store(&s->over, true);
}

/* "a forked child can use host memory": of a parent in full swing. */
static void a_child_of_a_busy_parent_reads_closes_and_opens(void **state)
{
	struct storm s;

	storm_make(&s);
	/*
	 * Finds the driver. A child that is born while others look for it would
	 * look, too, and wait for the lock that TSan takes around dlopen.
	 */
	register_shared(&s, 0);
	th_threads(NR_THREADS, fork_thread, &s);
	storm_end(&s);
}

static const struct fresh_test tests[] = {
	FRESH(registering_and_reading_at_once_mixes_nothing_up),
	FRESH(closing_under_others_is_refused_or_waits_never_hangs),
	FRESH(a_child_of_a_busy_parent_reads_closes_and_opens),
};

FRESH_MAIN(tests, 60)
