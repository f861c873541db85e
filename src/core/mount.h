// SPDX-License-Identifier: Apache-2.0
/* mount - where a file's file system is mounted, and from what. */
#ifndef CF_CORE_MOUNT_H
#define CF_CORE_MOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cf_mount {
	char type[32];
	char point[1024];
	char source[1024];
	char options[512]; /* of the file system: "rw,data=ordered" */
	dev_t dev;	   /* as mountinfo has it; btrfs and such make one up */
};

/*
 * Reads mountinfo for the mount with this number (statx) or, with number 0, for
 * the last mount of this device. 0; -ENOENT: there is none; or the -errno of
 * reading the file.
 */
int cf_mount_find(uint64_t number, dev_t dev, struct cf_mount *mount);

#endif
