// SPDX-License-Identifier: Apache-2.0
/*
 * rm_pages - an object of memory, and an export of it.
 *
 * The driver sets itself up for exports with the first one and takes that down
 * with the last, which takes a millisecond. So one page of ours is exported all
 * the time, by a descriptor of its own.
 */
#include "core/rm_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "seam/os.h"

/* handles */
#define KEPT 0x0cf00003u
#define OFFERED 0x0cf00004u

/* statuses that may pass */
#define NO_MEMORY 0x51
#define NO_RESOURCES 0x1a

static int make_object(const struct cf_rm_client *client, uint32_t object,
		       const void *mem, size_t size)
{
	struct cf_rm_pages_arg arg = {
		.client = client->root,
		.parent = CF_RM_OUR_DEVICE,
		.object = object,
		.class = CF_RM_PAGES_OF_OURS,
		.flags = CF_RM_PAGES_SCATTERED | CF_RM_PAGES_CACHED |
			 CF_RM_PAGES_READ_ONLY | CF_RM_PAGES_NOT_SHOWN,
		.addr = (uintptr_t)mem,
		.limit = size - 1,
		.node = -1,
	};
	int err = cf_os->ioctl(client->node, CF_RM_PAGES, &arg);

	if (err >= 0 && (arg.status == NO_MEMORY || arg.status == NO_RESOURCES))
		return -ENOMEM;
	return cf_rm_answer("pages", err, arg.status);
}

static void free_object(const struct cf_rm_client *client, uint32_t object)
{
	struct cf_rm_free_arg arg = { .client = client->root,
				      .parent = CF_RM_OUR_DEVICE,
				      .object = object };
	int err = cf_os->ioctl(client->ctl, CF_RM_FREE, &arg);

	(void)cf_rm_answer("free", err, arg.status);
}

/* Object 0: ends what is exported by fd. */
static int export(const struct cf_rm_pages *pages, int fd, uint32_t object)
{
	struct cf_rm_export params = { .fd = fd,
				       .device = CF_RM_OUR_DEVICE,
				       .max_objects = pages->like.max_objects,
				       .objects = { object },
				       .nr = 1 };
	uint32_t status;
	int err;

	memcpy(params.metadata, pages->like.metadata, sizeof(params.metadata));
	err = cf_rm_control(&pages->client, CF_RM_EXPORT, &params,
			    sizeof(params), &status);
	return cf_rm_answer("export", err, status);
}

static int open_outlet(int *fd)
{
	*fd = cf_os->open("/dev/nvidiactl", O_RDWR | O_CLOEXEC, 0);
	if (*fd < 0)
		return cf_rm_failed("outlet", *fd);
	*fd = cf_os_move_up(*fd);
	return 0;
}

/* This saves time only, so a failure is ignored. */
static void keep_one(struct cf_rm_pages *pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	pages->kept = cf_os->map_anon(page);
	if (!pages->kept ||
	    make_object(&pages->client, KEPT, pages->kept, page))
		return;
	if (!open_outlet(&pages->keeper))
		(void)export(pages, pages->keeper, KEPT);
	free_object(&pages->client, KEPT);
}

int cf_rm_pages_make(struct cf_rm_pages *pages, int fd, const char *address)
{
	int err;

	*pages = (struct cf_rm_pages){ .outlet = -1, .keeper = -1 };
	err = cf_rm_client_make(&pages->client, fd, address, &pages->like);
	if (!err)
		err = open_outlet(&pages->outlet);
	if (err)
		cf_rm_pages_end(pages);
	else
		keep_one(pages);
	return err;
}

void cf_rm_pages_end(struct cf_rm_pages *pages)
{
	if (pages->outlet >= 0)
		cf_os->close(pages->outlet);
	if (pages->keeper >= 0)
		cf_os->close(pages->keeper);
	cf_rm_client_end(&pages->client);
	if (pages->kept)
		cf_os->unmap(pages->kept, (size_t)sysconf(_SC_PAGESIZE));
	*pages = (struct cf_rm_pages){ .outlet = -1, .keeper = -1 };
}

int cf_rm_pages_offer(struct cf_rm_pages *pages, const void *mem, size_t size)
{
	int err = make_object(&pages->client, OFFERED, mem, size);

	if (err)
		return err;
	err = export(pages, pages->outlet, OFFERED);
	if (err)
		free_object(&pages->client, OFFERED);
	return err;
}

void cf_rm_pages_take_back(struct cf_rm_pages *pages)
{
	(void)export(pages, pages->outlet, 0);
	free_object(&pages->client, OFFERED);
}
