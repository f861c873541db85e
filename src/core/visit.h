// SPDX-License-Identifier: Apache-2.0
/*
 * visit - work in the context of a device, which a reset may have replaced.
 *
 * After a client has reset its GPU there may be a new context with the same
 * handle, in which a piece's memory is valid. Work that had not begun in the
 * dead context is tried there.
 */
#ifndef CF_CORE_VISIT_H
#define CF_CORE_VISIT_H

#include <stdbool.h>
#include "core/device.h"
#include "core/memory.h"

/*
 * dev's context is current. 0 or a negative code of the device. The visitor
 * sets *begun once it reports all results itself, errors too.
 */
typedef int cf_visit_fn(struct cf_device *dev, void *visitor, bool *begun);

/*
 * Calls visit for the device of mem; once more if its context turned out dead
 * before *begun was set. 0: *begun was set, or there was no error. Errors are
 * noted by cf_device_failed. Any thread.
 */
int cf_visit(const struct cf_memory *mem, cf_visit_fn *visit, void *visitor);

#endif
