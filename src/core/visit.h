// SPDX-License-Identifier: Apache-2.0
/*
 * visit - work in the context of a device, which may be another by now.
 *
 * A client that resets its GPU gets a context of the same name, in which the
 * memory of a piece may be new and good. What had not begun is tried there.
 */
#ifndef CF_CORE_VISIT_H
#define CF_CORE_VISIT_H

#include <stdbool.h>
#include "core/device.h"
#include "core/memory.h"

/*
 * dev's context is current. 0 or an error of the device. *begun becomes true
 * once the visitor tells its results itself, errors too.
 */
typedef int cf_visit_fn(struct cf_device *dev, void *visitor, bool *begun);

/*
 * Calls visit for the device of mem; once more where its context turned out
 * dead before anything had begun. 0: it has begun, or there was no error. The
 * device hears of errors. Any thread.
 */
int cf_visit(const struct cf_memory *mem, cf_visit_fn *visit, void *visitor);

#endif
