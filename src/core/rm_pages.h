// SPDX-License-Identifier: Apache-2.0
/*
 * rm_pages - pages of this process as memory that libcuda can import.
 *
 * Memory of cuMemMap's kind libcuda maps and unmaps whatever runs. Pages of a
 * file it would only register, and unregister when the GPU is idle. So NVIDIA's
 * kernel driver pins such pages for a client of ours, and exports them in the
 * form in which libcuda exports memory of that kind.
 */
#ifndef CF_CORE_RM_PAGES_H
#define CF_CORE_RM_PAGES_H

#include <stddef.h>
#include "core/rm_client.h"

struct cf_rm_pages {
	struct cf_rm_client client;
	struct cf_rm_export_info like; /* form of libcuda's exports */
	int outlet;		       /* libcuda imports from it; -1: none */
	int keeper; /* exports the kept page all the time; -1: none */
	void *kept;
};

/*
 * For the GPU at the PCI address, memory of which libcuda has exported as fd.
 * 0, or -errno with nothing held. One thread at a time for all calls here.
 */
int cf_rm_pages_make(struct cf_rm_pages *pages, int fd, const char *address);
void cf_rm_pages_end(struct cf_rm_pages *pages);

/*
 * Pins size bytes at mem, whole pages, which may be read-only, and exports them
 * by the outlet. 0 or -errno. After 0 the caller calls cf_rm_pages_take_back as
 * soon as libcuda has imported them: they stay pinned while the import is
 * mapped.
 */
int cf_rm_pages_offer(struct cf_rm_pages *pages, const void *mem, size_t size);
void cf_rm_pages_take_back(struct cf_rm_pages *pages);

#endif
