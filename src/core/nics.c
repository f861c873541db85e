// SPDX-License-Identifier: Apache-2.0
/*
 * nics - opens and closes the set.
 *
 * Lock: nics_lock, innermost; guards the wish, its number and the session's
 * set. NICs are opened and closed without it.
 */
#include "core/nic.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/config.h"
#include "core/log.h"

#define MIN_ENTRIES 16
#define SRQ_ENTRIES 16
/* a server reads and writes; atomics not every device has for a target */
#define TARGET_ACCESS \
	(CF_IBV_ACCESS_LOCAL_WRITE | CF_IBV_ACCESS_REMOTE_WRITE | \
	 CF_IBV_ACCESS_REMOTE_READ)

/* What configuration has to say, kept for settle. */
struct wish {
	unsigned nr;
	char name[CF_MAX_NICS][64];
	uint64_t dc_key;
	int access;
	bool dma_buf, virtual_address;
	unsigned pkey_index, min_rnr_timer, hop_limit, cq_depth;
};

static pthread_mutex_t nics_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wish wish;	/* nics_lock */
static unsigned long number;	/* nics_lock: of the wish */
static struct cf_nics *current; /* nics_lock */
static atomic_bool wanted;
static atomic_bool waiting; /* relaxed: spares settle the lock */

bool cf_nics_wanted(void)
{
	return atomic_load_explicit(&wanted, memory_order_relaxed);
}

/* ------------------------------------------------------------- the wish */

static uint64_t hex(const struct cf_config *config, enum cf_cfg id)
{
	return strtoull(cf_config_string(config, id), NULL, 16);
}

/* Contract 4: bits 0 to 3 are those of verbs. */
static int access_of(uint64_t mask)
{
	int access = (int)(mask & 0xf);

	return mask & 0x10 ? access | CF_IBV_ACCESS_RELAXED_ORDERING : access;
}

static void read_wish(const struct cf_config *config, struct wish *w)
{
	const char *peer = cf_config_string(config, CF_CFG_RDMA_PEER_TYPE);
	const char *const *names;
	size_t nr =
		cf_config_strings(config, CF_CFG_RDMA_DEV_ADDR_LIST, &names);

	*w = (struct wish){
		.dc_key = hex(config, CF_CFG_RDMA_DC_KEY),
		.access = access_of(hex(config, CF_CFG_RDMA_ACCESS_MASK)),
		.dma_buf = !*peer || !strcmp(peer, "dmabuf"),
		.virtual_address = strcmp(peer, "dmabuf"),
		.pkey_index = (unsigned)cf_config_size(config,
						       CF_CFG_RDMA_PKEY_INDEX),
		.min_rnr_timer =
			(unsigned)cf_config_size(config, CF_CFG_MIN_RNR_TIMER),
		.hop_limit =
			(unsigned)cf_config_size(config, CF_CFG_RDMA_HOP_LIMIT),
		.cq_depth = (unsigned)cf_config_size(config, CF_CFG_CQ_DEPTH),
	};
	for (size_t i = 0; i < nr && w->nr < CF_MAX_NICS; i++)
		snprintf(w->name[w->nr++], sizeof(w->name[0]), "%s", names[i]);
	if (nr > CF_MAX_NICS)
		cf_log(CF_LOG_WARN, "rdma: %zu NICs are named, %d are used", nr,
		       CF_MAX_NICS);
}

static bool can_be_served(const struct cf_config *config)
{
	const char *type = cf_config_string(config, CF_CFG_RDMA_TRANSPORT_TYPE);

	if (!*type || !strcmp(type, "DC_V1"))
		return true;
	cf_log(CF_LOG_WARN,
	       "rdma: properties.rdma_transport_type %s is not known here: "
	       "no NIC is used",
	       type);
	return false;
}

void cf_nics_want(const struct cf_config *config)
{
	struct wish w;

	read_wish(config, &w);
	if (w.nr && !can_be_served(config))
		w.nr = 0;
	pthread_mutex_lock(&nics_lock);
	wish = w;
	number++;
	pthread_mutex_unlock(&nics_lock);
	atomic_store_explicit(&wanted, w.nr, memory_order_relaxed);
	atomic_store_explicit(&waiting, w.nr, memory_order_release);
}

