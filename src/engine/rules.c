// SPDX-License-Identifier: Apache-2.0
/* rules - see rules.h. */
#include "engine/rules.h"

#include <string.h>
#include "core/config.h"
#include "engine/route.h"

static const struct cf_path_ops *path_named(const char *name)
{
	const struct cf_path_ops *path;

	for (unsigned i = 0; (path = cf_path_at(i)); i++)
		if (!strcmp(path->name, name))
			return path;
	return NULL;
}

static enum cf_hybrid hybrid_of(const struct cf_config *config)
{
	const char *text = cf_config_string(config, CF_CFG_HYBRID);

	if (!strcmp(text, "both"))
		return CF_HYBRID_BOTH;
	return !strcmp(text, "off") ? CF_HYBRID_OFF : CF_HYBRID_CACHED;
}

static struct cf_policy policy_of(const struct cf_config *config)
{
	const char *alias = cf_config_string(config, CF_CFG_ALIAS);
	bool forced = cf_config_bool(config, CF_CFG_FORCE_COMPAT_MODE);

	return (struct cf_policy){
		.allow_bounce =
			forced ||
			cf_config_bool(config, CF_CFG_ALLOW_COMPAT_MODE),
		.allow_system_memory =
			cf_config_bool(config, CF_CFG_ALLOW_SYSTEM_MEMORY),
		.alias = strcmp(alias, "off") != 0,
		.alias_buffered = !strcmp(alias, "on"),
		.compat_only = forced ? CF_WHY_FORCED_COMPAT : CF_WHY_YES,
		.config = config,
	};
}

static enum cf_why before(const struct cf_path_ops *path,
			  const struct cf_path_ops *only)
{
	if (only)
		return path == only ? CF_WHY_YES : CF_WHY_OTHER_ASKED;
	return path == &cf_path_null ? CF_WHY_NOT_ASKED : CF_WHY_YES;
}

void cf_rules_read(const struct cf_config *config, struct cf_rules *rules)
{
	*rules = (struct cf_rules){
		.only = path_named(cf_config_string(config, CF_CFG_PATH)),
		.policy = policy_of(config),
		.hybrid = hybrid_of(config),
		.combine = cf_config_bool(config, CF_CFG_COMBINE),
		.ordered = cf_config_bool(config, CF_CFG_ORDER_WRITES),
	};
	for (unsigned i = 0; cf_path_at(i); i++)
		rules->before[i] = before(cf_path_at(i), rules->only);
}
