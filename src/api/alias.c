// SPDX-License-Identifier: Apache-2.0
/* alias - sets the client's provider of aliases (opencufile.h). */
#include <opencufile.h>

#include "api/translate.h"
#include "core/alias.h"
#include "core/log.h"
#include "core/log_tag.h"

CUfileError_t ocf_alias_set_provider(const ocf_alias_provider_t *provider)
{
	int err = cf_alias_set_provider(provider);

	if (err)
		cf_log(CF_LOG_ERROR, "alias provider " CF_TAG ": code %d",
		       cf_tag(provider), err);
	return cf_error(err);
}
