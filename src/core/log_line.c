// SPDX-License-Identifier: Apache-2.0
/* log_line - prints one line. */
#include "core/log_line.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/words.h"
#include "seam/os.h"

static const char *const level_names[] = {
	"NOTICE", "ERROR", "WARN", "INFO", "DEBUG", "TRACE",
};

int cf_log_level_by_name(const char *name)
{
	for (int i = 0; i <= CF_LOG_TRACE; i++) {
		if (cf_is_word(name, level_names[i]))
			return i;
	}
	return -1;
}

struct civil {
	int day, month;
	long year;
};

/* Days since 1970-01-01 to a date of the Gregorian calendar. */
static struct civil civil_from_days(long days)
{
	static const int before[] = { 0,   31,	59,  90,  120, 151,
				      181, 212, 243, 273, 304, 334 };
	struct civil date = { .year = 1970, .month = 12 };
	bool leap;
	long len;

	for (;; date.year++) {
		leap = (date.year % 4 == 0 && date.year % 100) ||
		       date.year % 400 == 0;
		len = leap ? 366 : 365;
		if (days < len)
			break;
		days -= len;
	}
	while (days < before[date.month - 1] + (leap && date.month > 2))
		date.month--;
	date.day = (int)(days - before[date.month - 1] -
			 (leap && date.month > 2)) +
		   1;
	return date;
}

static int print_time(char *buf, size_t size, long utc_offset)
{
	struct timespec now = { 0 };
	struct civil date;
	long sec;

	cf_os->clock_gettime(CLOCK_REALTIME, &now);
	sec = (long)now.tv_sec + utc_offset;
	if (sec < 0)
		sec = 0;
	date = civil_from_days(sec / 86400);
	sec %= 86400;
	return snprintf(buf, size, " %02d-%02d-%04ld %02ld:%02ld:%02ld:%03ld",
			date.day, date.month, date.year, sec / 3600,
			sec / 60 % 60, sec % 60, now.tv_nsec / 1000000);
}

/* "../src/core/slot.c" is "slot" to a reader. */
static int stem_of(const char *file, const char **stem)
{
	const char *slash = strrchr(file, '/');

	*stem = slash ? slash + 1 : file;
	return (int)strcspn(*stem, ".");
}

void cf_log_plain(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 127)
			text[i] = '?';
}

size_t cf_log_line(char *buf, size_t size, long utc_offset,
		   const struct cf_log_place *place, const char *fmt,
		   va_list args)
{
	const char *stem;
	int stem_len = stem_of(place->file, &stem), len;
	size_t n = (size_t)print_time(buf, size, utc_offset), head;

	/* the head is short, so it always fits */
	n += (size_t)snprintf(buf + n, size - n,
			      " [pid=%d tid=%d] %-6s %.*s:%d ", (int)getpid(),
			      (int)gettid(), level_names[place->level],
			      stem_len, stem, place->line);
	head = n;
	len = vsnprintf(buf + n, size - n, fmt, args);
	if (len > 0) /* -1: it had no memory, say */
		n += (size_t)len;
	if (n > size - 2)
		n = size - 2;
	cf_log_plain(buf + head, n - head);
	buf[n++] = '\n';
	return n;
}
