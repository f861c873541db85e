// SPDX-License-Identifier: Apache-2.0
/* quiet - asks the driver by an event behind all that the context has. */
#include "core/quiet.h"

#include <stddef.h>
#include <time.h>
#include "core/context.h"

#define NAP_NS (100 * 1000)

static bool happens_in(const struct cf_cuda *cuda, CUevent event, int64_t ns)
{
	const struct timespec nap = { 0, NAP_NS };
	CUresult res;

	while ((res = cuda->event_query(event)) == CF_CU_NOT_READY && ns > 0) {
		nanosleep(&nap, NULL);
		ns -= NAP_NS;
	}
	return res == CF_CU_SUCCESS;
}

static bool is_over_in(const struct cf_cuda *cuda, CUevent event, int64_t ns)
{
	CUcontext ctx;

	return cuda->ctx_get_current(&ctx) == CF_CU_SUCCESS &&
	       cuda->ctx_record_event(ctx, event) == CF_CU_SUCCESS &&
	       happens_in(cuda, event, ns);
}

bool cf_context_is_quiet(const struct cf_cuda *cuda, int64_t patience_ns)
{
	CUevent event;
	bool over;

	if (cf_stream_is_captured(cuda, CF_CU_STREAM_LEGACY))
		return false;
	if (!cuda->ctx_record_event)
		return true;
	if (cuda->event_create(&event, CF_CU_EVENT_DISABLE_TIMING) !=
	    CF_CU_SUCCESS)
		return false;
	over = is_over_in(cuda, event, patience_ns);
	cuda->event_destroy(event);
	return over;
}

bool cf_quiet_after(const struct cf_cuda *cuda, struct cf_rest *busy,
		    int64_t patience_ns)
{
	if (cf_rest_holds(busy))
		return false;
	if (cf_context_is_quiet(cuda, patience_ns))
		return true;
	(void)cf_rest_begin(busy);
	return false;
}
