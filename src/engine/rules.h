// SPDX-License-Identifier: Apache-2.0
/*
 * rules - what every request reads of the configuration, read once.
 *
 * Texts are compared and bounds are put together when the session is opened;
 * nothing here has a runtime setter (api/params.c).
 */
#ifndef CF_ENGINE_RULES_H
#define CF_ENGINE_RULES_H

#include "engine/via.h"
#include "path/path.h"

#define CF_MAX_PATHS 8

struct cf_rules {
	/* the only path to travel, or NULL */
	const struct cf_path_ops *only;
	/* why a path is closed to any piece, or CF_WHY_YES; by place */
	enum cf_why before[CF_MAX_PATHS];
	/* for any file; a denylist may add compat_only for one */
	struct cf_policy policy;
	enum cf_hybrid hybrid;
	bool combine; /* as in struct cf_piece */
	bool ordered; /* as there, of a write */
};

/* They are valid as long as the configuration. */
void cf_rules_read(const struct cf_config *config, struct cf_rules *rules);

#endif
