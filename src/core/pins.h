// SPDX-License-Identifier: Apache-2.0
/*
 * pins - pages of ours that GPUs read, without a registration with libcuda.
 *
 * libcuda ends a registration only when the GPU is idle, and holds up its other
 * callers till then. Pages that NVIDIA's kernel driver pins for us (rm_pages.h)
 * libcuda maps as memory of another process, and unmaps at any time. A pin is
 * of whole granules, and pins are tested before any is used.
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
	CF_PINS_NONE, /* the log says why */
};

/* A hint: it may change at once. Any thread. */
enum cf_pins cf_pins_state(void);

/*
 * Tests pins, once until the close. The GPU's context is current, the stream is
 * the caller's. While one thread tests, others find the state UNTRIED.
 */
void cf_pins_try(int ordinal, CUstream stream);

struct cf_pin {
	CUdeviceptr gpu; /* the GPUs' address; 0: there is none */
	size_t size;
	uint64_t gpus; /* those that reach it, a bit each */
};

/*
 * Pins size bytes at mem, which may be read-only, for the GPU whose context is
 * current, and for all others in use by now (core/gpu.h). No GPU is added
 * later: giving access to memory that a copy reads breaks the copy, and with it
 * the context (seen with driver 580). 0; -EBUSY: another thread makes or tests
 * pins; -errno or a CUDA code.
 */
int cf_pin_make(struct cf_pin *pin, const char *mem, size_t size, int ordinal);

/* Whether that GPU reaches the pin. Any thread. */
bool cf_pin_is_reached(const struct cf_pin *pin, int ordinal);

/* Nothing reads the pin any more. False: libcuda did not unmap it; it stays. */
bool cf_pin_end(struct cf_pin *pin);

/* All pins have ended. The state is UNTRIED again. */
void cf_pins_close(void);

/* fork: the child has no pins, and tests none. */
void cf_pins_fork_child(void);

#endif
