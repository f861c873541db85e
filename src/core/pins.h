// SPDX-License-Identifier: Apache-2.0
/*
 * pins - pages of ours that GPUs read, without a registration with libcuda.
 *
 * What libcuda registers it takes back when the GPU is idle, and holds up its
 * other callers till then. What NVIDIA's kernel driver pins for us
 * (rm_pages.h) libcuda maps as memory of another process, and unmaps at any
 * time. It is in whole granules, and tried out before it is used.
 */
#ifndef CF_CORE_PINS_H
#define CF_CORE_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "seam/cuda.h"

#define CF_PIN_GRANULE ((size_t)2 << 20)

enum cf_pins {
	CF_PINS_UNTRIED,
	CF_PINS_GOOD,
	CF_PINS_NONE, /* the log has said why */
};

/* A hint, any thread. */
enum cf_pins cf_pins_state(void);

/*
 * Tries them out, once until the close; the GPU's context is current, the
 * stream is the caller's. Who comes while another tries finds them untried.
 */
void cf_pins_try(int ordinal, CUstream stream);

struct cf_pin {
	CUdeviceptr gpu; /* as GPUs have it; 0: there is none */
	size_t size;
	uint64_t gpus; /* that reach it: a bit each */
};

/*
 * Pins size bytes at mem, which may be read-only, for a GPU whose context is
 * current, and for all others that are in use by now (core/gpu.h). For more it
 * is not: who gives access to memory that a copy reads breaks the copy, and
 * with it the context (seen with driver 580). 0; -EBUSY: another thread is at
 * it; -errno or a CUDA code.
 */
int cf_pin_make(struct cf_pin *pin, const char *mem, size_t size, int ordinal);

/* Whether that GPU reaches it. Any thread. */
bool cf_pin_is_reached(const struct cf_pin *pin, int ordinal);

/* Nothing reads it any more. False: libcuda kept it, so it stays pinned. */
bool cf_pin_end(struct cf_pin *pin);

/* All have ended. They are untried again. */
void cf_pins_close(void);

/* fork: the child has none, and tries none. */
void cf_pins_fork_child(void);

#endif
