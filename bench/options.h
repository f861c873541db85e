// SPDX-License-Identifier: Apache-2.0
/* options - what to measure, from the command line. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "bench.h"

#define MAX_LIST 32
#define MAX_ROUNDS 9

struct list {
	int nr;
	size_t value[MAX_LIST];
};

struct options {
	struct {
		const char *name; /* as printed */
		const char *path; /* or "byhand", "limit" */
	} libraries[MAX_LIST];
	int nr_libraries;
	struct list sizes, threads, gpus, batch, stream, streams;
	/* Indices into the tables of names below; 0 and 1 for yes and no. */
	struct list ops, media, aligns, registered;
	struct list memories; /* empty: device, or host without a GPU */
	bool host;	      /* the GPU is left alone */
	bool fresh, rest, counting, keep;
	int rounds;
	double seconds, patience; /* of a cell; beyond it, until it hangs */
	size_t file_size;
	const char *file, *tmpfs;
	FILE *json; /* or NULL */
};

/* Names of the enums' values, in their order; each list ends with NULL. */
extern const char *const op_names[],
	*const medium_names[], *const memory_names[],
				       *const align_names[],
					       *const mode_names[];

/* False: said on stderr what is wrong. */
bool options_parse(struct options *o, int argc, char **argv);
bool list_has(const struct list *list, size_t value);

#endif
