// SPDX-License-Identifier: Apache-2.0
/*
 * sysfs - small files and folders of /sys and /proc, read whole.
 *
 * All reads go through cf_os, so that tests can answer from recorded trees. No
 * state, no lock. Any thread.
 */
#ifndef CF_CORE_SYSFS_H
#define CF_CORE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads the start of a file, at most size - 1 bytes, and ends it with a zero;
 * path is a format of printf. 0, or -errno and text is empty.
 */
int cf_sysfs_text(char *text, size_t size, const char *path, ...)
	__attribute__((format(printf, 3, 4)));
/* The same up to the end of the first line. */
int cf_sysfs_line(char *text, size_t size, const char *path, ...)
	__attribute__((format(printf, 3, 4)));
/* The number in a file, in any notation of C; fallback if there is none. */
long long cf_sysfs_number(long long fallback, const char *path, ...)
	__attribute__((format(printf, 2, 3)));
/* The text of a symbolic link. 0 or -errno. */
int cf_sysfs_link(char *target, size_t size, const char *path, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Calls each for every name in a folder but "." and "..", in any order, until
 * it answers false. 0 or -errno.
 */
int cf_sysfs_each(const char *folder, bool (*each)(void *arg, const char *name),
		  void *arg);

#endif
