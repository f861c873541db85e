// SPDX-License-Identifier: Apache-2.0
/*
 * spread - a range of a tmpfs file, mapped so that several threads write it.
 *
 * Whoever calls pwrite waits for the inode's lock; who has the file's pages
 * writes beside others, and the pages are the file. It is the kernel that
 * copies: a page that is not to be had, for the file was cut or the memory is
 * used up, is an error there and no signal, and what was not copied is written.
 * So is the last byte, with all that a write does beside.
 *
 * Only what lies within the file: who looks at a file that grows would find it
 * long before its bytes.
 */
#ifndef CF_CORE_SPREAD_H
#define CF_CORE_SPREAD_H

#include "core/piece.h"

/* Less is sooner written, but where others write the file, too. */
#define CF_SPREAD_FROM ((size_t)8 << 20)
#define CF_SPREAD_CROWD_FROM ((size_t)1 << 20)

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
