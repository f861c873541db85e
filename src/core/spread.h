// SPDX-License-Identifier: Apache-2.0
/*
 * spread - a range of a tmpfs file, mapped so that several threads write it.
 *
 * Threads in pwrite wait for each other at the inode's lock; threads that copy
 * into the file's mapped pages do not, and on tmpfs the pages are the file. The
 * kernel makes the copy (process_vm_writev): if a page cannot be had, because
 * the file was cut or memory is used up, that is an error and no signal, and
 * the bytes that were not copied are written by pwrite. So is the last byte of
 * the piece, for a write's other effects: times, privileges, watchers.
 *
 * Only for pieces within the file. To write behind its end it would have to be
 * made longer first, and readers would find the length before the bytes.
 */
#ifndef CF_CORE_SPREAD_H
#define CF_CORE_SPREAD_H

#include "core/piece.h"

#define CF_SPREAD_FROM ((size_t)8 << 20) /* a smaller one is written sooner */
#define CF_SPREAD_CROWD_FROM \
	((size_t)1 << 20) /* where others write the file \
			   */

struct cf_spread {
	char *mem; /* where the byte of the file at `from` is; NULL: nowhere */
	size_t size;
	off_t from;
	_Atomic unsigned *writers; /* of the file; or NULL */
};

/* Whether the piece's bytes can be; on tmpfs a look at the file. */
bool cf_spread_can(const struct cf_piece *piece);

/*
 * How many such pieces of the same file run, from now to the end, with this
 * one; about, for it guides only. 0: it can be none. Any thread; no lock.
 */
unsigned cf_spread_join(struct cf_spread *spread, const struct cf_piece *piece);
/* Maps what the piece writes: then *spread may be the piece's. */
bool cf_spread_begin(struct cf_spread *spread, const struct cf_piece *piece);
/* After any join. */
void cf_spread_end(struct cf_spread *spread);

/* Nobody writes there. */
void cf_spreads_fork_child(void);

/* As cf_file_write, of bytes of the piece, which may have a spread or not. */
ssize_t cf_spread_write(const struct cf_piece *piece, const void *buf,
			size_t size, off_t off);

#endif
