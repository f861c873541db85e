// SPDX-License-Identifier: Apache-2.0
/* fake_nvtx - what a profiler of ours has been told (fake_tool.c). */
#ifndef TESTS_FAKE_NVTX_H
#define TESTS_FAKE_NVTX_H

#include <stdatomic.h>
#include <stdint.h>

#define FAKE_NVTX_MAX 256

struct fake_nvtx {
	atomic_uint begins;  /* calls of its entry */
	atomic_uint domains; /* that were made */
	char domain[32];     /* the last one's name */
	atomic_uint pushes;  /* the first of them are kept below */
	atomic_uint pops;
	atomic_uint misuses; /* pops of nothing, other domains and shapes */
	char messages[FAKE_NVTX_MAX][48];
	uint64_t payloads[FAKE_NVTX_MAX];
};

#endif
