// SPDX-License-Identifier: Apache-2.0
/* quota - see quota.h. */
#include "core/quota.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/numbers.h"
#include "core/sysfs.h"
#include "seam/os.h"

#define ROOT "/sys/fs/cgroup"
#define MAX_PATH 768 /* Kubernetes in a container has 300 */

static unsigned cpus_of(long long quota_us, long long period_us)
{
	if (quota_us <= 0 || period_us <= 0)
		return UINT_MAX;
	return (unsigned)cf_least(((uint64_t)quota_us + (uint64_t)period_us -
				   1) / (uint64_t)period_us,
				  UINT_MAX);
}

/* The file has "max 100000" where there is no quota. */
static unsigned version_2(const char *group)
{
	long long quota, period;
	char text[64];

	if (cf_sysfs_line(text, sizeof(text), ROOT "%s/cpu.max", group) ||
	    sscanf(text, "%lld %lld", &quota, &period) != 2)
		return UINT_MAX;
	return cpus_of(quota, period);
}

/* The quota is -1 where there is none. */
static unsigned version_1(const char *group)
{
	return cpus_of(
		cf_sysfs_number(-1, ROOT "/cpu%s/cpu.cfs_quota_us", group),
		cf_sysfs_number(-1, ROOT "/cpu%s/cpu.cfs_period_us", group));
}

/* Of the group and all above it; a container does not see most of them. */
static unsigned least_upwards(const char *group,
			      unsigned (*cpus_at)(const char *group))
{
	unsigned least = cpus_at("");
	char path[MAX_PATH];
	char *end;

	if (snprintf(path, sizeof(path), "%s", group) >= (int)sizeof(path))
		return least;
	while ((end = strrchr(path, '/')) && path[1]) {
		least = cf_least(least, cpus_at(path));
		*end = '\0';
	}
	return least;
}

static bool has_cpu(const char *controllers)
{
	size_t len;

	for (; *controllers; controllers += len + (controllers[len] == ',')) {
		len = strcspn(controllers, ",");
		if (len == 3 && !memcmp(controllers, "cpu", 3))
			return true;
	}
	return false;
}

/* A line is HIERARCHY:CONTROLLERS:GROUP; version 2 names no controllers. */
static unsigned cpus_of_line(char *line)
{
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!group)
		return UINT_MAX;
	*group++ = '\0';
	if (!*++controllers)
		return least_upwards(group, version_2);
	return has_cpu(controllers) ? least_upwards(group, version_1) :
				      UINT_MAX;
}

#define MAX_TEXT 8192 /* version 1 has a line for each of a dozen groups */

/* Not on the stack: some have 16 KiB. No memory: no quota is known. */
unsigned cf_quota_cpus(void)
{
	unsigned least = UINT_MAX;
	char *text = malloc(MAX_TEXT), *rest = text, *line;

	if (!text)
		return least;
	(void)cf_sysfs_text(text, MAX_TEXT, CF_PROC_SELF "/cgroup");
	while ((line = strsep(&rest, "\n")))
		least = cf_least(least, cpus_of_line(line));
	free(text);
	return least;
}
