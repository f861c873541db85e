// SPDX-License-Identifier: Apache-2.0
/* check_config - the configuration, as gdscheck shows it. */
#ifndef TOOLS_CHECK_CONFIG_H
#define TOOLS_CHECK_CONFIG_H

#include <stdbool.h>

/* Every value, its origin, and whether it does anything; to stdout. */
bool config_dump(void);

/* The section CUFILE CONFIGURATION of gdscheck -p (contract 5.1). */
void config_section(void);

/* What reading it had to say, to stderr. */
void config_problems(void);

/* The variables of cuFile and of this library that are set. */
void config_environment(void);

/* The value of a row as the file has it; false: there is no such key. */
bool config_value(const char *key, char *value, unsigned size);

#endif
