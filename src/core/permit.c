// SPDX-License-Identifier: Apache-2.0
/* permit - has a kernel made once, and lets it rest. */
#include "core/permit.h"

#include <stdatomic.h>
#include "core/log.h"
#include "core/quiet.h"

#define REST_NS (1600 * 1000ll)
#define MAX_REST_NS (1024 * REST_NS)

enum ready { UNTRIED, READY, NEVER };

void cf_permit_init(struct cf_permit *permit)
{
	cf_rest_init(&permit->rest, REST_NS, MAX_REST_NS);
	cf_rest_init(&permit->busy, CF_QUIET_REST_NS, CF_QUIET_MAX_REST_NS);
	atomic_init(&permit->ready, UNTRIED);
	pthread_mutex_init(&permit->make_lock, NULL);
}

void cf_permit_fini(struct cf_permit *permit)
{
	pthread_mutex_destroy(&permit->make_lock);
}

/* res: what make answered. */
static int note_tried(struct cf_permit *permit, const char *name, CUresult res)
{
	int ready = res == CF_CU_SUCCESS ? READY : NEVER;

	if (ready == NEVER)
		cf_log(CF_LOG_WARN, "%s kernel: %s (%d), small copies go alone",
		       name, cf_cuda_error_name((int)res), (int)res);
	atomic_store_explicit(&permit->ready, ready, memory_order_release);
	return ready;
}

static void note_busy(struct cf_permit *permit, const char *name)
{
	int64_t ns = cf_rest_begin(&permit->busy);

	cf_log(CF_LOG_DEBUG,
	       "%s kernel: its context is busy, small copies go alone for %lld "
	       "us",
	       name, (long long)(ns / 1000));
}

static bool make_ready(struct cf_permit *permit, const char *name,
		       CUresult (*make)(void *owner), void *owner)
{
	CUresult res;
	int ready;

	if (cf_rest_holds(&permit->busy) ||
	    pthread_mutex_trylock(&permit->make_lock))
		return false;
	ready = atomic_load_explicit(&permit->ready, memory_order_relaxed);
	if (ready == UNTRIED) {
		res = make(owner);
		if (res == CF_CU_NOT_READY)
			note_busy(permit, name);
		else
			ready = note_tried(permit, name, res);
	}
	pthread_mutex_unlock(&permit->make_lock);
	return ready == READY;
}

bool cf_permit_ask(struct cf_permit *permit, const char *name,
		   CUresult (*make)(void *owner), void *owner)
{
	int ready = atomic_load_explicit(&permit->ready, memory_order_acquire);

	return ready == UNTRIED ? make_ready(permit, name, make, owner) :
				  ready == READY;
}

bool cf_permit_is_ready(struct cf_permit *permit)
{
	return atomic_load_explicit(&permit->ready, memory_order_acquire) ==
	       READY;
}

bool cf_permit_rests(struct cf_permit *permit)
{
	return cf_rest_holds(&permit->rest);
}

void cf_permit_rest(struct cf_permit *permit)
{
	(void)cf_rest_begin(&permit->rest);
}

void cf_permit_suspend(struct cf_permit *permit)
{
	atomic_store_explicit(&permit->ready, NEVER, memory_order_relaxed);
}

void cf_permit_resume(struct cf_permit *permit)
{
	atomic_store_explicit(&permit->ready, READY, memory_order_release);
}

void cf_permit_renew(struct cf_permit *permit)
{
	cf_rest_renew(&permit->rest);
}
