// SPDX-License-Identifier: Apache-2.0
/*
 * config_load - defaults, then the file, then the environment, then the
 * staged parameters; a later one wins (contract 4.1).
 *
 * A value that cannot be used never fails the load: it is noted, and the
 * earlier value stays. An unusable staged value gives way to the default, as
 * the reference does it (contract 3.13).
 */
#include <cufile.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/config_internal.h"
#include "core/config_near.h"
#include "core/words.h"
#include "seam/os.h"

#define SYSTEM_FILE "/etc/cufile.json"
#define MAX_FILE_SIZE (1 << 20)

struct text {
	char *buf;
	size_t len;
};

static int read_all(int fd, struct text *text)
{
	while (text->len < MAX_FILE_SIZE) {
		ssize_t n = cf_os->read(fd, text->buf + text->len,
					MAX_FILE_SIZE - text->len);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		text->len += (size_t)n;
	}
	return -EFBIG;
}

/*
 * O_NONBLOCK: the open of a pipe without a writer would block; what is opened
 * and is no regular file is refused.
 */
static int open_regular(const char *path)
{
	struct stat st;
	int fd = cf_os->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			     0);
	int err;

	if (fd < 0)
		return fd;
	err = cf_os->fstat(fd, &st);
	if (!err && S_ISDIR(st.st_mode))
		err = -EISDIR;
	else if (!err && !S_ISREG(st.st_mode))
		err = -EINVAL;
	if (!err)
		return fd;
	cf_os->close(fd);
	return err;
}

/* On success the caller frees text->buf. */
static int read_file(const char *path, struct text *text)
{
	int fd = open_regular(path);
	int err;

	if (fd < 0)
		return fd;
	*text = (struct text){ .buf = malloc(MAX_FILE_SIZE + CF_JSON_PADDING) };
	err = text->buf ? read_all(fd, text) : -ENOMEM;
	cf_os->close(fd);
	if (err)
		free(text->buf);
	return err;
}

/*
 * Whether a file that does not parse sets api_check_aggressive. Its values
 * cannot be had, so the text is searched for key and value.
 */
static bool text_is_aggressive(const char *buf, size_t len)
{
	static const char key[] = "\"api_check_aggressive\"";
	const char *end = buf + len;
	const char *at = memmem(buf, len, key, sizeof(key) - 1);
	bool colon = false;

	if (!at)
		return false;
	for (at += sizeof(key) - 1; at < end; at++) {
		if (*at == ':' && !colon)
			colon = true;
		else if (!strchr(" \t\r\n", *at))
			break;
	}
	return colon && end - at >= 4 && !memcmp(at, "true", 4);
}

/* Some editors put a byte order mark in front. */
static size_t mark_size(const struct text *text)
{
	static const char mark[] = { '\xef', '\xbb', '\xbf' };

	return text->len >= sizeof(mark) &&
			       !memcmp(text->buf, mark, sizeof(mark)) ?
		       sizeof(mark) :
		       0;
}

struct broken {
	bool malformed;
	bool aggressive; /* text_is_aggressive of the broken file */
};

static int load_file(struct cf_config *c, struct broken *broken)
{
	const char *named = cf_os->getenv("CUFILE_ENV_PATH_JSON");
	const char *path = named && named[0] ? named : SYSTEM_FILE;
	struct text text;
	size_t mark;
	int err = read_file(path, &text);

	if (err == -ENOMEM)
		return err;
	if (err) {
		if (path == named || err != -ENOENT)
			cf_config_note(c, CF_LOG_ERROR,
				       "%s: %s; the defaults are used", path,
				       strerror(-err));
		return 0;
	}
	broken->aggressive = text_is_aggressive(text.buf, text.len);
	mark = mark_size(&text);
	err = cf_config_apply_json(c, path, text.buf + mark, text.len - mark);
	free(text.buf);
	broken->malformed = err == -EINVAL;
	if (err)
		return broken->malformed ? 0 : err;
	c->file = strdup(path);
	return c->file ? 0 : -ENOMEM;
}

static bool parse_bool(const char *text, uint64_t *number)
{
	static const char *const on[] = { "true", "1", "yes", "on" };
	static const char *const off[] = { "false", "0", "no", "off" };

	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
		*number = cf_is_word(text, on[i]);
		if (*number || cf_is_word(text, off[i]))
			return true;
	}
	return false;
}

/* A whole decimal number: no sign, no blank, no unit. */
static bool parse_size(const char *text, uint64_t *number)
{
	char *end;

	if (text[strspn(text, "0123456789")])
		return false;
	/* strtoull answers UINT64_MAX for every number too large */
	*number = strtoull(text, &end, 10);
	return end != text && *number != UINT64_MAX;
}

static bool parse_number(const struct cf_config_row *row, const char *text,
			 uint64_t *number)
{
	if (row->type == CF_CFG_BOOL)
		return parse_bool(text, number);
	if ((row->flags & CF_CFG_NO_LIMIT) && !strcmp(text, "-1")) {
		*number = CF_CFG_UNLIMITED;
		return true;
	}
	return parse_size(text, number) && cf_row_size_ok(row, *number);
}

