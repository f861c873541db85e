// SPDX-License-Identifier: Apache-2.0
/*
 * plan - what gdsio was asked to do.
 *
 * What a job does not say it takes from the defaults, else, on a command line,
 * from the job before it, else from the one after: "-f a -f b -w 4" is four
 * threads each.
 */
#include "gdsio/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include "report.h"

#define DEFAULT_IO (1ul << 20)
#define DEFAULT_ALIGN 4096

static const struct job nothing_said = {
	.node = UNSET,
	.threads = UNSET,
	.memory = UNSET,
	.buffered = UNSET,
	.start = UNSET,
	.size = UNSET,
};

void plan_init(struct plan *plan)
{
	*plan = (struct plan){
		.align = UNSET,
		.mix = UNSET,
		.batch = UNSET,
		.defaults = nothing_said,
	};
}

void plan_free(struct plan *plan)
{
	free(plan->text);
}

struct job *plan_add_job(struct plan *plan)
{
	struct job *job = &plan->jobs[plan->nr_jobs];

	if (plan->nr_jobs == MAX_JOBS) {
		fail("more than %d jobs", MAX_JOBS);
		return NULL;
	}
	plan->nr_jobs++;
	*job = nothing_said;
	return job;
}

int plan_depth(const struct plan *plan, const struct job *job)
{
	if (!xfer_is_batch(plan->xfer))
		return 1;
	return plan->batch != UNSET ? plan->batch : job->threads;
}

int plan_threads(const struct plan *plan, const struct job *job)
{
	return plan_entry_per_file(plan) ? 1 : job->threads;
}

bool plan_entry_per_file(const struct plan *plan)
{
	return xfer_is_batch(plan->xfer) && plan->batch == UNSET;
}

#define TAKE_FROM(field) \
	do { \
		if (job->field == UNSET) \
			job->field = from->field; \
	} while (0)

static void inherit(struct job *job, const struct job *from)
{
	TAKE_FROM(node);
	TAKE_FROM(threads);
	TAKE_FROM(memory);
	TAKE_FROM(buffered);
	TAKE_FROM(start);
	TAKE_FROM(size);
	if (!job->io.max)
		job->io = from->io;
	if (job->nr_gpus)
		return;
	job->nr_gpus = from->nr_gpus;
	for (int i = 0; i < from->nr_gpus; i++)
		job->gpus[i] = from->gpus[i];
}

static void inherit_all(struct plan *plan)
{
	static const struct job built_in = {
		.node = UNSET,
		.threads = 1,
		.memory = MEM_DEVICE,
		.size = UNSET,
		.nr_gpus = 1,
	};

	for (int i = 0; i < plan->nr_jobs; i++)
		inherit(&plan->jobs[i], &plan->defaults);
	for (int i = 1; i < plan->nr_jobs && !plan->text; i++)
		inherit(&plan->jobs[i], &plan->jobs[i - 1]);
	for (int i = plan->nr_jobs - 1; i > 0 && !plan->text; i--)
		inherit(&plan->jobs[i - 1], &plan->jobs[i]);
	for (int i = 0; i < plan->nr_jobs; i++)
		inherit(&plan->jobs[i], &built_in);
}

static struct io_size default_io(const struct job *job)
{
	size_t size = DEFAULT_IO;

	if (job->size != UNSET && (size_t)job->size < size)
		size = (size_t)job->size;
	return (struct io_size){ size, size, 0 };
}

static bool finish_job(const struct plan *plan, struct job *job)
{
	if (job->memory != MEM_DEVICE && !xfer_is_cufile(plan->xfer))
		return fail("-m %d is for -x 0, 5, 6 and 7", job->memory);
	if (job->memory == MEM_DEVICE && plan->host &&
	    xfer_is_cufile(plan->xfer))
		job->memory = MEM_MALLOC;
	if (job->threads > MAX_DEPTH && plan_entry_per_file(plan))
		return fail("-w %d: a batch has at most %d entries",
			    job->threads, MAX_DEPTH);
	if (plan->xfer == XFER_CPU_CACHED_GPU)
		job->buffered = 1;
	if (job->size == UNSET && plan_writes(plan))
		return fail("%s: how much to write is not said (-s)",
			    job->target);
	if (!job->io.max)
		job->io = default_io(job);
	if (job->size != UNSET && job->io.min > (size_t)job->size)
		return fail("%s: a request of %zu bytes is larger than the "
			    "size, %lld",
			    job->target, job->io.min, (long long)job->size);
	return true;
}

static bool check_modes(const struct plan *plan)
{
	if (plan->batch != UNSET && !xfer_is_batch(plan->xfer))
		return fail("-B is for -x 6 and 7");
	if (plan->unaligned && plan->align != UNSET)
		return fail("-U and -a exclude each other");
	if (plan->mix != UNSET && plan->verify)
		return fail("-M and -V exclude each other: what is read would "
			    "depend on what was written when");
	return true;
}

bool plan_finish(struct plan *plan)
{
	if (!plan->nr_jobs)
		return fail("nothing to do: a job file, -f or -D is needed");
	inherit_all(plan);
	if (plan->verify && plan->seconds > 0) {
		fprintf(stderr, "gdsio: -V is ignored with -T\n");
		plan->verify = false;
	}
	if (!check_modes(plan))
		return false;
	for (int i = 0; i < plan->nr_jobs; i++) {
		if (!finish_job(plan, &plan->jobs[i]))
			return false;
	}
	if (plan->align == UNSET)
		plan->align = plan->unaligned ? 1 : DEFAULT_ALIGN;
	return true;
}
