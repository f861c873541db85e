// SPDX-License-Identifier: Apache-2.0
/*
 * aperture - device memory of ours that the CPU writes to through the bus.
 *
 * Bytes that read(2) puts there are in the GPU when the call returns: no copy
 * engine, no kernel that fetches over the bus. One thread fills it at some
 * 10 GB/s and several at 33 (PCIe 5), so it is for small reads, where latency
 * counts and not the link. It is write-combined: a writer needs a fence before
 * it tells others, reading is slow, and a locked instruction's store never gets
 * there. It has no pages, so O_DIRECT cannot reach it.
 *
 * The CPU's address is of the driver's dma-buf where one can be mapped (CUDA
 * 13.3), else from the kernel driver (rm.h). It is tested before it is used.
 */
#ifndef CF_CORE_APERTURE_H
#define CF_CORE_APERTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/rm.h"
#include "seam/cuda.h"

struct cf_aperture {
	char *mem;	 /* the CPU's address; NULL: there is none */
	CUdeviceptr gpu; /* the GPU's; 0: none is reserved */
	size_t size;
	/* for aperture.c: */
	bool mapped; /* there is memory at gpu */
	size_t map_size;
	struct cf_rm_map rm;
};

/* Whether apertures may be made from now on. */
void cf_aperture_allow(bool allowed);

/*
 * Makes one of at least size bytes on the GPU (-1, not known: there is none),
 * whose context is current. The stream is the caller's, and idle; a test runs
 * in it. False: there is none; the log says why if it was tried. In either case
 * the caller ends *a.
 */
bool cf_aperture_make(struct cf_aperture *a, int ordinal, size_t size,
		      CUstream stream);

/*
 * Frees it; nothing may read or write there any more. Any context may be
 * current. The one it was made in may be gone: memory and addresses outlive the
 * context, also after a reset (seen with driver 580).
 */
void cf_aperture_end(struct cf_aperture *a);

/* This thread's earlier stores reach the GPU before its later ones. */
static inline void cf_aperture_fence(void)
{
#ifdef __x86_64__
	__builtin_ia32_sfence();
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * This thread's stores have reached the GPU, and its later reads come after
 * that. A read of a word there goes behind the writes on the bus. But without a
 * fence before it the processor may answer it from stores that it has not sent
 * yet, and without one behind it make later reads before the answer comes. A
 * fence of stores alone prevents neither.
 */
static inline void cf_aperture_settle(volatile _Atomic uint64_t *word)
{
#ifdef __x86_64__
	__builtin_ia32_mfence();
	atomic_load_explicit(word, memory_order_seq_cst);
	__builtin_ia32_mfence();
#else
	atomic_thread_fence(memory_order_seq_cst);
	atomic_load_explicit(word, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
