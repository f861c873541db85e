// SPDX-License-Identifier: Apache-2.0
/* buffer - register and deregister memory (contract 3.7). */
#include <cufile.h>

#include <string.h>
#include "api/translate.h"
#include "core/buffer.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "core/reach.h"
#include "core/stats.h"
#include "engine/session.h"

/* Looks for an alias; without one the buffer works all the same. */
static void find_alias(const struct cf_memory *mem, size_t length)
{
	enum cf_alias_state state;
	struct cf_alias *alias;

	if (mem->kind == CF_MEMORY_HOST ||
	    !strcmp(cf_config_string(cf_session_config(), CF_CFG_ALIAS), "off"))
		return;
	state = cf_alias_make(mem, length, &alias);
	if (state != CF_ALIAS_NOBODY)
		cf_buffer_set_alias(mem->addr, state, alias);
}

static int register_buffer(uintptr_t base, size_t length, int flags)
{
	bool relaxed = flags & CU_FILE_RDMA_RELAXED_ORDERING;
	struct cf_memory mem;
	bool counted;
	int err;

	if (!base || !length || base + length < base)
		return -CU_FILE_INVALID_VALUE;
	/*
	 * Before the session is locked, as this may call the loader, whose lock
	 * a constructor that calls us holds already.
	 */
	cf_memory_facts(base, &mem);
	err = cf_session_begin_register(&counted);
	if (err)
		return err;
	err = cf_buffer_register(&mem, length, relaxed);
	if (!err)
		find_alias(&mem, length);
	cf_stats_buffer(CF_STATS_BUF_REGISTER, &mem, !err);
	cf_session_end_register(counted, err);
	/* without the session's lock, as it calls the NICs */
	if (!err)
		cf_reach(&mem);
	return err;
}

/* Unknown flag bits are ignored, as the reference does. */
CUfileError_t cuFileBufRegister(const void *bufPtr_base, size_t length,
				int flags)
{
	int err = register_buffer((uintptr_t)bufPtr_base, length, flags);

	if (err)
		cf_log(CF_LOG_ERROR,
		       "buffer register " CF_TAG " len %zu flags %d: "
		       "code %d",
		       cf_tag(bufPtr_base), length, flags, err);
	cf_stats_call(CF_STATS_BUF_REGISTER, !err);
	return cf_error(err);
}

static int deregister_buffer(uintptr_t base)
{
	struct cf_memory mem;
	int err;

	if (!base)
		return -CU_FILE_INVALID_VALUE;
	if (!cf_session_is_open())
		return -CU_FILE_DRIVER_CLOSING;
	/* the base by which register knows it, which may be another address */
	cf_memory_facts(base, &mem);
	err = cf_buffer_deregister(mem.addr);
	cf_stats_buffer(CF_STATS_BUF_DEREGISTER, &mem, !err);
	return err;
}

CUfileError_t cuFileBufDeregister(const void *bufPtr_base)
{
	int err = deregister_buffer((uintptr_t)bufPtr_base);

	if (err)
		cf_log(CF_LOG_ERROR, "buffer deregister " CF_TAG ": code %d",
		       cf_tag(bufPtr_base), err);
	cf_stats_call(CF_STATS_BUF_DEREGISTER, !err);
	return cf_error(err);
}
