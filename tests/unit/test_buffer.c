// SPDX-License-Identifier: Apache-2.0
/* buffer - the interval map against an oracle that looks at every range. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/buffer.h"

#define MAX_RANGES 2000

struct oracle {
	struct range {
		uintptr_t base;
		size_t size;
		uint64_t id; /* 0: host memory */
	} ranges[MAX_RANGES];
	size_t nr;
};

/* Memory of which nothing but its name is known; id 0 is host memory. */
static struct cf_memory memory(uintptr_t addr, uint64_t id)
{
	return (struct cf_memory){
		.kind = id ? CF_MEMORY_DEVICE : CF_MEMORY_HOST,
		.addr = addr,
		.buffer_id = id,
	};
}

static int add(uintptr_t base, size_t size, uint64_t id)
{
	struct cf_memory mem = memory(base, id);

	return cf_buffer_register(&mem, size, false);
}

static enum cf_cover cover(uintptr_t base, uintptr_t start, size_t size,
			   uint64_t id)
{
	struct cf_memory mem = memory(base, id);
	struct cf_buffer_range held = { 0 };
	enum cf_cover cover = cf_buffer_cover(&mem, base, start, size, &held);

	/* the one that holds all of it, or none */
	if (cover == CF_COVER_WHOLE)
		assert_true(held.base <= start && held.end >= start + size);
	else
		assert_true(!held.base && !held.end);
	return cover;
}

static int oracle_add(struct oracle *o, uintptr_t base, size_t size,
		      uint64_t id)
{
	size_t i = 0;

	while (i < o->nr && o->ranges[i].base != base)
		i++;
	if (i < o->nr && o->ranges[i].id == id)
		return -CU_FILE_MEMORY_ALREADY_REGISTERED;
	o->ranges[i] = (struct range){ base, size, id };
	o->nr += i == o->nr;
	return 0;
}

static int oracle_remove(struct oracle *o, uintptr_t base)
{
	for (size_t i = 0; i < o->nr; i++)
		if (o->ranges[i].base == base) {
			o->ranges[i] = o->ranges[--o->nr];
			return 0;
		}
	return -CU_FILE_MEMORY_NOT_REGISTERED;
}

static enum cf_cover oracle_cover(const struct oracle *o, uintptr_t base,
				  uintptr_t start, size_t size, uint64_t id)
{
	enum cf_cover answer = CF_COVER_NONE;

	for (size_t i = 0; i < o->nr; i++) {
		const struct range *r = &o->ranges[i];

		if (r->id != id || base < r->base || base >= r->base + r->size)
			continue;
		if (start >= r->base && start + size <= r->base + r->size)
			return CF_COVER_WHOLE;
		answer = CF_COVER_BEYOND;
	}
	return answer;
}

static uint64_t oracle_bytes(const struct oracle *o)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < o->nr; i++)
		bytes += o->ranges[i].id ? o->ranges[i].size : 0;
	return bytes;
}

static int forget(void **state)
{
	cf_buffers_close();
	return 0;
}

static void check_some(const struct oracle *o, uintptr_t base, size_t span)
{
	uintptr_t start = base + th_below(span / 4);
	size_t size = 1 + th_below(span / 2);
	uint64_t id = th_below(3);

	assert_int_equal(cover(base, start, size, id),
			 oracle_cover(o, base, start, size, id));
	assert_int_equal(cf_buffer_bytes(0), oracle_bytes(o));
}

/* Small numbers, so that ranges nest, overlap, touch and are equal often. */
static void random_ranges_answer_as_the_oracle_does(void **state)
{
	for (int world = 0; world < TH_SCALE(60); world++) {
		struct oracle o = { .nr = 0 };
		size_t span = 16u << th_below(6);

		for (int step = 0; step < 600; step++) {
			uintptr_t base = 4096 + th_below(span);
			size_t size = 1 + th_below(span / 2);
			uint64_t id = th_below(3);

			switch (th_below(4)) {
			case 0:
				assert_int_equal(
					add(base, size, id),
					oracle_add(&o, base, size, id));
				break;
			case 1:
				assert_int_equal(cf_buffer_deregister(base),
						 oracle_remove(&o, base));
				break;
			default:
				check_some(&o, base, span);
			}
		}
		cf_buffers_close();
	}
}

static const size_t steps[] = { 1, MAX_RANGES - 1, 777 };

/* One after the other upwards, downwards, and all over the place. */
static uintptr_t nth(size_t step, size_t i)
{
	return 4096 + 16 * (i * step % MAX_RANGES);
}

/* Most end before the next begins; some reach over very many. */
static size_t some_size(void)
{
	return th_below(50) ? 1 + th_below(16) : 1 + th_below(16 * MAX_RANGES);
}

