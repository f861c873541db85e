// SPDX-License-Identifier: Apache-2.0
/*
 * options - one row for each option: letter, key in a job file, who has it,
 * what it says in the help, and how its text is taken.
 */
#include "gdsio/options.h"
#include "gdsio/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"
#include "values.h"

static bool take_file(struct plan *plan, struct job *job, const char *text)
{
	job->is_dir = false;
	job->target = text;
	return *text;
}

static bool take_dir(struct plan *plan, struct job *job, const char *text)
{
	job->is_dir = true;
	job->target = text;
	return *text;
}

static bool take_gpus(struct plan *plan, struct job *job, const char *text)
{
	job->nr_gpus = value_list(text, job->gpus, MAX_GPUS);
	return job->nr_gpus;
}

static bool take_int(const char *text, long min, long max, int *value)
{
	long number;

	if (!value_long(text, min, max, &number))
		return false;
	*value = (int)number;
	return true;
}

static bool take_node(struct plan *plan, struct job *job, const char *text)
{
	return take_int(text, 0, 4095, &job->node);
}

static bool take_memory(struct plan *plan, struct job *job, const char *text)
{
	return take_int(text, 0, NR_MEMORIES - 1, &job->memory);
}

static bool take_threads(struct plan *plan, struct job *job, const char *text)
{
	return take_int(text, 1, MAX_THREADS, &job->threads);
}

static bool take_size(struct plan *plan, struct job *job, const char *text)
{
	return value_bytes(text, 1, &job->size);
}

static bool take_start(struct plan *plan, struct job *job, const char *text)
{
	return value_bytes(text, 0, &job->start);
}

/* "1M", or "4K:1M:4K". */
static bool io_size_of(const char *text, struct io_size *io)
{
	off_t part[3] = { 0 };
	int nr = 0;

	while (text && nr < 3) {
		text = value_scan_bytes(text, &part[nr]);
		if (!text || part[nr++] <= 0)
			return false;
		if (!*text)
			break;
		if (*text++ != ':')
			return false;
	}
	if (!text || *text || nr == 2)
		return false;
	*io = (struct io_size){ (size_t)part[0], (size_t)part[nr == 3],
				nr == 3 ? (size_t)part[2] : 0 };
	return io->min <= io->max && io->max <= 1ul << 40;
}

static bool take_io(struct plan *plan, struct job *job, const char *text)
{
	return io_size_of(text, &job->io);
}

static bool take_fd_type(struct plan *plan, struct job *job, const char *text)
{
	return take_int(text, 0, 1, &job->buffered);
}

static bool take_xfer(struct plan *plan, struct job *job, const char *text)
{
	return take_int(text, 0, NR_XFERS - 1, &plan->xfer);
}

static bool take_op(struct plan *plan, struct job *job, const char *text)
{
	static const char *const names[] = { "read", "write", "randread",
					     "randwrite" };

	for (int i = 0; i < 4; i++) {
		if (!strcmp(text, names[i])) {
			plan->op = i;
			return true;
		}
	}
	return take_int(text, 0, 3, &plan->op);
}

/* A job file says runtime=0 for none. */
static bool take_seconds(struct plan *plan, struct job *job, const char *text)
{
	plan->seconds = 0;
	return !strcmp(text, "0") || value_seconds(text, &plan->seconds);
}

static bool take_seed(struct plan *plan, struct job *job, const char *text)
{
	long seed;

	plan->seed = 0;
	if (!value_long(text, 0, __LONG_MAX__, &seed))
		return false;
	plan->seed = (uint64_t)seed;
	return true;
}

static bool take_align(struct plan *plan, struct job *job, const char *text)
{
	off_t align;

	if (!value_bytes(text, 1, &align))
		return false;
	plan->align = align;
	return true;
}

static bool take_mix(struct plan *plan, struct job *job, const char *text)
{
	return take_int(text, 0, 100, &plan->mix);
}

static bool take_batch(struct plan *plan, struct job *job, const char *text)
{
	return take_int(text, 1, MAX_DEPTH, &plan->batch);
}

static bool take_name(struct plan *plan, struct job *job, const char *text)
{
	plan->name = text;
	return true;
}

static bool take_plot(struct plan *plan, struct job *job, const char *text)
{
	plan->plot = text;
	return picture_is_name(text);
}

static bool take_links(struct plan *plan, struct job *job, const char *text)
{
	bool on = true;

	if (text && !value_bool(text, &on))
		return false;
	if (on)
		fprintf(stderr, "gdsio: -p changes nothing: the library "
				"chooses the way between GPUs\n");
	return true;
}

static bool take_url(struct plan *plan, struct job *job, const char *text)
{
	return fail("-P: RDMA targets are not supported");
}

#define TAKE(function) function, 0
#define SWITCH(field) NULL, offsetof(struct plan, field)

