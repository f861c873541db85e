// SPDX-License-Identifier: Apache-2.0
/* check_json - what gdscheck finds, as one JSON object on stdout. */
#ifndef TOOLS_CHECK_JSON_H
#define TOOLS_CHECK_JSON_H

#include "asks.h"

/* False: there was no memory for it. */
bool json_file(const struct asks *asks);
bool json_file_error(const char *name, const char *why);
bool json_config(void);

#endif
