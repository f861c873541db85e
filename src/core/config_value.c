// SPDX-License-Identifier: Apache-2.0
/*
 * config_value - one value of any row's type, with its source.
 */
#include "core/config_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void set_source(struct cf_value *v, enum cf_cfg_source source)
{
	atomic_store_explicit(&v->source, source, memory_order_relaxed);
}

void cf_strings_free(char **strings, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(strings[i]);
	free(strings);
}

void cf_value_clear(struct cf_value *v)
{
	free(v->text);
	free(v->sizes);
	cf_strings_free(v->strings, v->strings ? v->nr : 0);
	memset(v, 0, sizeof(*v));
}

void cf_value_set_number(struct cf_value *v, uint64_t number,
			 enum cf_cfg_source source)
{
	atomic_store_explicit(&v->number, number, memory_order_relaxed);
	if (source != CF_CFG_FROM_RUNTIME)
		v->loaded = number;
	set_source(v, source);
}

int cf_value_set_text(struct cf_value *v, const char *text,
		      enum cf_cfg_source source)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(v->text);
	v->text = copy;
	set_source(v, source);
	return 0;
}

int cf_value_set_sizes(struct cf_value *v, const uint64_t *sizes, size_t nr,
		       enum cf_cfg_source source)
{
	uint64_t *copy = calloc(nr ? nr : 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		copy[i] = sizes[i];
	free(v->sizes);
	v->sizes = copy;
	v->nr = nr;
	set_source(v, source);
	return 0;
}

void cf_value_take_strings(struct cf_value *v, char **strings, size_t nr,
			   enum cf_cfg_source source)
{
	cf_strings_free(v->strings, v->strings ? v->nr : 0);
	v->strings = strings;
	v->nr = nr;
	set_source(v, source);
}

/* Lists in rows are ours, so they are well formed and short. */
static int default_sizes(struct cf_value *v, const char *list)
{
	uint64_t sizes[CF_CFG_MAX_SLABS];
	size_t nr = 0;
	char *end;

	while (*list && nr < CF_CFG_MAX_SLABS) {
		sizes[nr++] = strtoull(list, &end, 10);
		list = end + (*end == ',');
	}
	return cf_value_set_sizes(v, sizes, nr, CF_CFG_FROM_DEFAULT);
}

static int default_strings(struct cf_value *v, const char *list)
{
	char **strings = calloc(strlen(list) + 1, sizeof(*strings));
	size_t nr = 0;

	if (!strings)
		return -ENOMEM;
	while (*list) {
		size_t n = strcspn(list, ",");

		strings[nr] = strndup(list, n);
		if (!strings[nr])
			goto err_free;
		nr++;
		list += n + (list[n] == ',');
	}
	cf_value_take_strings(v, strings, nr, CF_CFG_FROM_DEFAULT);
	return 0;

err_free:
	cf_strings_free(strings, nr);
	return -ENOMEM;
}

int cf_value_set_default(struct cf_value *v, const struct cf_config_row *row)
{
	switch (row->type) {
	case CF_CFG_STRING:
		return cf_value_set_text(v, row->text, CF_CFG_FROM_DEFAULT);
	case CF_CFG_SIZES:
		return default_sizes(v, row->text);
	case CF_CFG_STRINGS:
		return default_strings(v, row->text);
	default:
		cf_value_set_number(v, row->number, CF_CFG_FROM_DEFAULT);
		return 0;
	}
}

int cf_value_copy(struct cf_value *to, const struct cf_value *from,
		  enum cf_cfg_type type)
{
	enum cf_cfg_source source = cf_value_source(from);

	if (type == CF_CFG_STRING)
		return cf_value_set_text(to, from->text, source);
	if (type == CF_CFG_SIZES)
		return cf_value_set_sizes(to, from->sizes, from->nr, source);
	cf_value_set_number(to, cf_value_number(from), source);
	return 0;
}

static void print_number(uint64_t number, FILE *out)
{
	if (number == CF_CFG_UNLIMITED)
		fputs("-1", out);
	else
		fprintf(out, "%" PRIu64, number);
}

/* As JSON: quotes and control characters are escaped. */
static void print_text(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

void cf_value_print(const struct cf_value *v, const struct cf_config_row *row,
		    FILE *out)
{
	switch (row->type) {
	case CF_CFG_BOOL:
		fputs(cf_value_number(v) ? "true" : "false", out);
		return;
	case CF_CFG_SIZE:
		print_number(cf_value_number(v), out);
		return;
	case CF_CFG_STRING:
		print_text(v->text, out);
		return;
	case CF_CFG_SIZES:
	case CF_CFG_STRINGS:
		break;
	}
	fputc('[', out);
	for (size_t i = 0; i < v->nr; i++) {
		fputs(i ? ", " : "", out);
		if (row->type == CF_CFG_SIZES)
			print_number(v->sizes[i], out);
		else
			print_text(v->strings[i], out);
	}
	fputc(']', out);
}
