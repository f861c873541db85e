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

/* bytes of a piece that is worth it alone, and among others of its file */
#define CF_SPREAD_FROM ((size_t)8 << 20)
#define CF_SPREAD_CROWD_FROM ((size_t)1 << 20)

struct cf_spread {
	char *mem;   /* the file's byte at `from`; NULL: nothing is mapped */
	size_t size; /* bytes that are mapped */
	off_t from;  /* on a page boundary */
	_Atomic unsigned *writers; /* counts this piece; NULL: none does */
};

/* Whether the piece can be written so. On tmpfs this costs an fstat. */
bool cf_spread_can(const struct cf_piece *piece);

/*
 * Counts the piece as a writer of its file until cf_spread_end. Answers how
 * many there are, this one included: a hint, for files share counters. 0: the
 * piece can have no spread. Any thread; no lock.
 */
unsigned cf_spread_join(struct cf_spread *spread, const struct cf_piece *piece);
/* Maps what the piece writes; then piece->spread may be set. After a join. */
bool cf_spread_begin(struct cf_spread *spread, const struct cf_piece *piece);
/* Unmaps, and counts the piece out. After every join. */
void cf_spread_end(struct cf_spread *spread);

/* How many pieces are counted in, of all files. */
unsigned cf_spreads_out(void);

/* fork: nobody writes in the child. */
void cf_spreads_fork_child(void);

/* As cf_file_write, for bytes of the piece: by its spread if it has one. */
ssize_t cf_spread_write(const struct cf_piece *piece, const void *buf,
			size_t size, off_t off);

#endif
