// SPDX-License-Identifier: Apache-2.0
/*
 * pass - one time over the data: workers made, started together, watched,
 * joined, and what they did added up.
 */
#include "gdsio/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "gdsio/result.h"
#include "on_signal.h"
#include "report.h"

static struct pass *running; /* for the signal handler */

/* The first signal ends the pass with a result, the second the process. */
static void end_pass(int sig)
{
	atomic_store_explicit(&running->interrupted, true,
			      memory_order_relaxed);
}

static void catch_signals(struct pass *pass)
{
	running = pass;
	on_signal(SIGINT, end_pass, (int)SA_RESETHAND);
	on_signal(SIGTERM, end_pass, (int)SA_RESETHAND);
}

static void leave_signals(void)
{
	on_signal(SIGINT, SIG_DFL, 0);
	on_signal(SIGTERM, SIG_DFL, 0);
}

static const struct gpu *gpu_of(const struct run *run, int ordinal)
{
	for (int i = 0; i < run->nr_gpus; i++) {
		if (run->gpus[i].ordinal == ordinal)
			return &run->gpus[i];
	}
	return NULL;
}

/* first: of the job's targets. nr: of the worker within its job. */
static bool make_walks(struct worker *worker, const struct plan *plan,
		       const struct target *first, int nr, bool write)
{
	const struct job *job = worker->job;

	worker->nr_walks = plan_entry_per_file(plan) ? job->threads : 1;
	worker->walks =
		calloc((size_t)worker->nr_walks, sizeof(*worker->walks));
	if (!worker->walks)
		return fail("no memory");
	for (int i = 0; i < worker->nr_walks; i++) {
		struct walk *walk = &worker->walks[i];
		int share = nr + i;

		walk_begin(walk, plan, job, job->is_dir ? first + share : first,
			   write);
		if (!job->is_dir)
			walk_share(walk, share, job->threads);
		walk_seed(walk, plan->seed, (unsigned)worker->job_nr,
			  (unsigned)share);
	}
	return true;
}

static int count_workers(const struct plan *plan)
{
	int nr = 0;

	for (int i = 0; i < plan->nr_jobs; i++)
		nr += plan_threads(plan, &plan->jobs[i]);
	return nr;
}

static bool make_workers(struct run *run, struct pass *pass,
			 struct worker *workers, bool write)
{
	const struct plan *plan = run->plan;
	const struct target *first = run->targets;
	struct worker *worker = workers;

	for (int i = 0; i < plan->nr_jobs; i++) {
		const struct job *job = &plan->jobs[i];
		int threads = plan_threads(plan, job);

		for (int k = 0; k < threads; k++, worker++) {
			*worker = (struct worker){
				.pass = pass,
				.job = job,
				.job_nr = i,
				.tid = (int)(worker - workers),
				.gpu = gpu_of(run, job->gpus[k % job->nr_gpus]),
				.depth = plan_depth(plan, job),
				.random = plan->seed + (uint64_t)k,
			};
			if (!make_walks(worker, plan, first, k, write))
				return false;
		}
		first += job->is_dir ? job->threads : 1;
	}
	return true;
}

static uint64_t bytes_done(const struct worker *workers, int nr)
{
	uint64_t bytes = 0;

	for (int i = 0; i < nr; i++)
		bytes += atomic_load_explicit(&workers[i].done,
					      memory_order_relaxed);
	return bytes;
}

static void open_gate(struct pass *pass, int nr)
{
	pthread_mutex_lock(&pass->lock);
	while (pass->waiting < nr)
		pthread_cond_wait(&pass->change, &pass->lock);
	pass->open = true;
	pass->start = now();
	if (pass->plan->seconds > 0)
		pass->deadline = pass->start + pass->plan->seconds;
	pthread_cond_broadcast(&pass->change);
	pthread_mutex_unlock(&pass->lock);
}

static bool all_finished(struct pass *pass, int nr, double wait)
{
	struct timespec until;
	bool finished;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(wait * 1e9);
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&pass->lock);
	if (pass->finished < nr)
		(void)pthread_cond_timedwait(&pass->change, &pass->lock,
					     &until);
	finished = pass->finished == nr;
	pthread_mutex_unlock(&pass->lock);
	return finished;
}

static void look_on(struct pass *pass, struct watch *watch,
		    const struct worker *workers, int nr)
{
	watch_begin(watch);
	while (!all_finished(pass, nr, watch_tick(watch)))
		watch_look(watch, now() - pass->start, bytes_done(workers, nr));
	watch_end(watch, now() - pass->start, bytes_done(workers, nr));
}

static void work_all(struct pass *pass, struct watch *watch,
		     struct worker *workers, int nr)
{
	int started = 0;

	while (started < nr && worker_start(&workers[started]))
		started++;
	open_gate(pass, started);
	look_on(pass, watch, workers, started);
	for (int i = 0; i < started; i++)
		pthread_join(workers[i].thread, NULL);
}

static void add_up(struct outcome *outcome, const struct pass *pass,
		   const struct worker *workers, int nr)
{
	double end = pass->start;

	for (int i = 0; i < nr; i++) {
		const struct worker *worker = &workers[i];

		tally_merge(&outcome->all, &worker->tally);
		tally_merge(&outcome->jobs[worker->job_nr], &worker->tally);
		if (worker->end > end)
			end = worker->end;
	}
	outcome->threads = nr;
	outcome->seconds = end - pass->start;
	outcome->depth = workers[0].depth;
	outcome->memory = workers[0].buffer.kind;
	outcome->interrupted = atomic_load(&pass->interrupted);
}

static void begin_pass(struct pass *pass, const struct plan *plan)
{
	pthread_condattr_t attr;

	*pass = (struct pass){ .plan = plan, .verify = plan->verify };
	pthread_mutex_init(&pass->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pass->change, &attr);
	pthread_condattr_destroy(&attr);
}

static void begin_outcome(struct outcome *outcome, const struct run *run,
			  bool write)
{
	const struct plan *plan = run->plan;
	const struct target *target = run->targets;

	memset(outcome, 0, sizeof(*outcome));
	for (int i = 0; i < plan->nr_jobs; i++) {
		int files = plan->jobs[i].is_dir ? plan->jobs[i].threads : 1;

		for (int k = 0; k < files; k++, target++)
			outcome->job_total[i] +=
				(uint64_t)(target->end - target->begin);
		outcome->total += outcome->job_total[i];
	}
	outcome->write = write;
	outcome->verified = plan->verify && !write;
	outcome->watch.what = result_op_name(plan, write);
	outcome->watch.total = outcome->total;
	outcome->watch.seconds = plan->seconds;
}

bool run_pass(struct run *run, bool write, struct outcome *outcome)
{
	const struct plan *plan = run->plan;
	int nr = count_workers(plan);
	struct worker *workers = calloc((size_t)nr, sizeof(*workers));
	struct pass pass;
	bool ok = workers ? make_workers(run, &pass, workers, write) :
			    fail("no memory for %d threads", nr);

	begin_outcome(outcome, run, write);
	if (ok) {
		begin_pass(&pass, plan);
		catch_signals(&pass);
		work_all(&pass, &outcome->watch, workers, nr);
		leave_signals();
		add_up(outcome, &pass, workers, nr);
		ok = !atomic_load(&pass.failed);
		pthread_cond_destroy(&pass.change);
		pthread_mutex_destroy(&pass.lock);
	}
	run->moved |= outcome->all.written_bytes > 0;
	for (int i = 0; i < nr && workers; i++)
		free(workers[i].walks);
	free(workers);
	return ok;
}
