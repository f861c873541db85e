// SPDX-License-Identifier: Apache-2.0
/*
 * sop - an operation that its submitter gives up after its bell was found, and
 * before it has begun: nothing is done, nothing told, and it is home.
 */
#include "engine/sop.h"

#include <stdatomic.h>
#include "core/context.h"
#include "engine/sops.h"
#include "harness.h"

#define UNTOLD (-77)

static void rings_here(struct cf_sop *sop)
{
	cf_sop_rung(sop, false);
}

static void rings_elsewhere(struct cf_sop *sop)
{
	cf_sop_rung(sop, true);
}

static void reached(struct cf_sop *sop)
{
	cf_sop_reached(sop);
}

/* One that is in a stream, and whose bell somebody has. */
static struct cf_sop *submitted(bool belled, ssize_t *n)
{
	CUcontext ctx = th_primary();
	struct cf_sop *sop;

	assert_int_equal(cf_dock_lease(ctx,
				       cf_context_id(cf_cuda_loaded(), ctx),
				       false, &sop),
			 0);
	sop->state = CF_SOP_QUEUED;
	sop->held = true;
	sop->belled = belled;
	sop->ferried = sop->captured = sop->busy = false;
	sop->ref = NULL;
	sop->depth = NULL;
	sop->parcel = NULL;
	sop->errand = (struct cf_errand){ .call.op = CF_READ, .bytes_p = n };
	atomic_store(&sop->words->gate, belled ? UINT32_MAX : 0);
	return sop;
}

static void one_that_is_given_up_before_it_begins_never_does(void **state)
{
	static void (*const comes[])(struct cf_sop * sop) = {
		rings_here, rings_elsewhere, cf_sop_lost, cf_sop_shut, reached
	};

	th_need_gpu();
	th_open();
	for (size_t i = 0; i < sizeof(comes) / sizeof(comes[0]); i++) {
		ssize_t n = UNTOLD;
		struct cf_sop *sop = submitted(comes[i] != reached, &n);

		assert_int_equal(cf_sop_stop_or_wait(sop, CF_CU_UNKNOWN),
				 CF_ECUDA(CF_CU_UNKNOWN));
		/* the stream waits for nobody */
		assert_int_equal(atomic_load(&sop->words->gate), 0);
		assert_int_not_equal(atomic_load(&sop->words->passed),
				     sop->ticket);
		comes[i](sop);
		assert_int_equal(atomic_load(&sop->words->passed), sop->ticket);
		assert_int_equal(n, UNTOLD);
		assert_int_equal(cf_sops_begun(), 0);
	}
	th_close();
	/* all of them were home, or the close had left them */
	if (th_fake())
		assert_int_equal(th_fake()->live("host_register"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			one_that_is_given_up_before_it_begins_never_does,
			th_teardown_close),
	};

	th_start(60);
	return th_finish(cmocka_run_group_tests_name("sop", tests, NULL, NULL));
}
