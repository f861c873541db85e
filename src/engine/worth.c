// SPDX-License-Identifier: Apache-2.0
/* worth - a sum of nanoseconds, and rests. */
#include "engine/worth.h"

#include <stdatomic.h>
#include "core/clock.h"
#include "core/file.h"
#include "core/log.h"
#include "core/numbers.h"
#include "core/rest.h"

#define COUNTS_FROM ((size_t)32 << 10) /* reads up to it have no helpers */
#define COUNTS_MAX ((size_t)4 << 20)
#define COMPANY 6 /* requests; more are in each other's way by themselves */
/* what one thread takes, where nobody is in its way: a call, and 5 GB/s */
#define CALL_NS 8000
#define BYTES_PER_NS 5
#define BEAR_NS (10 * 1000 * 1000) /* a loss that is borne at first */
#define TRIAL_NS (2 * 1000 * 1000) /* the same after a rest */
#define MAX_BEAR_NS (256ll * BEAR_NS)
#define REST_NS (2 * 1000 * 1000)
#define MAX_REST_NS (256ll * REST_NS)
#define TELLING_NS (10 * 1000 * 1000) /* of reads: one may have bad luck */

/* Reads since the last judgement: what they took, and what is due to them. */
struct pace {
	_Atomic int64_t took_ns, due_ns;
};

/* Relaxed: they guide, and a lost update does not matter. */
static _Atomic bool allowed;
static _Atomic int64_t gained = BEAR_NS; /* ns that may still be lost */
static _Atomic int64_t spare; /* more to lose, as one thread was no quicker */
static struct pace helped, alone;
static struct cf_rest rest = CF_REST(REST_NS, MAX_REST_NS);

#define GET(name) atomic_load_explicit(&(name), memory_order_relaxed)
#define SET(name, value) \
	atomic_store_explicit(&(name), value, memory_order_relaxed)

/* ---------------------------------------------------------------- paces */

static void pace_clear(struct pace *pace)
{
	SET(pace->took_ns, 0);
	SET(pace->due_ns, 0);
}

static void pace_add(struct pace *pace, int64_t took_ns, int64_t due_ns)
{
	SET(pace->took_ns, GET(pace->took_ns) + took_ns);
	SET(pace->due_ns, GET(pace->due_ns) + due_ns);
}

/* 1: as long as is due. 0: none were read. */
static double pace_of(const struct pace *pace)
{
	int64_t due_ns = GET(pace->due_ns);

	return due_ns ? (double)GET(pace->took_ns) / (double)due_ns : 0;
}

/* ------------------------------------------------------------- judgement */

static void clear_paces(void)
{
	pace_clear(&helped);
	pace_clear(&alone);
}

/* Helpers stay, and it takes twice the loss until they are judged again. */
static int64_t bear(void)
{
	int64_t ns =
		(int64_t)cf_clamp(2 * (size_t)GET(spare), BEAR_NS, MAX_BEAR_NS);

	SET(spare, ns);
	SET(gained, ns);
	cf_rest_renew(&rest);
	return ns;
}

static int64_t begin_rest(void)
{
	SET(gained, TRIAL_NS);
	return cf_rest_begin(&rest);
}

/*
 * Reads with helpers came to a loss. If one thread is known to be no quicker,
 * helpers stay; else they rest, also to find that out.
 */
static void judge(void)
{
	double with = pace_of(&helped), without = pace_of(&alone);
	bool known = GET(alone.took_ns) >= TELLING_NS;
	bool stay = known && without >= with;
	int64_t ns = stay ? bear() : begin_rest();

	if (known)
		clear_paces();
	cf_log(CF_LOG_INFO,
	       "reads of up to %zu MiB take %.1f of what one thread should with "
	       "helpers, %.1f without: %s %lld ms",
	       COUNTS_MAX >> 20, with, without,
	       stay ? "they stay, until it has cost" : "none for",
	       (long long)(ns / 1000000));
}

/* Where all is well nothing is written, for other processors read it, too. */
static void forget_losses(void)
{
	if (GET(gained) == BEAR_NS && !GET(spare))
		return;
	SET(spare, 0);
	SET(gained, BEAR_NS);
	cf_rest_renew(&rest);
	clear_paces();
}

void cf_worth_allow(bool yes)
{
	SET(allowed, yes);
	cf_rest_end(&rest);
	forget_losses();
}

/* ----------------------------------------------------------------- reads */

/* Reads that wait for a disk, or for a stream, do not count. */
static bool counts(const struct cf_piece *piece)
{
	return piece->op == CF_READ && !piece->ferry && !piece->ahead &&
	       !piece->cold && piece->size > COUNTS_FROM &&
	       piece->size <= COUNTS_MAX &&
	       !cf_file_is_direct(piece->handle, piece->via);
}

bool cf_worth_helpers(const struct cf_piece *piece)
{
	return !GET(allowed) || !counts(piece) || !cf_rest_holds(&rest);
}

int64_t cf_worth_begin(const struct cf_piece *piece, unsigned helpers,
		       unsigned company)
{
	return GET(allowed) && (helpers || piece->unhelped) &&
			       company <= COMPANY && counts(piece) ?
		       cf_clock_ns() :
		       0;
}

void cf_worth_end(int64_t begun, const struct cf_piece *piece, ssize_t n)
{
	int64_t due = CALL_NS + n / BYTES_PER_NS, took, sum;

	if (!begun || n != (ssize_t)piece->size)
		return;
	took = cf_clock_ns() - begun;
	if (piece->unhelped) {
		pace_add(&alone, took, due);
		return;
	}
	/* the read began before the rest, which others have decided on */
	if (cf_rest_holds(&rest))
		return;
	sum = GET(gained) + due - took;
	if (sum >= GET(spare) + BEAR_NS) {
		forget_losses();
		return;
	}
	pace_add(&helped, took, due);
	SET(gained, sum);
	if (sum < 0)
		judge();
}
