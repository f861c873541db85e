// SPDX-License-Identifier: Apache-2.0
/* rdma_sys - the folders of /sys that fake_verbs's NICs are found in. */
#ifndef TESTS_RDMA_RDMA_SYS_H
#define TESTS_RDMA_RDMA_SYS_H

#include <stdbool.h>
#include <stdint.h>

struct rdma_sys_nic {
	const char *name;
	const char *pci;     /* below /sys/devices */
	const char *gids[4]; /* by index; a '2' in front: RoCE v2, else v1 */
	uint16_t lid;
	bool plugged;
};

#define RDMA_SYS_NICS 5
extern const struct rdma_sys_nic rdma_sys_nics[RDMA_SYS_NICS];

bool rdma_sys_has_gid(const struct rdma_sys_nic *nic,
		      const unsigned char gid[16]);

/* What is opened below /sys is looked for there, until the end. */
void rdma_sys_begin(void);
void rdma_sys_end(void);

#endif
