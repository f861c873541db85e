// SPDX-License-Identifier: Apache-2.0
/*
 * config_near - guesses which key or variable a misspelt name stands for.
 *
 * Pure, any thread.
 */
#ifndef CF_CORE_CONFIG_NEAR_H
#define CF_CORE_CONFIG_NEAR_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Fills text with the key or section that is most similar to an unknown name,
 * or has that name in another section. False: there is none.
 */
bool cf_config_near_key(const char *name, char *text, size_t size);

/* Whether the library reads a variable of that name. */
bool cf_config_is_variable(const char *name, size_t len);

/* The variable most similar to an unknown name, or NULL. */
const char *cf_config_near_variable(const char *name, size_t len);

#endif
