// SPDX-License-Identifier: Apache-2.0
/*
 * rm_pages - pages of this process as memory that libcuda can import.
 *
 * libcuda has memory that is addresses and memory apart (cuMemMap), which it
 * maps and unmaps whatever runs; pages of a file it would only register, and
 * those it lets go when the GPU is idle. So NVIDIA's kernel driver pins them
 * for a client of ours, and exports them as libcuda exports such memory.
 */
#ifndef CF_CORE_RM_PAGES_H
#define CF_CORE_RM_PAGES_H

#include <stddef.h>
#include "core/rm_client.h"

struct cf_rm_pages {
	struct cf_rm_client client;
	struct cf_rm_export_info like; /* as exports of libcuda's are */
	int outlet;		       /* what is imported from; -1: none */
	int keeper; /* what exports a page of ours all the time; -1: none */
	void *kept; /* that page */
};

/*
 * For the GPU called address, memory of which libcuda has exported as fd. 0, or
 * -errno, holding nothing. One thread at a time, as all of these.
 */
int cf_rm_pages_make(struct cf_rm_pages *pages, int fd, const char *address);
void cf_rm_pages_end(struct cf_rm_pages *pages);

/*
 * Pins size bytes at mem, whole pages, which may be read-only, and puts them
 * into the outlet. 0 or -errno; 0 wants cf_rm_pages_take_back as soon as they
 * are imported: they stay pinned for as long as the import is mapped.
 */
int cf_rm_pages_offer(struct cf_rm_pages *pages, const void *mem, size_t size);
void cf_rm_pages_take_back(struct cf_rm_pages *pages);

#endif
