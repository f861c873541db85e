// SPDX-License-Identifier: Apache-2.0
/*
 * via - page cache or O_DIRECT, decided for each request.
 *
 * The rule (cufile-routes(7), "Page cache or O_DIRECT"): a request goes the
 * way its file was opened, but
 *
 *  - a read of a direct file leaves the disk alone where the page cache holds
 *    all of the range, clean, on a file system whose cache is the truth;
 *  - if opencufile.hybrid is "both", a large read of a buffered file goes
 *    direct where the page cache holds nothing of the range. That is nobody's
 *    default: it leaves nothing in the cache for the next reader.
 *
 * Dirty pages keep a read direct, because a client that asks for O_DIRECT may
 * count on having read what is on the disk. engine/explain.c has the words.
 */
#ifndef CF_ENGINE_VIA_H
#define CF_ENGINE_VIA_H

#include "core/piece.h"

/* Reads of buffered files below this size are left to readahead. */
#define CF_VIA_DIRECT_FROM ((size_t)8 << 20)

enum cf_hybrid {
	CF_HYBRID_OFF,
	CF_HYBRID_CACHED,
	CF_HYBRID_BOTH,
};

struct cf_via_facts {
	enum cf_hybrid hybrid;
	bool read;
	bool user_fs; /* a user-space file system knows one way only */
	bool direct;  /* opened with O_DIRECT, or forced */
	bool refused; /* the file system has said no to O_DIRECT */
	bool truth;   /* nobody changes the file behind the page cache */
	size_t size;
	bool all_clean; /* set where cf_via_wants_all: all is cached, clean */
	bool none;	/* set where cf_via_wants_none: nothing is cached */
};

/* Pure: whether the decision depends on `all_clean`; on `none`. */
bool cf_via_wants_all(const struct cf_via_facts *facts);
bool cf_via_wants_none(const struct cf_via_facts *facts);
/* Pure. */
enum cf_via cf_via_decide(const struct cf_via_facts *facts);

/* Gathers the facts of a piece and decides. */
enum cf_via cf_via_choose(const struct cf_piece *piece, enum cf_hybrid hybrid);

#endif
