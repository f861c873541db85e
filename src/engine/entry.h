// SPDX-License-Identifier: Apache-2.0
/* entry - one of the requests that a client gives to a batch. */
#ifndef CF_ENGINE_ENTRY_H
#define CF_ENGINE_ENTRY_H

#include "engine/submission.h"

/*
 * The entry that params ask for, holding its request. 0; or a code and *why,
 * holding nothing: what is wrong with it, or -CU_FILE_IO_NOT_SUPPORTED where
 * no path may carry it. last: as for cf_request_init_next.
 */
int cf_entry_init(struct cf_entry *entry, const CUfileIOParams_t *params,
		  struct cf_facts *last, struct cf_ferry *ferry,
		  const char **why);

/*
 * The same for one that is like the one before it in the submission, but for
 * its size and place (cf_request_init_like). False: it is not, or not surely.
 */
bool cf_entry_init_like(struct cf_entry *entry, const CUfileIOParams_t *params,
			const struct cf_entry *before,
			const CUfileIOParams_t *before_params,
			const struct cf_facts *last);

/*
 * Entry i of nr was answered err, so all are refused: a log line, and the
 * code of the whole submit.
 */
int cf_entry_refuse(int err, unsigned i, unsigned nr,
		    const CUfileIOParams_t *params, const char *why);

/* result: bytes, or a negative code. */
CUfileIOEvents_t cf_entry_event(void *cookie, ssize_t result);

#endif
