// SPDX-License-Identifier: Apache-2.0
/* worth - a sum of nanoseconds, and rests. */
#include "engine/worth.h"

#include <stdatomic.h>
#include "core/file.h"
#include "core/log.h"
#include "core/permit.h"

#define COUNTS_MAX ((size_t)4 << 20)
#define COMPANY 4 /* threads that are not in each other's way alone */
/* what one thread takes, where nobody is in its way: a call, and 5 GB/s */
#define CALL_NS 8000
#define BYTES_PER_NS 5
#define MOST_NS (10 * 1000 * 1000) /* more is no reason to bear a loss */
#define TRIAL_NS (2 * 1000 * 1000) /* that is borne after a rest */
#define REST_NS (2 * 1000 * 1000)
#define MAX_REST_NS (256ll * REST_NS)

/* Relaxed, all of them: they guide, and a lost update does not matter. */
static struct {
	_Atomic bool allowed;
	_Atomic int64_t gained; /* up to MOST_NS */
	_Atomic int64_t rest_until;
	_Atomic int64_t rest_ns; /* the next rest */
} sum = { false, MOST_NS, 0, REST_NS };

#define GET(name) atomic_load_explicit(&sum.name, memory_order_relaxed)
#define SET(name, value) \
	atomic_store_explicit(&sum.name, value, memory_order_relaxed)

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
	SET(rest_until, 0);
	SET(rest_ns, REST_NS);
}

bool cf_worth_helpers(const struct cf_piece *piece)
{
	int64_t until = GET(rest_until);

	if (!until || !counts(piece))
		return true;
	if (cf_permit_clock() < until)
		return false;
	SET(rest_until, 0);
	return true;
}

int64_t cf_worth_begin(const struct cf_piece *piece, unsigned helpers,
		       unsigned company)
{
	return GET(allowed) && helpers && company <= COMPANY && counts(piece) ?
		       cf_permit_clock() :
		       0;
}

static void rest(int64_t now)
{
	int64_t ns = GET(rest_ns);

	SET(gained, TRIAL_NS);
	SET(rest_until, now + ns);
	SET(rest_ns, ns < MAX_REST_NS ? 2 * ns : ns);
	cf_log(CF_LOG_INFO,
	       "helpers made reads of up to %zu MiB slower: none for %lld ms",
	       COUNTS_MAX >> 20, (long long)(ns / 1000000));
}

void cf_worth_end(int64_t begun, const struct cf_piece *piece, ssize_t n)
{
	int64_t now, gained;

	if (!begun || n != (ssize_t)piece->size)
		return;
	now = cf_permit_clock();
	/* it began before the rest, and was counted by those who ended */
	if (now < GET(rest_until))
		return;
	gained = GET(gained) + CALL_NS + n / BYTES_PER_NS - (now - begun);
	if (gained < 0) {
		rest(now);
	} else if (gained < MOST_NS) {
		SET(gained, gained);
	} else {
		SET(gained, MOST_NS);
		SET(rest_ns, REST_NS);
	}
}
