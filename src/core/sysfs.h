// SPDX-License-Identifier: Apache-2.0
/*
 * sysfs - small files and folders of /sys and /proc, read whole.
 *
 * Names are those of a running machine; all reads go through cf_os, so that
 * tests answer with recorded trees. No state, no lock. Any thread.
 */
#ifndef CF_CORE_SYSFS_H
#define CF_CORE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The start of a file, at most size - 1 bytes, ended by a zero; path is
 * printf's. 0 or -errno: then text is empty.
 */
int cf_sysfs_text(char *text, size_t size, const char *path, ...)
	__attribute__((format(printf, 3, 4)));
/* The same up to the end of the first line. */
int cf_sysfs_line(char *text, size_t size, const char *path, ...)
	__attribute__((format(printf, 3, 4)));
/* A number in any notation of C; fallback where there is none. */
long long cf_sysfs_number(long long fallback, const char *path, ...)
	__attribute__((format(printf, 2, 3)));
/* Where a link leads, as it is written. 0 or -errno. */
int cf_sysfs_link(char *target, size_t size, const char *path, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Calls each with every name of a folder but "." and "..", in no order,
 * until it answers false. 0 or -errno.
 */
int cf_sysfs_each(const char *folder, bool (*each)(void *arg, const char *name),
		  void *arg);

#endif
