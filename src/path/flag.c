// SPDX-License-Identifier: Apache-2.0
/* flag - puts flags into streams, and looks at them. */
#include "path/flag.h"

#include <stdatomic.h>
#include "core/pause.h"

#define LOOKS 2000 /* some 50 us; then the caller waits for the stream */

/* The driver cannot do it, and is not asked again. Relaxed: a hint. */
static atomic_bool refused;

static _Atomic uint32_t *word_of(const struct cf_slot *slot)
{
	return (_Atomic uint32_t *)(slot->mem + slot->size - CF_FLAG_ROOM);
}

bool cf_flag_put(const struct cf_cuda *cuda, const struct cf_slot *slot,
		 CUstream stream)
{
	_Atomic uint32_t *word = word_of(slot);
	CUresult res;

	if (!slot->pinned || !cuda->stream_write_value32 ||
	    atomic_load_explicit(&refused, memory_order_relaxed))
		return false;
	atomic_store_explicit(word, 0, memory_order_release);
	res = cuda->stream_write_value32(stream, (CUdeviceptr)word, 1, 0);
	/* no such call, or not for pinned memory; a lost context is neither */
	if (res == CF_CU_NOT_SUPPORTED || res == CF_CU_INVALID_VALUE)
		atomic_store_explicit(&refused, true, memory_order_relaxed);
	return res == CF_CU_SUCCESS;
}

bool cf_flag_is_up(const struct cf_slot *slot)
{
	const _Atomic uint32_t *word = word_of(slot);

	for (int looks = 0; looks < LOOKS; looks++) {
		if (atomic_load_explicit(word, memory_order_acquire))
			return true;
		cf_pause();
	}
	return false;
}
