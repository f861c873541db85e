// SPDX-License-Identifier: Apache-2.0
/*
 * test_fakecuda - the fake driver keeps its word, one behaviour a test.
 *
 * Started with a name, the program is one of the processes of test_process.c.
 */
#include "fixture.h"

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc == 2)
		return process_body(argv[1]);
	failed += memory_tests();
	failed += stream_tests();
	failed += context_tests();
	failed += graph_tests();
	failed += held_tests();
	failed += process_tests();
	return failed != 0;
}
