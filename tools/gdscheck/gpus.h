// SPDX-License-Identifier: Apache-2.0
/*
 * gpus - the GPUs of the machine as sysfs and the GPU driver's /proc show
 * them: without opening a GPU, which takes a hundred times as long.
 */
#ifndef TOOLS_GPUS_H
#define TOOLS_GPUS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_GPUS 64

struct gpu_facts {
	char bdf[32];	/* 0000:81:00.0 */
	char name[128]; /* "" where the driver does not run it */
	uint64_t bar1;	/* bytes; 0: not known */
	bool iommu;
	int node; /* NUMA; -1: not known */
};

/* In the order of their addresses, which is nvidia-smi's; how many. */
int gpus_find(struct gpu_facts gpus[MAX_GPUS]);

#endif
