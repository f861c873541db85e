// SPDX-License-Identifier: Apache-2.0
/* nic_open - opens a device, and makes its queues and a target. */
#include "core/nic_open.h"

#include <string.h>
#include "core/log.h"

#define MIN_ENTRIES 16
#define SRQ_ENTRIES 16
/* a server reads and writes; not every device has atomics for a target */
#define TARGET_ACCESS \
	(CF_IBV_ACCESS_LOCAL_WRITE | CF_IBV_ACCESS_REMOTE_WRITE | \
	 CF_IBV_ACCESS_REMOTE_READ)

static void *open_device(const struct cf_verbs *verbs, const char *name)
{
	int nr = 0;
	void **list = verbs->get_device_list(&nr), *context = NULL;

	for (int i = 0; list && i < nr && !context; i++)
		if (!strcmp(verbs->get_device_name(list[i]), name))
			context = verbs->open_device(list[i]);
	if (list)
		verbs->free_device_list(list);
	return context;
}

static bool make_target(const struct cf_verbs *verbs, struct cf_nic *nic,
			uint64_t key)
{
	struct cf_ibv_qp_init_attr_ex attr = {
		.send_cq = nic->cq,
		.recv_cq = nic->cq,
		.srq = nic->srq,
		.qp_type = CF_IBV_QPT_DRIVER,
		.comp_mask = CF_IBV_QP_INIT_ATTR_PD,
		.pd = nic->pd,
	};
	struct cf_mlx5dv_qp_init_attr mlx5 = {
		.comp_mask = CF_MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_type = CF_MLX5DV_DCTYPE_DCT,
		.dct_access_key = key,
	};

	nic->target = verbs->create_qp(nic->context, &attr, &mlx5);
	return nic->target;
}

/* A target stays in the state ready-to-receive. */
static bool start_target(const struct cf_verbs *verbs, const struct cf_nic *nic,
			 const struct cf_nic_wish *w, int mtu)
{
	struct cf_ibv_qp_attr attr = {
		.qp_state = CF_IBV_QPS_INIT,
		.qp_access_flags = (unsigned)w->access & TARGET_ACCESS,
		.pkey_index = (uint16_t)w->pkey_index,
		.port_num = (uint8_t)nic->place.port,
	};

	if (verbs->modify_qp(nic->target, &attr,
			     CF_IBV_QP_STATE | CF_IBV_QP_ACCESS_FLAGS |
				     CF_IBV_QP_PKEY_INDEX | CF_IBV_QP_PORT))
		return false;
	attr = (struct cf_ibv_qp_attr){
		.qp_state = CF_IBV_QPS_RTR,
		.path_mtu = mtu,
		.min_rnr_timer = (uint8_t)w->min_rnr_timer,
		.ah_attr = {
			.sgid_index = (uint8_t)nic->place.gid_index,
			.hop_limit = (uint8_t)w->hop_limit,
			.is_global = 1,
			.port_num = (uint8_t)nic->place.port,
		},
	};
	return !verbs->modify_qp(nic->target, &attr,
				 CF_IBV_QP_STATE | CF_IBV_QP_MIN_RNR_TIMER |
					 CF_IBV_QP_AV | CF_IBV_QP_PATH_MTU);
}

/* NULL, or what went wrong; then all that was made is freed. */
static const char *fill_nic(const struct cf_verbs *verbs,
			    const struct cf_nic_wish *w, struct cf_nic *nic)
{
	struct cf_ibv_srq_init_attr srq = { .max_wr = SRQ_ENTRIES,
					    .max_sge = 1 };
	unsigned depth = w->cq_depth > MIN_ENTRIES ? w->cq_depth : MIN_ENTRIES;
	struct cf_ibv_port_attr port = { 0 };

	nic->context = open_device(verbs, nic->place.device);
	if (!nic->context)
		return "the device does not open";
	if (verbs->query_port(nic->context, (uint8_t)nic->place.port, &port) ||
	    port.state != CF_IBV_PORT_ACTIVE)
		return "its port is not active";
	nic->lid = port.lid;
	nic->pd = verbs->alloc_pd(nic->context);
	if (!nic->pd)
		return "no protection domain";
	nic->cq = verbs->create_cq(nic->context, (int)depth, NULL, NULL, 0);
	nic->srq = nic->cq ? verbs->create_srq(nic->pd, &srq) : NULL;
	if (!nic->srq)
		return "no queues";
	if (!make_target(verbs, nic, w->dc_key))
		return "no DC target (mlx5 alone has them)";
	return start_target(verbs, nic, w, port.active_mtu) ?
		       NULL :
		       "its DC target does not start";
}

void cf_nic_close(const struct cf_verbs *verbs, struct cf_nic *nic)
{
	if (nic->target)
		verbs->destroy_qp(nic->target);
	if (nic->srq)
		verbs->destroy_srq(nic->srq);
	if (nic->cq)
		verbs->destroy_cq(nic->cq);
	if (nic->pd)
		verbs->dealloc_pd(nic->pd);
	if (nic->context)
		verbs->close_device(nic->context);
}

bool cf_nic_open(const struct cf_verbs *verbs, const struct cf_nic_wish *w,
		 const char *name, struct cf_nic *nic)
{
	const char *wrong = "no RDMA device has that address or name";

	*nic = (struct cf_nic){ 0 };
	if (cf_nic_find(name, &nic->place))
		wrong = fill_nic(verbs, w, nic);
	if (!wrong) {
		cf_log(CF_LOG_INFO, "rdma: %s is %s port %u GID %u, target %#x",
		       name, nic->place.device, nic->place.port,
		       nic->place.gid_index, nic->target->qp_num);
		return true;
	}
	cf_nic_close(verbs, nic);
	cf_log(CF_LOG_WARN, "rdma: %s of properties.rdma_dev_addr_list: %s",
	       name, wrong);
	return false;
}
