// SPDX-License-Identifier: Apache-2.0
/* sync - a turn is one cuFileRead or cuFileWrite. */
#include "runner.h"

static void nothing(struct runner *r)
{
}

static bool turn(struct runner *r)
{
	const struct lot *lot = &r->lots[0];
	ssize_t n = r->cell->write ?
			    r->mover->write(r->fh, r->mem, lot->size,
					    lot->file_off, lot->mem_off) :
			    r->mover->read(r->fh, r->mem, lot->size,
					   lot->file_off, lot->mem_off);

	if (n != (ssize_t)lot->size) {
		fail(r, r->cell->write ? "write" : "read", n);
		return false;
	}
	return true;
}

const struct way way_sync = { nothing, turn, nothing };
