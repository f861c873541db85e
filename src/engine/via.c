// SPDX-License-Identifier: Apache-2.0
/* via - the facts and the rule. */
#include "engine/via.h"

#include "core/cached.h"
#include "core/file.h"
#include "core/twin.h"
#include "seam/frames.h"

bool cf_via_wants_all(const struct cf_via_facts *facts)
{
	return facts->hybrid != CF_HYBRID_OFF && facts->read && facts->direct &&
	       !facts->refused && !facts->user_fs && facts->truth;
}

bool cf_via_wants_none(const struct cf_via_facts *facts)
{
	return facts->hybrid == CF_HYBRID_BOTH && facts->read &&
	       !facts->direct && !facts->refused && !facts->user_fs &&
	       facts->size >= CF_VIA_DIRECT_FROM;
}

enum cf_via cf_via_decide(const struct cf_via_facts *facts)
{
	if (cf_via_wants_all(facts) && facts->all_clean)
		return CF_VIA_CACHE;
	if (cf_via_wants_none(facts) && facts->none)
		return CF_VIA_DIRECT;
	return facts->direct && !facts->refused ? CF_VIA_DIRECT : CF_VIA_CACHE;
}

/* A small request of a buffered file has no choice: cf_via_decide. */
static bool has_choice(const struct cf_piece *piece)
{
	return piece->handle->direct || piece->size >= CF_VIA_DIRECT_FROM;
}

static CF_APART enum cf_via choose(const struct cf_piece *piece,
				   enum cf_hybrid hybrid)
{
	struct cf_handle *handle = piece->handle;
	bool look = piece->size >= CF_TWIN_LOOK_FROM;
	struct cf_via_facts facts = {
		.hybrid = hybrid,
		.read = piece->op == CF_READ && piece->size,
		.user_fs = handle->fs_ops,
		.direct = handle->direct,
		.refused = !cf_file_is_direct(handle, CF_VIA_DIRECT),
		.truth = cf_cached_is_truth(handle),
		.size = piece->size,
	};

	/* the whole piece goes by the twin, in parts that may be small */
	if (facts.refused && facts.read && look)
		(void)cf_twin_ready(handle, CF_VIA_CACHE, true);
	if (cf_via_wants_all(&facts))
		facts.all_clean = cf_cached_all_clean(handle, piece->file_off,
						      piece->size) &&
				  cf_twin_ready(handle, CF_VIA_CACHE, look);
	if (cf_via_wants_none(&facts))
		facts.none =
			cf_cached_none(handle, piece->file_off, piece->size) &&
			cf_twin_ready(handle, CF_VIA_DIRECT, look);
	return cf_via_decide(&facts);
}

enum cf_via cf_via_choose(const struct cf_piece *piece, enum cf_hybrid hybrid)
{
	return has_choice(piece) ? choose(piece, hybrid) : CF_VIA_CACHE;
}
