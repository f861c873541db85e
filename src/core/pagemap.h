// SPDX-License-Identifier: Apache-2.0
/* pagemap - whether pages that were mapped are still mapped. */
#ifndef CF_CORE_PAGEMAP_H
#define CF_CORE_PAGEMAP_H

#include <stddef.h>

/*
 * 1 if all pages of [mem, mem + size) are in the page table now, 0 if one is
 * not, -errno if it cannot be told. Touches no page. Any thread.
 */
int cf_pagemap_present(const void *mem, size_t size);

/* Closes the descriptor; the next question opens another. */
void cf_pagemap_close(void);

/* fork: no thread may be opening; the child has a page table of its own. */
void cf_pagemap_fork_prepare(void);
void cf_pagemap_fork_parent(void);
void cf_pagemap_fork_child(void);

#endif
