// SPDX-License-Identifier: Apache-2.0
/* file_facts - what is learnt about a file once, when it is registered. */
#ifndef CF_CORE_FILE_FACTS_H
#define CF_CORE_FILE_FACTS_H

#include "core/handle.h"

/*
 * Fills the file's fields of handle. 0, or -5022 (no such fd), -5008 (type),
 * -5018 (not a regular file or block device), -5019 (open flags), or the -errno
 * of asking about it.
 */
int cf_file_facts(const CUfileDescr_t *descr, struct cf_handle *handle);

#endif
