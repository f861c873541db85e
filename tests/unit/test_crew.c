// SPDX-License-Identifier: Apache-2.0
/*
 * crew - what a path has done on workers: by whom, how often, and where. The
 * workers are the test's own.
 */
#include "engine/crew.h"

#include "engine/settle.h"
#include "harness.h"

#define NODE 5

static unsigned wanted, leads, helps;
static int settled; /* the node that was called last; -2: none */

#pragma GCC visibility push(default)
void __wrap_cf_workers_run(struct cf_job *job, unsigned nr);
void __wrap_cf_settle(int node);
#pragma GCC visibility pop

/* As if three had joined. */
void __wrap_cf_workers_run(struct cf_job *job, unsigned nr)
{
	wanted = nr;
	for (int i = 0; i < 3; i++) {
		settled = -2;
		job->help(job);
		assert_int_equal(settled, NODE);
	}
	settled = -2;
	job->lead(job);
	/* a caller stays where it is */
	assert_int_equal(settled, -2);
}

void __wrap_cf_settle(int node)
{
	settled = node;
}

static void lead(void *arg)
{
	assert_ptr_equal(arg, &wanted);
	leads++;
}

static void help(void *arg)
{
	assert_ptr_equal(arg, &wanted);
	/* near the memory before it touches any */
	assert_int_equal(settled, NODE);
	helps++;
}

static void one_leads_and_others_help_near_the_memory(void **state)
{
	struct cf_lent lent;

	cf_crew_lend(&lent, 7, NODE);
	assert_int_equal(lent.crew.helpers, 7);
	lent.crew.work(&lent.crew, lead, help, &wanted);
	assert_int_equal(wanted, 7);
	assert_int_equal(leads, 1);
	assert_int_equal(helps, 3);
	/* time and again, with fewer where the path wants that */
	lent.crew.helpers = 2;
	lent.crew.work(&lent.crew, lead, help, &wanted);
	assert_int_equal(wanted, 2);
	assert_int_equal(leads, 2);
	assert_int_equal(helps, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_leads_and_others_help_near_the_memory),
	};

	return cmocka_run_group_tests_name("crew", tests, NULL, NULL);
}
