// SPDX-License-Identifier: Apache-2.0
/*
 * rm_client - a client of NVIDIA's kernel driver, with one device.
 *
 * Ours is a client beside libcuda's, which does not hear of it and whose
 * objects it does not touch. All that a client has made ends with the
 * descriptor that made it. No lock: one owner.
 */
#ifndef CF_CORE_RM_CLIENT_H
#define CF_CORE_RM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/rm_abi.h"

struct cf_rm_client {
	bool made;
	int ctl, node; /* /dev/nvidiactl, and the GPU's node */
	uint32_t root; /* its handle */
};

/* The handle of a client's device; its user chooses those of other objects. */
#define CF_RM_OUR_DEVICE 0x0cf00001u

/*
 * Makes one for the GPU at the PCI address ("0000:3b:00.0"). fd: an export by
 * libcuda of memory on that GPU; *info is what the driver says about it. 0, or
 * -errno: there is none, and the log names the step that failed.
 */
int cf_rm_client_make(struct cf_rm_client *client, int fd, const char *address,
		      struct cf_rm_export_info *info);
/* Does nothing if *client is all zero, as after an end. */
void cf_rm_client_end(struct cf_rm_client *client);

/* A command to the client. Answers as ioctl does; *status: the driver's. */
int cf_rm_control(const struct cf_rm_client *client, enum cf_rm_command command,
		  void *params, size_t size, uint32_t *status);

/* Answer err, or -ENOTSUP for a status, and log which step failed. */
int cf_rm_failed(const char *step, int err);
int cf_rm_answer(const char *step, int err, uint32_t status);

#endif
