// SPDX-License-Identifier: Apache-2.0
/*
 * verbs - every call to the RDMA libraries, as one replaceable table.
 *
 * libibverbs.so.1 and libmlx5.so.1 are opened at run time, when configuration
 * names NICs, or not at all; once opened they stay open. Calls behave as those
 * of the same names: a failure is NULL, or not 0.
 */
#ifndef CF_SEAM_VERBS_H
#define CF_SEAM_VERBS_H

#include "seam/verbs_abi.h"

struct cf_verbs {
	void **(*get_device_list)(int *nr);
	void (*free_device_list)(void **list);
	const char *(*get_device_name)(void *device);
	void *(*open_device)(void *device);
	int (*close_device)(void *context);
	void *(*alloc_pd)(void *context);
	int (*dealloc_pd)(void *pd);
	int (*query_port)(void *context, uint8_t port,
			  struct cf_ibv_port_attr *attr);
	void *(*create_cq)(void *context, int entries, void *cq_context,
			   void *channel, int vector);
	int (*destroy_cq)(void *cq);
	void *(*create_srq)(void *pd, struct cf_ibv_srq_init_attr *attr);
	int (*destroy_srq)(void *srq);
	/* mlx5dv_create_qp: also for the vendor's own kinds of queue pairs */
	struct cf_ibv_qp *(*create_qp)(void *context,
				       struct cf_ibv_qp_init_attr_ex *attr,
				       struct cf_mlx5dv_qp_init_attr *mlx5);
	int (*modify_qp)(struct cf_ibv_qp *qp, struct cf_ibv_qp_attr *attr,
			 int mask);
	int (*destroy_qp)(struct cf_ibv_qp *qp);
	struct cf_ibv_mr *(*reg_mr)(void *pd, void *addr, size_t length,
				    int access);
	int (*dereg_mr)(struct cf_ibv_mr *mr);
	/* optional */
	struct cf_ibv_mr *(*reg_dmabuf_mr)(void *pd, uint64_t offset,
					   size_t length, uint64_t iova, int fd,
					   int access);
};

/*
 * The table; or NULL, and *wrong names what is missing. Calls the loader, so
 * the caller holds no lock. Any thread.
 */
const struct cf_verbs *cf_verbs_open(const char **wrong);

/* Tests: use this table from now on (NULL: the real one again). */
void cf_verbs_replace(const struct cf_verbs *table);

#endif
