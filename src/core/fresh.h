// SPDX-License-Identifier: Apache-2.0
/*
 * fresh - whether an aperture (core/aperture.h) still leads to the GPU.
 *
 * DESIGN  A process can be checkpointed and restored (cuCheckpointProcess*, by
 * another process). Its device memory is other memory then, at the same
 * addresses of the GPU and with the same bytes; but the CPU's address goes on
 * leading to the memory of before, which no kernel sees any more. Nobody tells
 * us, and a kernel that waits in a stream for an order there would wait for
 * ever. So before an aperture is used after a pause, a word is written there
 * that was never there before, and the driver is asked what the GPU has.
 *
 * A checkpoint and a restore take much longer than the pause (on an H100 more
 * than half a second), so an answer holds until then.
 */
#ifndef CF_CORE_FRESH_H
#define CF_CORE_FRESH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/aperture.h"
#include "seam/cuda.h"

#define CF_FRESH_NS (50 * 1000 * 1000ll)

/* A word, and all its bits the other way round: half an answer is none. */
struct cf_fresh_words {
	_Atomic uint64_t word, inverse;
};

struct cf_fresh {
	struct cf_fresh_words *near;   /* in the aperture, for the CPU */
	CUdeviceptr gpu_near;	       /* the same for the GPU */
	CUstream stream;	       /* ours */
	struct cf_fresh_words *answer; /* pinned */
	atomic_bool asking; /* a thread has what follows, acquire, release */
	uint64_t question;  /* 0: none is open */
	int64_t asked;
	_Atomic int64_t known; /* relaxed: it was the GPU's at this time */
};

enum cf_freshness {
	CF_FRESH,
	CF_FRESH_UNKNOWN, /* the driver has not answered yet: do without */
	CF_FRESH_STALE,	  /* the CPU's address is of no use any more */
};

/*
 * The aperture was made just now, and thus tried; the words at `at` there
 * and at answer are nobody else's.
 */
void cf_fresh_init(struct cf_fresh *fresh, const struct cf_aperture *aperture,
		   size_t at, CUstream stream, struct cf_fresh_words *answer);

/* Any thread; the stream's context is current. May wait for some 10 us, and if
 * the stream is held up once for 2 ms. */
enum cf_freshness cf_fresh_ask(const struct cf_cuda *cuda,
			       struct cf_fresh *fresh);

#endif
