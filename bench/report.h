// SPDX-License-Identifier: Apache-2.0
/* report - rows for people on stdout, and as JSON objects where asked for. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench.h"
#include "child.h"

void report_machine(FILE *json);
void report_library(FILE *json, const struct library *lib);
void report_cell(FILE *json, const char *library, const struct cell *cell,
		 const struct result *result);
/* Begins an object of a kind; text is written so that JSON takes it. */
void report_begin(FILE *json, const char *kind, const char *library,
		  const char *error);
const char *report_size(size_t size);

#endif
