// SPDX-License-Identifier: Apache-2.0
/*
 * chosen - what acts where a value leaves the choice to the library: a value
 * that says no more than the default does is nobody's wish
 * (engine/plan_limits.h).
 */
#ifndef CF_ENGINE_CHOSEN_H
#define CF_ENGINE_CHOSEN_H

#include <stddef.h>
#include "core/config.h"

/*
 * The number that acts in place of the row's, in the unit of the row; or an
 * empty text where the row's own acts. The session is open, and locked by the
 * caller.
 */
void cf_chosen_text(const struct cf_config *config, enum cf_cfg id, char *text,
		    size_t size);

#endif
