// SPDX-License-Identifier: Apache-2.0
/*
 * parcel - the list that a cancel looks through: parcels leave it in any order,
 * and none that comes meanwhile is waited for.
 */
#include "engine/parcel.h"

#include <fcntl.h>
#include "harness.h"

#define NR 3
#define ENTRIES 2
#define SIZE 512

struct world {
	struct cf_queue queue;
	struct th_file file;
	CUfileIOParams_t params[ENTRIES];
	char mem[SIZE];
};

/* What happens when the next parcel's entries have become pending. */
static void (*once_expected)(struct cf_queue *queue);
static struct cf_queue *queue_of_it;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __real_cf_events_expect(struct cf_events *events, unsigned nr);
int __wrap_cf_events_expect(struct cf_events *events, unsigned nr);
#pragma GCC visibility pop

int __wrap_cf_events_expect(struct cf_events *events, unsigned nr)
{
	int err = __real_cf_events_expect(events, nr);

	if (once_expected)
		once_expected(queue_of_it);
	once_expected = NULL;
	return err;
}

static void world_make(struct world *w)
{
	CUfileHandle_t fh;

	th_open();
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, NULL, SIZE);
	fh = th_handle(w->file.fd);
	cf_queue_init(&w->queue);
	assert_int_equal(cf_events_open(&w->queue.events, NR * ENTRIES), 0);
	for (unsigned i = 0; i < ENTRIES; i++) {
		w->params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						   .fh = fh,
						   .opcode = CUFILE_READ };
		w->params[i].u.batch.devPtr_base = w->mem;
		w->params[i].u.batch.size = SIZE;
	}
}

static void world_end(struct world *w)
{
	cf_events_close(&w->queue.events);
	th_file_end(&w->file);
	th_close();
}

static struct cf_parcel *put(struct world *w)
{
	struct cf_parcel *parcel;

	assert_int_equal(cf_parcel_new(&w->queue, ENTRIES, w->params, &parcel),
			 0);
	return parcel;
}

static void are_pending(struct world *w, unsigned parcels)
{
	assert_int_equal(atomic_load(&w->queue.events.pending),
			 parcels * ENTRIES);
}

static void parcels_leave_the_list_in_any_order(void **state)
{
	static const unsigned orders[][NR] = { { 0, 1, 2 }, { 0, 2, 1 },
					       { 1, 0, 2 }, { 1, 2, 0 },
					       { 2, 0, 1 }, { 2, 1, 0 } };
	struct cf_parcel *parcels[NR];
	struct world w;

	(void)state;
	world_make(&w);
	/* after so many the cancel takes the others, which are freed then */
	for (unsigned n = 0; n < 6 * (NR + 1); n++) {
		const unsigned *order = orders[n % 6];
		unsigned at = 0;

		for (unsigned i = 0; i < NR; i++)
			parcels[i] = put(&w);
		for (; at < n / 6; at++) {
			are_pending(&w, NR - at);
			cf_parcel_free(parcels[order[at]]);
		}
		are_pending(&w, NR - at);
		cf_parcels_strip(&w.queue);
		are_pending(&w, 0);
		for (; at < NR; at++)
			cf_parcel_free(parcels[order[at]]);
		are_pending(&w, 0);
	}
	world_end(&w);
}

/* Its entries are pending, and it is not on the list. */
static void cancel_looks_too_early(struct cf_queue *queue)
{
	cf_events_drop_begin(&queue->events);
	cf_parcels_strip(queue);
}

static void a_cancel_does_not_wait_for_one_that_comes_meanwhile(void **state)
{
	struct cf_parcel *parcel;
	struct world w;

	(void)state;
	world_make(&w);
	queue_of_it = &w.queue;
	once_expected = cancel_looks_too_early;
	parcel = put(&w);
	are_pending(&w, 0); /* or the cancel would not end */
	cf_events_drop_end(&w.queue.events);
	cf_parcel_free(parcel);
	are_pending(&w, 0);
	world_end(&w);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(parcels_leave_the_list_in_any_order),
		TEST(a_cancel_does_not_wait_for_one_that_comes_meanwhile),
	};

	th_start(30);
	return th_finish(
		cmocka_run_group_tests_name("parcel", tests, NULL, NULL));
}
