// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_jobfile - a gdsio job file of any bytes.
 *
 * It is refused with a reason, or every job of it has a target and numbers
 * that the run can take as they are: nothing behind the parser checks again.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "gdsio/plan.h"
#include "report.h"
#include "target.h"

static char path[64];
static int fd;
static FILE *quiet;
static unsigned long refusals; /* in this input */

/* In place of tools/report.c: a reason must be given, nobody reads it. */
bool fail(const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	must(vsnprintf(text, sizeof(text), fmt, args) > 0);
	va_end(args);
	refusals++;
	return false;
}

bool fail_errno(const char *call, const char *name)
{
	wrong("%s %s: %s", call, name, strerror(errno));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	fd = memfd_create("job", 0);
	must(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	quiet = fopen("/dev/null", "w");
	must(quiet);
	return 0;
}

static void check_job(const struct plan *plan, const struct job *job)
{
	must(job->target && *job->target);
	must(job->threads >= 1 && job->threads <= MAX_THREADS);
	must(job->memory >= 0 && job->memory < NR_MEMORIES);
	must(job->buffered == 0 || job->buffered == 1);
	must(job->node == UNSET || job->node >= 0);
	must(job->nr_gpus >= 1 && job->nr_gpus <= MAX_GPUS);
	for (int i = 0; i < job->nr_gpus; i++)
		must(job->gpus[i] >= 0);
	must(job->start >= 0);
	must(job->size == UNSET || job->size >= 1);
	must(job->size != UNSET || !plan_writes(plan));
	must(job->io.min >= 1 && job->io.min <= job->io.max);
	must(job->io.min == job->io.max || job->io.step >= 1);
	must(plan_threads(plan, job) >= 1);
	must(plan_depth(plan, job) >= 1 && plan_depth(plan, job) <= MAX_DEPTH);
	/* the end of the last request is a file offset */
	must(job->size == UNSET || job->start <= INT64_MAX - job->size);
}

static void check_plan(const struct plan *plan)
{
	must(plan->nr_jobs >= 1 && plan->nr_jobs <= MAX_JOBS);
	must(plan->xfer >= 0 && plan->xfer < NR_XFERS);
	must(plan->op >= OP_READ && plan->op <= OP_RANDWRITE);
	must(plan->seconds >= 0 && plan->seconds <= 1e9);
	must(plan->align >= 1);
	must(plan->mix == UNSET || (plan->mix >= 0 && plan->mix <= 100));
	must(!plan->verify || plan->mix == UNSET);
	for (int i = 0; i < plan->nr_jobs; i++)
		check_job(plan, &plan->jobs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct plan plan;
	FILE *real = stderr;
	bool ok;

	must(!ftruncate(fd, 0));
	must(pwrite(fd, data ? data : (const uint8_t *)"", size, 0) ==
	     (ssize_t)size);
	refusals = 0;
	plan_init(&plan);
	stderr = quiet;
	ok = plan_from_file(&plan, path) && plan_finish(&plan);
	stderr = real;
	if (ok)
		check_plan(&plan);
	must(ok == !refusals);
	plan_free(&plan);
	return 0;
}
