// SPDX-License-Identifier: Apache-2.0
/*
 * place - /proc/self/mountinfo and /sys/dev/block, read.
 *
 * The kernel names a file's mount (statx), so that btrfs subvolumes and bind
 * mounts are told apart, which a device number cannot do.
 */
#include "place.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "sysfs.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

/* Blanks and such stand there as \040. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && isdigit((unsigned char)from[1]) &&
		    isdigit((unsigned char)from[2]) &&
		    isdigit((unsigned char)from[3])) {
			*to = (char)((from[1] - '0') * 64 +
				     (from[2] - '0') * 8 + from[3] - '0');
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* ID PARENT MAJOR:MINOR ROOT MOUNT OPTIONS [FIELD...] - TYPE SOURCE SUPER */
static bool parse_line(const char *text, struct place *p)
{
	const char *rest = strstr(text, " - ");

	*p = (struct place){ .node = -1 };
	if (!rest ||
	    sscanf(text, "%u %*u %u:%u %*s %1023s %1023s", &p->id, &p->major,
		   &p->minor, p->mount, p->options) != 5 ||
	    sscanf(rest, " - %63s %1023s", p->type, p->source) < 1)
		return false;
	unescape(p->mount);
	unescape(p->source);
	return true;
}

/* The disk that holds the partition, or the disk itself. */
static void name_disk(struct place *p, char *real)
{
	snprintf(p->name, sizeof(p->name), "%s", sys_base(real));
	if (sys_exists("%s/partition", real)) {
		char *slash = strrchr(real, '/');

		*slash = '\0';
	}
	snprintf(p->disk, sizeof(p->disk), "%s", sys_base(real));
}

static void name_bus(struct place *p, const char *disk)
{
	static const struct {
		const char *prefix, *bus;
	} buses[] = {
		{ "sd", "SCSI" },     { "sr", "SCSI" },	  { "vd", "virtio" },
		{ "loop", "loop" },   { "ram", "RAM" },	  { "zram", "RAM" },
		{ "mmcblk", "MMC" },  { "pmem", "pmem" }, { "nbd", "network" },
		{ "rbd", "network" }, { "xvd", "Xen" },	  { "dm-", "mapper" },
	};
	char text[64];

	if (!strncmp(p->disk, "nvme", 4)) {
		bool fabric = sys_line(text, sizeof(text),
				       "%s/device/transport", disk) &&
			      strcmp(text, "pcie") != 0;

		snprintf(p->bus, sizeof(p->bus), "NVMe%s%.40s",
			 fabric ? " over " : "", fabric ? text : "");
		return;
	}
	if (sys_line(text, sizeof(text), "%s/md/level", disk)) {
		snprintf(p->bus, sizeof(p->bus), "md %.40s", text);
		return;
	}
	for (size_t i = 0; i < sizeof(buses) / sizeof(buses[0]); i++)
		if (!strncmp(p->disk, buses[i].prefix, strlen(buses[i].prefix)))
			snprintf(p->bus, sizeof(p->bus), "%s", buses[i].bus);
}

/* The last driver on the way from the disk up to its adapter. */
static void find_driver(struct place *p, const char *disk)
{
	char real[SYS_PATH], link[SYS_PATH];

	if (!sys_real(real, sizeof(real), "%s/device", disk))
		return;
	while (strrchr(real, '/') > real) {
		if (sys_real(link, sizeof(link), "%s/driver", real) &&
		    strcmp(sys_base(link), "pcieport") != 0)
			snprintf(p->driver, sizeof(p->driver), "%.63s",
				 sys_base(link));
		if (p->node < 0)
			p->node = (int)sys_number(-1, "%s/numa_node", real);
		/* a PCI device: above it are bridges */
		if (sys_exists("%s/vendor", real) &&
		    sys_exists("%s/config", real))
			return;
		*strrchr(real, '/') = '\0';
	}
}

static void look_at_device(struct place *p)
{
	char disk[SYS_PATH];

	if (!p->major || !sys_real(disk, sizeof(disk), "/sys/dev/block/%u:%u",
				   p->major, p->minor)) {
		p->major = p->minor = 0;
		return;
	}
	name_disk(p, disk);
	name_bus(p, disk);
	sys_line(p->model, sizeof(p->model), "%s/device/model", disk);
	find_driver(p, disk);
}

static bool mount_of(int fd, unsigned *id)
{
	struct statx stx = { 0 };

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) ||
	    !(stx.stx_mask & STATX_MNT_ID))
		return false;
	*id = (unsigned)stx.stx_mnt_id;
	return true;
}

static bool find_mount(int fd, struct place *place)
{
	FILE *mounts = sys_open("/proc/self/mountinfo");
	struct stat st = { 0 };
	char text[8192];
	struct place line;
	unsigned id = 0;
	bool by_id = mount_of(fd, &id), found = false;

	if (fstat(fd, &st) || !mounts) {
		if (mounts)
			fclose(mounts);
		return false;
	}
	while (fgets(text, sizeof(text), mounts)) {
		if (!parse_line(text, &line) ||
		    (by_id ? line.id != id :
			     line.major != major(st.st_dev) ||
				     line.minor != minor(st.st_dev)))
			continue;
		*place = line;
		found = true;
	}
	fclose(mounts);
	return found;
}

bool place_of_file(int fd, struct place *place)
{
	struct stat st = { 0 };
	bool found = find_mount(fd, place);

	if (!found)
		*place = (struct place){ .node = -1 };
	if (!fstat(fd, &st) && S_ISBLK(st.st_mode)) {
		place->major = major(st.st_rdev);
		place->minor = minor(st.st_rdev);
	}
	look_at_device(place);
	return found;
}

static void make_plain(char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			*text = '?';
}

void place_make_plain(struct place *place)
{
	make_plain(place->type);
	make_plain(place->mount);
	make_plain(place->source);
	make_plain(place->options);
}

void place_each(bool (*each)(const struct place *place, void *arg), void *arg)
{
	FILE *mounts = sys_open("/proc/self/mountinfo");
	char text[8192];
	struct place line;

	while (mounts && fgets(text, sizeof(text), mounts)) {
		if (!parse_line(text, &line))
			continue;
		look_at_device(&line);
		if (!each(&line, arg))
			break;
	}
	if (mounts)
		fclose(mounts);
}
