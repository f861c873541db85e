// SPDX-License-Identifier: Apache-2.0
/*
 * run - a plan carried out: GPUs and files opened, threads started, watched
 * and joined, everything put back.
 */
#ifndef GDSIO_RUN_H
#define GDSIO_RUN_H

#include "gdsio/target.h"
#include "gdsio/watch.h"
#include "gdsio/worker.h"

struct run {
	const struct plan *plan;
	struct gpu *gpus; /* those that the jobs name, each once */
	int nr_gpus;
	struct target *targets;
	int nr_targets;
	bool driver_is_open;
	bool moved; /* something was written */
};

/* What a pass has come to. */
struct outcome {
	bool write; /* of a pass that is not mixed */
	bool verified;
	bool interrupted;
	int threads;
	int depth;
	uint64_t total; /* bytes to move once */
	double seconds;
	struct tally all;
	struct tally jobs[MAX_JOBS];
	uint64_t job_total[MAX_JOBS];
	struct watch watch;
	enum memory memory; /* of the first worker, as it turned out */
};

/* False: reported, and closed. */
bool run_open(struct run *run, const struct plan *plan);
void run_close(struct run *run);

/* Moves the data once over, or until the time is over. False: reported. */
bool run_pass(struct run *run, bool write, struct outcome *outcome);

#endif
