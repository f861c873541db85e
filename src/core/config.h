// SPDX-License-Identifier: Apache-2.0
/*
 * config - the value of every knob, and where it came from.
 *
 * A configuration is built once at open, from the defaults, the JSON file, the
 * environment and the staged parameters; a later one wins. Afterwards only the
 * runtime setters change it, atomically. Any thread may read it. Diagnostics
 * are collected as notes, because loading comes before the log is configured.
 */
#ifndef CF_CORE_CONFIG_H
#define CF_CORE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CF_BOOL(id, ...) CF_CFG_##id,
#define CF_SIZE(id, ...) CF_CFG_##id,
#define CF_TEXT(id, ...) CF_CFG_##id,
#define CF_SIZES(id, ...) CF_CFG_##id,
#define CF_TEXTS(id, ...) CF_CFG_##id,
enum cf_cfg {
#include "core/config_rows.h"
	CF_CFG_NR
};
#undef CF_BOOL
#undef CF_SIZE
#undef CF_TEXT
#undef CF_SIZES
#undef CF_TEXTS

enum cf_cfg_source {
	CF_CFG_FROM_DEFAULT,
	CF_CFG_FROM_JSON,
	CF_CFG_FROM_ENV,
	CF_CFG_FROM_STAGED,
	CF_CFG_FROM_RUNTIME
};

/* "No limit", where a row allows it: -1 in the file, UINT64_MAX in a call. */
#define CF_CFG_UNLIMITED UINT64_MAX

struct cf_config;
struct cf_config_staged;

/* The built-in defaults; NULL without memory. The caller frees it. */
struct cf_config *cf_config_new(void);

/*
 * Reads the file, the environment and the staged values (NULL: none) into a
 * fresh configuration. 0; -CU_FILE_DRIVER_INVALID_PROPS for a malformed file
 * under api_check_aggressive (the configuration is complete all the same);
 * -ENOMEM. With staged values the caller holds the session lock.
 */
int cf_config_load(struct cf_config *c, const struct cf_config_staged *staged);
void cf_config_free(struct cf_config *c);

uint64_t cf_config_size(const struct cf_config *c, enum cf_cfg id);
/* As loaded: runtime setters do not change it. */
uint64_t cf_config_size_loaded(const struct cf_config *c, enum cf_cfg id);
bool cf_config_bool(const struct cf_config *c, enum cf_cfg id);
/* Never NULL. This and the lists live as long as the configuration. */
const char *cf_config_string(const struct cf_config *c, enum cf_cfg id);
/* Both answer the number of entries. */
size_t cf_config_sizes(const struct cf_config *c, enum cf_cfg id,
		       const uint64_t **sizes);
size_t cf_config_strings(const struct cf_config *c, enum cf_cfg id,
			 const char *const **strings);
/* The built-in value of a bool or a size. */
uint64_t cf_config_default(enum cf_cfg id);
enum cf_cfg_source cf_config_source(const struct cf_config *c, enum cf_cfg id);

/* Any thread, also while others read. The caller has checked the value. */
void cf_config_set_runtime_size(struct cf_config *c, enum cf_cfg id,
				uint64_t size);
void cf_config_set_runtime_bool(struct cf_config *c, enum cf_cfg id, bool on);

/* The notes of loading, a line each; NULL past the last. */
const char *cf_config_note_text(const struct cf_config *c, size_t index);
/* Writes the notes to the log: call it after cf_log_configure. */
void cf_config_report(const struct cf_config *c);

/* The file that was read, or NULL. */
const char *cf_config_file(const struct cf_config *c);
/* "default", "FILE:LINE", "environment NAME" or "API". */
void cf_config_origin(const struct cf_config *c, enum cf_cfg id, char *buf,
		      size_t size);

/*
 * Staged values: what cuFileSetParameter* left for the next open. There is one
 * set in a process, guarded by the session lock. The functions answer 0 or
 * -ENOMEM. Numbers are checked against their bounds at the open.
 */
struct cf_config_staged *cf_config_staged(void);
int cf_staged_set_size(struct cf_config_staged *s, enum cf_cfg id,
		       uint64_t size);
int cf_staged_set_bool(struct cf_config_staged *s, enum cf_cfg id, bool on);
int cf_staged_set_string(struct cf_config_staged *s, enum cf_cfg id,
			 const char *text);
int cf_staged_set_sizes(struct cf_config_staged *s, enum cf_cfg id,
			const uint64_t *sizes, size_t nr);
/* After an open has applied them; the GPU slabs stay (contract 3.13). */
void cf_staged_clear(struct cf_config_staged *s);
/* Forgets all staged values, the GPU slabs too. */
void cf_staged_reset(struct cf_config_staged *s);

#endif
