// SPDX-License-Identifier: Apache-2.0
/*
 * arrival - when a GPU sees what a disk or the CPU has put into its memory.
 *
 * Such writes come over the bus, not in a stream. The CPU learns first that
 * they are done; whether work that the GPU begins from then on sees them
 * depends on the GPU. Most keep that order. For others the driver can flush
 * what is under way; without that nothing may be read straight into their
 * memory. (The other way round, a GPU's own writes are seen from outside as
 * soon as its stream is known to be done.)
 */
#ifndef CF_CORE_ARRIVAL_H
#define CF_CORE_ARRIVAL_H

#include "core/memory.h"

enum cf_arrival {
	CF_ARRIVAL_UNKNOWN,
	CF_ARRIVAL_ORDERED, /* the GPU keeps the order */
	CF_ARRIVAL_FLUSHED, /* in order after a cf_arrival_flush */
	CF_ARRIVAL_LOOSE,   /* no order can be had */
};

/* Asks the driver, once for each GPU. Any thread. */
enum cf_arrival cf_arrival_of(int ordinal);

/*
 * When it answers 0, work that mem's GPU begins from now on sees all that was
 * written to the GPU from outside. Else the driver's error. Any thread; _here:
 * a context of the GPU is current.
 */
int cf_arrival_flush(const struct cf_memory *mem);
int cf_arrival_flush_here(int ordinal);

/* Forgets the answers; the driver is asked again. */
void cf_arrival_forget(void);

#endif
