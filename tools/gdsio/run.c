// SPDX-License-Identifier: Apache-2.0
/*
 * run - what a plan needs while it runs: GPUs, files, the cuFile driver.
 *
 * Everything that can be refused is looked at before the first byte moves;
 * files that were made for a run that then moved nothing are removed.
 */
#include "gdsio/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "gdsio/node.h"
#include "report.h"

static bool needs_gpu(const struct plan *plan)
{
	bool streams = plan->xfer == XFER_GPU_DIRECT_ASYNC ||
		       plan->xfer == XFER_GPU_BATCH_STREAM;

	if (plan->host || plan->xfer == XFER_CPU_ONLY)
		return false;
	for (int i = 0; i < plan->nr_jobs; i++) {
		if (memory_needs_gpu((enum memory)plan->jobs[i].memory))
			return true;
	}
	return streams;
}

static bool has_gpu(const struct run *run, int ordinal)
{
	for (int i = 0; i < run->nr_gpus; i++) {
		if (run->gpus[i].ordinal == ordinal)
			return true;
	}
	return false;
}

/* True also where there is none, which is noted. */
static bool open_gpu(struct run *run, int ordinal, bool *none)
{
	struct gpu *gpu = &run->gpus[run->nr_gpus];
	const char *why = gpu_open(gpu, ordinal);

	if (!why) {
		run->nr_gpus++;
		why = gpu_more_load();
	}
	if (!why)
		return true;
	*none = !gpu_driver_works();
	if (!*none)
		return fail("GPU %d: %s", ordinal, why);
	fprintf(stderr, "gdsio: no GPU to be had, using host memory: %s\n",
		why);
	return true;
}

static bool open_gpus(struct run *run)
{
	const struct plan *plan = run->plan;
	bool none = !needs_gpu(plan);
	bool ok = true;

	run->gpus =
		calloc((size_t)plan->nr_jobs * MAX_GPUS, sizeof(*run->gpus));
	if (!run->gpus)
		return fail("no memory");
	for (int i = 0; i < plan->nr_jobs && !none; i++) {
		const struct job *job = &plan->jobs[i];

		for (int k = 0; k < job->nr_gpus && ok && !none; k++) {
			if (!has_gpu(run, job->gpus[k]))
				ok = open_gpu(run, job->gpus[k], &none);
		}
	}
	return ok;
}

/* Each thread of a directory has a file, and each file two descriptors. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* else open says so */
}

static bool open_targets(struct run *run)
{
	const struct plan *plan = run->plan;
	size_t nr = 0;

	for (int i = 0; i < plan->nr_jobs; i++)
		nr += plan->jobs[i].is_dir ? (size_t)plan->jobs[i].threads : 1;
	run->targets = calloc(nr, sizeof(*run->targets));
	if (!run->targets)
		return fail("no memory for %zu files", nr);
	if (nr > 256)
		raise_file_limit();
	for (int i = 0; i < plan->nr_jobs; i++) {
		const struct job *job = &plan->jobs[i];
		int files = job->is_dir ? job->threads : 1;

		for (int k = 0; k < files; k++) {
			if (!target_open(&run->targets[run->nr_targets++], plan,
					 job, k))
				return false;
		}
	}
	return true;
}

static bool open_driver(struct run *run)
{
	if (!xfer_is_cufile(run->plan->xfer))
		return true;
	run->driver_is_open =
		check(cuFileDriverOpen(), "cuFileDriverOpen", "driver");
	for (int i = 0; i < run->nr_targets && run->driver_is_open; i++) {
		if (!target_register(&run->targets[i]))
			return false;
	}
	return run->driver_is_open;
}

static bool check_nodes(const struct plan *plan)
{
	for (int i = 0; i < plan->nr_jobs; i++) {
		int node = plan->jobs[i].node;

		if (node != UNSET && !node_exists(node))
			return fail("-n %d: there is no such NUMA node with "
				    "CPUs",
				    node);
	}
	return true;
}

/* The last thing to do before bytes move. */
static bool extend_targets(const struct run *run)
{
	bool ok = true;

	if (run->plan->op != OP_RANDWRITE)
		return true;
	for (int i = 0; i < run->nr_targets && ok; i++)
		ok = target_extend(&run->targets[i]);
	return ok;
}

bool run_open(struct run *run, const struct plan *plan)
{
	*run = (struct run){ .plan = plan };
	if (check_nodes(plan) && open_targets(run) && open_gpus(run) &&
	    open_driver(run) && extend_targets(run))
		return true;
	run_close(run);
	return false;
}

void run_close(struct run *run)
{
	for (int i = 0; i < run->nr_targets; i++)
		target_close(&run->targets[i], !run->moved);
	if (run->driver_is_open)
		(void)check(cuFileDriverClose(), "cuFileDriverClose", "driver");
	for (int i = run->nr_gpus; i > 0; i--)
		gpu_close(&run->gpus[i - 1]);
	free(run->targets);
	free(run->gpus);
}
