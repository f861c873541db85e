// SPDX-License-Identifier: Apache-2.0
/*
 * alias_test - is it the GPU's memory that the CPU sees there, and of what
 * kind is it?
 *
 * A provider is proven once for each GPU, on memory of ours, with a pattern
 * that goes both ways. The client's memory is never written: a kernel may be
 * filling it. There the ends are compared with what the driver reads. All is
 * done by system calls, which answer EFAULT where the CPU itself would fault.
 */
#ifndef CF_CORE_ALIAS_TEST_H
#define CF_CORE_ALIAS_TEST_H

#include "core/alias.h"

/* WRONG, PLAIN or PAGES. Serialised by the session lock; asks the driver. */
enum cf_alias_state cf_alias_test(unsigned provider,
				  const struct cf_memory *mem,
				  const struct cf_alias *alias);

const char *cf_alias_state_name(enum cf_alias_state state);

/* One provider, asked for one mapping, untested (alias.c). 0 or -errno. */
int cf_alias_map(unsigned provider, const struct cf_memory *mem, size_t size,
		 struct cf_alias *alias);
void cf_alias_unmap(struct cf_alias *alias);

#endif
