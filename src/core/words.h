// SPDX-License-Identifier: Apache-2.0
/*
 * words - compared without regard to capitals, in English: strcasecmp asks the
 * program's locale, and in Turkish "info" is not "INFO".
 */
#ifndef CF_CORE_WORDS_H
#define CF_CORE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline char cf_capital(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static inline bool cf_words_alike(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (cf_capital(a[i]) != cf_capital(b[i]))
			return false;
	return true;
}

/* Whether the text is that word, and nothing more. */
static inline bool cf_is_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	return strlen(text) == len && cf_words_alike(text, word, len);
}

#endif