static void add_many(struct oracle *o, size_t step)
{
	for (size_t i = 0; i < MAX_RANGES; i++) {
		uintptr_t base = nth(step, i);
		size_t size = some_size();
		uint64_t id = 1 + th_below(2);

		assert_int_equal(add(base, size, id), 0);
		assert_int_equal(add(base, size, id),
				 -CU_FILE_MEMORY_ALREADY_REGISTERED);
		oracle_add(o, base, size, id);
		check_some(o, 4096 + th_below(16 * MAX_RANGES), 16);
	}
}

static void remove_many(struct oracle *o, size_t step)
{
	for (size_t i = 0; i < MAX_RANGES; i++) {
		uintptr_t base = nth(step, i);

		assert_int_equal(cf_buffer_deregister(base), 0);
		assert_int_equal(cf_buffer_deregister(base),
				 -CU_FILE_MEMORY_NOT_REGISTERED);
		oracle_remove(o, base);
		check_some(o, 4096 + th_below(16 * MAX_RANGES), 16);
	}
}

static void many_ranges_come_and_go_in_any_order(void **state)
{
	for (size_t i = 0; i < 9; i++) {
		struct oracle o = { .nr = 0 };

		add_many(&o, steps[i / 3]);
		remove_many(&o, steps[i % 3]);
		assert_int_equal(o.nr, 0);
	}
}

static void ranges_are_half_open(void **state)
{
	assert_int_equal(add(1000, 10, 0), 0);
	assert_int_equal(cover(999, 999, 1, 0), CF_COVER_NONE);
	assert_int_equal(cover(1000, 1000, 10, 0), CF_COVER_WHOLE);
	assert_int_equal(cover(1009, 1009, 1, 0), CF_COVER_WHOLE);
	assert_int_equal(cover(1009, 1009, 2, 0), CF_COVER_BEYOND);
	assert_int_equal(cover(1010, 1010, 1, 0), CF_COVER_NONE);
	assert_int_equal(cover(1000, 1010, 0, 0), CF_COVER_WHOLE);
	assert_int_equal(cover(1000, 1011, 0, 0), CF_COVER_BEYOND);
}

/* The walk back must not stop at a small range that hides a large one. */
static void a_large_range_is_found_behind_many_small_ones(void **state)
{
	assert_int_equal(add(1000, 100000, 0), 0);
	for (uintptr_t i = 1; i < 100; i++)
		assert_int_equal(add(1000 + i * 10, 5, 0), 0);
	assert_int_equal(cover(1993, 1993, 50000, 0), CF_COVER_WHOLE);
	assert_int_equal(cover(1993, 1993, 100000, 0), CF_COVER_BEYOND);
	assert_int_equal(cf_buffer_deregister(1000), 0);
	assert_int_equal(cover(1993, 1993, 1, 0), CF_COVER_WHOLE);
	assert_int_equal(cover(1995, 1995, 1, 0), CF_COVER_NONE);
}

/* Contract 3.7: freed memory's registration does not bound what came after. */
static void memory_with_another_id_is_not_the_registered_one(void **state)
{
	assert_int_equal(add(1000, 10, 7), 0);
	assert_int_equal(cover(1000, 1000, 20, 7), CF_COVER_BEYOND);
	assert_int_equal(cover(1000, 1000, 20, 8), CF_COVER_NONE);
	assert_int_equal(cover(1000, 1000, 20, 0), CF_COVER_NONE);
	assert_int_equal(cover(1000, 1000, 10, 8), CF_COVER_NONE);
}

static void what_lies_at_the_base_of_freed_memory_registers(void **state)
{
	struct cf_memory mem = memory(1000, 8);

	assert_int_equal(add(1000, 10, 7), 0);
	cf_buffer_set_alias(1000, CF_ALIAS_WRONG, NULL);
	assert_true(cf_buffer_may_have_alias());
	assert_int_equal(add(1000, 20, 8), 0);
	assert_false(cf_buffer_may_have_alias());
	assert_int_equal(cover(1000, 1000, 20, 8), CF_COVER_WHOLE);
	assert_int_equal(cover(1000, 1000, 10, 7), CF_COVER_NONE);
	assert_int_equal(cf_buffer_bytes(0), 20);
	assert_int_equal(add(1000, 10, 8), -CU_FILE_MEMORY_ALREADY_REGISTERED);
	/* of host memory the driver does not tell: it may be the same */
	assert_int_equal(add(2000, 10, 0), 0);
	assert_int_equal(add(2000, 10, 0), -CU_FILE_MEMORY_ALREADY_REGISTERED);
	mem.chained = true;
	assert_int_equal(cf_buffer_register(&mem, 10, false),
			 -CU_FILE_MEMORY_ALREADY_REGISTERED);
	assert_int_equal(cf_buffer_deregister(1000), 0);
	assert_int_equal(cf_buffer_bytes(0), 0);
}

/* Mappings of one VMM range have ids of their own, yet are one buffer. */
static void chained_mappings_count_whatever_their_id(void **state)
{
	struct cf_memory mem = memory(1000, 7);
	struct cf_buffer_range held;

	mem.chained = true;
	assert_int_equal(cf_buffer_register(&mem, 100, false), 0);
	mem.addr = 1050;
	mem.buffer_id = 8;
	assert_int_equal(cf_buffer_cover(&mem, 1050, 1050, 50, &held),
			 CF_COVER_WHOLE);
}

