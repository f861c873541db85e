// SPDX-License-Identifier: Apache-2.0
/* pci - GPUs, disks and networks of the PCI tree, and how far apart. */
#include "core/pci.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/sysfs.h"

#define DEVICES "/sys/bus/pci/devices"
#define NVIDIA 0x10de

#define ONE_HOST_BRIDGE 0x1000
#define ONE_NODE 0x2000
#define OTHER_NODE 0x4000
#define MAX_STEPS 0xfff
#define MAX_PIX 4 /* steps over one bridge, or through one switch */

/* Each line of the file is a region: first address, last address, flags. */
uint64_t cf_pci_largest_kib(const char *resource)
{
	uint64_t first, last, largest = 0;

	for (const char *line = resource; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%" SCNx64 " %" SCNx64, &first, &last) == 2 &&
		    last > first && last - first + 1 > largest)
			largest = last - first + 1;
	}
	return largest >> 10;
}

/* ----------------------------------------------------------------- list */

struct list {
	struct cf_pci *items;
	unsigned nr, room;
	int err;
};

/* The kind of a device, by its PCI class; false: of no interest. */
static bool kind_of(const char *address, enum cf_pci_kind *kind)
{
	long long code = cf_sysfs_number(0, DEVICES "/%s/class", address);

	switch (code >> 16) {
	case 0x01:
		*kind = code >> 8 == 0x0108 ? CF_PCI_NVME : CF_PCI_STORAGE;
		return true;
	case 0x02:
		*kind = CF_PCI_NETWORK;
		return true;
	case 0x03:
		*kind = CF_PCI_GPU;
		return cf_sysfs_number(0, DEVICES "/%s/vendor", address) ==
		       NVIDIA;
	default:
		return false;
	}
}

/* Keeps the smallest name of a folder, so that the result does not vary. */
static bool keep_first(void *arg, const char *name)
{
	char *kept = arg;

	size_t size = strlen(name) + 1;

	if (size <= sizeof(((struct cf_pci *)0)->name) &&
	    (!*kept || strcmp(name, kept) < 0))
		memcpy(kept, name, size);
	return true;
}

/* The name that the device's driver gives it. */
static void find_name(struct cf_pci *item)
{
	static const char *const folders[] = { "nvme", "infiniband", "net" };

	for (size_t i = 0; !item->name[0] && i < 3; i++) {
		char folder[96];

		snprintf(folder, sizeof(folder), DEVICES "/%s/%s",
			 item->address, folders[i]);
		/* most devices have none of them */
		(void)cf_sysfs_each(folder, keep_first, item->name);
	}
}

/* The device's path in /sys/devices, from its host bridge down. */
static bool find_path(struct cf_pci *item)
{
	char target[sizeof(item->path)];
	const char *root;

	if (cf_sysfs_link(target, sizeof(target), DEVICES "/%s", item->address))
		return false;
	root = strstr(target, "/pci");
	if (!root)
		return false;
	snprintf(item->path, sizeof(item->path), "%s", root + 1);
	return true;
}

static void find_facts(struct cf_pci *item)
{
	long long node =
		cf_sysfs_number(-1, DEVICES "/%s/numa_node", item->address);
	char text[2048];

	item->node = node >= 0 && node <= INT_MAX ? (int)node : -1;
	if (!cf_sysfs_text(text, sizeof(text), DEVICES "/%s/resource",
			   item->address))
		item->bar_kib = cf_pci_largest_kib(text);
	if (item->kind != CF_PCI_GPU)
		find_name(item);
}

static bool has_room(struct list *list)
{
	unsigned room = list->room ? 2 * list->room : 16;
	struct cf_pci *grown;

	if (list->nr < list->room)
		return true;
	grown = realloc(list->items, room * sizeof(*grown));
	if (!grown) {
		list->err = -ENOMEM;
		return false;
	}
	list->items = grown;
	list->room = room;
	return true;
}

static bool add(void *arg, const char *name)
{
	struct list *list = arg;
	struct cf_pci item = { .node = -1 };

	if (strlen(name) >= sizeof(item.address))
		return true;
	memcpy(item.address, name, strlen(name) + 1);
	if (!kind_of(name, &item.kind) || !find_path(&item))
		return true;
	if (!has_room(list))
		return false;
	find_facts(&item);
	list->items[list->nr++] = item;
	return true;
}

static int by_address(const void *a, const void *b)
{
	return strcmp(((const struct cf_pci *)a)->address,
		      ((const struct cf_pci *)b)->address);
}

int cf_pci_list(struct cf_pci **out, unsigned *nr)
{
	struct list list = { .err = 0 };
	int err = cf_sysfs_each(DEVICES, add, &list);

	*out = NULL;
	*nr = 0;
	/* without the folder there are no devices */
	if (err == -ENOENT)
		err = 0;
	if (list.err)
		err = list.err;
	if (err || !list.nr) {
		free(list.items);
		return err;
	}
	qsort(list.items, list.nr, sizeof(*list.items), by_address);
	*out = list.items;
	*nr = list.nr;
	return 0;
}

/* ------------------------------------------------------------- distances */

/* How many names there are in the path. */
static unsigned names_in(const char *path)
{
	unsigned nr = *path != '\0' && *path != '/';

	for (; *path; path++)
		nr += *path == '/' && path[1];
	return nr;
}

/* The length of the names that both begin with. */
static size_t in_common(const char *a, const char *b)
{
	size_t same = 0;

	for (size_t i = 0;; i++) {
		if ((a[i] == '/' || !a[i]) && (b[i] == '/' || !b[i]))
			same = i;
		if (a[i] != b[i] || !a[i])
			return same;
	}
}

/*
 * Counts bridges in the first len bytes, which two devices share. A host bridge
 * is named "pci0000:00"; all names below one are bridges, also those below a
 * device that has a host bridge of its own (VMD).
 */
static unsigned bridges(const char *path, size_t len)
{
	unsigned nr = 0;
	size_t at = 0;

	while (at < len) {
		size_t name = strcspn(path + at, "/");

		nr = strncmp(path + at, "pci", 3) ? nr + 1 : nr;
		at += name + 1;
	}
	return nr;
}

unsigned cf_pci_order(const struct cf_pci *a, const struct cf_pci *b)
{
	size_t same = in_common(a->path, b->path);
	unsigned steps = names_in(a->path + same) + names_in(b->path + same);

	if (steps > MAX_STEPS)
		steps = MAX_STEPS;
	if (!same)
		return steps + (a->node == b->node && a->node >= 0 ?
					ONE_NODE :
					OTHER_NODE);
	if (!bridges(a->path, same))
		return steps + ONE_HOST_BRIDGE;
	return steps ? steps : 1;
}

const char *cf_pci_distance(const struct cf_pci *a, const struct cf_pci *b)
{
	unsigned order = cf_pci_order(a, b);

	if (order >= OTHER_NODE)
		return "SYS";
	if (order >= ONE_NODE)
		return "NODE";
	if (order >= ONE_HOST_BRIDGE)
		return "PHB";
	return order <= MAX_PIX ? "PIX" : "PXB";
}
