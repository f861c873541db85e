// SPDX-License-Identifier: Apache-2.0
/*
 * jobfile - the INI files of gdsio: [global], then a section for each job.
 *
 * A key that nobody knows is named and left, as files from elsewhere have
 * some; a value that does not fit its key ends the run before it begins.
 */
#include "gdsio/plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"

#define MAX_TEXT (1u << 20)

struct reader {
	struct plan *plan;
	const char *name;
	int number; /* of the line */
	struct job *job;
};

static char *trim(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

static bool begin_section(struct reader *reader, char *text)
{
	size_t len = strlen(text);

	if (len < 3 || text[len - 1] != ']')
		return fail("%s:%d: %s is no section", reader->name,
			    reader->number, text);
	text[len - 1] = '\0';
	reader->job = &reader->plan->defaults;
	if (!strcmp(text + 1, "global"))
		return true;
	reader->job = plan_add_job(reader->plan);
	if (reader->job)
		reader->job->name = text + 1;
	return reader->job;
}

static bool take_pair(struct reader *reader, char *key, char *value)
{
	switch (plan_set_key(reader->plan, reader->job, key, value)) {
	case KEY_TAKEN:
		return true;
	case KEY_UNKNOWN:
		fprintf(stderr, "gdsio: %s:%d: %s is not known and left out\n",
			reader->name, reader->number, key);
		return true;
	case KEY_OF_GLOBAL:
		return fail("%s:%d: %s belongs in [global]", reader->name,
			    reader->number, key);
	default:
		return fail("%s:%d: %s=%s: not a value for it", reader->name,
			    reader->number, key, value);
	}
}

static bool take_line(struct reader *reader, char *line)
{
	char *text = trim(line);
	char *equals;

	if (!*text || *text == '#' || *text == ';')
		return true;
	if (*text == '[')
		return begin_section(reader, text);
	equals = strchr(text, '=');
	if (!equals)
		return fail("%s:%d: %s: key=value is expected", reader->name,
			    reader->number, text);
	if (!reader->job)
		return fail("%s:%d: %s stands before any section", reader->name,
			    reader->number, text);
	*equals = '\0';
	return take_pair(reader, trim(text), trim(equals + 1));
}

static bool has_target(const struct reader *reader)
{
	const struct plan *plan = reader->plan;

	if (plan->defaults.target)
		return fail("%s: directory and filename belong to a job",
			    reader->name);
	for (int i = 0; i < plan->nr_jobs; i++) {
		if (!plan->jobs[i].target)
			return fail("%s: [%s] has neither directory nor "
				    "filename",
				    reader->name, plan->jobs[i].name);
	}
	return true;
}

/* The whole file as a text, or NULL: reported. */
static char *load(const char *name)
{
	FILE *file = fopen(name, "re");
	char *text = file ? calloc(1, MAX_TEXT + 1) : NULL;
	size_t size = text ? fread(text, 1, MAX_TEXT, file) : 0;
	bool ok = text && !ferror(file);

	if (!ok)
		fail_errno("read", name);
	else if (size == MAX_TEXT || memchr(text, '\0', size))
		ok = fail("%s is no job file", name);
	if (file)
		fclose(file);
	if (ok)
		return text;
	free(text);
	return NULL;
}

bool plan_from_file(struct plan *plan, const char *name)
{
	struct reader reader = { .plan = plan, .name = name };
	char *rest = load(name);

	plan->text = rest;
	if (!rest)
		return false;
	for (char *line; (line = strsep(&rest, "\n"));) {
		reader.number++;
		if (!take_line(&reader, line))
			return false;
	}
	return has_target(&reader);
}
