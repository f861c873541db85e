// SPDX-License-Identifier: Apache-2.0
/* sysfs - small files and folders of /sys and /proc, read whole. */
#include "core/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "seam/os.h"

#define MAX_PATH 1024

static int read_text(const char *path, char *text, size_t size)
{
	int fd = cf_os->open(path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = cf_os->read(fd, text, size - 1);
	cf_os->close(fd);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return 0;
}

/* Formats the path and reads that file. */
static int read_at(char *text, size_t size, const char *format, va_list args)
{
	char path[MAX_PATH];
	int n = vsnprintf(path, sizeof(path), format, args);

	*text = '\0';
	if (n < 0 || n >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return read_text(path, text, size);
}

int cf_sysfs_text(char *text, size_t size, const char *path, ...)
{
	va_list args;
	int err;

	va_start(args, path);
	err = read_at(text, size, path, args);
	va_end(args);
	return err;
}

int cf_sysfs_line(char *text, size_t size, const char *path, ...)
{
	va_list args;
	int err;

	va_start(args, path);
	err = read_at(text, size, path, args);
	va_end(args);
	text[strcspn(text, "\n")] = '\0';
	return err;
}

long long cf_sysfs_number(long long fallback, const char *path, ...)
{
	char text[64], *end;
	long long number;
	va_list args;
	int err;

	va_start(args, path);
	err = read_at(text, sizeof(text), path, args);
	va_end(args);
	if (err)
		return fallback;
	number = strtoll(text, &end, 0);
	return end == text ? fallback : number;
}

int cf_sysfs_link(char *target, size_t size, const char *path, ...)
{
	char link[MAX_PATH];
	va_list args;
	ssize_t n;

	va_start(args, path);
	n = vsnprintf(link, sizeof(link), path, args);
	va_end(args);
	*target = '\0';
	if (n < 0 || n >= (ssize_t)sizeof(link))
		return -ENAMETOOLONG;
	n = cf_os->read_link(link, target, size);
	if (n < 0)
		return (int)n;
	/* a text that fills the buffer may have been cut */
	if (n == (ssize_t)size)
		n = -ENAMETOOLONG;
	target[n < 0 ? 0 : n] = '\0';
	return n < 0 ? (int)n : 0;
}

static bool is_name(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int cf_sysfs_each(const char *folder, bool (*each)(void *arg, const char *name),
		  void *arg)
{
	char dents[4096] __attribute__((aligned(8)));
	int fd = cf_os->open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	bool more = true;
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	while (more && (n = cf_os->get_dents(fd, dents, sizeof(dents))) > 0) {
		const struct dirent64 *entry;

		for (ssize_t at = 0; more && at < n; at += entry->d_reclen) {
			entry = (const struct dirent64 *)(dents + at);
			if (is_name(entry->d_name))
				more = each(arg, entry->d_name);
		}
	}
	cf_os->close(fd);
	return n < 0 ? (int)n : 0;
}
