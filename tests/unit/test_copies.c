// SPDX-License-Identifier: Apache-2.0
/* Copies whose driver goes away before they begin. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"
#include "path/copies.h"

#define NR 3

static bool is_child;

/* Registered first, so it runs when the library knows that the process ends. */
static void copy_late(void)
{
	struct cf_piece piece = { .op = CF_READ, .size = 4096 };
	const struct cf_piece *pieces[NR] = { &piece, &piece, &piece };
	ssize_t results[NR] = { 4096, 0, -EIO };
	char *at[NR] = { NULL };
	struct cf_lane lane = { 0 };
	struct cf_copies copies = { .lane = &lane,
				    .pieces = pieces,
				    .at = at,
				    .results = results,
				    .nr = NR };
	int gone = CF_ECUDA(CF_CU_DEINITIALIZED);

	if (!is_child)
		return;
	_exit(cf_copies_move(&copies) != gone || results[0] != gone ||
	      results[1] != 0 || results[2] != -EIO);
}

static void an_exit_before_the_copies_fails_those_that_were_due(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		is_child = true;
		if (!cf_cuda_open() || !cf_cuda_loaded())
			_exit(2);
		exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_exit_before_the_copies_fails_those_that_were_due),
	};

	(void)atexit(copy_late);
	return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}