const struct option_row option_rows[] = {
	{ 'f', "filename", "FILE", "file or block device to use",
	  TAKE(take_file) },
	{ 'D', "directory", "DIR",
	  "directory with the files gdsio.0, gdsio.1, ..., one a thread",
	  TAKE(take_dir) },
	{ 'd', "gpu_dev_id", "GPU", "GPU, or several: 0,1,2 (default 0)",
	  TAKE(take_gpus) },
	{ 'n', "numa_node", "NODE", "NUMA node to run the threads on",
	  TAKE(take_node) },
	{ 'm', "mem_type", "TYPE",
	  "memory: 0 cudaMalloc, 1 cuMem, 2 cudaMallocHost, 3 malloc,\n"
	  "4 mmap, 5 cudaMallocManaged; others than 0 with -x 0, 5, 6, 7",
	  TAKE(take_memory) },
	{ 'w', "num_threads", "N", "threads of the job (default 1)",
	  TAKE(take_threads) },
	{ 's', "size", "SIZE", "size of each file, with K, M, G or T",
	  TAKE(take_size) },
	{ 'o', "start_offset", "OFF", "byte in the file to begin at",
	  TAKE(take_start) },
	{ 'i', "io_size", "SIZE",
	  "bytes of a request, or MIN:MAX:STEP (default 1M)", TAKE(take_io) },
	{ 'O', "fd_type", "TYPE", "0 O_DIRECT (default), 1 page cache",
	  TAKE(take_fd_type) },
	{ 'x', "xfer_type", "TYPE", "way to move the data, see below",
	  TAKE(take_xfer) },
	{ 'I', "rw", "OP", "0 read (default), 1 write, 2 randread, 3 randwrite",
	  TAKE(take_op) },
	{ 'M', "mixed_rd_wr_percentage", "PERCENT",
	  "mixed: so many of 100 requests read, the others write",
	  TAKE(take_mix) },
	{ 'B', "batch_size", "N", "requests of a batch, with -x 6 and 7",
	  TAKE(take_batch) },
	{ 'T', "runtime", "SECONDS", "go round until the time is over",
	  TAKE(take_seconds) },
	{ 'V', "do_verify", NULL, "verify the data, byte for byte",
	  SWITCH(verify) },
	{ 'k', "random_seed", "SEED", "seed of data and random offsets",
	  TAKE(take_seed) },
	{ 'U', "unaligned_random", NULL, "random offsets at any byte",
	  SWITCH(unaligned) },
	{ 'a', "alignment", "SIZE", "multiple of random offsets (default 4K)",
	  TAKE(take_align) },
	{ 'R', "fill_random", NULL, "fill the buffers with random data",
	  SWITCH(fill_random) },
	{ 'F', "refill_buffer", NULL, "and again before each write",
	  SWITCH(refill) },
	{ 'b', "skip_bufregister", NULL, "do not register the buffers",
	  SWITCH(skip_register) },
	{ 'p', "enable_nvlinks", NULL, "taken, and changes nothing",
	  TAKE(take_links) },
	{ 'P', "rdma_url", "URL", "not supported", TAKE(take_url) },
	{ 'J', "per_job_stats", NULL, "a result line for each job too",
	  SWITCH(per_job) },
	{ OPT_HOST, NULL, NULL, "host memory in place of the GPU's",
	  SWITCH(host) },
	{ OPT_JSON, NULL, NULL, "the result as JSON in place of the line",
	  SWITCH(json) },
	{ OPT_PLOT, NULL, "FILE", "draw throughput and latency, .svg or .png",
	  TAKE(take_plot) },
	{ 0, "name", "NAME", "of the run", TAKE(take_name) },
	{ 'i', "bs", "SIZE", NULL, TAKE(take_io) },
};
const size_t nr_option_rows = sizeof(option_rows) / sizeof(option_rows[0]);

const struct option_row *option_of_letter(int letter)
{
	for (size_t i = 0; i < nr_option_rows; i++) {
		if (option_rows[i].letter == letter)
			return &option_rows[i];
	}
	return NULL;
}

static const struct option_row *row_of_key(const char *key)
{
	for (size_t i = 0; i < nr_option_rows; i++) {
		if (option_rows[i].key && !strcmp(option_rows[i].key, key))
			return &option_rows[i];
	}
	return NULL;
}

/* What only concerns one job, and so may differ between jobs. */
static bool is_of_job(const struct option_row *row)
{
	return row->letter && row->letter < OPT_HOST &&
	       strchr("fDdnmwsoiO", row->letter);
}

bool option_take(struct plan *plan, struct job *job,
		 const struct option_row *row, const char *text)
{
	if (row->take)
		return row->take(plan, job, text);
	return value_bool(text ? text : "1", (bool *)((char *)plan + row->at));
}

enum key_result plan_set_key(struct plan *plan, struct job *job,
			     const char *key, const char *text)
{
	const struct option_row *row = row_of_key(key);
	bool in_global = job == &plan->defaults;

	if (!row)
		return KEY_UNKNOWN;
	if (!in_global && !is_of_job(row))
		return KEY_OF_GLOBAL;
	return option_take(plan, job, row, text) ? KEY_TAKEN : KEY_BAD_VALUE;
}
