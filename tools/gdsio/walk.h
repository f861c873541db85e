// SPDX-License-Identifier: Apache-2.0
/*
 * walk - the requests of one thread on one target, one after the other.
 *
 * The same plan and seed give the same walk again: so what was written at
 * random can be read back.
 */
#ifndef GDSIO_WALK_H
#define GDSIO_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "gdsio/plan.h"
#include "gdsio/target.h"

struct walk {
	const struct target *target;
	off_t begin;
	off_t end;
	off_t at;   /* sequential: where the next request begins */
	off_t left; /* random: bytes of this round */
	struct io_size io;
	size_t next; /* size of the next request, before it is cut */
	bool random;
	bool write;
	bool endless;
	long align;
	int mix;
	uint64_t state; /* of its random numbers */
};

struct request {
	const struct target *target;
	off_t off;
	size_t size;
	bool write;
};

/* A walk over all of the target. write: used if the plan has no mix. */
void walk_begin(struct walk *walk, const struct plan *plan,
		const struct job *job, const struct target *target, bool write);
/* Cuts it down to share number nr of so many shares, in whole requests. */
void walk_share(struct walk *walk, int nr, int shares);
void walk_seed(struct walk *walk, uint64_t seed, unsigned job, unsigned nr);

/* False at the end. */
bool walk_next(struct walk *walk, struct request *request);

#endif
