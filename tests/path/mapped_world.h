// SPDX-License-Identifier: Apache-2.0
/*
 * mapped_world - a file with windows of the smallest size there is, memory to
 * read it into, and ways in which a file changes.
 *
 * With TEST_PINS in the environment windows are large enough for the kernel
 * driver to pin their pages; on the fake CUDA driver a fake one does.
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
#define MW_REST_MS 40 /* a file must be left alone before it gets windows */

extern bool mw_pins;
extern size_t mw_chunk_size;
/* bytes: the next begin's opencufile.mapped_min_kb and mapped_use_kb */
extern size_t mw_open_from, mw_use_from;
/* its opencufile.mapped_idle_ms; "0" unless a test says otherwise */
extern const char *mw_idle_ms;
extern struct th_mem mw_mem; /* MW_SIZE bytes, MW_PAD before and behind */
extern struct th_file mw_file;
extern CUfileHandle_t mw_fh;
extern unsigned char *mw_content, *mw_want, *mw_got;
/*
 * The world's own table of system calls. A test that puts another in its place
 * does so before the first read, and leaves it until all is closed: a thread of
 * the library closes windows.
 */
extern const struct cf_os *mw_usual;

/* First of main, in place of th_start. */
void mw_start(void);
/* Teardown of each test. */
int mw_teardown(void **state);

/* mode: opencufile.mapped; cache: bytes, for opencufile.mapped_cache_kb. */
void mw_begin_with(const char *mode, size_t cache, enum th_file_kind kind);
void mw_begin(void);	 /* mode kept, room for all */
void mw_begin_hot(void); /* mode auto, and all windows are open */
void mw_end(void);

/* Locks the file's pages: a kernel short of memory takes others back. */
void mw_hold_pages(void);
void mw_let_pages_go(void);

struct cf_windows_counts mw_counts(void);
/* As the driver counts windows, and what opens one. */
const char *mw_kept_as(void);
const char *mw_registers(void);
/* How often the file's times were asked for. */
unsigned long mw_looks(void);

/* A read that must answer n, move these bytes, and touch none around them. */
void mw_read_is(CUfileHandle_t handle, size_t size, size_t off,
		const unsigned char *bytes, size_t n);
void mw_read_all(void);
/* Reads all twice; then all windows must be open. */
void mw_warm(void);
/* Waits for the library's thread that closes windows. */
void mw_all_are_closed(void);

/* Writes by O_DIRECT, which take pages out of the cache; the caller closes. */
int mw_open_direct(void);
void mw_write_direct(int fd, size_t at, size_t size);

/* For a table: a file's times stand still, so only the page table can tell. */
int mw_statx_frozen(int fd, unsigned mask, struct statx *stx);

/*
 * The front of mw_file is written again and again, sometimes by O_DIRECT,
 * sometimes after the file was cut to that front. Each of its words is the
 * number of the write that made it.
 */
struct mw_storm {
	size_t size;	 /* bytes of the front */
	unsigned gap_ms; /* between two writes, at most */
	unsigned opens;	 /* more windows must open before it ends */
	_Atomic uint32_t begun, done; /* writes */
	_Atomic bool over;
	struct th_bad bad;
	int direct; /* or -1 */
};
void mw_storm_begin(struct mw_storm *s); /* makes the file all zeros */
/* For one thread; sets over after 1.5 s (3 s under a sanitizer), or later, up
 * to 30 s, when enough windows have opened and were used. */
void mw_storm_write(struct mw_storm *s);
/* Checks what a read showed. low: s->done when that read began. */
void mw_storm_look(struct mw_storm *s, const uint32_t *words, size_t size,
		   uint32_t low);
void mw_storm_end(struct mw_storm *s);

/* Calls reads, and in it changes once, when its first copy is done. */
void mw_change_during(void (*changes)(void), void (*reads)(void));

#endif
