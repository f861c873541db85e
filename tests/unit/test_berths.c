// SPDX-License-Identifier: Apache-2.0
/* berths - ferries that get another aperture begin anew there. */
#include <stdlib.h>
#include "engine/berths.h"
#include "engine/sop.h"
#include "harness.h"

struct world {
	struct cf_berths berths;
	struct cf_chunk *chunk;
	struct cf_ferry *ferry; /* of one of its operations */
	struct cf_aperture aperture;
	struct cf_near_slots slots;
};

static void world_make(struct world *w)
{
	struct cf_sop *sop;

	th_need_gpu();
	th_open();
	*w = (struct world){ .slots = { .mem = NULL } };
	cf_berths_init(&w->berths);
	assert_int_equal(cf_chunk_new(cf_cuda_loaded(), NULL, true, &w->chunk),
			 0);
	cf_berths_add(&w->berths, w->chunk);
	sop = cf_berths_take(&w->berths);
	assert_non_null(sop);
	w->ferry = &sop->ferry;
	w->ferry->rings = w->ferry->fresh = true;
	w->aperture.mem = calloc(1, CF_CHUNK_NEAR);
	assert_non_null(w->aperture.mem);
}

static void world_end(struct world *w)
{
	cf_berths_fini(cf_cuda_loaded(), &w->berths);
	free(w->aperture.mem);
	th_close();
}

/* As the kernel of that run reads a state. */
static bool is_over(uint64_t state, uint32_t run)
{
	return (int32_t)((uint32_t)(state >> 32) - (run << 1)) > 0;
}

static void a_run_there_is_not_over_before_it_has_begun(void **state)
{
	static const uint32_t runs[] = { 1,
					 2,
					 1u << 30,
					 (1u << 30) + 1,
					 (1u << 31) - 1,
					 1u << 31,
					 (1u << 31) + 1,
					 UINT32_MAX };
	struct world w;

	(void)state;
	world_make(&w);
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		/* the one before it was in the aperture that is gone */
		w.ferry->run = w.ferry->near_run = runs[i] - 1;
		cf_berths_take_far(&w.berths);
		cf_chunk_bring_near(w.chunk, &w.aperture, &w.slots);
		cf_ferry_begin(w.ferry);
		assert_int_equal(w.ferry->run, runs[i]);
		assert_false(is_over(w.ferry->near->state, runs[i]));
	}
	world_end(&w);
}

/* It would take the pages that the GPU writes to. */
static void a_child_has_no_words(void **state)
{
	struct cf_sop *sop;
	struct world w;

	(void)state;
	world_make(&w);
	sop = cf_berths_take(&w.berths);
	assert_non_null(sop);
	assert_int_equal(th_child_has(sop->words), th_emulated());
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_there_is_not_over_before_it_has_begun),
		cmocka_unit_test(a_child_has_no_words),
	};

	th_start(30);
	return th_finish(
		cmocka_run_group_tests_name("berths", tests, NULL, NULL));
}
