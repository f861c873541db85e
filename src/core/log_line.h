// SPDX-License-Identifier: Apache-2.0
/*
 * log_line - how a line of the log looks: when, who, how important, where from,
 * and what.
 *
 * Takes no lock, and none of the C library's either. Any thread.
 */
#ifndef CF_CORE_LOG_LINE_H
#define CF_CORE_LOG_LINE_H

#include <stdarg.h>
#include <stddef.h>
#include "core/log.h"

struct cf_log_place {
	enum cf_log_level level;
	const char *file;
	int line;
};

/*
 * Prints the line, with its end but no NUL, to size bytes that hold a head at
 * least; what does not fit is cut. utc_offset: seconds. Its length.
 */
__attribute__((format(printf, 5, 0))) size_t cf_log_line(
	char *buf, size_t size, long utc_offset,
	const struct cf_log_place *place, const char *fmt, va_list args);

#endif