static int apply_env_row(struct cf_config *c, enum cf_cfg id, const char *text)
{
	const struct cf_config_row *row = &cf_config_rows[id];
	char expects[128], buf[32];
	const char *choice;
	uint64_t number = 0;

	if (row->type == CF_CFG_STRING) {
		choice = cf_row_choice(row, text, buf, sizeof(buf));
		if (choice)
			return cf_value_set_text(&c->values[id], choice,
						 CF_CFG_FROM_ENV);
	} else if (parse_number(row, text, &number)) {
		cf_value_set_number(&c->values[id], number, CF_CFG_FROM_ENV);
		return 0;
	}
	cf_row_expects(row, expects, sizeof(expects));
	cf_config_note(c, CF_LOG_ERROR,
		       "environment: %s=%s ignored: expected %s", row->env,
		       text, expects);
	return 0;
}

static bool begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/*
 * A misspelt variable has no effect, so it is noted. Other programs use the
 * prefix OCF_, too: of those only names similar to ours are noted.
 */
static void note_unknown_env(struct cf_config *c)
{
	char **at = cf_os->environment();

	for (; at && *at && !cf_config_notes_full(c); at++) {
		size_t len = strcspn(*at, "=");
		const char *near;

		if ((!begins(*at, "CUFILE_") && !begins(*at, "OCF_")) ||
		    cf_config_is_variable(*at, len))
			continue;
		near = cf_config_near_variable(*at, len);
		if (near)
			cf_config_note(c, CF_LOG_WARN,
				       "environment: %.*s: unknown, ignored; "
				       "did you mean %s?",
				       (int)len, *at, near);
		else if (begins(*at, "CUFILE_"))
			cf_config_note(c, CF_LOG_WARN,
				       "environment: %.*s: unknown, ignored",
				       (int)len, *at);
	}
}

static int load_env(struct cf_config *c)
{
	for (int id = 0; id < CF_CFG_NR; id++) {
		const struct cf_config_row *row = &cf_config_rows[id];
		const char *text = row->env ? cf_os->getenv(row->env) : NULL;
		int err;

		if (!text || (!text[0] && !(row->flags & CF_CFG_EMPTY_COUNTS)))
			continue;
		err = apply_env_row(c, id, text);
		if (err)
			return err;
	}
	note_unknown_env(c);
	return 0;
}

static bool value_ok(const struct cf_config_row *row, const struct cf_value *v)
{
	char buf[32];

	if (row->type == CF_CFG_SIZE)
		return cf_row_size_ok(row, cf_value_number(v));
	if (row->type == CF_CFG_STRING)
		return cf_row_choice(row, v->text, buf, sizeof(buf));
	for (size_t i = 0; row->type == CF_CFG_SIZES && i < v->nr; i++) {
		if (!cf_row_size_ok(row, v->sizes[i]))
			return false;
	}
	return true;
}

static int apply_staged_row(struct cf_config *c, enum cf_cfg id,
			    const struct cf_value *v)
{
	const struct cf_config_row *row = &cf_config_rows[id];
	char expects[128];

	if (value_ok(row, v))
		return cf_value_copy(&c->values[id], v, row->type);
	cf_row_expects(row, expects, sizeof(expects));
	cf_config_note(c, CF_LOG_ERROR,
		       "parameter %s: the default is used: expected %s",
		       row->key, expects);
	return cf_value_set_default(&c->values[id], row);
}

static int load_staged(struct cf_config *c,
		       const struct cf_config_staged *staged)
{
	for (int id = 0; staged && id < CF_CFG_NR; id++) {
		const struct cf_value *v = cf_staged_find(staged, id);
		int err = v ? apply_staged_row(c, id, v) : 0;

		if (err)
			return err;
	}
	return 0;
}

/* Sizes and counts of slabs belong together. */
static int check_pair(struct cf_config *c, enum cf_cfg sizes,
		      enum cf_cfg counts)
{
	int err;

	if (c->values[sizes].nr == c->values[counts].nr)
		return 0;
	cf_config_note(
		c, CF_LOG_ERROR,
		"%s has %zu entries and %s has %zu; the defaults are used",
		cf_config_rows[sizes].key, c->values[sizes].nr,
		cf_config_rows[counts].key, c->values[counts].nr);
	err = cf_value_set_default(&c->values[sizes], &cf_config_rows[sizes]);
	if (err)
		return err;
	return cf_value_set_default(&c->values[counts],
				    &cf_config_rows[counts]);
}

static int check_pairs(struct cf_config *c)
{
	int err = check_pair(c, CF_CFG_POSIX_POOL_SLAB_SIZE_KB,
			     CF_CFG_POSIX_POOL_SLAB_COUNT);

	if (err)
		return err;
	return check_pair(c, CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB,
			  CF_CFG_GPU_BOUNCE_SLAB_COUNT);
}

int cf_config_load(struct cf_config *c, const struct cf_config_staged *staged)
{
	struct broken broken = { 0 };
	int err = load_file(c, &broken);

	if (!err)
		err = load_env(c);
	if (!err)
		err = load_staged(c, staged);
	if (!err)
		err = check_pairs(c);
	if (err || !broken.malformed)
		return err;
	if (cf_config_source(c, CF_CFG_API_CHECK_AGGRESSIVE) ==
	    CF_CFG_FROM_STAGED)
		broken.aggressive =
			cf_config_bool(c, CF_CFG_API_CHECK_AGGRESSIVE);
	return broken.aggressive ? -CU_FILE_DRIVER_INVALID_PROPS : 0;
}
