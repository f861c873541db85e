// SPDX-License-Identifier: Apache-2.0
/*
 * ferried_rung - a carrier whose kernel has rung: it is on the GPU, and comes
 * to its end there.
 */
#include "ferried_world.h"

#define SMALL (20 * TH_KIB + 5)

/* One block, which is on the GPU; at an odd place of the file and the memory */
static void ring(struct world *w, size_t size)
{
	w->ferry.rings = true;
	w->ferry.blocks = 1;
	w->piece.size = size;
	w->piece.file_off = 4096 + 3;
	w->piece.mem.addr += 14;
	cf_feed_init(&w->feed, size, 0, size);
}

/* Then it moves vectors; what goes O_DIRECT lies as the disk has it. */
static void it_lies_in_the_hold_as_in_the_memory(void **state)
{
	for (int op = CF_READ; op <= CF_WRITE; op++)
		for (unsigned off = 0; off < 16; off++) {
			const struct cf_ferry_order *o;
			struct world w;
			uint64_t here;

			world_make(&w, (enum cf_op)op);
			ring(&w, SMALL);
			w.piece.mem.addr += off;
			assert_int_equal(world_run(&w), SMALL);
			assert_int_equal(cf_ferry_wait(&w.ferry, 1), 0);
			o = w.board.orders;
			here = op == CF_READ ? o->src : o->dst;
			assert_int_equal(here % 16, w.piece.mem.addr % 16);
			world_end(&w);
		}
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_lies_in_the_hold_as_in_the_memory),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("ferried_rung", tests, NULL, NULL));
}
