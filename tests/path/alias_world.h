// SPDX-License-Identifier: Apache-2.0
/*
 * alias_world - GPU memory with an alias, offered by a provider that may lie,
 * and system calls that count transfers between files and the alias, and may
 * refuse them. Of the fake driver alone.
 */
#ifndef ALIAS_WORLD_H
#define ALIAS_WORLD_H

#include <stdatomic.h>
#include "harness.h"
#include "seam/os.h"
#include "seam/uring.h"

#define AW_BLOCK ((size_t)4096)
#define AW_SIZE (8 * TH_MIB)
#define AW_MEM_SIZE (AW_SIZE + 2 * AW_BLOCK)

enum aw_lie {
	AW_HONEST,
	AW_REFUSES,
	AW_OTHER_MEMORY, /* some other memory, with the same place in a page */
	AW_NO_MEMORY,	 /* nothing is mapped there */
	AW_SHIFTED,	 /* another place in a page */
	AW_NO_LAST_PAGE, /* honest about memory of the library's own */
};

extern struct aw_provider {
	enum aw_lie lie;
	atomic_int maps, unmaps;
	void *other;
} aw_provider;

extern struct cf_os aw_os;	/* the table in use; a test may change it */
extern atomic_uint aw_straight; /* transfers between a file and the alias */
extern atomic_uint aw_edges;	/* of those, not aligned to 512 bytes */
/* The errno (positive) by which further transfers are refused, or 0. The first
 * aw_before bytes of each 64 KiB of the file, and all before aw_from, are not.
 */
extern atomic_int aw_refusal;
extern atomic_size_t aw_before;
extern atomic_llong aw_from;

struct aw_world {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned char *content, *got;
};

int aw_setup(void **state);
int aw_teardown(void **state);

bool aw_is_alias(const void *buf);
void aw_offer(enum aw_lie lie);
void aw_register_memory(struct aw_world *w);
void aw_begin(struct aw_world *w, enum aw_lie lie, enum th_file_kind file_kind);
void aw_end(struct aw_world *w);

/* The path a request would take; *why: the alias's refusal, or NULL. */
const char *aw_path_of(struct aw_world *w, bool write, size_t size, off_t off,
		       off_t at, const char **why);

void aw_read_is_right(struct aw_world *w, size_t size, size_t off, size_t at);
void aw_write_is_right(struct aw_world *w, size_t size, size_t off, size_t at);
/* Reads and writes, whole blocks and others; answers aw_straight of that. */
unsigned aw_both_ways(struct aw_world *w);

#endif
