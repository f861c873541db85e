// SPDX-License-Identifier: Apache-2.0
/*
 * config_near - which key or variable somebody meant who wrote another.
 *
 * Pure, any thread.
 */
#ifndef CF_CORE_CONFIG_NEAR_H
#define CF_CORE_CONFIG_NEAR_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Fills text with the key or section that is most like the name of an unknown
 * one, or, at another place, called like it; false: none is.
 */
bool cf_config_near_key(const char *name, char *text, size_t size);

/* Does the library read a variable of that name? */
bool cf_config_is_variable(const char *name, size_t len);

/* The variable that is most like one it does not read, or NULL. */
const char *cf_config_near_variable(const char *name, size_t len);

#endif
