// SPDX-License-Identifier: Apache-2.0
/*
 * detour - what becomes of a request that the kernel would not carry between
 * a disk and the alias of GPU memory.
 *
 * EREMOTEIO and EFAULT are about the pair of disk and GPU. EINVAL is, since
 * Linux 7.3, where there is no way between them, but also what a file answers
 * to bytes that lie ill; whose it is is found out before it is remembered.
 */
#ifndef CF_ENGINE_DETOUR_H
#define CF_ENGINE_DETOUR_H

#include "engine/request.h"

/* Whether the alias path's code is a reason to try the next one. */
bool cf_detour_is_due(const struct cf_request *req, int code);

/*
 * The alias path has moved n bytes from the front, 0 or more, and ended with
 * code: the rest goes another way, and req->route is that way. Bytes from the
 * front that made it in all, or a negative code.
 */
ssize_t cf_detour(struct cf_request *req, ssize_t n, int code);

/* The alias is refused since the route was chosen: chooses anew. */
void cf_detour_early(struct cf_request *req);

#endif
