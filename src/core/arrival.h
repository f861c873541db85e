// SPDX-License-Identifier: Apache-2.0
/*
 * arrival - when a GPU sees what a disk or the CPU has put into its memory.
 *
 * Such writes come over the bus, past the streams. That they are done is
 * known here first; whether work that the GPU begins from then on sees them
 * is the GPU's affair. Most keep that order. For others the driver can flush
 * what is under way; without that nothing may be read straight into them.
 * (The other way round, a GPU's own writes are seen from outside as soon as
 * its stream is known to be done.)
 */
#ifndef CF_CORE_ARRIVAL_H
#define CF_CORE_ARRIVAL_H

#include "core/memory.h"

enum cf_arrival {
	CF_ARRIVAL_UNKNOWN,
	CF_ARRIVAL_ORDERED, /* the GPU sees to it */
	CF_ARRIVAL_FLUSHED, /* cf_arrival_flush does */
	CF_ARRIVAL_LOOSE,   /* nobody does */
};

/* Asks the driver, once for each GPU. Any thread. */
enum cf_arrival cf_arrival_of(int ordinal);

/*
 * All that was written to mem's GPU from outside is seen by what it begins
 * from now on. 0, or the driver's error. Any thread; _here: mem's context is
 * the current one.
 */
int cf_arrival_flush(const struct cf_memory *mem);
int cf_arrival_flush_here(int ordinal);

/* What was learnt of GPUs is asked anew. */
void cf_arrival_forget(void);

#endif
