// SPDX-License-Identifier: Apache-2.0
/*
 * config - the value of every knob, and where it came from.
 */
#include "core/config.h"

#include <stdarg.h>
#include <stdlib.h>

#include "core/config_internal.h"
#include "core/log_line.h"

struct cf_config *cf_config_new(void)
{
	struct cf_config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	for (int id = 0; id < CF_CFG_NR; id++) {
		if (cf_value_set_default(&c->values[id], &cf_config_rows[id]))
			goto err_free;
	}
	return c;

err_free:
	cf_config_free(c);
	return NULL;
}

void cf_config_free(struct cf_config *c)
{
	if (!c)
		return;
	for (int id = 0; id < CF_CFG_NR; id++)
		cf_value_clear(&c->values[id]);
	for (size_t i = 0; i < c->nr_notes; i++)
		free(c->notes[i].text);
	free(c->file);
	free(c);
}

uint64_t cf_config_size(const struct cf_config *c, enum cf_cfg id)
{
	return cf_value_number(&c->values[id]);
}

uint64_t cf_config_size_loaded(const struct cf_config *c, enum cf_cfg id)
{
	return c->values[id].loaded;
}

bool cf_config_bool(const struct cf_config *c, enum cf_cfg id)
{
	return cf_value_number(&c->values[id]) != 0;
}

const char *cf_config_string(const struct cf_config *c, enum cf_cfg id)
{
	return c->values[id].text;
}

size_t cf_config_sizes(const struct cf_config *c, enum cf_cfg id,
		       const uint64_t **sizes)
{
	*sizes = c->values[id].sizes;
	return c->values[id].nr;
}

size_t cf_config_strings(const struct cf_config *c, enum cf_cfg id,
			 const char *const **strings)
{
	*strings = (const char *const *)c->values[id].strings;
	return c->values[id].nr;
}

uint64_t cf_config_default(enum cf_cfg id)
{
	return cf_config_rows[id].number;
}

enum cf_cfg_source cf_config_source(const struct cf_config *c, enum cf_cfg id)
{
	return cf_value_source(&c->values[id]);
}

const struct cf_value *cf_config_value(const struct cf_config *c,
				       enum cf_cfg id)
{
	return &c->values[id];
}

void cf_config_set_runtime_size(struct cf_config *c, enum cf_cfg id,
				uint64_t size)
{
	cf_value_set_number(&c->values[id], size, CF_CFG_FROM_RUNTIME);
}

void cf_config_set_runtime_bool(struct cf_config *c, enum cf_cfg id, bool on)
{
	cf_value_set_number(&c->values[id], on, CF_CFG_FROM_RUNTIME);
}

const char *cf_config_file(const struct cf_config *c)
{
	return c->file;
}

/* Without memory the note is lost; loading goes on. */
void cf_config_note(struct cf_config *c, enum cf_log_level level,
		    const char *fmt, ...)
{
	struct cf_config_note *note = &c->notes[c->nr_notes];
	va_list args;
	int n;

	if (cf_config_notes_full(c))
		return;
	va_start(args, fmt);
	n = vasprintf(&note->text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	cf_log_plain(note->text, (size_t)n);
	note->level = level;
	c->nr_notes++;
}

const char *cf_config_note_text(const struct cf_config *c, size_t index)
{
	return index < c->nr_notes ? c->notes[index].text : NULL;
}

void cf_config_report(const struct cf_config *c)
{
	for (size_t i = 0; i < c->nr_notes; i++)
		cf_log(c->notes[i].level, "%s", c->notes[i].text);
}

void cf_config_origin(const struct cf_config *c, enum cf_cfg id, char *buf,
		      size_t size)
{
	const struct cf_value *v = &c->values[id];

	switch (cf_value_source(v)) {
	case CF_CFG_FROM_JSON:
		/* without memory the file's name is NULL */
		snprintf(buf, size, "%s:%zu", c->file ? c->file : "file",
			 v->line);
		return;
	case CF_CFG_FROM_ENV:
		snprintf(buf, size, "environment %s", cf_config_rows[id].env);
		return;
	case CF_CFG_FROM_STAGED:
	case CF_CFG_FROM_RUNTIME:
		snprintf(buf, size, "API");
		return;
	case CF_CFG_FROM_DEFAULT:
		break;
	}
	snprintf(buf, size, "default");
}
