// SPDX-License-Identifier: Apache-2.0
/*
 * ferried_world - a piece with a ferry whose kernel the test plays: slow, gone,
 * or with a board that is full. Memory of this process stands for that of a
 * GPU.
 */
#ifndef TESTS_UNIT_FERRIED_WORLD_H
#define TESTS_UNIT_FERRIED_WORLD_H

#include "path/ferried.h"
#include "core/device.h"
#include "core/ferry.h"
#include "core/file.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE (200 * TH_KIB + 777)
#define STEP (16 * TH_KIB)
#define BLOCKS 2
#define LOST CF_ECUDA(CF_CU_CONTEXT_IS_DESTROYED)

struct world {
	struct cf_ferry ferry;
	struct cf_ferry_board board;
	struct cf_ferry_board *told; /* the board with state and orders */
	char *hold, *aperture;
	struct th_file file;
	CUfileHandle_t value;
	struct cf_piece piece;
	struct cf_feed feed;
	struct cf_crew crew;
	unsigned char *bytes, *memory;
	pthread_t kernel;
	/* the kernel begins when so many orders are posted, or helped is set */
	uint32_t begins_at;
	unsigned slow_ms;     /* before each order */
	uint32_t lost_before; /* at this order the kernel is gone; 0: never */
	atomic_bool over;
};

static inline void nothing(struct cf_ferry *ferry)
{
	(void)ferry;
}

static inline bool yes(struct cf_ferry *ferry)
{
	(void)ferry;
	return true;
}

static inline void no_team(void)
{
}

static const struct cf_ferry_ops ops = { nothing, yes, no_team, no_team };

static atomic_bool helped; /* the helpers have done their part */

static inline uint32_t orders(struct world *w)
{
	return (uint32_t)atomic_load(&w->told->state);
}

/* The kernel's thread: carries orders out in turn until the world is over. */
static inline void *play_kernel(void *arg)
{
	struct world *w = arg;
	uint32_t done = 0;

	while (orders(w) < w->begins_at && !atomic_load(&helped))
		th_sleep_ms(1);
	while (!atomic_load(&w->over)) {
		const struct cf_ferry_order *o =
			&w->told->orders[done % CF_FERRY_ORDERS];

		if (orders(w) == done) {
			th_sleep_ms(1);
			continue;
		}
		if (done + 1 == w->lost_before) {
			cf_ferry_lose(&w->ferry);
			break;
		}
		if (w->slow_ms)
			th_sleep_ms(w->slow_ms);
		memcpy((void *)(uintptr_t)o->dst, (void *)(uintptr_t)o->src,
		       o->size);
		atomic_store(&w->board.moved[done % w->ferry.blocks], done + 1);
		done++;
	}
	return NULL;
}

static inline void world_make_on(struct world *w, enum cf_op op,
				 enum th_file_kind kind)
{
	*w = (struct world){ .over = false };
	atomic_store(&helped, false);
	th_open();
	w->bytes = th_bytes(SIZE);
	w->memory = op == CF_READ ? th_same(0xa5, SIZE + 64) : th_bytes(SIZE);
	assert_int_equal(
		posix_memalign((void **)&w->hold, CF_SLOT_ALIGN, CF_FERRY_HOLD),
		0);
	th_file_make(&w->file, kind, O_RDWR, w->bytes, SIZE);
	w->value = th_handle(w->file.fd);
	cf_ferry_init(&w->ferry, &ops);
	w->ferry.board = w->told = &w->board;
	w->ferry.hold = w->hold;
	w->ferry.blocks = BLOCKS;
	cf_ferry_begin(&w->ferry);
	w->piece = (struct cf_piece){
		.ferry = &w->ferry,
		.op = op,
		.handle = cf_handle_get(w->value),
		.mem = { .kind = CF_MEMORY_DEVICE,
			 .addr = (uintptr_t)w->memory },
		.size = SIZE,
	};
	cf_feed_init(&w->feed, SIZE, 0, STEP);
}

static inline void world_make(struct world *w, enum cf_op op)
{
	world_make_on(w, op, TH_BUFFERED);
}

static inline ssize_t world_run(struct world *w)
{
	assert_int_equal(pthread_create(&w->kernel, NULL, play_kernel, w), 0);
	cf_ferried_run(&w->piece, &w->feed, &w->crew);
	return cf_feed_result(&w->feed);
}

static inline void *run_ferried(void *arg)
{
	struct world *w = arg;

	cf_ferried_run(&w->piece, &w->feed, &w->crew);
	return NULL;
}

/* All orders that were posted have been carried out. */
static inline void is_settled(struct world *w)
{
	for (uint32_t nr = orders(w); nr && nr + BLOCKS > orders(w); nr--)
		assert_true(atomic_load(&w->board.moved[(nr - 1) % BLOCKS]) >=
			    nr);
}

static inline void hold_is_free(struct world *w)
{
	assert_int_equal(pthread_mutex_trylock(&w->ferry.hold_lock), 0);
	pthread_mutex_unlock(&w->ferry.hold_lock);
}

static inline void world_end(struct world *w)
{
	atomic_store(&w->over, true);
	pthread_join(w->kernel, NULL);
	cf_handle_put(w->piece.handle);
	cuFileHandleDeregister(w->value);
	th_file_end(&w->file);
	free(w->bytes);
	free(w->memory);
	free(w->hold);
	free(w->aperture);
	th_close();
}

#endif
