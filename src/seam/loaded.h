// SPDX-License-Identifier: Apache-2.0
/*
 * loaded - what the loader has mapped beside us.
 *
 * Two libraries of our name in one process are two sessions: a handle of the
 * one means nothing to the other, and which of them a call reaches is the
 * loader's choice. Nothing can be done about that from inside, but said.
 */
#ifndef CF_SEAM_LOADED_H
#define CF_SEAM_LOADED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The path of the first mapped libcufile.so* that is not the object this
 * code is in, cut to size: true. False where there is none. Any thread, also
 * with the loader's lock held, as in a constructor: it asks for the list's
 * lock only, which nobody holds while constructors run.
 */
bool cf_loaded_other_cufile(char *path, size_t size);

#endif
