// SPDX-License-Identifier: Apache-2.0
/*
 * leases - what requests lease or count, and give back at their end, also where
 * they fail. A close frees most of it, so what an error path keeps would be
 * seen by nobody: the session grows slower, and hangs in the end.
 *
 * Some comes back a moment after its request has answered, by workers and
 * kernels that are on their way out. So it is awaited, for as long as a test
 * waits for anything that must come.
 */
#ifndef TESTS_LEASES_H
#define TESTS_LEASES_H

#define LEASES_TEXT 256

/*
 * Before the close, all handles, buffers and batches being gone, and no thread
 * in a call of the library: names what does not come back; "": all has. Slots
 * that are lost, because their context is, are excepted. Any thread; asserts
 * nothing.
 */
void leases_await(char text[LEASES_TEXT]);
/* The same on the test's thread, which fails if anything is named. */
void leases_check(const char *what);

#endif
