// SPDX-License-Identifier: Apache-2.0
/*
 * ferried - device memory by way of pinned memory and the client's stream.
 *
 * What stage.h is where copies have streams of their own. Makes no driver
 * call, and waits for nobody but the disk and the kernel of its own stream.
 */
#ifndef CF_PATH_FERRIED_H
#define CF_PATH_FERRIED_H

#include "path/path.h"

/* As cf_path_ops.run; the piece has a ferry. */
void cf_ferried_run(const struct cf_piece *piece, struct cf_feed *feed,
		    struct cf_crew *crew);

#endif
