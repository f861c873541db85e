// SPDX-License-Identifier: Apache-2.0
/* values - numbers, sizes and lists as a person writes them. */
#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_BYTES (1ll << 60)

bool value_long(const char *text, long min, long max, long *value)
{
	char *end;

	errno = 0;
	*value = strtol(text, &end, 10);
	return end != text && !*end && !errno && *value >= min && *value <= max;
}

bool value_seconds(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !*end && isfinite(*value) && *value > 0 &&
	       *value <= 1e9;
}

bool value_bool(const char *text, bool *value)
{
	static const char *const yes[] = { "1", "true", "yes", "on" };
	static const char *const no[] = { "0", "false", "no", "off" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		*value = !strcasecmp(text, yes[i]);
		if (*value || !strcasecmp(text, no[i]))
			return true;
	}
	return false;
}

const char *value_scan_bytes(const char *text, off_t *value)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long number;
	const char *unit;
	int shift = 0;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || errno)
		return NULL;
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - units + 1);
		end++;
		end += !strncasecmp(end, "iB", 2) ? 2 : toupper(*end) == 'B';
	}
	if (number > (unsigned long long)MAX_BYTES >> shift)
		return NULL;
	*value = (off_t)(number << shift);
	return end;
}

bool value_bytes(const char *text, off_t min, off_t *value)
{
	const char *end = value_scan_bytes(text, value);

	return end && !*end && *value >= min;
}

int value_list(const char *text, int *list, int room)
{
	for (int nr = 0; nr < room; nr++) {
		char *end;
		long value = strtol(text, &end, 10);

		if (end == text || value < 0 || value > 9999 || *text == '+')
			return 0;
		list[nr] = (int)value;
		if (!*end)
			return nr + 1;
		if (*end != ',')
			return 0;
		text = end + 1;
	}
	return 0;
}
