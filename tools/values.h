// SPDX-License-Identifier: Apache-2.0
/* values - numbers, sizes and lists as a person writes them. */
#ifndef TOOLS_VALUES_H
#define TOOLS_VALUES_H

#include <stdbool.h>
#include <sys/types.h>

/* False where the text is not such a value; nothing is reported. */
bool value_long(const char *text, long min, long max, long *value);
bool value_seconds(const char *text, double *value);
bool value_bool(const char *text, bool *value);

/* Bytes, or with K, M, G or T, and a B or iB after it. */
bool value_bytes(const char *text, off_t min, off_t *value);

/* The same at the start of text. NULL, or what is after it. */
const char *value_scan_bytes(const char *text, off_t *value);

/* "0", or "0,2,3". Answers how many, 0 for an error. */
int value_list(const char *text, int *list, int room);

#endif
