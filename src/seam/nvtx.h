// SPDX-License-Identifier: Apache-2.0
/*
 * nvtx - ranges on the time line of a profiler, as Nsight Systems.
 *
 * NVTX is a contract between a program and a tool. The environment names the
 * tool's library (NVTX_INJECTION64_PATH); it is handed tables of pointers and
 * sets them to functions of its own, at once or later. Where none is named,
 * libnvToolsExt of CUDA 12 and before has the same functions by name. No header
 * of NVTX is needed, and no tool is loaded unless configuration wants ranges.
 * Our ranges have a domain of their own, so they cannot end the program's.
 *
 * No lock: one thread loads the tool, and holds no lock meanwhile. The tool
 * stays loaded until the process ends, as its contract demands.
 */
#ifndef CF_SEAM_NVTX_H
#define CF_SEAM_NVTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "seam/hidden.h"

/* True, stored with release, when a tool is loaded and ranges are wanted. */
extern CF_HIDDEN atomic_bool cf_nvtx_on;

/*
 * Whether ranges are wanted from now on. Loads nothing. Serialised by the
 * caller.
 */
void cf_nvtx_want(bool wanted);

enum cf_nvtx_news {
	CF_NVTX_NOTHING, /* no ranges are wanted, or this was settled before */
	CF_NVTX_LOADED,	 /* text names the library */
	CF_NVTX_FAILED,	 /* text says why; the next want tries again */
};

/*
 * Loads the tool once, if ranges are wanted; cheap if not. Calls the loader and
 * the tool, so the caller holds no lock. Any thread.
 */
enum cf_nvtx_news cf_nvtx_settle(char *text, size_t size);

/*
 * Begins a range of the calling thread, named for what it does and by which
 * path ("read staged"). False: no tool takes ranges at the moment.
 */
bool cf_nvtx_push(const char *what, const char *by, uint64_t bytes);
void cf_nvtx_pop(void);

/* A pair, on one thread: end is passed what begin answered. */
static inline bool cf_nvtx_begin(const char *what, const char *by,
				 uint64_t bytes)
{
	return atomic_load_explicit(&cf_nvtx_on, memory_order_acquire) &&
	       cf_nvtx_push(what, by, bytes);
}

static inline void cf_nvtx_end(bool begun)
{
	if (begun)
		cf_nvtx_pop();
}

#endif
