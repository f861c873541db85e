// SPDX-License-Identifier: Apache-2.0
/* drawn - see drawn.h. */
#include "engine/drawn.h"

#include <stdatomic.h>
#include "core/ferry.h"
#include "core/numbers.h"
#include "core/piece.h"
#include "core/wish.h"
#include "engine/request.h"

#define ENOUGH 4 /* reads that could be drawn; others halve the count */

/*
 * Counts for the next reads of the file: a single one that could not be drawn,
 * as at the end of the file, is no matter. Small reads and writes are never
 * drawn, and tell nothing.
 */
void cf_drawn_note(const struct cf_piece *piece)
{
	_Atomic unsigned *drawn = &piece->handle->drawn;
	unsigned before, now;

	if (piece->op != CF_READ || piece->size < CF_FERRY_DRAWS)
		return;
	before = atomic_load_explicit(drawn, memory_order_relaxed);
	now = piece->view.sight == CF_SIGHT_OPEN ?
		      cf_least(before + 1, 2 * ENOUGH) :
		      before / 2;
	if (piece->view.sight == CF_SIGHT_WORTH)
		cf_wish(piece);
	if (now != before)
		atomic_store_explicit(drawn, now, memory_order_relaxed);
}

bool cf_drawn_expect(const struct cf_call *call)
{
	struct cf_handle *handle;
	bool drawn;

	if (call->op != CF_READ || call->size < CF_FERRY_DRAWS)
		return false;
	handle = cf_handle_get(call->handle);
	drawn = handle && atomic_load_explicit(&handle->drawn,
					       memory_order_relaxed) >= ENOUGH;
	if (handle)
		cf_handle_put(handle);
	return drawn;
}
