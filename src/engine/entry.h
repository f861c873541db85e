// SPDX-License-Identifier: Apache-2.0
/* entry - one of the requests that a client gives to a batch. */
#ifndef CF_ENGINE_ENTRY_H
#define CF_ENGINE_ENTRY_H

#include "engine/submission.h"

/*
 * Makes the entry that params ask for, and its request. 0; or a negative code
 * and *why, holding nothing: what is wrong with params, or
 * -CU_FILE_IO_NOT_SUPPORTED where no path may carry it. last: as for
 * cf_request_init_next; held: as in struct cf_call.
 */
int cf_entry_init(struct cf_entry *entry, const CUfileIOParams_t *params,
		  struct cf_facts *last, struct cf_handle *held,
		  struct cf_ferry *ferry, const char **why);

/*
 * The same for an entry that differs from the one before it in the submission
 * in size and offsets alone (cf_request_init_like). False: it differs in more,
 * or may; it holds nothing.
 */
bool cf_entry_init_like(struct cf_entry *entry, const CUfileIOParams_t *params,
			const struct cf_entry *before,
			const CUfileIOParams_t *before_params,
			const struct cf_facts *last);

/*
 * Entry i of nr failed with err, so all are refused: logs that, and answers the
 * code of the whole submit, -5040 or, for -CU_FILE_IO_NOT_SUPPORTED in strict
 * mode, -5049.
 */
int cf_entry_refuse(int err, unsigned i, unsigned nr,
		    const CUfileIOParams_t *params, const char *why);

/* The event of an entry that ended with result: bytes, or a negative code. */
CUfileIOEvents_t cf_entry_event(void *cookie, ssize_t result);

#endif
