// SPDX-License-Identifier: Apache-2.0
/*
 * rm_client - a client of NVIDIA's kernel driver, with one device.
 *
 * We are one beside libcuda: nothing is told to it, and nothing of its own is
 * touched. All that a client has made ends with the descriptor that made it.
 * No lock.
 */
#ifndef CF_CORE_RM_CLIENT_H
#define CF_CORE_RM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/rm_abi.h"

struct cf_rm_client {
	bool made;
	int ctl, node; /* descriptors that it lives by */
	uint32_t root; /* its handle */
};

/* The handle of its device; others are its user's to choose. */
#define CF_RM_OUR_DEVICE 0x0cf00001u

/*
 * Makes one for the GPU called address ("0000:3b:00.0"), memory of which, or
 * for which, the driver has exported as fd; *info is what it says of that. 0,
 * or -errno, and there is none. The log has the step that failed.
 */
int cf_rm_client_make(struct cf_rm_client *client, int fd, const char *address,
		      struct cf_rm_export_info *info);
/* All zero, or ended already: nothing. */
void cf_rm_client_end(struct cf_rm_client *client);

/* A command to the client; *status is the answer, what comes back the call's.
 */
int cf_rm_control(const struct cf_rm_client *client, enum cf_rm_command command,
		  void *params, size_t size, uint32_t *status);

/* err, or -ENOTSUP for a status, with a line that says which step it was. */
int cf_rm_failed(const char *step, int err);
int cf_rm_answer(const char *step, int err, uint32_t status);

#endif
