// SPDX-License-Identifier: Apache-2.0
/* Fields and values of seam/verbs_abi.h, compared with rdma-core's headers. */
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include "seam/verbs_abi.h"

#define SAME(ours, theirs) \
	_Static_assert((long long)(ours) == (long long)(theirs), #theirs)
#define AT(type, ours, theirs) \
	SAME(offsetof(struct cf_##type, ours), offsetof(struct type, theirs)); \
	SAME(sizeof(((struct cf_##type *)0)->ours), \
	     sizeof(((struct type *)0)->theirs))
#define FIELD(type, field) AT(type, field, field)
#define COVERS(type) \
	_Static_assert(sizeof(struct cf_##type) >= sizeof(struct type), #type)

SAME(CF_IBV_PORT_ACTIVE, IBV_PORT_ACTIVE);
SAME(CF_IBV_QPT_DRIVER, IBV_QPT_DRIVER);
SAME(CF_IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_PD);
SAME(CF_IBV_QPS_INIT, IBV_QPS_INIT);
SAME(CF_IBV_QPS_RTR, IBV_QPS_RTR);
SAME(CF_IBV_QP_STATE, IBV_QP_STATE);
SAME(CF_IBV_QP_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
SAME(CF_IBV_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX);
SAME(CF_IBV_QP_PORT, IBV_QP_PORT);
SAME(CF_IBV_QP_AV, IBV_QP_AV);
SAME(CF_IBV_QP_PATH_MTU, IBV_QP_PATH_MTU);
SAME(CF_IBV_QP_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
SAME(CF_IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
SAME(CF_IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
SAME(CF_IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
SAME(CF_IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
SAME(CF_IBV_ACCESS_RELAXED_ORDERING, IBV_ACCESS_RELAXED_ORDERING);
SAME(CF_MLX5DV_QP_INIT_ATTR_MASK_DC, MLX5DV_QP_INIT_ATTR_MASK_DC);
SAME(CF_MLX5DV_DCTYPE_DCT, MLX5DV_DCTYPE_DCT);

FIELD(ibv_mr, addr);
FIELD(ibv_mr, length);
FIELD(ibv_mr, rkey);
FIELD(ibv_qp, srq);
FIELD(ibv_qp, qp_num);
FIELD(ibv_port_attr, state);
FIELD(ibv_port_attr, active_mtu);
FIELD(ibv_port_attr, lid);
COVERS(ibv_port_attr);
AT(ibv_srq_init_attr, max_wr, attr.max_wr);
AT(ibv_srq_init_attr, max_sge, attr.max_sge);
COVERS(ibv_srq_init_attr);
FIELD(ibv_qp_init_attr_ex, send_cq);
FIELD(ibv_qp_init_attr_ex, recv_cq);
FIELD(ibv_qp_init_attr_ex, srq);
FIELD(ibv_qp_init_attr_ex, qp_type);
FIELD(ibv_qp_init_attr_ex, comp_mask);
FIELD(ibv_qp_init_attr_ex, pd);
COVERS(ibv_qp_init_attr_ex);
AT(ibv_ah_attr, sgid_index, grh.sgid_index);
AT(ibv_ah_attr, hop_limit, grh.hop_limit);
FIELD(ibv_ah_attr, sl);
FIELD(ibv_ah_attr, is_global);
FIELD(ibv_ah_attr, port_num);
SAME(sizeof(struct cf_ibv_ah_attr), sizeof(struct ibv_ah_attr));
FIELD(ibv_qp_attr, qp_state);
FIELD(ibv_qp_attr, path_mtu);
FIELD(ibv_qp_attr, qp_access_flags);
FIELD(ibv_qp_attr, ah_attr);
FIELD(ibv_qp_attr, pkey_index);
FIELD(ibv_qp_attr, min_rnr_timer);
FIELD(ibv_qp_attr, port_num);
SAME(sizeof(struct cf_ibv_qp_attr), sizeof(struct ibv_qp_attr));
FIELD(mlx5dv_qp_init_attr, comp_mask);
AT(mlx5dv_qp_init_attr, dc_type, dc_init_attr.dc_type);
AT(mlx5dv_qp_init_attr, dct_access_key, dc_init_attr.dct_access_key);
COVERS(mlx5dv_qp_init_attr);

int main(void)
{
	puts("rdma-core's headers say the same");
	return 0;
}
