// SPDX-License-Identifier: Apache-2.0
/* check_file - gdscheck -f: which way a file's bytes go, and why. */
#ifndef TOOLS_CHECK_FILE_H
#define TOOLS_CHECK_FILE_H

#include <stdbool.h>

/* Exit statuses of gdscheck. */
#define GDSCHECK_OK 0
#define GDSCHECK_NO_PATH 1
#define GDSCHECK_USAGE 2
#define GDSCHECK_CANNOT 3

/* Prints; the exit status. */
int check_file(const char *name, bool json);

/* gdscheck -V: one line for each mount that may hold data. */
int check_mounts(void);

#endif
