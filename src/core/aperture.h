// SPDX-License-Identifier: Apache-2.0
/*
 * aperture - device memory of ours that the CPU writes to through the bus.
 *
 * What is read from the page cache into it is in the GPU when the read is
 * over: no copy engine, no kernel that fetches over the bus. One thread fills
 * it at some 10 GB/s and several at 33 (PCIe 5), so it is for small things,
 * where time counts and not the link. It is write-combined: who has written
 * makes a fence before it says so, reading is slow, and what a locked
 * instruction stores never gets there. It has no pages, so O_DIRECT cannot
 * reach it.
 *
 * The driver's dma-buf shows it where one can be mapped (CUDA 13.3), the
 * kernel driver elsewhere (rm.h). It is tested before it is used.
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
	char *mem;	 /* as the CPU has it; NULL: there is none */
	CUdeviceptr gpu; /* as the GPU does; 0: no addresses are reserved */
	size_t size;
	/* its own: */
	bool mapped; /* memory lies at gpu */
	size_t map_size;
	struct cf_rm_map rm;
};

/* Whether any may be made, from now on. */
void cf_aperture_allow(bool allowed);

/*
 * At least size bytes of the GPU, whose context is current; the stream is the
 * caller's, and idle. False: there is none, and if that could not be known
 * before the log says why. In either case *a is to be ended.
 */
bool cf_aperture_make(struct cf_aperture *a, int ordinal, size_t size,
		      CUstream stream);

/*
 * Nothing reads or writes it any more. Any context may be current, and the one
 * that it was made in be gone: memory and addresses outlive that, also where it
 * was reset (seen with driver 580).
 */
void cf_aperture_end(struct cf_aperture *a);

/* What this thread has put there comes before what it puts there next. */
static inline void cf_aperture_fence(void)
{
#ifdef __x86_64__
	__builtin_ia32_sfence();
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * What this thread has put there is there, and what it reads next is read after
 * that. A read goes behind the writes on the bus; but with no fence before it
 * the processor may answer it with what it has not sent yet, and with none
 * behind it read on before the answer. A fence of stores keeps neither.
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
