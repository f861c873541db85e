// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_machine - what /proc and /sys say of a machine, in any bytes.
 *
 * The input is a tree of files: a line "@PATH", then the content up to the next
 * such line; of a link the content is its target. A container shows such files
 * as it likes, so whatever they say, readers answer within their bounds, and
 * what is written of them is what it should be.
 */
#include <cufile.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <yyjson.h>
#include "core/config_internal.h"
#include "core/cpus.h"
#include "core/denylist.h"
#include "core/mount.h"
#include "core/nic.h"
#include "core/nvfs_gate.h"
#include "core/pci.h"
#include "core/quota.h"
#include "core/rm_client.h"
#include "core/topology.h"
#include "core/topology_file.h"
#include "seam/os.h"
#include "target.h"

#define MAX_FILES 128
#define MAX_OPEN 16
#define FIRST_FD 12345
#define OUTPUT "the output"

struct text {
	const char *at;
	size_t size;
};

static struct {
	struct text path[MAX_FILES], content[MAX_FILES];
	unsigned nr;
} tree;

/* A file or a folder that is open; path empty: free. */
static struct {
	char path[1024];
	struct text left; /* of a file */
	unsigned next;	  /* of a folder: the first file not looked at */
	bool is_output;
} files[MAX_OPEN];

static struct {
	char *text;
	size_t size;
} output;

/* ------------------------------------------------------------- the tree */

static void take_apart(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;

	tree.nr = 0;
	while (at < end && tree.nr < MAX_FILES) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		const char *next;

		if (*at != '@' || !line)
			return;
		for (next = line; next && (next + 1 == end || next[1] != '@');)
			next = next + 1 < end ?
				       memchr(next + 1, '\n',
					      (size_t)(end - next - 1)) :
				       NULL;
		next = next ? next : end;
		tree.path[tree.nr] =
			(struct text){ at + 1, (size_t)(line - at - 1) };
		tree.content[tree.nr++] =
			(struct text){ line + (line < next),
				       (size_t)(next - line) - (line < next) };
		at = next + (next < end);
	}
}

static const struct text *find(const char *path)
{
	size_t len = strlen(path);

	for (unsigned i = 0; i < tree.nr; i++)
		if (tree.path[i].size == len &&
		    !memcmp(tree.path[i].at, path, len))
			return &tree.content[i];
	return NULL;
}

/* The name in that folder which leads to file i; its size is 0 if none does. */
static struct text child(const char *folder, unsigned i)
{
	const struct text *path = &tree.path[i];
	size_t len = strlen(folder);
	struct text name = { 0 };
	const char *slash;

	if (path->size <= len + 1 || memcmp(path->at, folder, len) ||
	    path->at[len] != '/')
		return name;
	name = (struct text){ path->at + len + 1, path->size - len - 1 };
	slash = memchr(name.at, '/', name.size);
	if (slash)
		name.size = (size_t)(slash - name.at);
	if (name.size > NAME_MAX || memchr(name.at, '\0', name.size))
		name.size = 0;
	return name;
}

static bool is_folder(const char *path)
{
	for (unsigned i = 0; i < tree.nr; i++)
		if (child(path, i).size)
			return true;
	return false;
}

static bool came_before(const char *folder, unsigned i)
{
	struct text name = child(folder, i);

	for (unsigned k = 0; k < i; k++) {
		struct text other = child(folder, k);

		if (other.size == name.size &&
		    !memcmp(other.at, name.at, name.size))
			return true;
	}
	return false;
}

/* ------------------------------------------------------- system calls */

static int fake_open(const char *path, int flags, mode_t mode)
{
	const struct text *content = find(path);
	bool is_output = !strcmp(path, OUTPUT);
	int i = 0;

	must(strlen(path) < sizeof(files[0].path));
	if (!is_output && !content && !is_folder(path))
		return -ENOENT;
	if (flags & O_DIRECTORY && !is_folder(path))
		return -ENOTDIR;
	while (files[i].path[0])
		must(++i < MAX_OPEN);
	snprintf(files[i].path, sizeof(files[i].path), "%s", path);
	files[i].left = content ? *content : (struct text){ 0 };
	files[i].next = 0;
	files[i].is_output = is_output;
	return FIRST_FD + i;
}

static int fake_close(int fd)
{
	must(fd >= FIRST_FD && fd < FIRST_FD + MAX_OPEN &&
	     files[fd - FIRST_FD].path[0]);
	files[fd - FIRST_FD].path[0] = '\0';
	return 0;
}

static ssize_t fake_read(int fd, void *buf, size_t size)
{
	struct text *left = &files[fd - FIRST_FD].left;

	if (size > left->size)
		size = left->size;
	if (!size)
		return 0;
	memcpy(buf, left->at, size);
	left->at += size;
	left->size -= size;
	return (ssize_t)size;
}

static ssize_t fake_write(int fd, const void *buf, size_t size)
{
	must(files[fd - FIRST_FD].is_output);
	output.text = realloc(output.text, output.size + size + 1);
	must(output.text);
	memcpy(output.text + output.size, buf, size);
	output.size += size;
	return (ssize_t)size;
}

