// SPDX-License-Identifier: Apache-2.0
/* target - see target.h. */
#include "target.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void wrong_at(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "WRONG at %s:%d: ", file, line);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}
