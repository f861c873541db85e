// SPDX-License-Identifier: Apache-2.0
/* p2p - which peer-to-peer transports the client allows for which storage. */
#include "core/p2p.h"

#include <stdatomic.h>
#include <stdbool.h>

#define RESERVED 10 /* a number without a name */

/* The flag that a client may choose; the others are found out. */
#if defined(__aarch64__)
#define CHOICE CU_FILE_P2P_FLAG_C2C
#else
#define CHOICE CU_FILE_P2P_FLAG_PCI_P2PDMA
#endif

static _Atomic unsigned allowed[CU_FILE_MAX_TARGET_TYPES];

static bool is_target(int target)
{
	return target >= 0 && target < CU_FILE_MAX_TARGET_TYPES &&
	       target != RESERVED;
}

int cf_p2p_allow(int target, unsigned flags)
{
	if (!is_target(target) || (flags && flags != CHOICE))
		return -CU_FILE_INVALID_VALUE;
	atomic_fetch_or_explicit(&allowed[target], flags, memory_order_relaxed);
	return 0;
}

int cf_p2p_allowed(int target, unsigned *flags)
{
	if (!is_target(target))
		return -CU_FILE_INVALID_VALUE;
	*flags = atomic_load_explicit(&allowed[target], memory_order_relaxed);
	return 0;
}

void cf_p2p_forget(void)
{
	for (int i = 0; i < CU_FILE_MAX_TARGET_TYPES; i++)
		atomic_store_explicit(&allowed[i], 0, memory_order_relaxed);
}
