// SPDX-License-Identifier: Apache-2.0
/*
 * config_near - see config_near.h. The distance of two names is the number of
 * letters to insert, remove or change; a third of a name may be wrong, as in
 * "log_level" for "logging_level".
 */
#include "core/config_near.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "core/config_table.h"

#define FILE_VARIABLE "CUFILE_ENV_PATH_JSON"
#define MAX_NAME 80 /* longer names are similar to none */

struct name {
	const char *text;
	size_t len;
};

struct nearest {
	struct name name;
	size_t apart;
};

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* The distance, by dynamic programming, one row of the table at a time. */
static size_t apart(struct name a, struct name b)
{
	unsigned char row[MAX_NAME + 1];

	if (a.len > MAX_NAME || b.len > MAX_NAME)
		return SIZE_MAX;
	for (size_t j = 0; j <= b.len; j++)
		row[j] = (unsigned char)j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t corner = row[0];

		row[0] = (unsigned char)i;
		for (size_t j = 1; j <= b.len; j++) {
			size_t above = row[j];
			bool differ = a.text[i - 1] != b.text[j - 1];

			row[j] = (unsigned char)min3(above + 1, row[j - 1] + 1u,
						     corner + differ);
			corner = above;
		}
	}
	return row[b.len];
}

static void try_name(struct nearest *best, struct name wanted, struct name name)
{
	size_t n = apart(wanted, name);

	if (n < best->apart)
		*best = (struct nearest){ name, n };
}

/* The part after the last dot. */
static struct name last_part(struct name name)
{
	for (size_t i = name.len; i > 0; i--)
		if (name.text[i - 1] == '.')
			return (struct name){ name.text + i, name.len - i };
	return name;
}

/* Compares with each section that the key is in, and with the key. */
static void try_key(struct nearest *best, struct name wanted, const char *key)
{
	struct name last = last_part(wanted);
	size_t len = 0;

	do {
		struct name name = { key, len += strcspn(key + len, ".") };
		struct name end = last_part(name);

		try_name(best, wanted, name);
		/* the right name at the wrong place */
		if (best->apart && end.len == last.len &&
		    !memcmp(end.text, last.text, end.len))
			*best = (struct nearest){ name, 0 };
	} while (key[len++]);
}

/* The key's name in the file, for a name in the output of gdscheck -p. */
static const char *shown_as(const char *name)
{
	static const char *const names[][2] = {
		{ "properties.use_compat_mode",
		  "properties.allow_compat_mode" },
		{ "properties.max_batch_io_size", "properties.io_batchsize" },
		{ "properties.rdma_peer_affinity_policy",
		  "properties.rdma_load_balancing_policy" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i][0]))
			return names[i][1];
	return NULL;
}

bool cf_config_near_key(const char *name, char *text, size_t size)
{
	const char *shown = shown_as(name);
	struct name wanted = { name, strlen(name) };
	/* a third of the last part only: xfs is no misspelt nfs */
	struct nearest best = {
		.apart = (last_part(wanted).len + 2) / 3,
	};
	size_t bound = best.apart;

	if (shown) {
		snprintf(text, size, "%s", shown);
		return true;
	}
	for (int id = 0; id < CF_CFG_NR; id++)
		if (cf_row_has_json_key(&cf_config_rows[id]))
			try_key(&best, wanted, cf_config_rows[id].key);
	if (best.apart == bound)
		return false;
	snprintf(text, size, "%.*s", (int)best.name.len, best.name.text);
	return true;
}

static const char *variable_of(int id)
{
	return id < CF_CFG_NR ? cf_config_rows[id].env : FILE_VARIABLE;
}

bool cf_config_is_variable(const char *name, size_t len)
{
	for (int id = 0; id <= CF_CFG_NR; id++) {
		const char *env = variable_of(id);

		if (env && strlen(env) == len && !memcmp(env, name, len))
			return true;
	}
	return false;
}

const char *cf_config_near_variable(const char *name, size_t len)
{
	struct name wanted = { name, len };
	/* stricter for OCF_, which is the prefix of other programs, too */
	struct nearest best = { .apart = 1 + len / (*name == 'C' ? 3 : 4) };

	for (int id = 0; id <= CF_CFG_NR; id++) {
		const char *env = variable_of(id);

		if (env)
			try_name(&best, wanted,
				 (struct name){ env, strlen(env) });
	}
	return best.name.text;
}
