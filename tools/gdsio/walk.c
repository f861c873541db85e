// SPDX-License-Identifier: Apache-2.0
/* walk - the requests of one thread on one target, one after the other. */
#include "gdsio/walk.h"

#include "gdsio/pattern.h"

void walk_begin(struct walk *walk, const struct plan *plan,
		const struct job *job, const struct target *target, bool write)
{
	*walk = (struct walk){
		.target = target,
		.begin = target->begin,
		.end = target->end,
		.at = target->begin,
		.left = target->end - target->begin,
		.io = job->io,
		.next = job->io.min,
		.random = op_is_random(plan->op),
		.write = write,
		.endless = plan->seconds > 0,
		.align = plan->align,
		.mix = plan->mix,
	};
}

/* units * nr / shares, where the product may be too large to count. */
static off_t part_of(off_t units, int nr, int shares)
{
	return units / shares * nr + units % shares * nr / shares;
}

void walk_share(struct walk *walk, int nr, int shares)
{
	off_t begin = walk->begin;
	off_t end = walk->end;
	off_t unit = (off_t)walk->io.max;
	off_t units = (end - begin + unit - 1) / unit;

	walk->begin = begin + part_of(units, nr, shares) * unit;
	if (nr + 1 < shares)
		walk->end = begin + part_of(units, nr + 1, shares) * unit;
	walk->at = walk->begin;
	walk->left = walk->end - walk->begin;
}

void walk_seed(struct walk *walk, uint64_t seed, unsigned job, unsigned nr)
{
	uint64_t state = seed;

	state = random_next(&state) + ((uint64_t)job << 32 | nr);
	walk->state = random_next(&state);
}

/* Between two multiples that the request fits behind. */
static off_t random_offset(struct walk *walk, size_t size)
{
	off_t room = walk->end - walk->begin - (off_t)size;
	uint64_t places = (uint64_t)(room / walk->align) + 1;

	return walk->begin +
	       (off_t)(random_next(&walk->state) % places) * walk->align;
}

static size_t next_size(struct walk *walk, off_t room)
{
	size_t size = walk->next;

	walk->next += walk->io.step;
	if (walk->next > walk->io.max || !walk->io.step)
		walk->next = walk->io.min;
	return (off_t)size > room ? (size_t)room : size;
}

static bool next_round(struct walk *walk)
{
	if (!walk->endless || walk->begin >= walk->end)
		return false;
	walk->at = walk->begin;
	walk->left = walk->end - walk->begin;
	return true;
}

bool walk_next(struct walk *walk, struct request *request)
{
	off_t room = walk->random ? walk->left : walk->end - walk->at;
	size_t size;

	if (room <= 0 && !next_round(walk))
		return false;
	room = walk->random ? walk->left : walk->end - walk->at;
	size = next_size(walk, room);
	*request = (struct request){ .target = walk->target,
				     .off = walk->at,
				     .size = size,
				     .write = walk->write };
	if (walk->random)
		request->off = random_offset(walk, size);
	walk->at += (off_t)size;
	walk->left -= (off_t)size;
	if (walk->mix != UNSET)
		request->write =
			(int)(random_next(&walk->state) % 100) >= walk->mix;
	return true;
}
