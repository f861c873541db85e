// SPDX-License-Identifier: Apache-2.0
/*
 * windows_look - whether a read should travel by windows.
 *
 * The questions go from cheap to dear, so that a request that has nothing to
 * gain pays a load or two. Whatever may change is asked here, before the route
 * is chosen; the path then only reads piece->view.
 */
#include <errno.h>
#include <stdatomic.h>
#include "core/file.h"
#include "core/fs_magic.h"
#include "core/piece.h"
#include "core/pins.h"
#include "core/pressure.h"
#include "core/refusals.h"
#include "core/window_table.h"
#include "core/windows_internal.h"
#include "seam/frames.h"

/*
 * A look takes long beside a small read, and tells little where there is no
 * window: there one of so many small reads is looked at, and counts for all.
 */
#define SMALL ((size_t)1 << 20)
#define SMALL_LOOKS 8

/*
 * On these file systems a mapping shows the very pages that a read copies from,
 * and a file's times tell of every change. Not so elsewhere: an overlay's
 * mapping stays with the lower file when the upper one comes to be; ZFS reads
 * from a cache of its own; and what another machine changed shows late, in
 * times that may count whole seconds.
 */
static bool is_known_to_be_safe(const struct cf_handle *handle)
{
	switch ((unsigned long)handle->fs_magic) {
	case EXT4_SUPER_MAGIC: /* ext2 and ext3, too */
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default:
		return false;
	}
}

static void limits_for(enum cf_among among, struct cf_windows_limits *limits)
{
	cf_windows_limits_now(limits);
	limits->open_from = cf_windows_part(limits->open_from, among);
}

static bool stands_for_others(const struct cf_piece *piece, enum cf_among among)
{
	return among == CF_AMONG_NONE && piece->size < SMALL &&
	       cf_windows_mode() == CF_WINDOWS_AUTO;
}

static bool is_worth_a_look(const struct cf_piece *piece, enum cf_among among,
			    size_t chunk)
{
	static _Thread_local unsigned turn;

	return !stands_for_others(piece, among) ||
	       cf_windows_are_there(piece, chunk) || turn++ % SMALL_LOOKS == 0;
}

/* What can be said without a system call; CF_SIGHT_NONE: look on. */
static enum cf_sight glance(const struct cf_piece *piece, enum cf_among among,
			    struct cf_windows_limits *limits)
{
	if (piece->op != CF_READ || piece->mem.kind == CF_MEMORY_HOST)
		return CF_SIGHT_NO_READ;
	if (!cf_piece_is_buffered(piece))
		return CF_SIGHT_NO_PAGES;
	if (!is_known_to_be_safe(piece->handle))
		return CF_SIGHT_STRANGER;
	limits_for(among, limits);
	if (limits->mode == CF_WINDOWS_AUTO && cf_pins_state() == CF_PINS_NONE)
		return CF_SIGHT_NO_PINS;
	if (limits->mode != CF_WINDOWS_ALWAYS &&
	    piece->size > limits->max_bytes)
		return CF_SIGHT_NO_ROOM;
	if (piece->size < limits->open_from && !cf_window_table_size())
		return CF_SIGHT_SMALL;
	return is_worth_a_look(piece, among, limits->chunk) ? CF_SIGHT_NONE :
							      CF_SIGHT_COOL;
}

/* The chunks that a piece touches, in bytes, up to the end of the file. */
struct span {
	uint64_t from, to;
};

static struct span span_of(const struct cf_piece *piece, size_t size,
			   size_t chunk)
{
	uint64_t from = (uint64_t)piece->file_off;
	struct span span = {
		.from = from & ~(uint64_t)(chunk - 1),
		.to = (from + size + chunk - 1) & ~(uint64_t)(chunk - 1),
	};

	if (span.to > piece->view.stamp.size)
		span.to = piece->view.stamp.size;
	return span;
}

/*
 * The kernel tells only those who may write the file, or own it (else -EPERM).
 * For others chunks that were read as a whole count as cached.
 */
static enum cf_sight ask_cache(const struct cf_piece *piece,
			       const struct span *span, bool read_before)
{
	size_t size = (size_t)(span->to - span->from);
	ssize_t cached = cf_file_cached(piece->handle, size, (off_t)span->from);

	if (cached == -EPERM && read_before)
		return CF_SIGHT_WORTH;
	if (cached < 0)
		return CF_SIGHT_CANNOT_TELL;
	return (size_t)cached >= size ? CF_SIGHT_WORTH : CF_SIGHT_NOT_CACHED;
}

/* Up to which of its bytes windows can show the file. */
static uint64_t end_of(const struct cf_piece *piece,
		       const struct cf_windows_limits *limits)
{
	const struct cf_stamp *file = &piece->view.stamp;
	uint64_t end = cf_windows_end(file, limits->chunk);

	return end < file->size ? end : file->size;
}

/*
 * A window ends with its handle, so a program that opens the file for each read
 * would pay for a new one each time. So bytes must have been read again by this
 * handle: twice as many as the file has, or as all windows may have if that is
 * less.
 */
