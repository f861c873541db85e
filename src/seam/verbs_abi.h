// SPDX-License-Identifier: Apache-2.0
/*
 * verbs_abi - the slice of rdma-core's binary interface that we speak.
 *
 * Written from the layouts, so that no header of rdma-core is needed; where
 * there is one, tests/abi/test_verbs_abi.c compares every field and value.
 * Structs that we never look into are void pointers.
 */
#ifndef CF_SEAM_VERBS_ABI_H
#define CF_SEAM_VERBS_ABI_H

#include <stddef.h>
#include <stdint.h>

#define CF_IBV_PORT_ACTIVE 4
#define CF_IBV_QPT_DRIVER 0xff
#define CF_IBV_QP_INIT_ATTR_PD 1
#define CF_IBV_QPS_INIT 1
#define CF_IBV_QPS_RTR 2
#define CF_IBV_QP_STATE (1 << 0)
#define CF_IBV_QP_ACCESS_FLAGS (1 << 3)
#define CF_IBV_QP_PKEY_INDEX (1 << 4)
#define CF_IBV_QP_PORT (1 << 5)
#define CF_IBV_QP_AV (1 << 7)
#define CF_IBV_QP_PATH_MTU (1 << 8)
#define CF_IBV_QP_MIN_RNR_TIMER (1 << 15)
#define CF_IBV_ACCESS_LOCAL_WRITE (1 << 0)
#define CF_IBV_ACCESS_REMOTE_WRITE (1 << 1)
#define CF_IBV_ACCESS_REMOTE_READ (1 << 2)
#define CF_IBV_ACCESS_REMOTE_ATOMIC (1 << 3)
#define CF_IBV_ACCESS_RELAXED_ORDERING (1 << 20)
#define CF_MLX5DV_QP_INIT_ATTR_MASK_DC (1 << 1)
#define CF_MLX5DV_DCTYPE_DCT 1

/* Made by the library; we only read it. */
struct cf_ibv_mr {
	void *context;
	void *pd;
	void *addr;
	size_t length;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

/* The first fields of the library's struct. */
struct cf_ibv_qp {
	void *context;
	void *qp_context;
	void *pd;
	void *send_cq;
	void *recv_cq;
	void *srq;
	uint32_t handle;
	uint32_t qp_num;
};

/* Ours for the library to fill, with room for fields of later versions. */
struct cf_ibv_port_attr {
	int state;
	int max_mtu;
	int active_mtu;
	int gid_tbl_len;
	uint32_t port_cap_flags;
	uint32_t max_msg_sz;
	uint32_t bad_pkey_cntr;
	uint32_t qkey_viol_cntr;
	uint16_t pkey_tbl_len;
	uint16_t lid;
	unsigned char rest[128];
};

struct cf_ibv_srq_init_attr {
	void *srq_context;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;
};

struct cf_ibv_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct cf_ibv_qp_init_attr_ex {
	void *qp_context;
	void *send_cq;
	void *recv_cq;
	void *srq;
	struct cf_ibv_qp_cap cap;
	int qp_type;
	int sq_sig_all;
	uint32_t comp_mask;
	void *pd;
	uint64_t rest[16];
};

struct cf_ibv_ah_attr {
	unsigned char dgid[16] __attribute__((aligned(8)));
	uint32_t flow_label;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint16_t dlid __attribute__((aligned(8)));
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t is_global;
	uint8_t port_num;
};

struct cf_ibv_qp_attr {
	int qp_state;
	int cur_qp_state;
	int path_mtu;
	int path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	unsigned qp_access_flags;
	struct cf_ibv_qp_cap cap;
	struct cf_ibv_ah_attr ah_attr;
	struct cf_ibv_ah_attr alt_ah_attr;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint32_t rate_limit;
};

struct cf_mlx5dv_qp_init_attr {
	uint64_t comp_mask;
	uint32_t create_flags;
	int dc_type __attribute__((aligned(8)));
	uint64_t dct_access_key;
	uint64_t send_ops_flags;
};

#endif
