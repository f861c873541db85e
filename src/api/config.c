// SPDX-License-Identifier: Apache-2.0
/* config - the running configuration, a row at a time (opencufile.h). */
#include <opencufile.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "api/sized.h"
#include "api/translate.h"
#include "core/config_value.h"
#include "engine/chosen.h"
#include "engine/session.h"

/* Prints the value as it would stand in the file; cut to size. */
static void print_value(const struct cf_config *config, enum cf_cfg id,
			char *text, size_t size)
{
	FILE *out = fmemopen(text, size, "w");

	memset(text, 0, size);
	if (!out)
		return;
	cf_value_print(cf_config_value(config, id), &cf_config_rows[id], out);
	fclose(out); /* lint-ok: a stream over memory */
	text[size - 1] = '\0';
}

/* The size of the first version of the struct. */
#define MIN_CONFIG_SIZE offsetof(ocf_config_t, in_force)

static void look(const struct cf_config *running, enum cf_cfg id,
		 ocf_config_t *config)
{
	const struct cf_config_row *row = &cf_config_rows[id];

	config->key = row->key;
	config->help = row->help;
	config->env = row->env;
	config->no_effect = row->idle;
	print_value(running, id, config->value, sizeof(config->value));
	cf_config_origin(running, id, config->origin, sizeof(config->origin));
	cf_chosen_text(running, id, config->in_force, sizeof(config->in_force));
}

CUfileError_t ocf_config_get(unsigned index, ocf_config_t *config)
{
	size_t size = config ? config->struct_size : 0;
	ocf_config_t answer = { .struct_size = size };
	int err;

	if (index >= CF_CFG_NR || size < MIN_CONFIG_SIZE)
		return cf_error(-CU_FILE_INVALID_VALUE);
	err = cf_session_begin();
	if (err)
		return cf_error(err);
	look(cf_session_config(), (enum cf_cfg)index, &answer);
	cf_session_end();
	(void)cf_give_sized(config, size, &answer, sizeof(answer));
	return cf_error(0);
}

CUfileError_t ocf_config_note(unsigned index, char *text, size_t len)
{
	const char *note;
	int err;

	if (!text || !len)
		return cf_error(-CU_FILE_INVALID_VALUE);
	err = cf_session_begin();
	if (err)
		return cf_error(err);
	note = cf_config_note_text(cf_session_config(), index);
	if (note)
		snprintf(text, len, "%s", note);
	cf_session_end();
	return cf_error(note ? 0 : -CU_FILE_INVALID_VALUE);
}
