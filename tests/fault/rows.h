// SPDX-License-Identifier: Apache-2.0
/*
 * rows - the system calls and driver calls that a life of scenario.h makes,
 * with what each of them may answer when it fails, and what follows from that.
 */
#ifndef TESTS_ROWS_H
#define TESTS_ROWS_H

#include "fault.h"

/*
 * Which call fails with what, one after the other, and what a caller may then
 * see. ENOMEM is not for what reads the configuration: an open says 5043 then,
 * as going on without it would be no better.
 */
#define OS_ROW_SAME (-1)
#define OS_ROW_ERRS 6
struct os_row {
	enum fault_call call;
	int io_errno;	   /* of a read or write; 0: it works all the same */
	int register_code; /* of the file; 0: it works all the same */
	int errs[OS_ROW_ERRS];
};
extern const struct os_row os_rows[];
extern const size_t nr_os_rows;

/* The next errno of the row at each turn. */
int os_row_err(const struct os_row *row, unsigned turn);

/* leak: what a call that should end something leaves behind when it fails. */
struct cuda_row {
	const char *name;
	const char *leak;
};
extern const struct cuda_row cuda_rows[];
extern const size_t nr_cuda_rows;

/* What any of them may answer. */
#define CUDA_RESULTS 6
extern const int cuda_results[CUDA_RESULTS];

#endif
