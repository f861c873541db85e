// SPDX-License-Identifier: Apache-2.0
/*
 * sysfs - short texts out of /proc and /sys.
 *
 * A root other than / lets a tree that was copied from another machine be
 * read. Nothing here needs privilege; what cannot be read is empty.
 */
#ifndef TOOLS_SYSFS_H
#define TOOLS_SYSFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SYS_PATH 4096

/* The directory that stands for /; false and errno: there is none such. */
bool sys_set_root(const char *dir);

#define SYS_PRINTF(n) __attribute__((format(printf, n, n + 1)))

/* The first line of a file, without blanks around it; "" and false: none. */
bool sys_line(char *text, size_t size, const char *fmt, ...) SYS_PRINTF(3);
/* A file's number, of base 0; otherwise where there is none. */
long long sys_number(long long otherwise, const char *fmt, ...) SYS_PRINTF(2);
bool sys_exists(const char *fmt, ...) SYS_PRINTF(1);
/* Where the path leads, below the root; "" and false: nowhere. */
bool sys_real(char *path, size_t size, const char *fmt, ...) SYS_PRINTF(3);
/* What comes after the last slash. */
const char *sys_base(const char *path);
/* Names of a directory in order, and how many; sys_list_free ends the list. */
int sys_list(struct dirent ***names, const char *fmt, ...) SYS_PRINTF(2);
void sys_list_free(struct dirent **names, int nr);
FILE *sys_open(const char *fmt, ...) SYS_PRINTF(1);

#endif