/* ------------------------------------------------------- opening one NIC */

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

/* Ready to receive is all that a target ever is. */
static bool start_target(const struct cf_verbs *verbs, const struct cf_nic *nic,
			 const struct wish *w, int mtu)
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

/* NULL, or what went wrong; then what there is of it is closed. */
static const char *fill_nic(const struct cf_verbs *verbs, const struct wish *w,
			    struct cf_nic *nic)
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

static void close_nic(const struct cf_verbs *verbs, struct cf_nic *nic)
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

static bool open_nic(const struct cf_verbs *verbs, const struct wish *w,
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
	close_nic(verbs, nic);
	cf_log(CF_LOG_WARN, "rdma: %s of properties.rdma_dev_addr_list: %s",
	       name, wrong);
	return false;
}

/* ---------------------------------------------------------------- the set */

static struct cf_nics *open_all(const struct wish *w)
{
	const char *wrong;
	const struct cf_verbs *verbs = cf_verbs_open(&wrong);
	struct cf_nics *nics;

	if (!verbs) {
		cf_log(CF_LOG_WARN, "rdma: no NIC is used: there is no %s",
		       wrong);
		return NULL;
	}
	nics = calloc(1, sizeof(*nics));
	if (!nics)
		return NULL;
	nics->refs = 1;
	nics->verbs = verbs;
	nics->access = w->access;
	nics->dma_buf = w->dma_buf && verbs->reg_dmabuf_mr;
	nics->virtual_address = w->virtual_address;
	for (unsigned i = 0; i < w->nr; i++)
		if (open_nic(verbs, w, w->name[i], &nics->nic[nics->nr]))
			nics->nr++;
	if (nics->nr)
		return nics;
	free(nics);
	return NULL;
}

void cf_nics_settle(void)
{
	struct cf_nics *nics;
	unsigned long mine;
	struct wish w;

	if (!atomic_exchange_explicit(&waiting, false, memory_order_acquire))
		return;
	pthread_mutex_lock(&nics_lock);
	w = wish;
	mine = number;
	pthread_mutex_unlock(&nics_lock);
	nics = open_all(&w);
	pthread_mutex_lock(&nics_lock);
	if (mine == number && !current) {
		current = nics;
		nics = NULL;
	}
	pthread_mutex_unlock(&nics_lock);
	cf_nics_put(nics); /* the session was closed meanwhile */
}

void cf_nics_close(void)
{
	struct cf_nics *gone;

	pthread_mutex_lock(&nics_lock);
	gone = current;
	current = NULL;
	wish = (struct wish){ 0 };
	number++;
	pthread_mutex_unlock(&nics_lock);
	atomic_store_explicit(&wanted, false, memory_order_relaxed);
	atomic_store_explicit(&waiting, false, memory_order_relaxed);
	cf_nics_put(gone);
}

struct cf_nics *cf_nics_get(void)
{
	struct cf_nics *nics;

	if (!cf_nics_wanted())
		return NULL;
	pthread_mutex_lock(&nics_lock);
	nics = current;
	if (nics)
		atomic_fetch_add_explicit(&nics->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&nics_lock);
	return nics;
}

void cf_nics_put(struct cf_nics *nics)
{
	if (!nics ||
	    atomic_fetch_sub_explicit(&nics->refs, 1, memory_order_acq_rel) > 1)
		return;
	for (unsigned i = 0; i < nics->nr && !nics->foreign; i++)
		close_nic(nics->verbs, &nics->nic[i]);
	free(nics);
}

void cf_nics_fork_prepare(void)
{
	pthread_mutex_lock(&nics_lock);
}

void cf_nics_fork_parent(void)
{
	pthread_mutex_unlock(&nics_lock);
}

/* Its registrations hold the set: they must not touch the parent's NICs. */
void cf_nics_fork_child(void)
{
	struct cf_nics *nics = current;

	if (nics)
		nics->foreign = true;
	current = NULL;
	pthread_mutex_unlock(&nics_lock);
	atomic_store_explicit(&wanted, false, memory_order_relaxed);
	atomic_store_explicit(&waiting, false, memory_order_relaxed);
	cf_nics_put(nics);
}
