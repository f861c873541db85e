// SPDX-License-Identifier: Apache-2.0
/* windows_limits - keeps the numbers, one by one. */
#include "core/windows_limits.h"

#include <stdatomic.h>

/* Read relaxed: only an open changes them, before any read. */
static struct {
	_Atomic int mode;
	_Atomic size_t max_bytes, chunk, open_from, use_from;
	_Atomic uint64_t settle_ns;
	_Atomic unsigned idle_ms;
} bounds = { .chunk = 1 << 24 };

void cf_windows_configure(const struct cf_windows_limits *to)
{
	bounds.mode = (int)to->mode;
	bounds.max_bytes = to->max_bytes;
	bounds.chunk = to->chunk;
	bounds.open_from = to->open_from;
	bounds.use_from = to->use_from;
	bounds.settle_ns = to->settle_ns;
	bounds.idle_ms = to->idle_ms;
}

#define NOW(member) atomic_load_explicit(&bounds.member, memory_order_relaxed)

enum cf_windows_mode cf_windows_mode(void)
{
	return (enum cf_windows_mode)NOW(mode);
}

size_t cf_windows_chunk(void)
{
	return NOW(chunk);
}

size_t cf_windows_max_bytes(void)
{
	return NOW(max_bytes);
}

unsigned cf_windows_idle_ms(void)
{
	return NOW(idle_ms);
}

size_t cf_windows_part(size_t size, enum cf_among among)
{
	return among == CF_AMONG_STREAM ? size / 4 : size;
}

bool cf_windows_are_no_matter(size_t size, enum cf_among among)
{
	return cf_windows_mode() == CF_WINDOWS_OFF ||
	       size < cf_windows_part(NOW(use_from), among);
}

void cf_windows_limits_now(struct cf_windows_limits *to)
{
	*to = (struct cf_windows_limits){
		.mode = cf_windows_mode(),
		.max_bytes = NOW(max_bytes),
		.chunk = NOW(chunk),
		.open_from = NOW(open_from),
		.use_from = NOW(use_from),
		.settle_ns = NOW(settle_ns),
		.idle_ms = cf_windows_idle_ms(),
	};
}
