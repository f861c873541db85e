// SPDX-License-Identifier: Apache-2.0
/* timeshare - counts late copies against those in time. */
#include "core/timeshare.h"

#include <stdatomic.h>
#include "core/log.h"

#define LATE_NS (100 * 1000)
#define LATE 8 /* a late copy adds so much; one in time subtracts 1 */
#define MANY (32 * LATE)
#define REST_NS (10 * 1000 * 1000ll)
#define MAX_REST_NS (128 * REST_NS)

void cf_timeshare_init(struct cf_timeshare *share)
{
	cf_rest_init(&share->rest, REST_NS, MAX_REST_NS);
	atomic_init(&share->late, 0);
}

bool cf_timeshare_holds(struct cf_timeshare *share)
{
	return cf_rest_holds(&share->rest);
}

static void begin_rest(struct cf_timeshare *share, int64_t took_ns)
{
	int64_t ns;

	/* threads that copied at the same time were late, too */
	if (cf_rest_holds(&share->rest))
		return;
	ns = cf_rest_begin(&share->rest);
	cf_log(CF_LOG_INFO,
	       "small copies wait for turns at the GPU, the last for %lld us: "
	       "they go by copy engines, for %lld ms",
	       (long long)(took_ns / 1000), (long long)(ns / 1000000));
}

/* After a rest one late copy is enough for the next. */
void cf_timeshare_note(struct cf_timeshare *share, int64_t took_ns)
{
	int late = atomic_load_explicit(&share->late, memory_order_relaxed);
	int next = took_ns > LATE_NS ? late + LATE : late - 1;

	if (!late && next < 0)
		return;
	if (next >= MANY) {
		begin_rest(share, took_ns);
		next = MANY - LATE;
	}
	atomic_store_explicit(&share->late, next, memory_order_relaxed);
	if (!next)
		cf_rest_renew(&share->rest);
}
