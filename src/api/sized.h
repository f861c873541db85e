// SPDX-License-Identifier: Apache-2.0
/*
 * sized - structs of opencufile.h, whose size the caller tells: the program may
 * have been compiled with an older header, or a newer one.
 */
#ifndef CF_API_SIZED_H
#define CF_API_SIZED_H

#include <string.h>

/*
 * Copies what the caller has room for: theirs has size bytes, ours has
 * our_size. Fields that are new to us are zero. Answers how many were copied.
 */
static inline size_t cf_give_sized(void *theirs, size_t size, const void *ours,
				   size_t our_size)
{
	if (size > our_size) {
		memset((char *)theirs + our_size, 0, size - our_size);
		size = our_size;
	}
	memcpy(theirs, ours, size);
	return size;
}

#endif
