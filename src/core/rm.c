// SPDX-License-Identifier: Apache-2.0
/* rm - imports memory as one object, and maps it by the GPU's node. */
#include "core/rm.h"

#include <errno.h>
#include "seam/os.h"

#define MEMORY 0x0cf00002u /* its handle */

static int import(const struct cf_rm_client *client, int fd)
{
	struct cf_rm_import params = { .fd = fd,
				       .parent = CF_RM_OUR_DEVICE,
				       .objects = { MEMORY },
				       .nr = 1 };
	uint32_t status;
	int err = cf_rm_control(client, CF_RM_IMPORT, &params, sizeof(params),
				&status);

	err = cf_rm_answer("import", err, status);
	if (!err && params.types[0] != CF_RM_IMPORTED_VIDMEM)
		err = cf_rm_failed("import of a GPU's memory", -ENOTSUP);
	return err;
}

/* Has the next mapping of the node show that memory. */
static int show(const struct cf_rm_map *map)
{
	struct cf_rm_map_arg arg = {
		.client = map->client.root,
		.device = CF_RM_OUR_DEVICE,
		.memory = MEMORY,
		.size = map->size,
		.node = map->client.node,
	};
	int err = cf_os->ioctl(map->client.ctl, CF_RM_MAP, &arg);

	return cf_rm_answer("map", err, arg.status);
}

static int map_by(struct cf_rm_map *map, int fd)
{
	void *mem;
	int err = import(&map->client, fd);

	if (!err)
		err = show(map);
	if (err)
		return err;
	err = cf_os->map_shared(map->client.node, map->size, &mem);
	if (err)
		return cf_rm_failed("mapping of the node", err);
	map->mem = mem;
	return 0;
}

int cf_rm_map(int fd, const char *address, size_t size, struct cf_rm_map *map)
{
	struct cf_rm_export_info info;
	int err;

	*map = (struct cf_rm_map){ .size = size };
	err = cf_rm_client_make(&map->client, fd, address, &info);
	if (!err)
		err = map_by(map, fd);
	if (err)
		cf_rm_unmap(map);
	return err;
}

void cf_rm_unmap(struct cf_rm_map *map)
{
	if (map->mem)
		cf_os->unmap(map->mem, map->size);
	cf_rm_client_end(&map->client);
	*map = (struct cf_rm_map){ 0 };
}
