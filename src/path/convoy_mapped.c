// SPDX-License-Identifier: Apache-2.0
/*
 * convoy_mapped - pieces out of windows, one copy behind the other.
 *
 * A thread that waits for each copy of a few microseconds is late to begin the
 * next one, and the link is idle meanwhile. Here the next copies are queued.
 *
 * Copies end in the order in which they began, so a piece ends with its last.
 */
#include "core/log.h"
#include "core/numbers.h"
#include "core/visit.h"
#include "path/convoy.h"
#include "path/draws.h"

struct caravan {
	struct cf_draws draws; /* first, so that over can cast it back */
	struct cf_convoy *convoy;
	const struct cf_piece *first;
	/* of the piece whose copies end now: bytes from its front that count,
	 * and why those behind them do not; or NULL */
	size_t good;
	const char *why;
};

/* why: bytes behind `good` are left to the next path; NULL: they are not. */
static void tell(const struct cf_piece *piece, size_t good, const char *why)
{
	if (why)
		cf_log(CF_LOG_DEBUG, "mapped: handle %u off %lld: %s, gives up",
		       cf_handle_number(piece->handle),
		       (long long)piece->file_off + (long long)good, why);
}

static void end_piece(const struct caravan *c, const struct cf_piece *piece,
		      size_t good, const char *why)
{
	tell(piece, good, why);
	c->convoy->ended(c->convoy, piece, (ssize_t)good);
}

/* All copies of the piece are over. */
static void conclude(struct caravan *c, const struct cf_piece *piece)
{
	bool stands = cf_draw_file_stands(piece);
	size_t good = stands ? c->good : 0;
	const char *why = stands ? c->why : "the file changed";

	c->good = 0;
	c->why = NULL;
	end_piece(c, piece, good, why);
}

static void over(struct cf_draws *draws, const struct cf_draw *one)
{
	struct caravan *c = (struct caravan *)draws;

	if (!c->why)
		c->why = one->why;
	if (!c->why)
		c->good += one->size;
	if (one->last)
		conclude(c, one->piece);
}

/* Bytes up to the end of the chunk, the file or the piece. */
static size_t next_size(const struct caravan *c, const struct cf_piece *piece,
			size_t at)
{
	uint64_t off = (uint64_t)piece->file_off + at;
	uint64_t end = piece->view.stamp.size;
	uint64_t room = c->draws.chunk - off % c->draws.chunk;

	if (off >= end)
		return 0;
	return cf_least(cf_least(room, end - off), piece->size - at);
}

/* Begins draws; bytes that they have from the front; *why: no more, or NULL. */
static size_t begin_all(struct caravan *c, const struct cf_piece *piece,
			const char **why)
{
	struct cf_part part = { .at = 0 };
	size_t n = 0;

	do {
		part.at += n;
		part.size = next_size(c, piece, part.at);
		n = part.size ? cf_draw_begin(&c->draws, piece, &part, why) : 0;
	} while (n && n == part.size);
	if (n == part.size)
		*why = NULL;
	return part.at + n;
}

static void carry(struct caravan *c, const struct cf_piece *piece)
{
	const char *why;
	size_t front = begin_all(c, piece, &why);

	tell(piece, front, why);
	if (!front)
		end_piece(c, piece, 0, NULL);
	else if (c->draws.ended == c->draws.begun)
		conclude(c, piece);
	else
		cf_draws_last(&c->draws)->last = true;
}

static int travel(struct cf_device *dev, void *caravan, bool *begun)
{
	struct caravan *c = caravan;
	const struct cf_piece *piece = c->first;
	int err = cf_draws_open(&c->draws, dev);

	if (err)
		return err;
	*begun = true;
	while (piece) {
		carry(c, piece);
		cf_draws_look(&c->draws);
		piece = c->convoy->next(c->convoy);
	}
	cf_draws_wait(&c->draws);
	cf_draws_close(&c->draws);
	return 0;
}

void cf_convoy_run_mapped(struct cf_convoy *convoy,
			  const struct cf_piece *first)
{
	struct caravan c = { .draws = { .over = over },
			     .convoy = convoy,
			     .first = first };

	if (cf_visit(&first->mem, travel, &c))
		end_piece(&c, first, 0, "no stream");
}
