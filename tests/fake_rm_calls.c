// SPDX-License-Identifier: Apache-2.0
/*
 * fake_rm_calls - what the driver answers to ioctls.
 *
 * A refusal is a status in the argument, and the ioctl answers 0; one of
 * another size, or at the wrong node, answers -EINVAL. Numbers are the driver's
 * own, once more and not by core/rm_abi.h's names.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/rm_abi.h"
#include "fake_rm_files.h"

/* with the size of the argument in them */
#define CONTROL 0xc020462aul
#define ALLOC 0xc030462bul
#define MAP 0xc038464eul
#define REGISTER 0xc00446c9ul
#define PAGES 0xc0384627ul
#define FREE 0xc0104629ul

/* the only GPU's, and not its minor */
#define INSTANCE 2

/* ---------------------------------------------------------- new objects */

static int make_client(struct fake_rm_file *ctl, struct cf_rm_alloc_arg *arg)
{
	static uint32_t nr;
	int refusal = fake_rm_refusal(FAKE_RM_CLIENT);

	if (refusal)
		return refusal;
	if (arg->client || arg->parent || arg->object || arg->params ||
	    arg->params_size)
		return INVALID_ARGUMENT;
	if (ctl->client) /* the real one has room for more */
		return NO_RESOURCES;
	ctl->client = 0xc1d00000 | ++nr;
	fake_rm_nr_clients++;
	arg->object = ctl->client;
	return 0;
}

/* A handle that nothing of the client has; 0, or why it cannot be. */
int fake_rm_new_handle(const struct fake_rm_file *ctl, uint32_t handle)
{
	if (!handle || handle == ctl->client)
		return INVALID_HANDLE;
	for (int i = 0; i < FAKE_RM_MAX_PAGES; i++)
		if (ctl->pages[i] == handle)
			return DUPLICATE_NAME;
	return handle == ctl->device || handle == ctl->memory ? DUPLICATE_NAME :
								0;
}

static bool is_plain_device(const struct cf_rm_device_params *p)
{
	return !p->share && !p->target_client && !p->target_device &&
	       !p->flags && !p->va_size && !p->va_start && !p->va_limit &&
	       !p->va_mode;
}

static int make_device(struct fake_rm_file *ctl,
		       const struct cf_rm_alloc_arg *arg)
{
	const struct cf_rm_device_params *params =
		(const void *)(uintptr_t)arg->params;
	int refusal = fake_rm_refusal(FAKE_RM_DEVICE);

	if (refusal)
		return refusal;
	if (!ctl->client || arg->client != ctl->client)
		return INVALID_CLIENT;
	if (arg->parent != ctl->client)
		return INVALID_PARENT;
	if (fake_rm_new_handle(ctl, arg->object))
		return fake_rm_new_handle(ctl, arg->object);
	if (!params || arg->params_size != 56 || !is_plain_device(params))
		return INVALID_ARGUMENT;
	if (params->instance != INSTANCE)
		return INVALID_CLASS;
	if (ctl->device) /* the real one has room for more */
		return NO_RESOURCES;
	ctl->device = arg->object;
	return 0;
}

static int alloc(struct fake_rm_file *ctl, struct cf_rm_alloc_arg *arg)
{
	if (arg->rights)
		return INVALID_ARGUMENT;
	if (arg->flags)
		return INVALID_FLAGS;
	switch (arg->class) {
	case 0x41:
		return make_client(ctl, arg);
	case 0x80:
		return make_device(ctl, arg);
	default:
		return INVALID_CLASS;
	}
}

/* -------------------------------------------------------------- commands */

/* The fake CUDA driver exports the file that is the memory. */
static bool is_export(int fd)
{
	static const char name[] = "/memfd:fakecuda";
	char link[64], target[64] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return !fake_rm_file(fd) &&
	       readlink(link, target, sizeof(target) - 1) > 0 &&
	       !strncmp(target, name, strlen(name));
}

static int export_info(struct cf_rm_export_info *info, size_t size)
{
	int refusal = fake_rm_refusal(FAKE_RM_INFO);

	if (refusal)
		return refusal;
	if (size != (fake_rm.is_535 ? 76 : 80))
		return INVALID_ARGUMENT;
	if (!is_export(info->fd))
		return INVALID_PARAMETER;
	/* all is written, and not in the same places by all drivers */
	memset((char *)info + sizeof(info->fd), FAKE_RM_METADATA,
	       size - sizeof(info->fd));
	info->instance = INSTANCE;
	memcpy((char *)&info->gpu + (fake_rm.is_535 ? 0 : sizeof(info->gpu)),
	       &(uint16_t){ 1 }, sizeof(uint16_t)); /* the most objects */
	return 0;
}

/* The client's descriptor becomes one of the memory, which so is held. */
static int hold(struct fake_rm_file *ctl, int fd, int memory)
{
	struct stat st;

	if (fstat(memory, &st) || dup3(memory, fd, O_CLOEXEC) < 0)
		return OPERATING_SYSTEM;
	ctl->size = (size_t)st.st_size;
	ctl->holder = fd;
	return 0;
}

