// SPDX-License-Identifier: Apache-2.0
/*
 * ferried - the staged way of a piece with a ferry (core/ferry.h): a kernel in
 * the client's own stream makes the copies.
 *
 * Makes no driver call, and waits for nothing but the disk and that kernel.
 */
#ifndef CF_PATH_FERRIED_H
#define CF_PATH_FERRIED_H

#include "path/path.h"

/* As cf_path_ops.run; the piece has a ferry. */
void cf_ferried_run(const struct cf_piece *piece, struct cf_feed *feed,
		    struct cf_crew *crew);

#endif
