// SPDX-License-Identifier: Apache-2.0
/*
 * rm - a client of the driver's, with one device and one object of memory.
 *
 * All three end with the descriptor that made them. No lock.
 */
#include "core/rm.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "core/log.h"
#include "core/rm_abi.h"
#include "core/sysfs.h"
#include "seam/os.h"

/* handles of our choice, in a client of our own */
#define DEVICE 0x0cf00001u
#define MEMORY 0x0cf00002u

/* err, with a line that says which step it was. */
static int failed(const char *what, int err)
{
	cf_log(CF_LOG_INFO, "rm %s: %s", what, strerror(-err));
	return err;
}

/* 0, or -ENOTSUP with a line that says what was refused. */
static int answer(const char *what, int err, uint32_t status)
{
	if (err >= 0 && !status)
		return 0;
	cf_log(CF_LOG_INFO, "rm %s: %s, status %#x", what,
	       err < 0 ? strerror(-err) : "refused", status);
	return -ENOTSUP;
}

static int alloc(int ctl, struct cf_rm_alloc_arg *arg, const char *what)
{
	int err = cf_os->ioctl(ctl, CF_RM_ALLOC, arg);

	return answer(what, err, arg->status);
}

static int make_client(int ctl, uint32_t *client)
{
	struct cf_rm_alloc_arg arg = { .class = CF_RM_CLIENT };
	int err = alloc(ctl, &arg, "client");

	*client = arg.object;
	return err;
}

static int make_device(int ctl, uint32_t client, uint32_t instance)
{
	struct cf_rm_device_params params = { .instance = instance };
	struct cf_rm_alloc_arg arg = {
		.client = client,
		.parent = client,
		.object = DEVICE,
		.class = CF_RM_DEVICE,
		.params = (uintptr_t)&params,
		.params_size = sizeof(params),
	};

	return alloc(ctl, &arg, "device");
}

static int control(int ctl, uint32_t client, enum cf_rm_command command,
		   void *params, size_t size, uint32_t *status)
{
	struct cf_rm_control_arg arg = {
		.client = client,
		.object = client,
		.command = command,
		.params = (uintptr_t)params,
		.params_size = (uint32_t)size,
	};
	int err = cf_os->ioctl(ctl, CF_RM_CONTROL, &arg);

	*status = arg.status;
	return err;
}

/* Which of the driver's devices it is. */
static int find_instance(int ctl, uint32_t client, int fd, uint32_t *instance)
{
	static const size_t sizes[] = { sizeof(struct cf_rm_export_info),
					CF_RM_EXPORT_INFO_OLD };
	struct cf_rm_export_info info;
	uint32_t status = 1;
	int err = 0;

	for (int i = 0; i < 2 && (err < 0 || status); i++) {
		info = (struct cf_rm_export_info){ .fd = fd };
		err = control(ctl, client, CF_RM_EXPORT_INFO, &info, sizes[i],
			      &status);
	}
	*instance = info.instance;
	return answer("export info", err, status);
}

static int import(int ctl, uint32_t client, int fd)
{
	struct cf_rm_import params = {
		.fd = fd, .parent = DEVICE, .objects = { MEMORY }, .nr = 1
	};
	uint32_t status;
	int err = control(ctl, client, CF_RM_IMPORT, &params, sizeof(params),
			  &status);

	err = answer("import", err, status);
	if (!err && params.types[0] != CF_RM_IMPORTED_VIDMEM)
		err = failed("import of a GPU's memory", -ENOTSUP);
	return err;
}

/* The number of the GPU's node: /dev/nvidiaN. */
static int minor_of(const char *address)
{
	static const char key[] = "Device Minor:";
	char text[1024], lower[24] = "";
	const char *at;
	int minor, err;

	for (size_t i = 0; i < sizeof(lower) - 1 && address[i]; i++)
		lower[i] = (char)tolower((unsigned char)address[i]);
	err = cf_sysfs_text(text, sizeof(text),
			    "/proc/driver/nvidia/gpus/%s/information", lower);
	if (err)
		return failed("information", err);
	at = strstr(text, key);
	if (!at || sscanf(at + sizeof(key) - 1, "%d", &minor) != 1 || minor < 0)
		return failed("minor", -ENOTSUP);
	return minor;
}

static int open_node(int ctl, const char *address)
{
	struct cf_rm_register_arg arg = { .ctl = ctl };
	int minor = minor_of(address), node, err;
	char path[32];

	if (minor < 0)
		return minor;
	snprintf(path, sizeof(path), "/dev/nvidia%d", minor);
	node = cf_os->open(path, O_RDWR | O_CLOEXEC, 0);
	if (node < 0)
		return failed(path, node);
	node = cf_os_move_up(node);
	err = answer("register", cf_os->ioctl(node, CF_RM_REGISTER, &arg), 0);
	if (!err)
		return node;
	cf_os->close(node);
	return err;
}

/* What the next mapping of the node shows. */
static int show(const struct cf_rm_map *map, uint32_t client)
{
	struct cf_rm_map_arg arg = {
		.client = client,
		.device = DEVICE,
		.memory = MEMORY,
		.size = map->size,
		.node = map->node,
	};
	int err = cf_os->ioctl(map->ctl, CF_RM_MAP, &arg);

	return answer("map", err, arg.status);
}

static int map_by(struct cf_rm_map *map, int fd, const char *address)
{
	uint32_t client, instance = 0;
	void *mem;
	int err = make_client(map->ctl, &client);

	if (!err)
		err = find_instance(map->ctl, client, fd, &instance);
	if (!err)
		err = make_device(map->ctl, client, instance);
	if (!err)
		err = import(map->ctl, client, fd);
	if (err)
		return err;
	map->node = open_node(map->ctl, address);
	if (map->node < 0)
		return map->node;
	err = show(map, client);
	if (err)
		return err;
	err = cf_os->map_shared(map->node, map->size, &mem);
	if (err)
		return failed("mapping of the node", err);
	map->mem = mem;
	return 0;
}

int cf_rm_map(int fd, const char *address, size_t size, struct cf_rm_map *map)
{
	int ctl = cf_os->open("/dev/nvidiactl", O_RDWR | O_CLOEXEC, 0);
	int err;

	*map = (struct cf_rm_map){ 0 };
	if (ctl < 0)
		return failed("/dev/nvidiactl", ctl);
	map->made = true;
	map->size = size;
	map->ctl = cf_os_move_up(ctl);
	map->node = -1;
	err = map_by(map, fd, address);
	if (err)
		cf_rm_unmap(map);
	return err;
}

void cf_rm_unmap(struct cf_rm_map *map)
{
	if (!map->made)
		return;
	if (map->mem)
		cf_os->unmap(map->mem, map->size);
	if (map->node >= 0)
		cf_os->close(map->node);
	if (map->ctl >= 0)
		cf_os->close(map->ctl);
	*map = (struct cf_rm_map){ 0 };
}
