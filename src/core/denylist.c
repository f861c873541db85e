// SPDX-License-Identifier: Apache-2.0
/*
 * denylist - compares a file's mount, device and drivers with the lists.
 *
 * Devices and drivers are read from sysfs, by the uevent files that every
 * device has: DEVNAME of the partition and of its disk, and DRIVER of each
 * device from the disk up to its PCI adapter.
 */
#include "core/denylist.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "core/config.h"
#include "core/log.h"
#include "core/mount.h"
#include "core/sysfs.h"

#define MAX_UP 12 /* at most so many devices from a disk to its adapter */

/* Written and read under the session lock, which registrations hold. */
static const struct cf_config *lists;

void cf_denylist_configure(const struct cf_config *config)
{
	static const enum cf_cfg ids[] = {
		CF_CFG_DENYLIST_DRIVERS,
		CF_CFG_DENYLIST_DEVICES,
		CF_CFG_DENYLIST_MOUNTS,
		CF_CFG_DENYLIST_FILESYSTEMS,
	};
	const char *const *names;
	size_t nr = 0;

	for (size_t i = 0; config && i < sizeof(ids) / sizeof(ids[0]); i++)
		nr += cf_config_strings(config, ids[i], &names);
	lists = nr ? config : NULL;
}

/* Slashes at the end of listed do not count: "/mnt/" is "/mnt". */
static bool same(const char *listed, const char *name, size_t len)
{
	size_t listed_len = strlen(listed);

	while (listed_len > 1 && listed[listed_len - 1] == '/')
		listed_len--;
	return listed_len == len && !memcmp(listed, name, len);
}

static bool is_listed(enum cf_cfg id, const char *name, size_t len)
{
	const char *const *names;
	size_t nr = cf_config_strings(lists, id, &names);

	for (size_t i = 0; i < nr; i++) {
		const char *listed = names[i];

		/* devices may be listed with /dev/ or without */
		if (id == CF_CFG_DENYLIST_DEVICES &&
		    !strncmp(listed, "/dev/", 5))
			listed += 5;
		if (len && same(listed, name, len))
			return true;
	}
	return false;
}

static bool read_uevent(const char *device, char *text, size_t size)
{
	return !cf_sysfs_text(text, size, "%s/uevent", device);
}

/* The value of KEY= in a uevent; NULL where it has none. */
static const char *value_of(const char *uevent, const char *key, size_t *len)
{
	size_t key_len = strlen(key);

	for (const char *line = uevent; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, key_len) && line[key_len] == '=') {
			line += key_len + 1;
			*len = strcspn(line, "\n");
			return line;
		}
	}
	return NULL;
}

static bool lists_device(const char *uevent)
{
	size_t len;
	const char *name = value_of(uevent, "DEVNAME", &len);

	return name && is_listed(CF_CFG_DENYLIST_DEVICES, name, len);
}

/* Looks at each device from the disk's up to the first PCI device. */
static bool lists_driver(const char *disk)
{
	char device[192], uevent[4096];
	const char *name;
	size_t len;
	int n = snprintf(device, sizeof(device), "%s/device", disk);

	for (int up = 0; up < MAX_UP && n < (int)sizeof(device); up++) {
		if (read_uevent(device, uevent, sizeof(uevent))) {
			name = value_of(uevent, "DRIVER", &len);
			if (name &&
			    is_listed(CF_CFG_DENYLIST_DRIVERS, name, len))
				return true;
			if (value_of(uevent, "PCI_ID", &len))
				return false;
		}
		/* ".." after a link is the parent of the link's target */
		n += snprintf(device + n, sizeof(device) - (size_t)n, "/..");
	}
	return false;
}

static enum cf_denied find_disk(dev_t dev)
{
	char disk[96], uevent[4096];
	size_t len;
	int n = snprintf(disk, sizeof(disk), "/sys/dev/block/%u:%u", major(dev),
			 minor(dev));
	const char *type;

	if (!read_uevent(disk, uevent, sizeof(uevent)))
		return CF_DENIED_NOT;
	if (lists_device(uevent))
		return CF_DENIED_DEVICE;
	type = value_of(uevent, "DEVTYPE", &len);
	if (type && len == 9 && !memcmp(type, "partition", len)) {
		snprintf(disk + n, sizeof(disk) - (size_t)n, "/..");
		if (read_uevent(disk, uevent, sizeof(uevent)) &&
		    lists_device(uevent))
			return CF_DENIED_DEVICE;
	}
	return lists_driver(disk) ? CF_DENIED_DRIVER : CF_DENIED_NOT;
}

static enum cf_denied find_mount(const struct cf_mount *mount)
{
	if (is_listed(CF_CFG_DENYLIST_MOUNTS, mount->point,
		      strlen(mount->point)))
		return CF_DENIED_MOUNT;
	if (is_listed(CF_CFG_DENYLIST_FILESYSTEMS, mount->type,
		      strlen(mount->type)))
		return CF_DENIED_FILESYSTEM;
	/* by name, if the file system's device number is none of sysfs's */
	if (!strncmp(mount->source, "/dev/", 5) &&
	    is_listed(CF_CFG_DENYLIST_DEVICES, mount->source + 5,
		      strlen(mount->source + 5)))
		return CF_DENIED_DEVICE;
	return CF_DENIED_NOT;
}

enum cf_denied cf_denylist_find(uint64_t mount_number, dev_t dev, dev_t disk)
{
	struct cf_mount mount;
	enum cf_denied denied = CF_DENIED_NOT;
	int err;

	if (!lists)
		return CF_DENIED_NOT;
	err = cf_mount_find(mount_number, dev, &mount);
	if (err)
		cf_log(CF_LOG_WARN,
		       "denylist: no mount %llu of device %u:%u: %s",
		       (unsigned long long)mount_number, major(dev), minor(dev),
		       strerror(-err));
	else
		denied = find_mount(&mount);
	if (denied)
		return denied;
	if (!disk)
		disk = err ? dev : mount.dev;
	return find_disk(disk);
}

enum cf_denied cf_denylist_find_type(const char *type)
{
	return lists && is_listed(CF_CFG_DENYLIST_FILESYSTEMS, type,
				  strlen(type)) ?
		       CF_DENIED_FILESYSTEM :
		       CF_DENIED_NOT;
}
