// SPDX-License-Identifier: Apache-2.0
/*
 * route_log - asks the library's log which path the bytes took, and why.
 *
 * The log goes to a private file in the directory for temporary files, by
 * the two variables that the library documents. An interrupted tool removes
 * the file too.
 */
#include "route_log.h"

#include <cufile.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "on_signal.h"

#define MARK "route: "
#define ERROR_MARK "] ERROR "

enum { OFF, PRIVATE, THE_USERS };

static int state = OFF;
static char path[4096];

static void remove_on_signal(int sig)
{
	unlink(path);
	signal(sig, SIG_DFL);
	raise(sig);
}

static bool file_says_otherwise(void)
{
	char text[4096];
	CUfileError_t status;

	status = cuFileGetParameterString(CUFILE_PARAM_LOG_DIR, text,
					  sizeof(text));
	if (status.err == CU_FILE_SUCCESS && text[0])
		return true;
	status = cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text,
					  sizeof(text));
	return status.err == CU_FILE_SUCCESS && strcmp(text, "ERROR") != 0;
}

static bool is_configured(void)
{
	const char *level = getenv("CUFILE_LOGGING_LEVEL");
	const char *file = getenv("CUFILE_LOGFILE_PATH");

	return (level && *level) || (file && *file) || file_says_otherwise();
}

void route_log_begin(void)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	state = is_configured() ? THE_USERS : OFF;
	if (state == THE_USERS)
		return;
	snprintf(path, sizeof(path), "%s/gdscp.XXXXXX",
		 dir && *dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return;
	close(fd);
	on_signal(SIGINT, remove_on_signal, 0);
	on_signal(SIGTERM, remove_on_signal, 0);
	on_signal(SIGHUP, remove_on_signal, 0);
	setenv("CUFILE_LOGFILE_PATH", path, 1);
	setenv("CUFILE_LOGGING_LEVEL", "INFO", 1);
	state = PRIVATE;
}

/* "read ...: path staged (null: why; host: why)", a line for each path. */
static void print_route(FILE *out, char *text)
{
	char *reasons = strstr(text, " (");
	char *end = strrchr(text, ')');

	if (reasons && end > reasons) {
		*reasons = '\0';
		*end = '\0';
	}
	fprintf(out, "%-10s %s\n", "route", text);
	if (!reasons || end <= reasons)
		return;
	reasons += 2;
	while (reasons) {
		char *next = strstr(reasons, "; ");

		if (next)
			*next = '\0';
		/* no program hopes for the path that is there for tests */
		if (strncmp(reasons, "null: ", 6) != 0)
			fprintf(out, "%-10s   not %s\n", "", reasons);
		reasons = next ? next + 2 : NULL;
	}
}

/* What the library said when something failed, without the time. */
static void print_error(FILE *out, const char *line)
{
	const char *text = strstr(line, ERROR_MARK);

	if (text)
		fprintf(out, "%-10s %s\n", "log", text + strlen(ERROR_MARK));
}

static int print_lines(FILE *out, bool errors)
{
	FILE *log = fopen(path, "re");
	char line[4096];
	int nr = 0;

	while (log && fgets(line, sizeof(line), log)) {
		char *text = strstr(line, MARK);

		line[strcspn(line, "\n")] = '\0';
		if (text)
			print_route(out, text + strlen(MARK));
		else if (errors)
			print_error(out, line);
		nr += text != NULL;
	}
	if (log)
		fclose(log);
	return nr;
}

void route_log_print(FILE *out, bool errors)
{
	if (state == THE_USERS)
		fprintf(out, "%-10s see the log that you have configured\n",
			"route");
	else if (state == OFF || !print_lines(out, errors))
		fprintf(out, "%-10s the library told of none\n", "route");
}

void route_log_end(void)
{
	if (state == PRIVATE)
		unlink(path);
	state = OFF;
}
