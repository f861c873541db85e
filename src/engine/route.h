// SPDX-License-Identifier: Apache-2.0
/* route - the decision how a piece travels, and why not otherwise. */
#ifndef CF_ENGINE_ROUTE_H
#define CF_ENGINE_ROUTE_H

#include "engine/rules.h"

/* A value: the path taken, and what paths of the table answered. */
struct cf_route {
	const struct cf_path_ops *path; /* NULL: none can carry the piece */
	unsigned nr_asked;		/* from the front of the table */
	enum cf_why why[CF_MAX_PATHS];	/* their answers, by place there */
};

/*
 * Pure: the same piece and rules give the same route. Paths that come after one
 * that never gives up are not asked.
 */
void cf_route_choose(const struct cf_piece *piece, const struct cf_rules *rules,
		     struct cf_route *route);

/* For explanations: asks the remaining paths, too. route->path stays. Pure. */
void cf_route_ask_rest(const struct cf_piece *piece,
		       const struct cf_rules *rules, struct cf_route *route);

/*
 * What the registration of a file answers in strict mode (contract 3.6): 0; or,
 * where nothing could ever carry it to or from a GPU, -5034 if a denylist names
 * it, else -5008, and why. What depends on a request, or on how the file was
 * opened, does not count. Pure.
 */
int cf_route_check_file(const struct cf_handle *handle,
			const struct cf_rules *rules, enum cf_why *why);

/* The path that goes on where the one taken gave up; NULL: none. */
const struct cf_path_ops *cf_route_next(const struct cf_route *route);

/* The table's paths in order of preference; NULL past the end. */
const struct cf_path_ops *cf_path_at(unsigned i);

/* A sentence for people. */
const char *cf_why_text(enum cf_why why);
/* What a person can do about it, or NULL. */
const char *cf_why_remedy(enum cf_why why);

#endif
