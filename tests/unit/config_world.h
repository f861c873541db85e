// SPDX-License-Identifier: Apache-2.0
/*
 * config_world - a configuration that is read from an environment and files of
 * the test alone: both are replaced through the seam, so the machine's own do
 * not matter.
 */
#ifndef TESTS_UNIT_CONFIG_WORLD_H
#define TESTS_UNIT_CONFIG_WORLD_H

#include <cufile.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/config.h"
#include "core/config_table.h"
#include "seam/os.h"

#define CW_SYSTEM_FILE "/etc/cufile.json"

extern char cw_named_file[];	   /* for CUFILE_ENV_PATH_JSON */
extern char cw_system_file[];	   /* opened in place of /etc/cufile.json, */
extern bool cw_system_file_exists; /* if so; false at first */

/* Of a program: makes the two files; removes them. */
int cw_begin(void **state);
int cw_end(void **state);
/* Of each test. */
int cw_setup(void **state);
int cw_teardown(void **state);

/* Both texts must outlive the test; eight at most. */
void cw_set_env(const char *name, const char *value);
void cw_clear_env(void);
void cw_write_text(const char *path, const char *text);

/* The caller frees what these return. */
struct cf_config *cw_load(const struct cf_config_staged *staged);
struct cf_config *cw_load_text(const char *text); /* as the named file */
struct cf_config *cw_load_row(const struct cf_config_row *row,
			      const char *value);

/* "a.b" and "1" become {"a":{"b":1}}. Texts stand for a call or a few. */
const char *cw_nest(const char *key, const char *value);
const char *cw_printed(const struct cf_config *c, int id);
const char *cw_default_of(int id);
const char *cw_number_text(uint64_t number);
/* Some value that is allowed and is not the default. */
const char *cw_other_value(const struct cf_config_row *row);
/* The same as the environment has it: without quotes. */
const char *cw_bare(const char *value);
void cw_stage_other(int id);

void cw_assert_no_notes(const struct cf_config *c);
void cw_assert_note(const struct cf_config *c, size_t index, const char *part);
/* A default value kept, with one note that names file, position and key. */
void cw_assert_refused(const struct cf_config_row *row, int id,
		       const char *value);
void cw_assert_taken(const struct cf_config_row *row, int id,
		     const char *value);

#define cw_assert_row(c, id, value, source) \
	do { \
		assert_string_equal(cw_printed(c, id), value); \
		assert_int_equal(cf_config_source(c, (enum cf_cfg)(id)), \
				 source); \
	} while (0)

#define cw_for_each_row(row, id) \
	for (int id = 0; id < CF_CFG_NR; id++) \
		for (const struct cf_config_row *row = &cf_config_rows[id]; \
		     row; row = NULL)

#endif
