// SPDX-License-Identifier: Apache-2.0
/*
 * nvtx - ranges on the time line of a profiler, as Nsight Systems.
 *
 * NVTX is a contract between a program and a tool: the environment names the
 * tool's library (NVTX_INJECTION64_PATH), which is handed tables of pointers
 * and puts functions of its own there, at once or when it likes. Where none is
 * named, libnvToolsExt of CUDA 12 and before has the same functions by name. No
 * header of NVTX is needed, and nothing is loaded unless somebody wants ranges.
 * Ours have a domain of their own, so none of them can end one of the
 * program's.
 *
 * No lock: one thread loads the tool, while it holds none. What is loaded
 * stays for the life of the process, as the tool's contract wants it.
 */
#ifndef CF_SEAM_NVTX_H
#define CF_SEAM_NVTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Released when there is a tool that may be told. */
extern atomic_bool cf_nvtx_on;

/* Ranges are wanted from now on, or are not. Loads nothing. Serialised. */
void cf_nvtx_want(bool wanted);

enum cf_nvtx_news {
	CF_NVTX_NOTHING, /* none wanted, or it is known already */
	CF_NVTX_LOADED,	 /* text is the library */
	CF_NVTX_FAILED,	 /* text is why; the next want tries again */
};

/*
 * Loads the tool, once, where one is wanted; cheap where not. It calls the
 * loader and the tool: hold no lock. Any thread.
 */
enum cf_nvtx_news cf_nvtx_settle(char *text, size_t size);

/*
 * The thread does what by means of by, with so many bytes; "read staged".
 * False: no tool takes ranges at the moment.
 */
bool cf_nvtx_push(const char *what, const char *by, uint64_t bytes);
void cf_nvtx_pop(void);

/* What begin answers is what end is told: they are a pair on one thread. */
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
