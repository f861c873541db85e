// SPDX-License-Identifier: Apache-2.0
/*
 * nics - keeps the wish of the session, and the set of NICs opened for it.
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
#include "core/nic_open.h"

static pthread_mutex_t nics_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cf_nic_wish wish; /* nics_lock */
static unsigned long number;	/* nics_lock; of the wish, to know it again */
static struct cf_nics *current; /* nics_lock; the session's set */
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

/* Contract 4: bits 0 to 3 are those of verbs, bit 4 is relaxed ordering. */
static int access_of(uint64_t mask)
{
	int access = (int)(mask & 0xf);

	return mask & 0x10 ? access | CF_IBV_ACCESS_RELAXED_ORDERING : access;
}

static void read_wish(const struct cf_config *config, struct cf_nic_wish *w)
{
	const char *peer = cf_config_string(config, CF_CFG_RDMA_PEER_TYPE);
	const char *const *names;
	size_t nr =
		cf_config_strings(config, CF_CFG_RDMA_DEV_ADDR_LIST, &names);

	*w = (struct cf_nic_wish){
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
	struct cf_nic_wish w;

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

/* ---------------------------------------------------------------- the set */

static struct cf_nics *open_all(const struct cf_nic_wish *w)
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
		if (cf_nic_open(verbs, w, w->name[i], &nics->nic[nics->nr]))
			nics->nr++;
	if (nics->nr)
		return nics;
	free(nics);
	return NULL;
}

bool cf_nics_settle(void)
{
	struct cf_nics *nics;
	bool new = false;
	unsigned long mine;
	struct cf_nic_wish w;

	if (!atomic_exchange_explicit(&waiting, false, memory_order_acquire))
		return false;
	pthread_mutex_lock(&nics_lock);
	w = wish;
	mine = number;
	pthread_mutex_unlock(&nics_lock);
	nics = open_all(&w);
	pthread_mutex_lock(&nics_lock);
	if (mine == number && !current) {
		new = nics;
		current = nics;
		nics = NULL;
	}
	pthread_mutex_unlock(&nics_lock);
	cf_nics_put(nics); /* not NULL: the session was closed meanwhile */
	return new;
}

void cf_nics_close(void)
{
	struct cf_nics *gone;

	pthread_mutex_lock(&nics_lock);
	gone = current;
	current = NULL;
	wish = (struct cf_nic_wish){ 0 };
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
		cf_nic_close(nics->verbs, &nics->nic[i]);
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

/* The child's registrations keep the set, but must not call its NICs. */
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
