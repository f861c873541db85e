// SPDX-License-Identifier: Apache-2.0
/*
 * nic_open - opens one NIC with a target for servers, and closes it.
 *
 * Calls verbs, so no lock is held.
 */
#ifndef CF_CORE_NIC_OPEN_H
#define CF_CORE_NIC_OPEN_H

#include "core/nic.h"

/* The configuration's values, kept for cf_nics_settle. */
struct cf_nic_wish {
	unsigned nr;
	char name[CF_MAX_NICS][64];
	uint64_t dc_key;
	int access;
	bool dma_buf, virtual_address;
	unsigned pkey_index, min_rnr_timer, hop_limit, cq_depth;
};

/* False: there is no such NIC, or it cannot be used; the log says why. */
bool cf_nic_open(const struct cf_verbs *verbs, const struct cf_nic_wish *w,
		 const char *name, struct cf_nic *nic);
void cf_nic_close(const struct cf_verbs *verbs, struct cf_nic *nic);

#endif
