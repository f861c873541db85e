// SPDX-License-Identifier: Apache-2.0
/*
 * bundle - small pieces of one device and one direction, through one slot.
 *
 * What a small piece costs is the calls around it: a slot, a lane, a copy, a
 * wait. A bundle has them once: the bytes of all pieces are read from their
 * files into one slot, side by side, and go to the device together, or the
 * other way round. It is for device memory, and for files that go through the
 * page cache: a disk is better asked for many things at once (path/fleet.h).
 */
#ifndef CF_PATH_BUNDLE_H
#define CF_PATH_BUNDLE_H

#include "path/path.h"

#define CF_BUNDLE_MAX 256		      /* pieces */
#define CF_BUNDLE_MAX_SIZE ((size_t)64 << 10) /* of a piece */
#define CF_BUNDLE_MAX_BYTES ((size_t)1 << 20) /* all needs, without a crew */

/* Whether the piece, taken alone, may travel in a bundle. Pure. */
bool cf_bundle_can(const struct cf_piece *piece);

/* Bytes of a slot that the piece takes at most. */
size_t cf_bundle_need(const struct cf_piece *piece);

/*
 * Carries nr pieces, 1 to CF_BUNDLE_MAX, that may travel together: same
 * direction, same context and GPU, no order to keep, and no more need in all
 * than a slot has. Each has its own result: bytes from its front, or a negative
 * code. kernel: kernels of ours may move the bytes. crew: helps to read, if it
 * has helpers.
 */
void cf_bundle_run(const struct cf_piece *const *pieces, ssize_t *results,
		   unsigned nr, bool kernel, struct cf_crew *crew);

#endif
