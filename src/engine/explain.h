// SPDX-License-Identifier: Apache-2.0
/*
 * explain - a route in words: for the log, for stderr, for callers who ask.
 *
 * There is one text for all of them (opencufile.h, ocf_explain_text).
 */
#ifndef CF_ENGINE_EXPLAIN_H
#define CF_ENGINE_EXPLAIN_H

#include <opencufile.h>
#include "engine/request.h"

/* The smallest struct that a caller may have: the first version's. */
#define CF_EXPLAIN_MIN_SIZE sizeof(ocf_explain_t)

/* Explains a checked request. Without IO; the caller holds no lock. */
void cf_explain_request(const struct cf_request *req, ocf_explain_t *explain);
/* A call that fails its checks with code (negative), because of problem. */
void cf_explain_refusal(const struct cf_call *call, int code,
			const char *problem, ocf_explain_t *explain);

/* As ocf_explain_text. */
size_t cf_explain_text(const ocf_explain_t *explain, char *text, size_t len);

/*
 * Tells of each new kind of route once: in the log at INFO (without a path
 * at ERROR), and on stderr under CUFILE_EXPLAIN. Any thread.
 */
void cf_explain_new_route(const struct cf_request *req);

/* Has each route told anew: a new session may have a new log. */
void cf_explain_configure(const struct cf_config *config);

#endif
