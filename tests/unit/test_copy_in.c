// SPDX-License-Identifier: Apache-2.0
/* test_copy_in - bytes of small copies, and how the driver is asked for them.
 */
#include "core/copy_in.h"

#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define ROOM ((size_t)40 << 10)
#define AT 3 /* where what is copied begins, in both memories */
#define KIB_32 ((size_t)32 << 10)

struct world {
	struct th_mem mem;
	struct cf_memory facts;
	unsigned char *bytes, *got;
	const struct cf_cuda *cuda;
};

static void world_make(struct world *w, enum th_mem_kind kind)
{
	th_need_gpu();
	th_mem_alloc(&w->mem, kind, ROOM);
	th_mem_set(&w->mem, 0xa5);
	cf_memory_facts((uintptr_t)w->mem.ptr, &w->facts);
	w->bytes = th_bytes(ROOM);
	w->got = malloc(ROOM);
	w->cuda = cf_cuda_loaded();
	assert_non_null(w->cuda);
}

static void world_end(struct world *w)
{
	th_mem_free(&w->mem);
	free(w->bytes);
	free(w->got);
}

/* How often the driver was asked for rows; *plain: and for a plain copy. */
static unsigned long copy(struct world *w, size_t size, unsigned long *plain)
{
	unsigned long rows = th_fake()->calls("cuMemcpy2DAsync_v2");
	CUstream stream;

	*plain = th_fake()->calls("cuMemcpyHtoDAsync_v2");
	th_mem_set(&w->mem, 0xa5);
	assert_int_equal(cuStreamCreate(&stream, 0), 0);
	assert_int_equal(cf_copy_in(w->cuda, &w->facts, AT,
				    (char *)w->bytes + AT, size, stream),
			 0);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	rows = th_fake()->calls("cuMemcpy2DAsync_v2") - rows;
	*plain = th_fake()->calls("cuMemcpyHtoDAsync_v2") - *plain;
	th_mem_get(&w->mem, 0, w->got, ROOM);
	th_all("before", w->got, 0xa5, AT);
	th_equal("bytes", w->got + AT, w->bytes + AT, size);
	th_all("behind", w->got + AT + size, 0xa5, ROOM - AT - size);
	return rows;
}

static void small_ones_are_two_rows_and_an_odd_byte(void **state)
{
	static const size_t sizes[] = { 2,    3,    4,		5,
					4096, 8191, KIB_32 - 2, KIB_32 - 1 };
	unsigned long plain;
	struct world w;

	world_make(&w, TH_DEVICE);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_true(cf_copy_in_is_small(&w.facts, sizes[i]));
		assert_int_equal(copy(&w, sizes[i], &plain), 1 + sizes[i] % 2);
		assert_int_equal(plain, 0);
	}
	world_end(&w);
}

static void a_byte_and_what_is_large_are_plain(void **state)
{
	static const size_t sizes[] = { 1, KIB_32, KIB_32 + 1 };
	unsigned long plain;
	struct world w;

	world_make(&w, TH_DEVICE);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_false(cf_copy_in_is_small(&w.facts, sizes[i]));
		assert_int_equal(copy(&w, sizes[i], &plain), 0);
		assert_int_equal(plain, 1);
	}
	world_end(&w);
}

static void memory_of_other_kinds_is_copied_to_plainly(void **state)
{
	unsigned long plain;
	struct world w;

	world_make(&w, TH_MANAGED);
	assert_int_equal(copy(&w, 4096, &plain), 0);
	world_end(&w);
	world_make(&w, TH_DEVICE);
	w.facts.chained = true;
	assert_int_equal(copy(&w, 4096, &plain), 0);
	assert_int_equal(plain, 1);
	world_end(&w);
}

static void what_is_refused_in_rows_is_copied_all_the_same(void **state)
{
	unsigned long plain;
	struct world w;

	world_make(&w, TH_DEVICE);
	for (int nth = 1; nth <= 2; nth++) {
		char plan[64];

		snprintf(plan, sizeof(plan), "cuMemcpy2DAsync_v2:%d=801", nth);
		assert_int_equal(th_fake()->plan(plan), 0);
		assert_int_equal(copy(&w, 4097, &plain), nth);
		assert_int_equal(plain, 1);
	}
	th_fake()->plan_clear();
	world_end(&w);
}

static void a_driver_without_rows_copies_plainly(void **state)
{
	unsigned long plain;
	struct cf_cuda old;
	struct world w;

	world_make(&w, TH_DEVICE);
	old = *w.cuda;
	old.memcpy_2d_async = NULL;
	w.cuda = &old;
	assert_int_equal(copy(&w, 4096, &plain), 0);
	assert_int_equal(plain, 1);
	world_end(&w);
}

static void the_last_word_is_the_plain_copys(void **state)
{
	struct world w;

	world_make(&w, TH_DEVICE);
	assert_int_equal(th_fake()->plan("cuMemcpy2DAsync_v2:1=801,"
					 "cuMemcpyHtoDAsync_v2:1=700"),
			 0);
	assert_int_equal(
		cf_copy_in(w.cuda, &w.facts, 0, (char *)w.bytes, 4096, NULL),
		700);
	th_fake()->plan_clear();
	world_end(&w);
}

static void no_byte_is_read_by_the_cpu_of_rows_and_of_what_is_large(
	void **state)
{
	struct cf_memory mem = { .kind = CF_MEMORY_DEVICE,
				 .addr = 4096,
				 .end = 4096 + 100 };
	struct cf_cuda cuda, old = { 0 };
	unsigned long plain;
	struct world w;

	world_make(&w, TH_DEVICE);
	cuda = *w.cuda;
	assert_false(cf_copy_in_goes_unread(&cuda, &mem, 0, 1));
	assert_true(cf_copy_in_goes_unread(&cuda, &mem, 0, 2));
	assert_true(cf_copy_in_goes_unread(&old, &mem, 0, KIB_32));
	assert_false(cf_copy_in_goes_unread(&old, &mem, 0, KIB_32 - 1));
	mem.chained = true;
	assert_true(cf_copy_in_goes_unread(&cuda, &mem, 20, 80));
	assert_false(cf_copy_in_goes_unread(&cuda, &mem, 20, 81));
	assert_true(cf_copy_in_goes_unread(&cuda, &mem, 20, KIB_32));
	mem.chained = false;
	mem.kind = CF_MEMORY_MANAGED;
	assert_false(cf_copy_in_goes_unread(&cuda, &mem, 0, 80));
	/* and what is refused in rows is not copied */
	assert_int_equal(th_fake()->plan("cuMemcpy2DAsync_v2:1=801"), 0);
	plain = th_fake()->calls("cuMemcpyHtoDAsync_v2");
	assert_int_equal(cf_copy_in_unread(&cuda, &w.facts, 0, (char *)w.bytes,
					   4096, NULL),
			 801);
	assert_int_equal(th_fake()->calls("cuMemcpyHtoDAsync_v2"), plain);
	th_fake()->plan_clear();
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_ones_are_two_rows_and_an_odd_byte),
		cmocka_unit_test(a_byte_and_what_is_large_are_plain),
		cmocka_unit_test(memory_of_other_kinds_is_copied_to_plainly),
		cmocka_unit_test(
			what_is_refused_in_rows_is_copied_all_the_same),
		cmocka_unit_test(a_driver_without_rows_copies_plainly),
		cmocka_unit_test(the_last_word_is_the_plain_copys),
		cmocka_unit_test(
			no_byte_is_read_by_the_cpu_of_rows_and_of_what_is_large),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("copy_in", tests, NULL, NULL));
}
