// SPDX-License-Identifier: Apache-2.0
/*
 * config_table - the rows of config_rows.h as data, and what they allow.
 */
#include "core/config_table.h"

#include <cufile.h>
#include <inttypes.h>
#include <string.h>
#include "core/words.h"

#define NO_PARAM CF_PARAM_NONE, 0
#define SIZET(id) CF_PARAM_SIZET, id
#define BOOL(id) CF_PARAM_BOOL, id
#define STRING(id) CF_PARAM_STRING, id

/* The effect of a row: NULL, or why the value is not used. */
#define WORKS NULL
#define ALL_IOURING \
	"what goes O_DIRECT goes through io_uring anyway (opencufile.io_uring)"
#define ALL_URGENT \
	"a stream of less priority could wait behind what waits for it"
#define NO_TIMEOUT "a cancel takes the time it needs"
#define NO_QUEUE "requests do not queue: their callers carry them"
#define NO_P2PDMA "peer to peer is used wherever it works (opencufile.alias)"
#define NO_RDMA "this library itself moves no byte by RDMA"
#define ALL_ASYNC "asynchronous requests travel as the others do"
#define NO_TOPOLOGY "no route depends on the PCI tree"
#define ALL_POSIX "all file IO has plain POSIX semantics"
#define ALL_FALLBACK "allow_compat_mode alone decides about fallbacks"
#define ALL_SPLIT "unaligned requests are always split"
#define ALL_CACHED_EDGES \
	"their edges always go through the page cache, and whole blocks never"
#define ALL_FS "all file systems are allowed"

/*
 * A param argument expands to two initialisers, family and id, so the fields
 * from flags on are positional and follow the order of the struct.
 */
#define CF_BOOL(id, key_, default_, env_, param_, effect_, help_) \
	[CF_CFG_##id] = { .key = key_, \
			  .type = CF_CFG_BOOL, \
			  .number = default_, \
			  .max = 1, \
			  .multiple = 1, \
			  .flags = 0, \
			  env_, \
			  param_, \
			  effect_, \
			  help_ },
#define CF_SIZE(id, key_, default_, min_, max_, multiple_, flags_, env_, \
		param_, effect_, help_) \
	[CF_CFG_##id] = { .key = key_, \
			  .type = CF_CFG_SIZE, \
			  .number = default_, \
			  .min = min_, \
			  .max = max_, \
			  .multiple = multiple_, \
			  .flags = flags_, \
			  env_, \
			  param_, \
			  effect_, \
			  help_ },
#define CF_TEXT(id, key_, default_, choices_, flags_, env_, param_, effect_, \
		help_) \
	[CF_CFG_##id] = { .key = key_, \
			  .type = CF_CFG_STRING, \
			  .text = default_, \
			  .choices = choices_, \
			  .flags = flags_, \
			  env_, \
			  param_, \
			  effect_, \
			  help_ },
#define CF_SIZES(id, key_, default_, min_, max_, multiple_, effect_, help_) \
	[CF_CFG_##id] = { .key = key_, \
			  .type = CF_CFG_SIZES, \
			  .text = default_, \
			  .min = min_, \
			  .max = max_, \
			  .multiple = multiple_, \
			  .idle = effect_, \
			  .help = help_ },
#define CF_TEXTS(id, key_, default_, effect_, help_) \
	[CF_CFG_##id] = { .key = key_, \
			  .type = CF_CFG_STRINGS, \
			  .text = default_, \
			  .idle = effect_, \
			  .help = help_ },

const struct cf_config_row cf_config_rows[CF_CFG_NR] = {
#include "core/config_rows.h"
};

int cf_config_by_key(const char *key)
{
	for (int id = 0; id < CF_CFG_NR; id++) {
		if (!strcmp(cf_config_rows[id].key, key))
			return id;
	}
	return -1;
}

int cf_config_by_param(enum cf_param_family family, int param)
{
	for (int id = 0; id < CF_CFG_NR; id++) {
		if (cf_config_rows[id].family == family &&
		    cf_config_rows[id].param == param)
			return id;
	}
	return -1;
}

bool cf_row_has_json_key(const struct cf_config_row *row)
{
	return strchr(row->key, '.') != NULL;
}

bool cf_row_size_ok(const struct cf_config_row *row, uint64_t size)
{
	if ((row->flags & CF_CFG_NO_LIMIT) && size == CF_CFG_UNLIMITED)
		return true;
	return size >= row->min && size <= row->max &&
	       size % row->multiple == 0;
}

/* 0x and one to eight digits. */
static bool is_hex(const char *text)
{
	size_t digits;

	if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X'))
		return false;
	digits = strspn(text + 2, "0123456789abcdefABCDEF");
	return digits && digits <= 8 && !text[2 + digits];
}

const char *cf_row_choice(const struct cf_config_row *row, const char *text,
			  char *buf, size_t buf_size)
{
	const char *choice = row->choices;
	size_t len = strlen(text);

	if (row->flags & CF_CFG_HEX)
		return is_hex(text) ? text : NULL;
	if (!choice || (!len && !row->text[0]))
		return text;
	while (*choice) {
		size_t n = strcspn(choice, "|");

		if (n == len && n < buf_size &&
		    cf_words_alike(choice, text, n)) {
			memcpy(buf, choice, n);
			buf[n] = '\0';
			return buf;
		}
		choice += n + (choice[n] == '|');
	}
	return NULL;
}

static void expects_size(const struct cf_config_row *row, char *buf,
			 size_t buf_size)
{
	int n = snprintf(buf, buf_size, "%s from %" PRIu64 " to %" PRIu64,
			 row->type == CF_CFG_SIZES ? "integers" : "an integer",
			 row->min, row->max);

	if (row->multiple > 1 && n > 0 && (size_t)n < buf_size)
		n += snprintf(buf + n, buf_size - n, ", a multiple of %" PRIu64,
			      row->multiple);
	if ((row->flags & CF_CFG_NO_LIMIT) && n > 0 && (size_t)n < buf_size)
		snprintf(buf + n, buf_size - n, ", or -1");
}

void cf_row_expects(const struct cf_config_row *row, char *buf, size_t buf_size)
{
	switch (row->type) {
	case CF_CFG_BOOL:
		snprintf(buf, buf_size, "true or false");
		return;
	case CF_CFG_STRING:
		if (row->flags & CF_CFG_HEX) {
			snprintf(buf, buf_size,
				 "a hexadecimal number as \"%s\"", row->text);
			return;
		}
		snprintf(buf, buf_size, "%s%s",
			 row->choices ? "one of " : "a string",
			 row->choices ? row->choices : "");
		return;
	case CF_CFG_STRINGS:
		snprintf(buf, buf_size, "a list of strings");
		return;
	case CF_CFG_SIZE:
	case CF_CFG_SIZES:
		expects_size(row, buf, buf_size);
		return;
	}
}
