// SPDX-License-Identifier: Apache-2.0
/* result - what passes came to: the line that scripts read, or JSON. */
#ifndef GDSIO_RESULT_H
#define GDSIO_RESULT_H

#include "gdsio/run.h"

/* The line of a pass, and with -J one for each job. */
void result_print(const struct plan *plan, const struct outcome *outcome);

/* One object with all passes. */
void result_print_json(const struct plan *plan, const struct outcome *outcomes,
		       int nr);

/* "READ", and its kin. */
const char *result_op_name(const struct plan *plan, bool write);

/* Bytes as 2^30 a second. */
double result_rate(uint64_t bytes, double seconds);

#endif
