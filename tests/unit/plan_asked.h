// SPDX-License-Identifier: Apache-2.0
/*
 * plan_asked - plans with numbers of helpers and sizes of slots that are set,
 * so that the machine does not matter.
 */
#ifndef TESTS_UNIT_PLAN_ASKED_H
#define TESTS_UNIT_PLAN_ASKED_H

#include <fcntl.h>
#include <linux/magic.h>
#include "core/handle.h"
#include "engine/plan.h"
#include "engine/plan_limits.h"
#include "harness.h"

#define HELPERS 6

/* Up to HELPERS helpers for a request; slot_kib: of a slot, 0: the default. */
static inline void configure(uint64_t slot_kib)
{
	struct cf_config_staged *staged = cf_config_staged();
	struct cf_config *config = cf_config_new();

	assert_non_null(config);
	assert_int_equal(cf_staged_set_size(staged, CF_CFG_MAX_IO_THREADS, 16),
			 0);
	assert_int_equal(cf_staged_set_size(staged,
					    CF_CFG_MAX_REQUEST_PARALLELISM,
					    HELPERS + 1),
			 0);
	if (slot_kib)
		assert_int_equal(
			cf_staged_set_size(staged,
					   CF_CFG_PER_BUFFER_CACHE_SIZE_KB,
					   slot_kib),
			0);
	assert_int_equal(cf_config_load(config, staged), 0);
	cf_staged_reset(staged);
	cf_plan_configure(config);
	cf_config_free(config);
}

/* On any machine as where there is an instruction for it, on 16 processors. */
static inline void configure_demoting(void)
{
	configure(0);
	atomic_store(&cf_plan_bounds.can_demote, true);
	atomic_store(&cf_plan_bounds.cpus, 16);
	atomic_store(&cf_plan_bounds.turns, 24);
}

static inline struct cf_piece piece_of(struct cf_handle *handle, enum cf_op op,
				       size_t size)
{
	return (struct cf_piece){ .op = op,
				  .handle = handle,
				  .via = handle->direct ? CF_VIA_DIRECT :
							  CF_VIA_CACHE,
				  .mem.kind = CF_MEMORY_DEVICE,
				  .combine = true,
				  .size = size };
}

/* The plan of one of `company` requests that run, all of one GPU. */
static inline struct cf_plan plan_of(const struct cf_piece *piece,
				     const struct cf_path_ops *path,
				     unsigned company)
{
	return cf_plan_make(
		piece, path,
		(struct cf_company){ .here = company, .all = company });
}

/* Handles of a buffered and of a direct file; no file is there. */
static inline void make_files(struct cf_handle *file,
			      struct cf_handle *direct_file)
{
	*file = (struct cf_handle){ .fs_magic = EXT4_SUPER_MAGIC,
				    .open_flags = O_RDWR,
				    .dio_align = 4096,
				    .page_align = 4096 };
	*direct_file = *file;
	direct_file->open_flags |= O_DIRECT;
	direct_file->direct = true;
}

#endif
