// SPDX-License-Identifier: Apache-2.0
/*
 * null - moves nothing and says it did: the engine's test double, the floor
 * of benchmarks, and the template for a new path.
 */
#include "path/path.h"

static enum cf_why null_can(const struct cf_piece *piece,
			    const struct cf_policy *policy);
static ssize_t null_run(const struct cf_piece *piece);

const struct cf_path_ops cf_path_null = {
	/* How configuration, logs, statistics and tools call it. */
	.name = "null",
	/* Looks at the piece's facts only: no call, no lock, no side effect. */
	.can = null_can,
	/* Does the work; whatever it leases it gives back on every exit. */
	.run = null_run,
};

/* Any piece. The route never offers it one unless configuration says so. */
static enum cf_why null_can(const struct cf_piece *piece,
			    const struct cf_policy *policy)
{
	return CF_WHY_YES;
}

static ssize_t null_run(const struct cf_piece *piece)
{
	return (ssize_t)piece->size;
}
