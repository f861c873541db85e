// SPDX-License-Identifier: Apache-2.0
/* handle - register and deregister files (contract 3.6). */
#include <cufile.h>

#include "api/translate.h"
#include "core/file_facts.h"
#include "core/handle.h"
#include "core/log.h"
#include "core/stats.h"
#include "engine/route.h"
#include "engine/session.h"
#include "engine/stream.h"

/* Strict mode: refuses a file now if no direct path could serve its IO. */
static int check_strict(CUfileHandle_t fh)
{
	struct cf_handle *handle = cf_handle_get(fh);
	enum cf_why why = CF_WHY_YES;
	int err;

	if (!handle)
		return 0;
	err = cf_route_check_file(handle, cf_session_rules(), &why);
	cf_handle_put(handle);
	if (!err)
		return 0;
	cf_log(CF_LOG_ERROR,
	       "handle register: %s, and properties.allow_compat_mode "
	       "is false",
	       cf_why_text(why));
	(void)cf_handle_deregister(fh);
	return err;
}

static int register_file(CUfileHandle_t *fh, const CUfileDescr_t *descr)
{
	struct cf_file_answer answer;
	CUfileHandle_t made;
	bool forced, counted;
	int err = cf_session_open_to_register();

	if (err)
		return err;
	cf_file_ask(descr, &answer);
	cf_handle_replace(descr, &answer);
	cf_streams_prepare();
	err = cf_session_begin_register(&counted);
	if (err)
		return err;
	forced = cf_config_bool(cf_session_config(), CF_CFG_FORCE_ODIRECT_MODE);
	err = cf_handle_register(descr, &answer, forced, &made);
	if (!err)
		err = check_strict(made);
	if (!err)
		*fh = made;
	/* scripts search the log for these words (contract 4.4) */
	if (err)
		cf_log(CF_LOG_ERROR, "cuFileHandleRegister error: %s",
		       cufileop_status_error(cf_error(err).err));
	cf_session_end_register(counted, err);
	return err;
}

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr)
{
	int err = -CU_FILE_INVALID_VALUE;

	if (fh && descr)
		err = register_file(fh, descr);
	cf_stats_call(CF_STATS_HDL_REGISTER, !err);
	return cf_error(err);
}

void cuFileHandleDeregister(CUfileHandle_t fh)
{
	int err;

	if (!fh)
		return;
	err = cf_handle_deregister(fh);
	if (err)
		cf_log(CF_LOG_ERROR, "handle deregister %s: no such handle",
		       cf_handle_words(fh));
	cf_stats_call(CF_STATS_HDL_DEREGISTER, !err);
}
