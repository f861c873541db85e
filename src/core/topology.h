// SPDX-License-Identifier: Apache-2.0
/* topology - what sysfs says about the GPUs' places on the PCI bus. */
#ifndef CF_CORE_TOPOLOGY_H
#define CF_CORE_TOPOLOGY_H

#include <stdint.h>

/*
 * Size in KiB of the largest memory region of a GPU, 0 where sysfs does not
 * know it. 0; -5029 without a GPU, -5022 for an index out of range, or a
 * CUDA code.
 */
int cf_gpu_bar_kib(int ordinal, uint64_t *kib);

#endif
