// SPDX-License-Identifier: Apache-2.0
/*
 * rest - to leave alone for a while what did not pay, each time twice as long.
 *
 * A member of the object that rests. Any thread, no lock: hints only.
 */
#ifndef CF_CORE_REST_H
#define CF_CORE_REST_H

#include <stdbool.h>
#include <stdint.h>

struct cf_rest {
	/* relaxed */
	_Atomic int64_t until;	 /* of cf_clock_ns; 0: no rest */
	_Atomic int64_t next_ns; /* length of the next rest */
	int64_t shortest_ns, longest_ns;
};

/* Of a static object, in place of cf_rest_init. */
#define CF_REST(shortest, longest) \
	{ \
		.next_ns = (shortest), .shortest_ns = (shortest), \
		.longest_ns = (longest) \
	}

void cf_rest_init(struct cf_rest *rest, int64_t shortest_ns,
		  int64_t longest_ns);

bool cf_rest_holds(struct cf_rest *rest);
/* Begins a rest, and answers its length in ns. */
int64_t cf_rest_begin(struct cf_rest *rest);
/* The next rest will be the shortest again. */
void cf_rest_renew(struct cf_rest *rest);
/* The same, and if one holds, it ends. */
void cf_rest_end(struct cf_rest *rest);

#endif
