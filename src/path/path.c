// SPDX-License-Identifier: Apache-2.0
/* path - stock functions that fill a path's table. */
#include "path/path.h"

#include "core/arrival.h"

int cf_path_no_settle(const struct cf_piece *piece)
{
	return 0;
}

int cf_path_settle_write(const struct cf_piece *piece)
{
	return piece->ordered ? cf_path_staged.settle(piece) : 0;
}

void cf_path_arrive(const struct cf_piece *piece, struct cf_feed *feed)
{
	int err = piece->op == CF_READ ? cf_arrival_flush(&piece->mem) : 0;

	if (err)
		cf_feed_short(feed, 0, err);
}
