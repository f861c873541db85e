// SPDX-License-Identifier: Apache-2.0
/*
 * peers - whether disks can reach a GPU's memory over PCI (P2PDMA), and what
 * is missing, from files alone.
 */
#ifndef TOOLS_PEERS_H
#define TOOLS_PEERS_H

#include <stdbool.h>
#include "gpus.h"

#define MAX_MISSING (MAX_GPUS + 8)

/* A condition that can be seen to be missing, and what to do. */
struct missing {
	int gpu; /* that alone; -1: all of them */
	const char *what, *remedy;
};

struct peers {
	int nr_gpus;
	struct gpu_facts gpus[MAX_GPUS];
	bool open[MAX_GPUS]; /* the kernel has been given its memory */
	unsigned nr_missing;
	struct missing missing[MAX_MISSING];
};

/*
 * cuda: the driver's version, 0 for none. thorough: reads /proc/kallsyms, too,
 * which takes some 40 ms.
 */
void peers_find(struct peers *peers, int cuda, bool thorough);

/* Lines for gdscheck -p and -f, each behind the indentation. */
void peers_print(const struct peers *peers, const char *indent);

#endif
