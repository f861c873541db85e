// SPDX-License-Identifier: Apache-2.0
/* fresh - asks, and waits a moment for the answer. */
#include "core/fresh.h"

#include "core/clock.h"
#include "core/pause.h"

#define PATIENCE_NS (2 * 1000 * 1000)

static void write_near(struct cf_fresh *fresh, uint64_t word)
{
	struct cf_fresh_words *near = fresh->near;

	atomic_store_explicit(&near->word, word, memory_order_release);
	atomic_store_explicit(&near->inverse, ~word, memory_order_release);
	cf_aperture_settle(&near->inverse);
}

void cf_fresh_init(struct cf_fresh *fresh, const struct cf_aperture *aperture,
		   size_t at, CUstream stream, struct cf_fresh_words *answer)
{
	fresh->near = (struct cf_fresh_words *)(aperture->mem + at);
	fresh->gpu_near = aperture->gpu + at;
	fresh->stream = stream;
	fresh->answer = answer;
	atomic_init(&fresh->asking, false);
	fresh->question = 0;
	/* until a question is */
	write_near(fresh, 1);
	atomic_init(&fresh->known, cf_clock_ns());
}

static bool is_known(const struct cf_fresh *fresh, int64_t now)
{
	return now - atomic_load_explicit(&fresh->known, memory_order_relaxed) <
	       CF_FRESH_NS;
}

/* The time is a question that was never asked before. */
static bool put(const struct cf_cuda *cuda, struct cf_fresh *fresh, int64_t now)
{
	struct cf_fresh_words *answer = fresh->answer;

	atomic_store_explicit(&answer->word, 0, memory_order_relaxed);
	atomic_store_explicit(&answer->inverse, 0, memory_order_relaxed);
	write_near(fresh, (uint64_t)now);
	if (cuda->memcpy_dtoh_async(answer, fresh->gpu_near, sizeof(*answer),
				    fresh->stream) != CF_CU_SUCCESS)
		return false;
	fresh->question = (uint64_t)now;
	fresh->asked = now;
	return true;
}

/* What the GPU has, or 0: it is not known yet. */
static uint64_t look(const struct cf_fresh *fresh)
{
	struct cf_fresh_words *answer = fresh->answer;
	uint64_t word =
		atomic_load_explicit(&answer->word, memory_order_acquire);

	return word == ~atomic_load_explicit(&answer->inverse,
					     memory_order_acquire) ?
		       word :
		       0;
}

/* One that was asked before may have been held up: a look is enough. */
static uint64_t ask(const struct cf_cuda *cuda, struct cf_fresh *fresh,
		    int64_t now)
{
	uint64_t answer;

	if (fresh->question)
		return look(fresh);
	if (!put(cuda, fresh, now))
		return 0;
	while (!(answer = look(fresh)) && cf_clock_ns() - now < PATIENCE_NS)
		cf_pause();
	return answer;
}

static enum cf_freshness find_out(const struct cf_cuda *cuda,
				  struct cf_fresh *fresh, int64_t now)
{
	uint64_t answer = ask(cuda, fresh, now);
	bool good = answer == fresh->question;

	if (!answer)
		return CF_FRESH_UNKNOWN;
	fresh->question = 0;
	if (!good)
		return CF_FRESH_STALE;
	atomic_store_explicit(&fresh->known, fresh->asked,
			      memory_order_relaxed);
	return is_known(fresh, cf_clock_ns()) ? CF_FRESH : CF_FRESH_UNKNOWN;
}

enum cf_freshness cf_fresh_ask(const struct cf_cuda *cuda,
			       struct cf_fresh *fresh)
{
	enum cf_freshness found;
	int64_t now = cf_clock_ns();

	if (is_known(fresh, now))
		return CF_FRESH;
	if (atomic_exchange_explicit(&fresh->asking, true,
				     memory_order_acquire))
		return CF_FRESH_UNKNOWN;
	found = find_out(cuda, fresh, now);
	atomic_store_explicit(&fresh->asking, false, memory_order_release);
	return found;
}
