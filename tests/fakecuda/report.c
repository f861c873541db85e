// SPDX-License-Identifier: Apache-2.0
/*
 * report - what is still alive, what was done wrong, and the last word at
 * process exit.
 *
 * Lock: complaint_lock, innermost.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum { MAX_COMPLAINTS = 256, COMPLAINT_LEN = 200 };

static pthread_mutex_t complaint_lock = PTHREAD_MUTEX_INITIALIZER;
static char complaints[MAX_COMPLAINTS][COMPLAINT_LEN];
static long nr_complaints; /* those beyond the table are only counted */

static const char *const live_names[NR_LIVE] = {
	[LIVE_CTX] = "ctx",
	[LIVE_PRIMARY] = "primary_retain",
	[LIVE_STREAM] = "stream",
	[LIVE_EVENT] = "event",
	[LIVE_MEM] = "mem",
	[LIVE_POOL_MEM] = "pool_mem",
	[LIVE_MANAGED] = "managed",
	[LIVE_HOST_ALLOC] = "host_alloc",
	[LIVE_HOST_REGISTER] = "host_register",
	[LIVE_MODULE] = "module",
	[LIVE_GRAPH] = "graph",
	[LIVE_EXEC] = "graph_exec",
	[LIVE_POOL] = "pool",
	[LIVE_PHYS] = "vmm_handle",
	[LIVE_MAP] = "vmm_map",
	[LIVE_RESERVE] = "vmm_reserve",
	[LIVE_USER] = "user_object",
};

void fc_complain(const char *fmt, ...)
{
	char text[COMPLAINT_LEN];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&complaint_lock);
	if (nr_complaints < MAX_COMPLAINTS)
		memcpy(complaints[nr_complaints], text, sizeof(text));
	nr_complaints++;
	pthread_mutex_unlock(&complaint_lock);
	if (fc.abort_on_complaint) {
		fprintf(stderr, "fakecuda: %s\n", text);
		abort();
	}
}

long fakecuda_complaints(FILE *f)
{
	long n;

	pthread_mutex_lock(&complaint_lock);
	n = nr_complaints;
	for (long i = 0; f && i < n && i < MAX_COMPLAINTS; i++)
		fprintf(f, "fakecuda: complaint: %s\n", complaints[i]);
	if (f && n > MAX_COMPLAINTS)
		fprintf(f, "fakecuda: and %ld more\n", n - MAX_COMPLAINTS);
	pthread_mutex_unlock(&complaint_lock);
	return n;
}

const char *fakecuda_complaint(long n)
{
	const char *text = NULL;

	pthread_mutex_lock(&complaint_lock);
	if (n >= 0 && n < nr_complaints && n < MAX_COMPLAINTS)
		text = complaints[n];
	pthread_mutex_unlock(&complaint_lock);
	return text;
}

void fakecuda_complaints_clear(void)
{
	pthread_mutex_lock(&complaint_lock);
	nr_complaints = 0;
	pthread_mutex_unlock(&complaint_lock);
}

long fakecuda_live(const char *kind)
{
	for (int i = 0; i < NR_LIVE; i++)
		if (!strcmp(live_names[i], kind))
			return atomic_load(&fc.live[i]);
	return -1;
}

static void print_range(struct fc_range *r, void *arg)
{
	if (!r->dead)
		fprintf(arg, "fakecuda: leak: %s 0x%llx, %zu bytes\n",
			live_names[fc_range_live_kind(r)],
			(unsigned long long)r->base, r->size);
}

long fakecuda_leaks(FILE *f)
{
	long sum = 0;

	for (int i = 0; i < NR_LIVE; i++) {
		long n = atomic_load(&fc.live[i]);

		if (f && n)
			fprintf(f, "fakecuda: leak: %ld of kind %s\n", n,
				live_names[i]);
		sum += n;
	}
	if (f) {
		fc_lock();
		fc_range_each(print_range, f);
		fc_unlock();
	}
	return sum;
}

/*
 * A destructor runs after the atexit handlers of everybody, so that nothing a
 * client does at its end is missed.
 */
__attribute__((destructor)) static void last_word(void)
{
	long bad;

	if (!atomic_load(&fc.inited) || fc.pid != (int)getpid())
		return;
	bad = fakecuda_complaints(fc.report ? stderr : NULL);
	if (fc.report) {
		long leaks = fakecuda_leaks(stderr);

		fprintf(stderr,
			"fakecuda: %lu calls, %ld leaks, %ld complaints, "
			"%lu late calls\n",
			fakecuda_calls(NULL), leaks, bad,
			fakecuda_late_calls());
	}
	if (fc.strict && bad) {
		fflush(NULL);
		_exit(99);
	}
}