static void ranges_at_the_end_of_the_address_space_work(void **state)
{
	uintptr_t top = UINTPTR_MAX - 4096;

	assert_int_equal(add(top, 4096, 0), 0);
	assert_int_equal(cover(top, top, 4096, 0), CF_COVER_WHOLE);
	assert_int_equal(cover(top + 4095, top + 4095, 1, 0), CF_COVER_WHOLE);
	assert_int_equal(cf_buffer_deregister(top), 0);
}

static void a_close_forgets_everything_and_the_map_goes_on(void **state)
{
	for (uintptr_t i = 0; i < 1000; i++)
		assert_int_equal(add(1000 + i, 10, 3), 0);
	assert_int_equal(cf_buffer_bytes(0), 10000);
	cf_buffers_close();
	assert_int_equal(cf_buffer_bytes(0), 0);
	assert_int_equal(cover(1500, 1500, 1, 3), CF_COVER_NONE);
	assert_int_equal(cf_buffer_deregister(1500),
			 -CU_FILE_MEMORY_NOT_REGISTERED);
	assert_int_equal(add(1500, 10, 3), 0);
	assert_int_equal(cover(1500, 1500, 10, 3), CF_COVER_WHOLE);
}

/* A large range that never changes, between ones that come and go. */
struct churn {
	struct th_bad bad;
	_Atomic unsigned over;
};

static void churn_thread(void *arg, unsigned i)
{
	struct churn *c = arg;
	uintptr_t own = 100000 * (uintptr_t)(i + 1);

	for (int n = 0; n < TH_SCALE(4000); n++) {
		uintptr_t base = own + th_below(100);

		if (i & 1) {
			if (cover(5000, 5000, 50, 0) != CF_COVER_WHOLE)
				th_bad_note(&c->bad, "the range went away");
			continue;
		}
		if (add(base, 10, 0))
			th_bad_note(&c->bad, "%zx does not go in", base);
		if (cover(base, base, 10, 0) != CF_COVER_WHOLE)
			th_bad_note(&c->bad, "%zx is not found", base);
		if (cf_buffer_deregister(base))
			th_bad_note(&c->bad, "%zx does not come out", base);
	}
}

static void readers_see_whole_ranges_while_others_change(void **state)
{
	struct churn c = { .over = 0 };

	assert_int_equal(add(5000, 50, 0), 0);
	th_threads(8, churn_thread, &c);
	th_bad_check(&c.bad);
}

/* A look that walks back over many ranges holds its lock all the while. */
static void look_or_fork(void *arg, unsigned i)
{
	struct churn *c = arg;

	while (i && !atomic_load(&c->over))
		if (cover(60000, 60000, 1, 9) != CF_COVER_NONE)
			th_bad_note(&c->bad, "a range of another id is found");
	for (int n = 0; !i && n < 10; n++) {
		int status = -1;
		pid_t pid;

		cf_buffers_fork_prepare();
		pid = fork();
		if (!pid) {
			alarm(100);
			cf_buffers_fork_child();
			_exit(add(5, 7, 0) || cf_buffer_deregister(5));
		}
		cf_buffers_fork_parent();
		if (waitpid(pid, &status, 0) != pid || status)
			th_bad_note(&c->bad, "a child ends with %d", status);
	}
	if (!i)
		atomic_store(&c->over, 1);
}

static void a_child_waits_for_no_reader_of_its_parent(void **state)
{
	struct churn c = { .over = 0 };

	assert_int_equal(add(1000, 100000, 8), 0);
	for (uintptr_t i = 0; i < 50000; i++)
		assert_int_equal(add(2000 + i, 1, 8), 0);
	th_threads(3, look_or_fork, &c);
	th_bad_check(&c.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			random_ranges_answer_as_the_oracle_does, forget),
		cmocka_unit_test_teardown(many_ranges_come_and_go_in_any_order,
					  forget),
		cmocka_unit_test_teardown(ranges_are_half_open, forget),
		cmocka_unit_test_teardown(
			a_large_range_is_found_behind_many_small_ones, forget),
		cmocka_unit_test_teardown(
			memory_with_another_id_is_not_the_registered_one,
			forget),
		cmocka_unit_test_teardown(
			what_lies_at_the_base_of_freed_memory_registers,
			forget),
		cmocka_unit_test_teardown(
			chained_mappings_count_whatever_their_id, forget),
		cmocka_unit_test_teardown(
			ranges_at_the_end_of_the_address_space_work, forget),
		cmocka_unit_test_teardown(
			a_close_forgets_everything_and_the_map_goes_on, forget),
		cmocka_unit_test_teardown(
			readers_see_whole_ranges_while_others_change, forget),
		cmocka_unit_test_teardown(
			a_child_waits_for_no_reader_of_its_parent, forget),
	};

	th_start(100);
	return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
