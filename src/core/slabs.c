// SPDX-License-Identifier: Apache-2.0
/* slabs - arrays of slabs, as the size of a slot and bytes in all. */
#include "core/slabs.h"

#include <string.h>

struct array {
	const uint64_t *kib, *counts;
	size_t nr;
};

static struct array array_of(const struct cf_config *config, enum cf_cfg sizes,
			     enum cf_cfg counts)
{
	struct array a;

	/* loading has made both lists equally long */
	a.nr = cf_config_sizes(config, sizes, &a.kib);
	cf_config_sizes(config, counts, &a.counts);
	return a;
}

static bool is_same(const struct array *a, const uint64_t *kib,
		    const uint64_t *counts, size_t nr)
{
	return a->nr == nr && !memcmp(a->kib, kib, nr * sizeof(*kib)) &&
	       !memcmp(a->counts, counts, nr * sizeof(*counts));
}

/* The slabs of the cufile.json that NVIDIA ships: not the user's choice. */
static bool is_shipped_bounce(const struct array *a)
{
	static const uint64_t kib[] = { 1024, 8192, 16384, 65536 };
	static const uint64_t counts[] = { 128, 8, 4, 2 };

	return is_same(a, kib, counts, 4);
}

static bool is_shipped_posix(const struct array *a)
{
	static const uint64_t kib[] = { 4, 1024, 16384 };
	static const uint64_t counts[] = { 128, 64, 64 };

	return is_same(a, kib, counts, 3);
}

static bool cache_keys_asked(const struct cf_config *config)
{
	static const enum cf_cfg ids[] = { CF_CFG_PER_BUFFER_CACHE_SIZE_KB,
					   CF_CFG_MAX_DEVICE_CACHE_SIZE_KB };

	for (int i = 0; i < 2; i++)
		if (cf_config_size_loaded(config, ids[i]) !=
		    cf_config_default(ids[i]))
			return true;
	return false;
}

static struct cf_slabs sum(const struct array *a)
{
	struct cf_slabs slabs = { 0, 0 };

	for (size_t i = 0; i < a->nr; i++) {
		size_t size, all;

		/* overflow: more than any machine has, so no bound */
		if (__builtin_mul_overflow(a->kib[i], 1024, &size) ||
		    __builtin_mul_overflow(size, a->counts[i], &all) ||
		    __builtin_add_overflow(slabs.bytes, all, &slabs.bytes))
			slabs.bytes = SIZE_MAX / 2;
		if (size <= CF_SLAB_MAX && size > slabs.slot)
			slabs.slot = size;
	}
	if (!slabs.slot)
		slabs.slot = CF_SLAB_MAX;
	if (slabs.slot < CF_SLAB_MIN)
		slabs.slot = CF_SLAB_MIN;
	return slabs;
}

bool cf_slabs_asked(const struct cf_config *config, struct cf_slabs *slabs)
{
	struct array bounce = array_of(config, CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB,
				       CF_CFG_GPU_BOUNCE_SLAB_COUNT);
	struct array posix = array_of(config, CF_CFG_POSIX_POOL_SLAB_SIZE_KB,
				      CF_CFG_POSIX_POOL_SLAB_COUNT);

	if (bounce.nr && !is_shipped_bounce(&bounce)) {
		*slabs = sum(&bounce);
		return true;
	}
	if (cache_keys_asked(config) || is_shipped_posix(&posix))
		return false;
	*slabs = sum(&posix);
	return true;
}
