// SPDX-License-Identifier: Apache-2.0
/*
 * picture - see picture.h. A program of librsvg draws PNG, so that gdsio has
 * no drawing, no fonts and no libraries for them.
 */
#include "gdsio/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "report.h"

#define CONVERTER "rsvg-convert"

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len > end_len && !strcmp(name + len - end_len, end);
}

bool picture_is_name(const char *name)
{
	return ends_in(name, ".svg") || ends_in(name, ".png");
}

static bool is_in_path(const char *program)
{
	const char *path = getenv("PATH");
	char file[4096];

	while (path && *path) {
		int len = (int)strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s/%s", len, path, program);
		if (!access(file, X_OK))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

bool picture_check(const char *name)
{
	char *copy = strdup(name);
	bool ok = copy && (!access(name, W_OK) ||
			   (errno == ENOENT && !access(dirname(copy), W_OK)));

	if (!ok)
		fail_errno("open", name);
	free(copy);
	if (ok && ends_in(name, ".png") && !is_in_path(CONVERTER))
		return fail("%s: PNG is drawn by %s (package librsvg2-bin), "
			    "which is not there; .svg needs nothing",
			    name, CONVERTER);
	return ok;
}

static bool start_converter(struct picture *p)
{
	char *const arguments[] = { CONVERTER, "-o", (char *)(uintptr_t)p->name,
				    NULL };
	posix_spawn_file_actions_t actions;
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return fail_errno("pipe", CONVERTER);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
	err = posix_spawnp(&p->converter, CONVERTER, &actions, NULL, arguments,
			   environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[0]);
	if (!err)
		p->out = fdopen(ends[1], "w");
	if (p->out)
		return true;
	close(ends[1]);
	errno = err ? err : errno;
	return fail_errno("start", CONVERTER);
}

bool picture_begin(struct picture *p, const char *name)
{
	*p = (struct picture){ .name = name };
	if (ends_in(name, ".png")) {
		/* it may end before it has read everything */
		signal(SIGPIPE, SIG_IGN);
		return start_converter(p);
	}
	p->out = fopen(name, "we");
	return p->out || fail_errno("open", name);
}

bool picture_end(struct picture *p)
{
	bool ok = !ferror(p->out);
	int status = 0;

	if (fclose(p->out))
		ok = false;
	if (!p->converter)
		return ok || fail_errno("write", p->name);
	if (waitpid(p->converter, &status, 0) < 0 || status)
		return fail("%s: %s has failed", p->name, CONVERTER);
	return ok || fail("%s: %s has not read it all", p->name, CONVERTER);
}
