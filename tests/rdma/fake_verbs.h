// SPDX-License-Identifier: Apache-2.0
/*
 * fake_verbs - a table of verbs with three NICs behind it, and the server of a
 * user-space file system at the other end of their wires.
 *
 * Every rule that rdma-core and the mlx5 kernel driver make is checked, and a
 * broken one counted. Their folders of /sys are there too: mlx5_0 has the
 * addresses 10.0.0.1 and fd00::1 and sits beside GPU 0, mlx5_1 has 10.0.0.2
 * and sits behind another host bridge, as mlx5_2 with 10.0.0.3; plain0 with
 * 10.0.0.4 knows no dynamic connections, and mlx5_9 has no cable.
 */
#ifndef TESTS_RDMA_FAKE_VERBS_H
#define TESTS_RDMA_FAKE_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "seam/verbs_abi.h"

enum fake_row {
	FV_GET_DEVICE_LIST,
	FV_OPEN_DEVICE,
	FV_ALLOC_PD,
	FV_QUERY_PORT,
	FV_CREATE_CQ,
	FV_CREATE_SRQ,
	FV_CREATE_QP,
	FV_MODIFY_QP,
	FV_REG_MR,
	FV_REG_DMABUF_MR,
	FV_NR_ROWS
};

/* Stands in for cf_verbs and for /sys until the end, which checks both. */
void fake_verbs_begin(void);
void fake_verbs_end(void);
/* The nth call of this row fails, and all later ones; nth 0: none does. */
void fake_verbs_fail(enum fake_row row, unsigned nth, bool persist);
bool fake_verbs_fired(void);
/* As a libibverbs from before dma-bufs. */
void fake_verbs_no_dma_buf(void);

unsigned fake_verbs_calls(enum fake_row row);
unsigned fake_verbs_live(void); /* objects */
unsigned fake_verbs_live_mrs(void);
int fake_verbs_access(void); /* of the last registration */

/* What the last target was made with. */
struct fake_target {
	uint64_t key;
	struct cf_ibv_qp_attr init, ready;
	int entries; /* of its completion queue */
};
struct fake_target fake_verbs_target(void);

/* A description, read as a server does. */
struct fake_desc {
	uint64_t addr;
	uint32_t size, rkey, queue_pair;
	unsigned lid;
	unsigned char gid[16];
	const char *device; /* whose target it leads to */
};

/*
 * The server: size bytes to or from the memory that text describes. False:
 * the NIC would refuse it, and why is printed. Any thread.
 */
bool fake_server_moves(const char *text, int len, bool to_client, void *bytes,
		       size_t size, struct fake_desc *desc);

#endif
