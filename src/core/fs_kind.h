// SPDX-License-Identifier: Apache-2.0
/* fs_kind - what file system a file is on, by its statfs number. */
#ifndef CF_CORE_FS_KIND_H
#define CF_CORE_FS_KIND_H

#include <stdbool.h>

struct statx;

/* The number, as in linux/magic.h; 0 if the file system does not tell it. */
long cf_fs_kind(int fd, const struct statx *stx);

/* Whether O_DIRECT takes any bytes there, because a server gets them. */
bool cf_fs_takes_any_bytes(long kind);

#endif
