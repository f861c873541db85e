// SPDX-License-Identifier: Apache-2.0
/*
 * nic - the RDMA NICs that properties.rdma_dev_addr_list names, opened.
 *
 * The library moves no byte by RDMA: it lets NICs reach registered GPU memory
 * and describes that memory to a user-space file system, whose server then
 * moves the bytes (core/remote.h). Each NIC has what such a server needs to
 * connect: a target of mlx5's dynamically connected transport (DC).
 *
 * The set is made once in a session, after its open and without its lock, since
 * it calls the loader. The session and each registration of memory hold a
 * reference; the last put closes the NICs. Constant once made.
 */
#ifndef CF_CORE_NIC_H
#define CF_CORE_NIC_H

#include <stdbool.h>
#include "seam/verbs.h"

#define CF_MAX_NICS 16

/* The port that an address belongs to, by sysfs. */
struct cf_nic_place {
	char device[64]; /* "mlx5_0" */
	unsigned port;
	unsigned gid_index;
	unsigned char gid[16];
	uint32_t ip; /* of IPv4, in network order; 0: none */
};

/*
 * The port that has this address (IPv4 or IPv6, as a RoCE GID), or the first
 * port of the device with this name. False: there is none. Any thread.
 */
bool cf_nic_find(const char *name, struct cf_nic_place *place);

struct cf_nic {
	struct cf_nic_place place;
	uint16_t lid;
	void *context, *pd, *cq, *srq;
	struct cf_ibv_qp *target;
};

struct cf_nics {
	_Atomic unsigned refs;
	const struct cf_verbs *verbs;
	bool foreign; /* the parent's, after a fork: not ours to close */
	bool dma_buf, virtual_address; /* how memory may be registered */
	int access;		       /* of servers to memory, IBV_ACCESS_ */
	unsigned nr;
	struct cf_nic nic[CF_MAX_NICS];
};

struct cf_config;

/* Notes which NICs to open; called under the session lock. */
void cf_nics_want(const struct cf_config *config);
/*
 * Opens the NICs that are wanted, if that was not done yet. True: NICs were
 * opened, and know of no buffer yet. The caller holds no lock.
 */
bool cf_nics_settle(void);
/* Puts the session's reference. */
void cf_nics_close(void);

/* Whether configuration names NICs. Any thread. */
bool cf_nics_wanted(void);
/* A reference, or NULL where none could be opened. Any thread. */
struct cf_nics *cf_nics_get(void);
void cf_nics_put(struct cf_nics *nics);

void cf_nics_fork_prepare(void);
void cf_nics_fork_parent(void);
void cf_nics_fork_child(void);

#endif
