// SPDX-License-Identifier: Apache-2.0
/*
 * nic - the RDMA NICs that properties.rdma_dev_addr_list names, opened.
 *
 * The library moves no byte by RDMA: it lets NICs reach registered GPU memory
 * and describes that to a user-space file system, whose server then moves the
 * bytes (core/remote.h). Each NIC has what such a server needs to come in
 * unasked: a target of mlx5's dynamically connected transport (DC).
 *
 * The set is made once a session, after its open and outside of its lock, for
 * the loader is asked; the session holds a reference and each registration of
 * memory. The last one closes the NICs. Constant once made.
 */
#ifndef CF_CORE_NIC_H
#define CF_CORE_NIC_H

#include <stdbool.h>
#include "seam/verbs.h"

#define CF_MAX_NICS 16

/* Where an address leads, by sysfs. */
struct cf_nic_place {
	char device[64]; /* "mlx5_0" */
	unsigned port;
	unsigned gid_index;
	unsigned char gid[16];
	uint32_t ip; /* of IPv4, in network order; 0: none */
};

/*
 * The port that has this address (IPv4 or IPv6, as a RoCE GID) or is the
 * first of the device of this name. False: there is none. Any thread.
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
	bool foreign; /* the parent's, before a fork: not ours to close */
	bool dma_buf, virtual_address; /* by which memory may be registered */
	int access;		       /* what who comes may do, IBV_ACCESS_ */
	unsigned nr;
	struct cf_nic nic[CF_MAX_NICS];
};

struct cf_config;

/* What the session asks for; its lock is held. */
void cf_nics_want(const struct cf_config *config);
/*
 * Opens what is wanted and is not open yet. True: there are NICs now, which
 * know of no buffer. Holds no lock of the caller's.
 */
bool cf_nics_settle(void);
/* The session's reference goes. */
void cf_nics_close(void);

/* Whether configuration names any. Any thread. */
bool cf_nics_wanted(void);
/* A reference, or NULL where none could be opened. Any thread. */
struct cf_nics *cf_nics_get(void);
void cf_nics_put(struct cf_nics *nics);

void cf_nics_fork_prepare(void);
void cf_nics_fork_parent(void);
void cf_nics_fork_child(void);

#endif
