// SPDX-License-Identifier: Apache-2.0
/* pagemap - whether pages that were mapped still are. */
#ifndef CF_CORE_PAGEMAP_H
#define CF_CORE_PAGEMAP_H

#include <stddef.h>

/*
 * 1 if each page of [mem, mem + size) is in the page table now, 0 if one is
 * not, -errno if that cannot be asked. Touches none of them. Any thread.
 */
int cf_pagemap_present(const void *mem, size_t size);

/* Closes its descriptor; the next question opens another. */
void cf_pagemap_close(void);

/* fork: nobody may be opening; the child's page table is another. */
void cf_pagemap_fork_prepare(void);
void cf_pagemap_fork_parent(void);
void cf_pagemap_fork_child(void);

#endif
