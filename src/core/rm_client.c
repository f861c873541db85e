// SPDX-License-Identifier: Apache-2.0
/* rm_client - opens the driver's two nodes and makes a client with a device. */
#include "core/rm_client.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "core/log.h"
#include "core/sysfs.h"
#include "seam/os.h"

int cf_rm_failed(const char *step, int err)
{
	cf_log(CF_LOG_INFO, "rm %s: %s", step, strerror(-err));
	return err;
}

int cf_rm_answer(const char *step, int err, uint32_t status)
{
	if (err >= 0 && !status)
		return 0;
	cf_log(CF_LOG_INFO, "rm %s: %s, status %#x", step,
	       err < 0 ? strerror(-err) : "refused", status);
	return -ENOTSUP;
}

static int alloc(int ctl, struct cf_rm_alloc_arg *arg, const char *what)
{
	int err = cf_os->ioctl(ctl, CF_RM_ALLOC, arg);

	return cf_rm_answer(what, err, arg->status);
}

static int make_root(struct cf_rm_client *client)
{
	struct cf_rm_alloc_arg arg = { .class = CF_RM_CLIENT };
	int err = alloc(client->ctl, &arg, "client");

	client->root = arg.object;
	return err;
}

static int make_device(const struct cf_rm_client *client, uint32_t instance)
{
	struct cf_rm_device_params params = { .instance = instance };
	struct cf_rm_alloc_arg arg = {
		.client = client->root,
		.parent = client->root,
		.object = CF_RM_OUR_DEVICE,
		.class = CF_RM_DEVICE,
		.params = (uintptr_t)&params,
		.params_size = sizeof(params),
	};

	return alloc(client->ctl, &arg, "device");
}

int cf_rm_control(const struct cf_rm_client *client, enum cf_rm_command command,
		  void *params, size_t size, uint32_t *status)
{
	struct cf_rm_control_arg arg = {
		.client = client->root,
		.object = client->root,
		.command = command,
		.params = (uintptr_t)params,
		.params_size = (uint32_t)size,
	};
	int err = cf_os->ioctl(client->ctl, CF_RM_CONTROL, &arg);

	*status = arg.status;
	return err;
}

/* Tells, among other things, which of the driver's devices it is. */
static int ask_export(const struct cf_rm_client *client, int fd,
		      struct cf_rm_export_info *info)
{
	static const size_t sizes[] = { sizeof(*info), CF_RM_EXPORT_INFO_OLD };
	uint32_t status = 1;
	int err = 0;

	for (int i = 0; i < 2 && (err < 0 || status); i++) {
		*info = (struct cf_rm_export_info){ .fd = fd };
		err = cf_rm_control(client, CF_RM_EXPORT_INFO, info, sizes[i],
				    &status);
		if (i) /* the old form lacks gpu: shift what follows */
			memmove(&info->max_objects, &info->gpu,
				sizeof(*info) -
					offsetof(struct cf_rm_export_info,
						 max_objects));
	}
	return cf_rm_answer("export info", err, status);
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
		return cf_rm_failed("information", err);
	at = strstr(text, key);
	if (!at || sscanf(at + sizeof(key) - 1, "%d", &minor) != 1 || minor < 0)
		return cf_rm_failed("minor", -ENOTSUP);
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
		return cf_rm_failed(path, node);
	node = cf_os_move_up(node);
	err = cf_rm_answer("register", cf_os->ioctl(node, CF_RM_REGISTER, &arg),
			   0);
	if (!err)
		return node;
	cf_os->close(node);
	return err;
}

static int make(struct cf_rm_client *client, int fd, const char *address,
		struct cf_rm_export_info *info)
{
	int err = make_root(client);

	if (!err)
		err = ask_export(client, fd, info);
	if (!err)
		err = make_device(client, info->instance);
	if (err)
		return err;
	client->node = open_node(client->ctl, address);
	return client->node < 0 ? client->node : 0;
}

int cf_rm_client_make(struct cf_rm_client *client, int fd, const char *address,
		      struct cf_rm_export_info *info)
{
	int ctl = cf_os->open("/dev/nvidiactl", O_RDWR | O_CLOEXEC, 0);
	int err;

	*client = (struct cf_rm_client){ 0 };
	if (ctl < 0)
		return cf_rm_failed("/dev/nvidiactl", ctl);
	*client = (struct cf_rm_client){ .made = true,
					 .ctl = cf_os_move_up(ctl),
					 .node = -1 };
	err = make(client, fd, address, info);
	if (err)
		cf_rm_client_end(client);
	return err;
}

void cf_rm_client_end(struct cf_rm_client *client)
{
	if (!client->made)
		return;
	if (client->node >= 0)
		cf_os->close(client->node);
	cf_os->close(client->ctl);
	*client = (struct cf_rm_client){ 0 };
}
