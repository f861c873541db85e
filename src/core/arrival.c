// SPDX-License-Identifier: Apache-2.0
/* arrival - see arrival.h. Relaxed: a thread without an answer asks again. */
#include "core/arrival.h"

#include <stdatomic.h>
#include "core/device.h"
#include "core/log.h"

#define MAX_GPUS 64

static _Atomic unsigned char known[MAX_GPUS]; /* enum cf_arrival, by ordinal */

static enum cf_arrival ask_for_flush(int ordinal)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int options;
	CUresult res = cf_cuda_attribute(ordinal, CF_CU_DEVICE_FLUSH_OPTIONS,
					 &options);

	if (res != CF_CU_SUCCESS && res != CF_CU_INVALID_VALUE)
		return CF_ARRIVAL_UNKNOWN;
	return cuda && cuda->flush_writes && options & CF_CU_FLUSH_OPTION_HOST ?
		       CF_ARRIVAL_FLUSHED :
		       CF_ARRIVAL_LOOSE;
}

/* Drivers before 11.3 have no such attribute, and demanded no flush. */
static enum cf_arrival ask(int ordinal)
{
	int order;
	CUresult res = cf_cuda_attribute(ordinal, CF_CU_DEVICE_WRITES_ORDERING,
					 &order);

	if (res == CF_CU_INVALID_VALUE)
		return CF_ARRIVAL_ORDERED;
	if (res != CF_CU_SUCCESS)
		return CF_ARRIVAL_UNKNOWN;
	return order >= CF_CU_WRITES_ORDERED_FOR_OWNER ? CF_ARRIVAL_ORDERED :
							 ask_for_flush(ordinal);
}

static void tell(int ordinal, enum cf_arrival arrival)
{
	if (arrival != CF_ARRIVAL_ORDERED)
		cf_log(CF_LOG_INFO, "gpu %d: writes from outside %s", ordinal,
		       arrival == CF_ARRIVAL_FLUSHED ?
			       "are flushed by the driver" :
			       "are in no order, and none is made");
}

enum cf_arrival cf_arrival_of(int ordinal)
{
	enum cf_arrival arrival;

	if (ordinal < 0 || ordinal >= MAX_GPUS)
		return CF_ARRIVAL_LOOSE;
	arrival = (enum cf_arrival)atomic_load_explicit(&known[ordinal],
							memory_order_relaxed);
	if (arrival)
		return arrival;
	arrival = ask(ordinal);
	if (!arrival) /* an error may pass: ask again next time */
		return CF_ARRIVAL_LOOSE;
	atomic_store_explicit(&known[ordinal], (unsigned char)arrival,
			      memory_order_relaxed);
	tell(ordinal, arrival);
	return arrival;
}

int cf_arrival_flush_here(int ordinal)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	if (cf_arrival_of(ordinal) != CF_ARRIVAL_FLUSHED)
		return 0;
	if (!cuda) /* the process ends */
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	return cf_cuda_code(cuda->flush_writes(CF_CU_FLUSH_CURRENT_CTX,
					       CF_CU_FLUSH_TO_OWNER));
}

int cf_arrival_flush(const struct cf_memory *mem)
{
	struct cf_scope scope;
	struct cf_device *dev;
	int err;

	/* what this thread wrote through a combining mapping leaves its core */
	atomic_thread_fence(memory_order_seq_cst);
	if (cf_arrival_of(mem->ordinal) != CF_ARRIVAL_FLUSHED)
		return 0;
	err = cf_device_find(mem, &dev);
	if (!err)
		err = cf_context_enter(dev->ctx, &scope);
	if (err)
		return err;
	err = cf_arrival_flush_here(mem->ordinal);
	cf_context_leave(&scope);
	return err;
}

void cf_arrival_forget(void)
{
	for (int i = 0; i < MAX_GPUS; i++)
		atomic_store_explicit(&known[i], CF_ARRIVAL_UNKNOWN,
				      memory_order_relaxed);
}
