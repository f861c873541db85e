// SPDX-License-Identifier: Apache-2.0
/*
 * ptx - the one thing that we read in PTX text: which kernels it has, and how
 * large their parameters are.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static size_t word_len(const char *p)
{
	size_t n = 0;

	while (p[n] && (isalnum((unsigned char)p[n]) || strchr("._$", p[n])))
		n++;
	return n;
}

/* ".u64" -> 8, ".f32" -> 4, ...; 0 where the word is no type. */
static size_t type_size(const char *p, size_t len)
{
	if (len < 3 || p[0] != '.' || !strchr("usfb", p[1]) ||
	    !isdigit((unsigned char)p[2]))
		return 0;
	return (size_t)atoi(p + 2) / 8;
}

/* One ".param ..." up to the comma or bracket that ends it. */
static const char *parse_param(const char *p, size_t *size)
{
	size_t each = 0, count = 1;

	while (*p && *p != ',' && *p != ')') {
		size_t len = word_len(p);

		if (*p == '[')
			count = (size_t)atoi(p + 1);
		else if (!each)
			each = type_size(p, len);
		p = skip_space(p + (len ? len : 1));
	}
	*size = each * count;
	return p;
}

static const char *parse_params(const char *p, struct fc_ptx_entry *e)
{
	while (*p && *p != ')') {
		if (e->nr_params == FC_PTX_PARAMS)
			return p;
		p = parse_param(skip_space(p + 1), &e->sizes[e->nr_params]);
		e->nr_params += e->sizes[e->nr_params] > 0;
	}
	return p;
}

/* Finds the entry of that name; false where the text has none. */
bool fc_ptx_find(const char *text, const char *name, struct fc_ptx_entry *e)
{
	const char *p = text;

	while ((p = strstr(p, ".entry"))) {
		size_t len;

		p = skip_space(p + strlen(".entry"));
		len = word_len(p);
		if (len != strlen(name) || strncmp(p, name, len))
			continue;
		memset(e, 0, sizeof(*e));
		p = skip_space(p + len);
		if (*p == '(')
			parse_params(p, e);
		return true;
	}
	return false;
}
