// SPDX-License-Identifier: Apache-2.0
/*
 * report - one line to stderr for what failed.
 *
 * Each function answers false, so that a check that fails is one return.
 */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <cufile.h>
#include <stdbool.h>

/* On a terminal: drops what stands on the line. */
#define CLEAR_LINE "\r\033[K"

/*
 * Before any file is opened: what is printed goes into none of them, also where
 * the tool was started without its streams. What is written to one then fails.
 */
void keep_streams(void);

bool fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* With strerror(errno). */
bool fail_errno(const char *call, const char *name);

/* A data call's failure: errno is POSIX's or a cuFile code. */
bool fail_io(const char *call, const char *name, off_t off, size_t size);

/* The same, with code in place of errno. */
bool fail_code(const char *call, const char *name, off_t off, size_t size,
	       int code);

/* Flushes stdout. False if it could not be written, now or before. */
bool wrote_all(void);

/* True for success; else reported, with the name of the code. */
bool check(CUfileError_t status, const char *call, const char *name);

#endif
