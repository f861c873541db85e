// SPDX-License-Identifier: Apache-2.0
/*
 * fake_rm_pages - pages of the process, pinned and exported.
 *
 * What the fake CUDA driver imports is a file that says where they are; how
 * they are read then is its own affair (fakecuda/pinned.c).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/rm_abi.h"
#include "fake_rm_files.h"

/* scattered, cached by the CPU, read-only, and not to be mapped */
#define FLAGS (1u << 4 | 1u << 12 | 1u << 21 | 1u << 30)

static int place_of(const struct fake_rm_file *ctl, uint32_t handle)
{
	int i = 0;

	while (i < FAKE_RM_MAX_PAGES && ctl->pages[i] != handle)
		i++;
	return i;
}

/* As pages are taken: what is not there, or cannot be read, is refused. */
static bool is_readable(uint64_t addr, uint64_t size)
{
	return !madvise((void *)(uintptr_t)addr, size, MADV_POPULATE_READ);
}

static int pin(struct fake_rm_file *ctl, const struct cf_rm_pages_arg *arg)
{
	int err = fake_rm_new_handle(ctl, arg->object);
	int place = place_of(ctl, 0);

	if (err)
		return err;
	if (place == FAKE_RM_MAX_PAGES)
		return NO_RESOURCES;
	ctl->pages[place] = arg->object;
	ctl->where[place].addr = arg->addr;
	ctl->where[place].size = arg->limit + 1;
	fake_rm_nr_pages++;
	return 0;
}

int fake_rm_pin(struct fake_rm_file *node, const struct cf_rm_pages_arg *arg)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int refusal = fake_rm_refusal(FAKE_RM_PAGES);

	if (refusal)
		return refusal;
	if (!node->ctl || arg->client != node->ctl->client)
		return INVALID_CLIENT;
	if (arg->parent != node->ctl->device)
		return INVALID_PARENT;
	if (arg->class != 0x71)
		return INVALID_CLASS;
	if (arg->flags != FLAGS)
		return INVALID_FLAGS;
	if (arg->addr % page || (arg->limit + 1) % page || arg->limit + 1 == 0)
		return INVALID_LIMIT;
	return is_readable(arg->addr, arg->limit + 1) ? pin(node->ctl, arg) :
							INVALID_ADDRESS;
}

int fake_rm_free(struct fake_rm_file *ctl, const struct cf_rm_free_arg *arg)
{
	int refusal = fake_rm_refusal(FAKE_RM_FREE);
	int place = place_of(ctl, arg->object);

	if (refusal)
		return refusal;
	if (!ctl->client || arg->client != ctl->client)
		return INVALID_CLIENT;
	if (!arg->object || place == FAKE_RM_MAX_PAGES)
		return NOT_FOUND;
	if (arg->parent != ctl->device)
		return INVALID_PARENT;
	ctl->pages[place] = 0;
	fake_rm_nr_pages--;
	return 0;
}

/* The outlet's descriptor becomes one of a file that says what is in it. */
static int put_in(int outlet, const void *what, size_t size)
{
	int fd = memfd_create("fakerm pages", MFD_CLOEXEC);
	bool well = fd >= 0 && pwrite(fd, what, size, 0) == (ssize_t)size &&
		    dup3(fd, outlet, O_CLOEXEC) >= 0;

	if (fd >= 0)
		close(fd);
	return well ? 0 : OPERATING_SYSTEM;
}

static bool is_as_libcuda_s(const struct cf_rm_export *params)
{
	for (size_t i = 0; i < sizeof(params->metadata); i++)
		if (params->metadata[i] != FAKE_RM_METADATA)
			return false;
	return params->max_objects == 1;
}

int fake_rm_export(struct fake_rm_file *ctl, const struct cf_rm_export *params,
		   size_t size)
{
	struct fake_rm_file *outlet = fake_rm_file(params->fd);
	int refusal = fake_rm_refusal(FAKE_RM_EXPORT), place, err;
	uint32_t object = params->objects[0];

	if (refusal)
		return refusal;
	if (size != 2128 || params->nr != 1 || params->first)
		return INVALID_ARGUMENT;
	if (!outlet || outlet->kind != FAKE_RM_IS_CTL || outlet->client ||
	    params->device != ctl->device || !is_as_libcuda_s(params))
		return INVALID_PARAMETER;
	place = place_of(ctl, object);
	if (object && place == FAKE_RM_MAX_PAGES)
		return NOT_FOUND;
	err = object ? put_in(params->fd, &ctl->where[place],
			      sizeof(ctl->where[place])) :
		       put_in(params->fd, "", 0);
	if (!err) {
		fake_rm_nr_exports += object != 0;
		fake_rm_nr_exports -= outlet->exports;
		outlet->exports = object != 0;
	}
	return err;
}
