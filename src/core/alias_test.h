// SPDX-License-Identifier: Apache-2.0
/*
 * alias_test - whether an alias shows the GPU's memory, and has pages.
 *
 * A provider is proven once for each GPU, on memory of ours, with patterns that
 * go both ways. The client's memory is never written, for a kernel may be
 * filling it: its two ends are compared with what the driver reads. All access
 * is by system calls, which answer EFAULT where the CPU itself would fault.
 */
#ifndef CF_CORE_ALIAS_TEST_H
#define CF_CORE_ALIAS_TEST_H

#include "core/alias.h"

/* WRONG, PLAIN or PAGES. Serialised by the session lock; calls the driver. */
enum cf_alias_state cf_alias_test(unsigned provider,
				  const struct cf_memory *mem,
				  const struct cf_alias *alias);

const char *cf_alias_state_name(enum cf_alias_state state);

/* One mapping by one provider, untested (alias.c). 0 or -errno. */
int cf_alias_map(unsigned provider, const struct cf_memory *mem, size_t size,
		 struct cf_alias *alias);
void cf_alias_unmap(struct cf_alias *alias);

#endif
