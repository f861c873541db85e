// SPDX-License-Identifier: Apache-2.0
/* values - numbers, sizes and lists as a person writes them. */
#include "gdsio/values.h"

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

/* The number at the start of text and its unit; NULL, or what is after it. */
static const char *scan_bytes(const char *text, off_t *value)
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
	const char *end = scan_bytes(text, value);

	return end && !*end && *value >= min;
}

bool value_io_size(const char *text, struct io_size *io)
{
	off_t part[3] = { 0 };
	int nr = 0;

	while (text && nr < 3) {
		text = scan_bytes(text, &part[nr]);
		if (!text || part[nr++] <= 0)
			return false;
		if (!*text)
			break;
		if (*text++ != ':')
			return false;
	}
	if (!text || *text || nr == 2)
		return false;
	*io = (struct io_size){ (size_t)part[0], (size_t)part[nr == 3],
				nr == 3 ? (size_t)part[2] : 0 };
	return io->min <= io->max && io->max <= 1ul << 40;
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
