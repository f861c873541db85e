// SPDX-License-Identifier: Apache-2.0
/*
 * denylist - files whose IO must go through host memory (contract 4.2, 3.17).
 *
 * Asked once, when a file is registered; free while all lists are empty.
 * Configured at open, under the session lock; the lists belong to the
 * configuration, which must live as long.
 */
#ifndef CF_CORE_DENYLIST_H
#define CF_CORE_DENYLIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which list names a file. */
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
 * mount_number: from statx, 0: not known; dev: the file system's device; disk:
 * the device's own number if the file is a block device, else 0.
 */
enum cf_denied cf_denylist_find(uint64_t mount_number, dev_t dev, dev_t disk);

/* The same for a user-space file system, by its type's name. */
enum cf_denied cf_denylist_find_type(const char *type);

#endif
