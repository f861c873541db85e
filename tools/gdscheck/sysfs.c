// SPDX-License-Identifier: Apache-2.0
/* sysfs - short texts out of /proc and /sys. */
#include "sysfs.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[SYS_PATH]; /* without links, or lengths would not match */

bool sys_set_root(const char *dir)
{
	char *real = realpath(dir, NULL);

	if (real)
		snprintf(root, sizeof(root), "%s",
			 strcmp(real, "/") != 0 ? real : "");
	free(real);
	return real != NULL;
}

/* The path below the root; too long a one names nothing. */
#define MAKE_PATH(path, fmt) \
	char path[SYS_PATH]; \
	do { \
		va_list args; \
		int n = snprintf(path, sizeof(path), "%s", root); \
		va_start(args, fmt); \
		vsnprintf(path + n, sizeof(path) - (size_t)n, fmt, args); \
		va_end(args); \
	} while (0)

static bool first_line(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	char *start = text;
	size_t len = 0;

	if (file) {
		len = fread(text, 1, size - 1, file);
		fclose(file);
	}
	text[len] = '\0';
	while (isspace((unsigned char)*start))
		start++;
	len = strcspn(start, "\n");
	while (len && isspace((unsigned char)start[len - 1]))
		len--;
	memmove(text, start, len);
	text[len] = '\0';
	return len > 0;
}

bool sys_line(char *text, size_t size, const char *fmt, ...)
{
	MAKE_PATH(path, fmt);

	return first_line(path, text, size);
}

long long sys_number(long long otherwise, const char *fmt, ...)
{
	char text[64], *end;
	long long number;
	MAKE_PATH(path, fmt);

	if (!first_line(path, text, sizeof(text)))
		return otherwise;
	number = strtoll(text, &end, 0);
	return *end ? otherwise : number;
}

bool sys_exists(const char *fmt, ...)
{
	MAKE_PATH(path, fmt);

	return access(path, F_OK) == 0;
}

/* Links of a copied tree may lead out of it, to where its machine is not. */
static const char *below_root(const char *path)
{
	size_t len = strlen(root);

	return !strncmp(path, root, len) && path[len] == '/' ? path + len : "";
}

bool sys_real(char *real, size_t size, const char *fmt, ...)
{
	char *found;
	MAKE_PATH(path, fmt);

	found = realpath(path, NULL);
	snprintf(real, size, "%s", found ? below_root(found) : "");
	free(found);
	return *real;
}

const char *sys_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int sys_list(struct dirent ***names, const char *fmt, ...)
{
	int nr;
	MAKE_PATH(path, fmt);

	nr = scandir(path, names, is_visible, versionsort);
	return nr < 0 ? 0 : nr;
}

void sys_list_free(struct dirent **names, int nr)
{
	for (int i = 0; i < nr; i++)
		free(names[i]);
	free(names);
}

FILE *sys_open(const char *fmt, ...)
{
	MAKE_PATH(path, fmt);

	return fopen(path, "re");
}
