// SPDX-License-Identifier: Apache-2.0
/*
 * config_internal - what the config_*.c files share.
 */
#ifndef CF_CORE_CONFIG_INTERNAL_H
#define CF_CORE_CONFIG_INTERNAL_H

#include "core/config_value.h"
#include "core/log.h"

/* A bound, lest a file that is wrong everywhere fills the log. */
#define CF_CFG_MAX_NOTES 64

struct cf_config_note {
	enum cf_log_level level;
	char *text;
};

struct cf_config {
	struct cf_value values[CF_CFG_NR];
	struct cf_config_note notes[CF_CFG_MAX_NOTES];
	size_t nr_notes;
	char *file; /* the file that was read, or NULL */
};

struct cf_config_staged {
	/* staged are those whose source is CF_CFG_FROM_STAGED */
	struct cf_value values[CF_CFG_NR];
};

/* True: further notes are dropped. */
static inline bool cf_config_notes_full(const struct cf_config *c)
{
	return c->nr_notes == CF_CFG_MAX_NOTES;
}

void cf_config_note(struct cf_config *c, enum cf_log_level level,
		    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Applies a file's text. buf holds len bytes and CF_JSON_PADDING more, and is
 * overwritten. 0, -EINVAL (malformed: nothing applied) or -ENOMEM.
 */
#define CF_JSON_PADDING 16
int cf_config_apply_json(struct cf_config *c, const char *file, char *buf,
			 size_t len);

#endif
