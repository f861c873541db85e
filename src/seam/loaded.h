// SPDX-License-Identifier: Apache-2.0
/*
 * loaded - what the loader has mapped beside us.
 *
 * Two libraries of our name in one process are two sessions: a handle of one
 * means nothing to the other, and the loader chooses which of them a call
 * reaches. The library cannot change that, only report it.
 */
#ifndef CF_SEAM_LOADED_H
#define CF_SEAM_LOADED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * True: path is that of the first mapped libcufile.so* other than the object
 * this code is in, cut to size bytes. False: there is none. Any thread, also
 * with the loader's lock held, as in a constructor: this takes the lock of the
 * loader's list only, which no thread holds while constructors run.
 */
bool cf_loaded_other_cufile(char *path, size_t size);

#endif
