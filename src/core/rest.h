// SPDX-License-Identifier: Apache-2.0
/*
 * rest - for how long to leave alone what did not pay, twice as long each time.
 *
 * Part of what rests. Any thread, no lock: it guides, and orders nothing.
 */
#ifndef CF_CORE_REST_H
#define CF_CORE_REST_H

#include <stdbool.h>
#include <stdint.h>

struct cf_rest {
	/* relaxed */
	_Atomic int64_t until; /* 0: it does not rest */
	_Atomic int64_t next_ns;
	int64_t shortest_ns, longest_ns;
};

void cf_rest_init(struct cf_rest *rest, int64_t shortest_ns,
		  int64_t longest_ns);

bool cf_rest_holds(struct cf_rest *rest);
/* How long it will be. */
int64_t cf_rest_begin(struct cf_rest *rest);
/* The next one is the shortest again. */
void cf_rest_renew(struct cf_rest *rest);

#endif
