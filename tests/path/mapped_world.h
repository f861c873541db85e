// SPDX-License-Identifier: Apache-2.0
/*
 * mapped_world - a file with windows of the smallest size there is, memory to
 * read it into, and ways in which a file changes.
 *
 * TEST_PINS: the kernel driver pins pages, or a fake one does, in granules.
 */
#ifndef TESTS_PATH_MAPPED_WORLD_H
#define TESTS_PATH_MAPPED_WORLD_H

#include <linux/stat.h>
#include <stdatomic.h>
#include <stdint.h>
#include "core/windows.h"
#include "harness.h"
#include "seam/os.h"

#define MW_CHUNK mw_chunk_size
#define MW_NR_CHUNKS 5
#define MW_SIZE (MW_NR_CHUNKS * MW_CHUNK - 1000) /* the last one is short */
#define MW_PAD 4096
#define MW_REST_MS 40 /* a file is left alone for so long, then mapped */

extern bool mw_pins;
extern size_t mw_chunk_size;
/* opencufile.mapped_min_kb and mapped_use_kb from the next begin on */
extern size_t mw_open_from, mw_use_from;
extern struct th_mem mw_mem; /* with room around the file's size */
extern struct th_file mw_file;
extern CUfileHandle_t mw_fh;
extern unsigned char *mw_content, *mw_want, *mw_got;
/*
 * The table when nothing is replaced. One in its place is set before the first
 * read, and stays until all is closed: a thread of ours closes windows.
 */
extern const struct cf_os *mw_usual;

/* First of main. */
void mw_start(void);
/* Of each test. */
int mw_teardown(void **state);

/* mode and cache: opencufile.mapped and mapped_cache_kb, in bytes. */
void mw_begin_with(const char *mode, size_t cache, enum th_file_kind kind);
void mw_begin(void);	 /* mode kept, room for all */
void mw_begin_hot(void); /* mode auto, and all windows are open */
void mw_end(void);

/* A kernel short of memory takes pages back, but not those that are locked. */
void mw_hold_pages(void);
void mw_let_pages_go(void);

struct cf_windows_counts mw_counts(void);
/* How often the file's times were asked for. */
unsigned long mw_looks(void);

/* A read of handle that must answer n bytes, these, and touch no others. */
void mw_read_is(CUfileHandle_t handle, size_t size, size_t off,
		const unsigned char *bytes, size_t n);
void mw_read_all(void);
/* Twice, so that windows are open. */
void mw_warm(void);
/* A thread of their own closes windows. */
void mw_all_are_closed(void);

/* What goes by O_DIRECT, which takes pages out of the cache. */
int mw_open_direct(void);
void mw_write_direct(int fd, size_t at, size_t size);

/* For the table: a clock that stands still, so only the page table can tell. */
int mw_statx_frozen(int fd, unsigned mask, struct statx *stx);

/*
 * A file whose front is written again and again, by O_DIRECT, too, and cut off
 * before: each page of it is full of the number of the write that made it.
 */
struct mw_storm {
	size_t size;		      /* of the front */
	unsigned gap_ms;	      /* between two writes, at most */
	unsigned opens;		      /* windows, before it is over */
	_Atomic uint32_t begun, done; /* writes */
	_Atomic bool over;
	struct th_bad bad;
	int direct; /* or -1 */
};
void mw_storm_begin(struct mw_storm *s); /* has a file full of zeros */
/* One thread's. A busy machine has more time for what there must have been. */
void mw_storm_write(struct mw_storm *s);
/* A read of it showed these: nothing older than what was done at its begin. */
void mw_storm_look(struct mw_storm *s, const uint32_t *words, size_t size,
		   uint32_t low);
void mw_storm_end(struct mw_storm *s);

/* Has the file change once, when the first copy of what reads is done. */
void mw_change_during(void (*changes)(void), void (*reads)(void));

#endif
