// SPDX-License-Identifier: Apache-2.0
/*
 * route - walks the table of paths and takes the first that says yes.
 *
 * Every path's answer is kept, so that a person can ask why a request did
 * not travel the way they hoped.
 */
#include "engine/route.h"

#include <stdio.h>
#include <string.h>

/* Best first. A new path is one row here. */
static const struct cf_path_ops *const paths[] = {
	&cf_path_null,
	&cf_path_host,
	&cf_path_staged,
};

#define NR_PATHS (sizeof(paths) / sizeof(paths[0]))
_Static_assert(NR_PATHS <= CF_MAX_PATHS, "struct cf_route has no room");

static const char *const texts[CF_NR_WHYS] = {
	[CF_WHY_YES] = "can carry it",
	[CF_WHY_NOT_ASKED] = "only used when opencufile.path names it",
	[CF_WHY_OTHER_ASKED] = "opencufile.path names another path",
	[CF_WHY_NOT_HOST] = "the memory is a GPU's",
	[CF_WHY_NOT_DEVICE] = "the CPU reaches the memory without a copy",
	[CF_WHY_STRICT] = "strict mode (properties.allow_compat_mode is false)",
	[CF_WHY_NO_SYSTEM_MEMORY] = "properties.allow_system_memory is false",
};

/* What a person can do about it; most reasons are as they are. */
static const char *const remedies[CF_NR_WHYS] = {
	[CF_WHY_OTHER_ASKED] = "leave opencufile.path (OCF_PATH) empty",
	[CF_WHY_STRICT] = "set properties.allow_compat_mode to true",
	[CF_WHY_NO_SYSTEM_MEMORY] =
		"set properties.allow_system_memory to true",
};

static enum cf_why ask(const struct cf_path_ops *path, const char *asked,
		       const struct cf_piece *piece,
		       const struct cf_policy *policy)
{
	if (*asked && strcmp(asked, path->name) != 0)
		return CF_WHY_OTHER_ASKED;
	if (!*asked && path == &cf_path_null)
		return CF_WHY_NOT_ASKED;
	return path->can(piece, policy);
}

void cf_route_choose(const struct cf_piece *piece,
		     const struct cf_config *config, struct cf_route *route)
{
	const char *asked = cf_config_string(config, CF_CFG_PATH);
	struct cf_policy policy = {
		.allow_bounce =
			cf_config_bool(config, CF_CFG_ALLOW_COMPAT_MODE),
		.allow_system_memory =
			cf_config_bool(config, CF_CFG_ALLOW_SYSTEM_MEMORY),
	};

	route->path = NULL;
	for (unsigned i = 0; i < NR_PATHS; i++) {
		route->why[i] = ask(paths[i], asked, piece, &policy);
		if (route->why[i] == CF_WHY_YES && !route->path)
			route->path = paths[i];
	}
}

const struct cf_path_ops *cf_path_at(unsigned i)
{
	return i < NR_PATHS ? paths[i] : NULL;
}

const char *cf_why_text(enum cf_why why)
{
	return texts[why];
}

const char *cf_why_remedy(enum cf_why why)
{
	return remedies[why];
}
