// SPDX-License-Identifier: Apache-2.0
/*
 * topology - what sysfs says about the places of GPUs, memory and processors.
 *
 * Read each time; nothing is cached here. Any thread.
 */
#ifndef CF_CORE_TOPOLOGY_H
#define CF_CORE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>
#include "core/cpus.h"
#include "seam/cuda.h"

/*
 * *kib: size in KiB of the largest memory region of a GPU, 0 if sysfs does not
 * tell. Answers 0; -5029: there is no GPU; -5022: ordinal is out of range; or a
 * CUDA code.
 */
int cf_gpu_bar_kib(int ordinal, uint64_t *kib);

/*
 * Where a GPU is: domain << 32 | bus << 8 | device << 3 | function; 0 where
 * the driver does not say.
 */
uint64_t cf_gpu_pci(int ordinal);

/* skip: no GPU has a node from now on (miscellaneous.skip_topology_detection)
 */
void cf_topology_configure(bool skip);

/*
 * The NUMA node next to a GPU. -1 if it is not known, or does not matter
 * because the machine has one node.
 */
int cf_gpu_node(const struct cf_cuda *cuda, CUdevice dev);

/* The processors of a node, which may have none. 0 or -errno. */
int cf_node_cpus(int node, struct cf_cpus *cpus);

#endif
