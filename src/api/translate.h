// SPDX-License-Identifier: Apache-2.0
/* translate - our one error language into cuFile's two. */
#ifndef CF_API_TRANSLATE_H
#define CF_API_TRANSLATE_H

#include <cufile.h>
#include <sys/types.h>

/*
 * 0 or a negative code as cuFile's pair. cu_err is 0 unless err is 5011,
 * because clients test either field (behaviour, principle 4).
 */
CUfileError_t cf_error(int code);

/* A count as it is; a negative code as -1 and errno (contract 6, row 1). */
ssize_t cf_result(ssize_t n);

#endif
