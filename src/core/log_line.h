// SPDX-License-Identifier: Apache-2.0
/*
 * log_line - a line of the log: time, process and thread, level, place in the
 * source, and message.
 *
 * Takes no lock, not even one of the C library's. Any thread.
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
 * Prints the line, with a newline but no NUL, to buf of size bytes; the head
 * must fit, the rest may be cut. utc_offset: seconds. Answers the length.
 */
__attribute__((format(printf, 5, 0))) size_t cf_log_line(
	char *buf, size_t size, long utc_offset,
	const struct cf_log_place *place, const char *fmt, va_list args);

/*
 * Puts a ? for each control character: a name of somebody else's must not begin
 * a line of its own, nor tell a terminal what to do.
 */
void cf_log_plain(char *text, size_t len);

#endif
