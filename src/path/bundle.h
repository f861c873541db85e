// SPDX-License-Identifier: Apache-2.0
/*
 * bundle - small pieces of one device and one direction, through one slot.
 *
 * What a small piece costs is the calls around it: a slot, a lane, a copy, a
 * wait. A bundle has them once: all its bytes are read from their files side
 * by side into one slot and go to the device together, or the other way
 * round. It is for device memory, and for files that go through the page
 * cache: a disk is better asked for many things at once.
 */
#ifndef CF_PATH_BUNDLE_H
#define CF_PATH_BUNDLE_H

#include "path/path.h"

#define CF_BUNDLE_MAX 256		      /* pieces */
#define CF_BUNDLE_MAX_SIZE ((size_t)64 << 10) /* of a piece */
#define CF_BUNDLE_MAX_BYTES ((size_t)1 << 20) /* of all their needs, alone */

/* Whether it may travel in a bundle, by what it is alone. Pure. */
bool cf_bundle_can(const struct cf_piece *piece);

/* The bytes of a slot that the piece takes at most. */
size_t cf_bundle_need(const struct cf_piece *piece);

/*
 * Carries nr pieces that may travel together: same direction, same context
 * and GPU, no order to keep, and no more need in all than a slot has. Each
 * has its own result: bytes from its front, or a negative code. kernel: their
 * copies may share a launch. Helpers of the crew, if it has any, help to read.
 */
void cf_bundle_run(const struct cf_piece *const *pieces, ssize_t *results,
		   unsigned nr, bool kernel, struct cf_crew *crew);

#endif
