// SPDX-License-Identifier: Apache-2.0
/*
 * null - moves nothing and says it did: the engine's test double, the floor
 * of benchmarks, and the template for a new path.
 */
#include "path/path.h"

static enum cf_why null_can(const struct cf_piece *piece,
			    const struct cf_policy *policy);
static struct cf_file_way null_way(const struct cf_piece *piece);
static void null_run(const struct cf_piece *piece, struct cf_feed *feed,
		     struct cf_crew *crew);

const struct cf_path_ops cf_path_null = {
	/* How configuration, logs, statistics and tools call it. */
	.name = "null",
	/* Not pread and pwrite by way of host memory. */
	.compat = false,
	/* Looks at the piece's facts only: no call, no lock, no side effect. */
	.can = null_can,
	/* Which of its bytes go O_DIRECT, and why not the others; pure, too. */
	.way = null_way,
	/* Only a path with an order to keep has something to wait for. */
	.settle = cf_path_no_settle,
	/* Does the work; whatever it leases it gives back on every exit. */
	.run = null_run,
};

/* The route never asks unless configuration names this path. */
static enum cf_why null_can(const struct cf_piece *piece,
			    const struct cf_policy *policy)
{
	return CF_WHY_YES;
}

static struct cf_file_way null_way(const struct cf_piece *piece)
{
	return (struct cf_file_way){ .cached = CF_CACHED_NONE };
}

static void null_run(const struct cf_piece *piece, struct cf_feed *feed,
		     struct cf_crew *crew)
{
	struct cf_part part;

	while (cf_feed_next(feed, &part))
		continue;
}
