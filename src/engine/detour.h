// SPDX-License-Identifier: Apache-2.0
/*
 * detour - what becomes of a request that the kernel would not carry between
 * a disk and the alias of GPU memory.
 *
 * EREMOTEIO and EFAULT are about the pair of disk and GPU. So may be EINVAL:
 * since Linux 7.3 it says that there is no way between them. But it is also
 * what a file answers to bytes that are not aligned; so it is found out which
 * of the two is to blame, before anything is remembered.
 */
#ifndef CF_ENGINE_DETOUR_H
#define CF_ENGINE_DETOUR_H

#include "engine/request.h"

/* Whether the alias path's code is a reason to try the next path. */
bool cf_detour_is_due(const struct cf_request *req, int code);

/*
 * The alias path has moved n bytes from the front (below 0: none) and ended
 * with code: carries the rest another way, and req->route is that way then.
 * Bytes from the front that made it in all, or a negative code.
 */
ssize_t cf_detour(struct cf_request *req, ssize_t n, int code);

/* Chooses anew if the alias was refused since the route was chosen. */
void cf_detour_early(struct cf_request *req);

#endif
