// SPDX-License-Identifier: Apache-2.0
/*
 * denylist - files that are to travel by way of host memory only (contract
 * 4.2, 3.17).
 *
 * Asked once, when a file is registered. While no list names anything, that
 * costs nothing. Configured at open, under the session lock; the lists are
 * the configuration's and live as long.
 */
#ifndef CF_CORE_DENYLIST_H
#define CF_CORE_DENYLIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The list that names a file. */
enum cf_denied {
	CF_DENIED_NOT,
	CF_DENIED_DRIVER,
	CF_DENIED_DEVICE,
	CF_DENIED_MOUNT,
	CF_DENIED_FILESYSTEM,
};

struct cf_config;

/* NULL: no lists. */
void cf_denylist_configure(const struct cf_config *config);

/*
 * mount_number: of statx, 0 where the kernel does not tell; dev: of the file
 * system; disk: the device itself where the file is one, else 0.
 */
enum cf_denied cf_denylist_find(uint64_t mount_number, dev_t dev, dev_t disk);

/* The same of a file system that the kernel does not know, by its name. */
enum cf_denied cf_denylist_find_type(const char *type);

#endif
