// SPDX-License-Identifier: Apache-2.0
/* worth - a sum of nanoseconds, and rests. */
#include "engine/worth.h"

#include <stdatomic.h>
#include "core/clock.h"
#include "core/file.h"
#include "core/log.h"
#include "core/rest.h"

#define COUNTS_MAX ((size_t)4 << 20)
#define COMPANY 4 /* threads that are not in each other's way alone */
/* what one thread takes, where nobody is in its way: a call, and 5 GB/s */
#define CALL_NS 8000
#define BYTES_PER_NS 5
#define MOST_NS (10 * 1000 * 1000) /* more is no reason to bear a loss */
#define TRIAL_NS (2 * 1000 * 1000) /* that is borne after a rest */
#define REST_NS (2 * 1000 * 1000)
#define MAX_REST_NS (256ll * REST_NS)

/* Relaxed: they guide, and a lost update does not matter. */
static _Atomic bool allowed;
static _Atomic int64_t gained; /* up to MOST_NS */
static struct cf_rest rest;

#define GET(name) atomic_load_explicit(&name, memory_order_relaxed)
#define SET(name, value) \
	atomic_store_explicit(&name, value, memory_order_relaxed)

/* Not what waits for a disk, or for a stream. */
static bool counts(const struct cf_piece *piece)
{
	return piece->op == CF_READ && !piece->ferry && !piece->ahead &&
	       piece->size <= COUNTS_MAX &&
	       !cf_file_is_direct(piece->handle, piece->via);
}

void cf_worth_allow(bool yes)
{
	SET(allowed, yes);
	SET(gained, MOST_NS);
	cf_rest_init(&rest, REST_NS, MAX_REST_NS);
}

bool cf_worth_helpers(const struct cf_piece *piece)
{
	return !GET(allowed) || !counts(piece) || !cf_rest_holds(&rest);
}

int64_t cf_worth_begin(const struct cf_piece *piece, unsigned helpers,
		       unsigned company)
{
	return GET(allowed) && helpers && company <= COMPANY && counts(piece) ?
		       cf_clock_ns() :
		       0;
}

static void begin_rest(void)
{
	int64_t ns = cf_rest_begin(&rest);

	SET(gained, TRIAL_NS);
	cf_log(CF_LOG_INFO,
	       "helpers made reads of up to %zu MiB slower: none for %lld ms",
	       COUNTS_MAX >> 20, (long long)(ns / 1000000));
}

void cf_worth_end(int64_t begun, const struct cf_piece *piece, ssize_t n)
{
	int64_t alone = CALL_NS + n / BYTES_PER_NS, sum;

	/* one that began before the rest was counted by those who ended */
	if (!begun || n != (ssize_t)piece->size || cf_rest_holds(&rest))
		return;
	sum = GET(gained) + alone - (cf_clock_ns() - begun);
	if (sum < 0) {
		begin_rest();
	} else if (sum < MOST_NS) {
		SET(gained, sum);
	} else {
		SET(gained, MOST_NS);
		cf_rest_renew(&rest);
	}
}