static int import(struct fake_rm_file *ctl, int fd, struct cf_rm_import *params,
		  size_t size)
{
	int refusal = fake_rm_refusal(FAKE_RM_IMPORT);
	uint32_t handle;

	if (refusal)
		return refusal;
	if (size != 652)
		return INVALID_ARGUMENT;
	handle = params->objects[0];
	if (!is_export(params->fd))
		return INVALID_PARAMETER;
	if (params->nr != 1 || params->first)
		return OUT_OF_RANGE;
	params->types[0] = (uint8_t)fake_rm.type;
	if (!fake_rm.type) /* that place of the descriptor is empty */
		return 0;
	if (!ctl->device || params->parent != ctl->device)
		return INVALID_PARENT;
	if (fake_rm_new_handle(ctl, handle))
		return fake_rm_new_handle(ctl, handle);
	if (ctl->memory) /* the real one has room for more */
		return NO_RESOURCES;
	ctl->memory = handle;
	return hold(ctl, fd, params->fd);
}

static int control(struct fake_rm_file *ctl, int fd,
		   const struct cf_rm_control_arg *arg)
{
	void *params = (void *)(uintptr_t)arg->params;

	if (!ctl->client || arg->client != ctl->client)
		return INVALID_CLIENT;
	if (arg->object != ctl->client)
		return arg->object == ctl->device ? NOT_SUPPORTED : NOT_FOUND;
	if (!params || !arg->params_size)
		return INVALID_ARGUMENT;
	if (arg->flags)
		return INVALID_FLAGS;
	switch (arg->command) {
	case 0x3d08:
		return export_info(params, arg->params_size);
	case 0x3d0b:
		return fake_rm_export(ctl, params, arg->params_size);
	case 0x3d0c:
		return import(ctl, fd, params, arg->params_size);
	default:
		return NOT_SUPPORTED;
	}
}

/* --------------------------------------------------------------- mapping */

/* As of the ioctl itself: this argument has no status. */
static int register_with(struct fake_rm_file *node,
			 const struct cf_rm_register_arg *arg)
{
	int refusal = fake_rm_refusal(FAKE_RM_REGISTER);
	struct fake_rm_file *ctl = fake_rm_file(arg->ctl);

	if (refusal)
		return refusal < 0 ? refusal : -EINVAL;
	if (node->ctl || !ctl || ctl->kind != FAKE_RM_IS_CTL)
		return -EINVAL;
	node->ctl = ctl;
	ctl->refs++;
	return 0;
}

static int map(struct fake_rm_file *ctl, struct cf_rm_map_arg *arg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fake_rm_file *node = fake_rm_file(arg->node);
	int refusal = fake_rm_refusal(FAKE_RM_MAP);

	if (refusal)
		return refusal;
	if (!ctl->client || arg->client != ctl->client)
		return INVALID_CLIENT;
	if (!ctl->device || arg->device != ctl->device || !ctl->memory ||
	    arg->memory != ctl->memory)
		return NOT_FOUND;
	if (arg->flags)
		return INVALID_FLAGS;
	if (!arg->size || arg->size > ctl->size)
		return INVALID_LIMIT;
	if (arg->offset) /* the real one could */
		return INVALID_OFFSET;
	if (!node || node->kind != FAKE_RM_IS_NODE || node->ctl != ctl)
		return INVALID_ARGUMENT;
	if (node->shown)
		return STATE_IN_USE;
	if (dup3(ctl->holder, arg->node, O_CLOEXEC) < 0)
		return OPERATING_SYSTEM;
	node->shown = (arg->size + page - 1) & ~(page - 1);
	arg->addr = 0x5a5a5a5a5000; /* of the GPU's, and nothing to us */
	return 0;
}

/* A status goes to its place in the argument. */
static int say(int answer, uint32_t *status)
{
	if (answer < 0)
		return answer;
	*status = (uint32_t)answer;
	return 0;
}

static int call_ctl(struct fake_rm_file *ctl, int fd, unsigned long request,
		    void *arg)
{
	switch (request) {
	case ALLOC:
		return say(alloc(ctl, arg),
			   &((struct cf_rm_alloc_arg *)arg)->status);
	case CONTROL:
		return say(control(ctl, fd, arg),
			   &((struct cf_rm_control_arg *)arg)->status);
	case FREE:
		return say(fake_rm_free(ctl, arg),
			   &((struct cf_rm_free_arg *)arg)->status);
	case MAP:
		return say(map(ctl, arg),
			   &((struct cf_rm_map_arg *)arg)->status);
	default:
		return -EINVAL;
	}
}

int fake_rm_call(struct fake_rm_file *file, int fd, unsigned long request,
		 void *arg)
{
	if (file->kind == FAKE_RM_IS_CTL)
		return call_ctl(file, fd, request, arg);
	if (file->kind == FAKE_RM_IS_NODE && request == REGISTER)
		return register_with(file, arg);
	if (file->kind == FAKE_RM_IS_NODE && request == PAGES)
		return say(fake_rm_pin(file, arg),
			   &((struct cf_rm_pages_arg *)arg)->status);
	return -EINVAL;
}
