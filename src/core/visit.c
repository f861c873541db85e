// SPDX-License-Identifier: Apache-2.0
/* visit - finds a device and enters it; again if its context has died. */
#include "core/visit.h"

/* *again: the context is dead, and another may have come in its place. */
static int visit_once(const struct cf_memory *mem, cf_visit_fn *visit,
		      void *visitor, bool *again)
{
	struct cf_scope scope;
	struct cf_device *dev;
	bool begun = false;
	int err = cf_device_find(mem, &dev);

	*again = false;
	if (err)
		return err;
	err = cf_context_enter(dev->ctx, &scope);
	if (!err) {
		err = visit(dev, visitor, &begun);
		cf_context_leave(&scope);
	}
	if (err)
		*again = cf_device_failed(dev, err) && !begun;
	return begun ? 0 : err;
}

int cf_visit(const struct cf_memory *mem, cf_visit_fn *visit, void *visitor)
{
	bool again;
	int err = visit_once(mem, visit, visitor, &again);

	return again ? visit_once(mem, visit, visitor, &again) : err;
}