static ssize_t fake_get_dents(int fd, void *buf, size_t size)
{
	size_t used = 0;

	for (unsigned *i = &files[fd - FIRST_FD].next; *i < tree.nr; (*i)++) {
		const char *folder = files[fd - FIRST_FD].path;
		struct text name = child(folder, *i);
		size_t room =
			(offsetof(struct dirent64, d_name) + name.size + 8) &
			~(size_t)7;
		struct dirent64 *entry;

		if (!name.size || came_before(folder, *i))
			continue;
		if (room > size - used)
			break;
		entry = (struct dirent64 *)((char *)buf + used);
		entry->d_reclen = (unsigned short)room;
		memcpy(entry->d_name, name.at, name.size);
		entry->d_name[name.size] = '\0';
		used += room;
	}
	return (ssize_t)used;
}

static ssize_t fake_read_link(const char *path, char *buf, size_t size)
{
	const struct text *content = find(path);

	if (!content)
		return -ENOENT;
	if (size > content->size)
		size = content->size;
	memcpy(buf, content->at, size);
	return (ssize_t)size;
}

static int fake_ioctl(int fd, unsigned long request, void *arg)
{
	return 0;
}

static int fake_dup_above(int fd, int lowest)
{
	return -EMFILE;
}

static int fake_get_affinity(int tid, unsigned long *mask, size_t size)
{
	memset(mask, 0, size);
	mask[0] = 1;
	return (int)size;
}

static struct cf_config *config; /* its denylists have a name each */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char text[] = "{\"denylist\": {\"drivers\": [\"nvme\"], "
				   "\"devices\": [\"sda\"], \"mounts\": "
				   "[\"/mnt\"], \"filesystems\": [\"nfs\"]}}";
	static char buf[sizeof(text) + CF_JSON_PADDING];
	static struct cf_os os;

	os = cf_os_real;
	os.open = fake_open;
	os.close = fake_close;
	os.read = fake_read;
	os.write = fake_write;
	os.get_dents = fake_get_dents;
	os.read_link = fake_read_link;
	os.ioctl = fake_ioctl;
	os.dup_above = fake_dup_above;
	os.get_affinity = fake_get_affinity;
	cf_os = &os;
	memcpy(buf, text, sizeof(text));
	config = cf_config_new();
	must(config &&
	     !cf_config_apply_json(config, "", buf, sizeof(text) - 1));
	cf_denylist_configure(config);
	return 0;
}

/* -------------------------------------------------------------- checks */

static void check_cpus(void)
{
	struct cf_cpus cpus;

	must(cf_quota_cpus() >= 1);
	must(!cf_cpus_of_process(&cpus) && cf_cpus_count(&cpus) == 1);
	(void)cf_node_cpus(0, &cpus);
}

static CUresult bus_id(char *text, int size, CUdevice dev)
{
	snprintf(text, (size_t)size, "0000:01:00.0");
	return CF_CU_SUCCESS;
}

static void check_gpu(void)
{
	const struct cf_cuda cuda = { .device_get_pci_bus_id = bus_id };
	struct cf_rm_export_info info;
	struct cf_rm_client client;

	must(cf_gpu_node(&cuda, 0) >= -1);
	if (!cf_rm_client_make(&client, 0, "0000:01:00.0", &info))
		cf_rm_client_end(&client);
}

static void check_pci(void)
{
	struct cf_pci *list;
	unsigned nr;

	if (cf_pci_list(&list, &nr)) /* it is no folder */
		return;
	for (unsigned i = 0; i < nr; i++) {
		const struct cf_pci *a = &list[i], *b = &list[nr - 1 - i];

		must(a->address[0] && !strncmp(a->path, "pci", 3));
		must(!i || strcmp(list[i - 1].address, a->address) <= 0);
		must(a->node >= -1);
		must(cf_pci_order(a, b) == cf_pci_order(b, a));
		must(cf_pci_distance(a, b)[0]);
	}
	free(list);
}

/* A comment on the first line, and JSON. */
static void check_topology(void)
{
	yyjson_doc *doc;
	char *line;
	int err;

	output.size = 0;
	err = cf_topology_write(OUTPUT);
	if (err && find("/sys/bus/pci/devices")) /* as above */
		return;
	must(!err);
	output.text[output.size] = '\0';
	line = strchr(output.text, '\n');
	must(!strncmp(output.text, "// ", 3) && line);
	doc = yyjson_read(line, strlen(line), 0);
	must(doc);
	yyjson_doc_free(doc);
}

static void check_nic(const char *name)
{
	struct cf_nic_place place;

	if (cf_nic_find(name, &place))
		must(place.device[0] && place.port <= UCHAR_MAX &&
		     place.gid_index <= UCHAR_MAX);
}

static void check_storage(void)
{
	struct statx stx = { .stx_mode = S_IFREG,
			     .stx_dev_major = 259,
			     .stx_dev_minor = 1 };
	enum cf_nvfs_gate gate;
	struct cf_mount mount;
	int target;

	if (!cf_mount_find(0, makedev(259, 1), &mount))
		must(mount.dev == makedev(259, 1));
	must(cf_denylist_find(29, makedev(8, 1), 0) <= CF_DENIED_FILESYSTEM);
	cf_nvfs_open(true);
	gate = cf_nvfs_file_gate(0, &stx, &target);
	must(target >= -1 && target < CU_FILE_MAX_TARGET_TYPES);
	must(gate != CF_NVFS_PASS ||
	     (target >= 0 && cf_nvfs_targets() >> target & 1));
	cf_nvfs_close();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t nothing[1];

	take_apart(data ? data : nothing, size);
	check_cpus();
	check_gpu();
	check_pci();
	check_topology();
	check_nic("10.0.0.1");
	check_nic("mlx5_0");
	check_storage();
	for (int i = 0; i < MAX_OPEN; i++)
		must(!files[i].path[0]);
	return 0;
}