static bool is_hot(const struct cf_piece *piece,
		   const struct cf_windows_limits *limits,
		   const struct cf_survey *survey)
{
	uint64_t all = end_of(piece, limits);

	if (all > limits->max_bytes)
		all = limits->max_bytes;
	return (survey->hot || stands_for_others(piece, piece->view.among)) &&
	       atomic_load_explicit(&piece->handle->reread,
				    memory_order_relaxed) >= 2 * all;
}

static enum cf_sight weigh(const struct cf_piece *piece, size_t size,
			   const struct cf_windows_limits *limits,
			   const struct cf_survey *survey)
{
	struct span span = span_of(piece, size, limits->chunk);
	bool always = limits->mode == CF_WINDOWS_ALWAYS;
	uint64_t room = span.to - span.from; /* bytes that it needs at once */

	if (size < limits->open_from)
		return CF_SIGHT_SMALL;
	if (!always && !survey->again)
		return CF_SIGHT_FIRST_READ;
	if (limits->mode == CF_WINDOWS_AUTO && !is_hot(piece, limits, survey))
		return CF_SIGHT_COOL;
	if (always && room > limits->chunk)
		room = limits->chunk;
	if (room > limits->max_bytes || !survey->room)
		return CF_SIGHT_NO_ROOM;
	if (cf_refusal_holds(piece->handle->dev))
		return CF_SIGHT_REFUSED;
	if (!cf_stamp_is_settled(&piece->view.stamp, limits->settle_ns))
		return CF_SIGHT_CHANGING;
	return ask_cache(piece, &span, survey->whole);
}

/* How many bytes of the piece, from its front, windows can show. */
static size_t size_in_windows(const struct cf_piece *piece,
			      const struct cf_windows_limits *limits)
{
	uint64_t end = end_of(piece, limits);
	uint64_t from = (uint64_t)piece->file_off;

	if (end <= from)
		return 0;
	return piece->size < end - from ? piece->size : (size_t)(end - from);
}

/* False: the program put another file under the descriptor, and told nobody. */
static bool is_registered_file(const struct cf_piece *piece)
{
	return piece->view.stamp.dev == piece->handle->dev &&
	       piece->view.stamp.ino == piece->handle->ino;
}

/* known: a stamp of the file from a moment ago, or NULL. False: there is none,
 * or the piece begins behind the end of the file. */
static bool take_stamp(const struct cf_piece *piece,
		       const struct cf_stamp *known, struct cf_stamp *stamp)
{
	if (known)
		*stamp = *known;
	else if (cf_stamp_take(piece->handle->fd, stamp))
		return false;
	return (uint64_t)piece->file_off < stamp->size;
}

static enum cf_sight look(struct cf_piece *piece, enum cf_among among,
			  const struct cf_stamp *known,
			  const struct cf_windows_limits *limits)
{
	struct cf_stamp *stamp = &piece->view.stamp;
	struct cf_survey survey;
	enum cf_sight sight;
	size_t size;

	piece->view.stamped = take_stamp(piece, known, stamp);
	piece->view.among = among;
	if (piece->view.stamped && !is_registered_file(piece)) {
		piece->view.stamped = false;
		cf_windows_retire(piece->handle);
		cf_windows_reap();
	}
	if (!piece->view.stamped)
		return CF_SIGHT_NO_PAGES;
	size = size_in_windows(piece, limits);
	if (!size)
		return CF_SIGHT_SMALL;
	cf_windows_survey(piece, size, false, limits, &survey);
	piece->view.since = survey.since;
	sight = survey.all_open ? CF_SIGHT_OPEN :
				  weigh(piece, size, limits, &survey);
	if ((sight != CF_SIGHT_OPEN && sight != CF_SIGHT_WORTH) ||
	    !cf_memory_is_short())
		return sight;
	cf_windows_drop();
	return CF_SIGHT_MEMORY_SHORT;
}

static CF_APART enum cf_sight glance_and_look(struct cf_piece *piece,
					      enum cf_among among,
					      const struct cf_stamp *known)
{
	struct cf_windows_limits limits;
	enum cf_sight sight = glance(piece, among, &limits);

	return sight == CF_SIGHT_NONE ? look(piece, among, known, &limits) :
					sight;
}

void cf_windows_look(struct cf_piece *piece, enum cf_among among,
		     const struct cf_stamp *known)
{
	piece->view.stamped = false;
	if (cf_windows_mode() == CF_WINDOWS_OFF)
		piece->view.sight = CF_SIGHT_OFF;
	else if (cf_windows_are_no_matter(piece->size, among))
		piece->view.sight = CF_SIGHT_SMALL;
	else
		piece->view.sight = glance_and_look(piece, among, known);
}

static CF_APART void note(const struct cf_piece *piece)
{
	struct cf_windows_limits limits;
	struct cf_survey before;
	size_t size;

	limits_for(piece->view.among, &limits);
	size = size_in_windows(piece, &limits);
	if (size < limits.open_from || !size)
		return;
	cf_windows_survey(piece, size, true, &limits, &before);
	if (stands_for_others(piece, piece->view.among))
		size *= SMALL_LOOKS;
	if (before.again)
		atomic_fetch_add_explicit(&piece->handle->reread, size,
					  memory_order_relaxed);
}

void cf_windows_note(const struct cf_piece *piece)
{
	if (piece->view.stamped)
		note(piece);
}
