// SPDX-License-Identifier: Apache-2.0
/*
 * submission - in which groups entries are taken, and which a cancel ends.
 *
 * The test itself is the only one that takes: no task is posted.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "core/file.h"
#include "engine/entry.h"
#include "engine/plan_batch.h"
#include "engine/plan_limits.h"
#include "harness.h"

#define NR 600
#define NR_FILES 3
#define ROOM (64 * TH_KIB)
#define ROUNDS 40
#define LARGEST (300 * TH_KIB)

struct world {
	struct cf_queue queue;
	struct th_file files[NR_FILES];
	CUfileHandle_t handles[NR_FILES];
	struct th_mem device, second, host;
	CUfileIOParams_t params[NR];
	struct cf_submission *sub;
	bool taken[NR];
	unsigned nr_taken, nr_ended;
};

static void set_size(CUFileSizeTConfigParameter_t param, size_t value)
{
	assert_int_equal(cuFileSetParameterSizeT(param, value).err, 0);
}

/* Whatever the machine has: so many workers there are. */
static void world_make(struct world *w, size_t slot_kib, size_t workers)
{
	unsigned char *bytes = th_bytes(TH_MIB);

	th_need_gpu();
	set_size(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, slot_kib);
	set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, workers);
	th_open_for(TH_ODIRECT);
	/* whatever the processor can: nothing is carried here */
	atomic_store(&cf_plan_bounds.can_demote, true);
	memset(w, 0, sizeof(*w));
	cf_queue_init(&w->queue);
	assert_int_equal(cf_events_open(&w->queue.events, NR), 0);
	for (unsigned i = 0; i < NR_FILES; i++) {
		th_file_make(&w->files[i], i ? TH_BUFFERED : TH_ODIRECT, O_RDWR,
			     bytes, TH_MIB);
		w->handles[i] = th_handle(w->files[i].fd);
	}
	th_mem_alloc(&w->device, TH_DEVICE, TH_MIB);
	th_mem_alloc(&w->second, TH_SECOND, TH_MIB);
	th_mem_alloc(&w->host, TH_MALLOC, TH_MIB);
	free(bytes);
}

/* Each deregistration waits for the last entry of its file. */
static void world_end(struct world *w)
{
	for (unsigned i = 0; i < NR_FILES; i++) {
		cuFileHandleDeregister(w->handles[i]);
		th_file_end(&w->files[i]);
	}
	th_mem_free(&w->device);
	th_mem_free(&w->second);
	th_mem_free(&w->host);
	cf_events_close(&w->queue.events);
	th_close();
}

static void draw(struct world *w, CUfileIOParams_t *p)
{
	/* eight of 16368 bytes and their edges fill a slot of 128 KiB */
	static const size_t sizes[] = { 0,    512,  4096,     16368,
					4096, ROOM, 2 * ROOM, LARGEST };

	void *const memory[] = { w->device.ptr, w->device.ptr, w->second.ptr,
				 w->host.ptr };

	*p = (CUfileIOParams_t){ .mode = CUFILE_BATCH };
	p->fh = w->handles[th_below(NR_FILES)];
	p->opcode = th_below(3) ? CUFILE_READ : CUFILE_WRITE;
	p->u.batch.devPtr_base = memory[th_below(4)];
	p->u.batch.size = sizes[th_below(8)];
}

/*
 * Some in a row are alike, in all but their places; or have a byte more, which
 * costs the same and may need more of a slot.
 */
static void draw_all(struct world *w, unsigned nr, unsigned in_a_row)
{
	for (unsigned i = 0; i < nr; i++) {
		CUfileIOParams_t *p = &w->params[i];

		if (i && th_below(in_a_row))
			*p = p[-1];
		else
			draw(w, p);
		if (!th_below(8))
			p->u.batch.size ^= 1;
		p->u.batch.devPtr_offset = (off_t)(th_below(128) * 4096);
		p->u.batch.file_offset = (off_t)(th_below(128) * 4096);
	}
}

static void count_ended(void *arg)
{
	((struct world *)arg)->nr_ended++;
}

/* Entries take so many GPUs in turn; nothing is carried that would notice. */
static void submit_to(struct world *w, unsigned nr, unsigned nr_gpus)
{
	struct cf_facts last = { .known.base = NULL };
	struct cf_submission *sub = cf_submission_new(&w->queue, nr);
	const char *why;

	assert_non_null(sub);
	for (unsigned i = 0; i < nr; i++) {
		struct cf_entry *entry = &sub->entries[i];

		if (!i || !cf_entry_init_like(entry, &w->params[i], entry - 1,
					      &w->params[i - 1], &last))
			assert_int_equal(cf_entry_init(entry, &w->params[i],
						       &last, NULL, NULL, &why),
					 0);
		if (nr_gpus > 1) {
			entry->req.piece.mem.ordinal = (int)(i % nr_gpus);
			entry->like = false;
		}
	}
	cf_submission_sort(sub);
	sub->ended = count_ended;
	sub->ended_arg = w;
	assert_int_equal(cf_events_expect(&w->queue.events, nr), 0);
	cf_submission_queue(sub);
	memset(w->taken, 0, sizeof(w->taken));
	w->nr_taken = 0;
	w->sub = sub;
}

static void submit(struct world *w, unsigned nr)
{
	submit_to(w, nr, 1);
}

/* ------------------------------------------------- what there is to take */

/* What a sort holds is found out when all of it has been taken. */
struct log {
	const struct cf_piece *first[CF_MAX_SORTS];
	unsigned sort_of[NR]; /* of an entry */
	struct taking {
		unsigned sort, first, nr;
		bool alone; /* by cf_submission_next */
	} takings[NR];
	unsigned nr;
};

static unsigned number_of(const struct world *w, const struct cf_entry *entry)
{
	size_t at = (size_t)(entry - w->sub->entries);

	assert_true(at < w->sub->nr);
	assert_ptr_equal(entry, &w->sub->entries[at]);
	return (unsigned)at;
}

/*
 * What shares a copy, a launch or a ring is of one direction and of one
 * context: in another one it would be lost, or break that one. Writes that wait
 * for each other are of one file.
 */
static void travel_alike(const struct cf_sort *sort,
			 const struct cf_piece *piece,
			 const struct cf_piece *first)
{
	bool direct = cf_file_is_direct(piece->handle, piece->via);

	if (sort->way == CF_WAY_EACH || sort->way == CF_WAY_SERIAL)
		return;
	assert_int_equal(piece->op, first->op);
	assert_int_equal(piece->mem.kind, first->mem.kind);
	assert_ptr_equal(piece->mem.ctx, first->mem.ctx);
	assert_int_equal(piece->mem.ordinal, first->mem.ordinal);
	if (piece->op == CF_WRITE && !direct)
		assert_ptr_equal(piece->handle, first->handle);
}

static void note(struct world *w, struct log *log, const struct cf_group *group,
		 struct cf_entry *const *entries, unsigned nr)
{
	struct taking *taking = &log->takings[log->nr++];

	*taking = (struct taking){ .sort = (unsigned)(group->sort -
						      w->sub->sorts),
				   .first = number_of(w, entries[0]),
				   .nr = nr,
				   .alone = entries != group->entries };
	for (unsigned i = 0; i < nr; i++) {
		unsigned at = number_of(w, entries[i]);
		const struct cf_piece *piece = &entries[i]->req.piece;

		assert_int_equal(piece->demote, cf_plan_bundle_demote(piece));
		if (!log->first[taking->sort])
			log->first[taking->sort] = piece;
		travel_alike(group->sort, piece, log->first[taking->sort]);
		assert_false(w->taken[at]);
		w->taken[at] = true;
		w->nr_taken++;
		log->sort_of[at] = taking->sort;
	}
}

/* One group, and now and then a few of its sort behind it. False: no more. */
static bool take(struct world *w, struct log *log)
{
	struct cf_group group;
	struct cf_entry *one;

	if (!cf_submission_take(w->sub, &group)) {
		assert_false(group.more);
		return false;
	}
	note(w, log, &group, group.entries, group.nr);
	assert_int_equal(group.behind, w->sub->nr - w->nr_taken);
	assert_int_equal(group.more, group.behind > 0);
	for (size_t i = th_below(4); i > 1; i--) {
		one = cf_submission_next(w->sub, &group);
		if (one)
			note(w, log, &group, &one, 1);
		assert_int_equal(group.more, w->nr_taken < w->sub->nr);
	}
	cf_submission_done(w->sub, &group);
	return true;
}

static void end_taken(struct world *w)
{
	for (unsigned i = 0; i < w->sub->nr; i++)
		if (w->taken[i])
			cf_request_fini(&w->sub->entries[i].req);
	cf_events_forget(&w->queue.events, w->nr_taken);
	cf_submission_ended(w->sub, w->nr_taken);
}

/* ------------------------------------------------ what it should have been */

static const struct cf_piece *piece_at(const struct world *w, unsigned i)
{
	return &w->sub->entries[i].req.piece;
}

/* The next entry of the sort that is not taken, or sub->nr. */
static unsigned next_of(const struct world *w, const struct log *log,
			unsigned sort, unsigned i)
{
	while (i < w->sub->nr && (w->taken[i] || log->sort_of[i] != sort))
		i++;
	return i;
}

static unsigned long long left_ns(const struct world *w, const struct log *log,
				  unsigned sort)
{
	unsigned long long ns = 0;

	for (unsigned i = next_of(w, log, sort, 0); i < w->sub->nr;
	     i = next_of(w, log, sort, i + 1))
		ns += cf_plan_cost_ns(piece_at(w, i));
	return ns;
}

/* As many as are worth it and have room, from entry i of the sort on. */
static unsigned share(const struct world *w, const struct log *log,
		      unsigned sort, unsigned i)
{
	const struct cf_sort *s = &w->sub->sorts[sort];
	unsigned long long enough = cf_plan_group_ns(
		left_ns(w, log, sort), s->most ? s->most : w->sub->carriers);
	size_t room = cf_plan_bundle_bytes(), need = 0;
	unsigned most = CF_GROUP_MAX, nr = 0;
	unsigned long long ns = 0;

	if (s->way == CF_WAY_FLEET)
		return 1;
	/* its helpers are those who would take shares */
	if (s->helpers) {
		enough = ULLONG_MAX;
		room = cf_plan_crewed_bytes();
		most = s->share;
	}
	for (; i < w->sub->nr && nr < most; i = next_of(w, log, sort, i + 1)) {
		unsigned cost = cf_plan_cost_ns(piece_at(w, i));

		if (s->way == CF_WAY_BUNDLE)
			need += cf_bundle_need(piece_at(w, i));
		if (nr && (ns + cost / 2 > enough || need > room))
			break;
		ns += cost;
		nr++;
	}
	return nr;
}

/* Takes all of it once more, by the rules. */
static void check(struct world *w, const struct log *log)
{
	memset(w->taken, 0, sizeof(w->taken));
	for (unsigned k = 0; k < log->nr; k++) {
		const struct taking *t = &log->takings[k];
		unsigned at = next_of(w, log, t->sort, 0);

		assert_int_equal(t->first, at);
		if (!t->alone)
			assert_int_equal(t->nr, share(w, log, t->sort, at));
		for (unsigned i = 0; i < t->nr; i++) {
			w->taken[at] = true;
			at = next_of(w, log, t->sort, at);
		}
	}
}

/* ----------------------------------------------------------------- tests */

static void take_all(struct world *w, unsigned nr, unsigned in_a_row)
{
	struct log log = { .nr = 0 };

	draw_all(w, nr, in_a_row);
	submit(w, nr);
	while (take(w, &log))
		continue;
	assert_int_equal(w->nr_taken, nr);
	assert_null(w->queue.first);
	check(w, &log);
	end_taken(w);
	cf_submission_put(w->sub);
}

static void groups_are_fair_shares_in_order(void **state)
{
	/*
	 * Bundles end with the worth of a group, and with their slot; those
	 * with crews only with their slot.
	 */
	static const struct {
		size_t slot_kib, workers;
	} rows[] = { { 1024, 3 }, { 128, 16 }, { 1024, 16 }, { 1028, 16 } };
	struct world w;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		world_make(&w, rows[i].slot_kib, rows[i].workers);
		for (unsigned round = 0; round < TH_SCALE(ROUNDS); round++) {
			take_all(&w, 1 + (unsigned)th_below(NR), 1);
			take_all(&w, 1 + (unsigned)th_below(NR), 5);
			take_all(&w, 1 + (unsigned)th_below(NR), 200);
		}
		world_end(&w);
	}
}

static void draw_cached_reads(struct world *w, unsigned nr, size_t size)
{
	for (unsigned i = 0; i < nr; i++) {
		CUfileIOParams_t *p = &w->params[i];

		*p = (CUfileIOParams_t){ .mode = CUFILE_BATCH };
		p->opcode = CUFILE_READ;
		p->fh = w->handles[1];
		p->u.batch.devPtr_base = w->device.ptr;
		p->u.batch.size = size;
	}
}

static void crew_takes(struct world *w, unsigned nr, size_t size,
		       unsigned first, unsigned helpers)
{
	struct log log = { .nr = 0 };
	const struct cf_sort *sort;

	draw_cached_reads(w, nr, size);
	submit(w, nr);
	assert_int_equal(w->sub->nr_sorts, 1);
	sort = &w->sub->sorts[0];
	assert_int_equal(sort->most, nr > first ? 2 : 1);
	assert_int_equal(sort->helpers, helpers);
	assert_int_equal(w->sub->carriers, sort->most);
	while (take(w, &log))
		continue;
	assert_int_equal(log.takings[0].nr, first);
	check(w, &log);
	end_taken(w);
	cf_submission_put(w->sub);
}

static void who_has_a_crew_takes_what_a_slot_holds(void **state)
{
	struct world w;

	world_make(&w, 4096, 16);
	crew_takes(&w, 64, 16 * TH_KIB, 64, 7);
	crew_takes(&w, 256, 4096, 256, 14);
	crew_takes(&w, 64, ROOM, 64, 15);
	/* what it does not is shared alike */
	crew_takes(&w, 300, 4096, 150, 7);
	crew_takes(&w, 65, ROOM, 33, 7);
	world_end(&w);
}

static void are_carried_by(struct world *w, unsigned nr_gpus, unsigned carriers)
{
	struct log log = { .nr = 0 };

	submit_to(w, NR, nr_gpus);
	assert_int_equal(w->sub->carriers, carriers);
	while (take(w, &log))
		continue;
	end_taken(w);
	cf_submission_put(w->sub);
}

static void a_batch_is_worth_the_workers_of_its_gpus(void **state)
{
	struct world w;

	world_make(&w, 4096, 16);
	atomic_store(&cf_plan_bounds.gpu_workers, 5);
	draw_cached_reads(&w, NR, LARGEST);
	are_carried_by(&w, 1, 5);
	are_carried_by(&w, 2, 10);
	are_carried_by(&w, 3, 15);
	are_carried_by(&w, 4, 16);
	for (unsigned i = 0; i < NR; i++)
		w.params[i].u.batch.devPtr_base = w.host.ptr;
	are_carried_by(&w, 1, 5);
	world_end(&w);
}

/* Those with a crew are busy, so nobody else is any use. */
static void no_more_take_than_there_are_crews(void **state)
{
	struct cf_group groups[4];
	struct world w;

	world_make(&w, 4096, 16);
	draw_cached_reads(&w, NR, 4096);
	submit(&w, NR);
	assert_true(cf_submission_take(w.sub, &groups[0]));
	assert_true(cf_submission_take(w.sub, &groups[1]));
	assert_int_equal(groups[1].nr, NR / 4);
	assert_false(cf_submission_take(w.sub, &groups[2]));
	assert_true(groups[2].more);
	cf_submission_done(w.sub, &groups[0]);
	assert_true(cf_submission_take(w.sub, &groups[2]));
	assert_int_equal(groups[2].nr, NR / 4);
	assert_true(groups[2].more);
	assert_false(cf_submission_take(w.sub, &groups[3]));
	cf_submission_done(w.sub, &groups[1]);
	assert_true(cf_submission_take(w.sub, &groups[3]));
	assert_false(groups[3].more);
	memset(w.taken, 1, sizeof(w.taken));
	w.nr_taken = NR;
	end_taken(&w);
	cf_submission_put(w.sub);
	world_end(&w);
}

/* Or each taker would fetch each entry's own line. */
static void what_costs_the_same_is_one_row(void **state)
{
	struct log log = { .nr = 0 };
	struct world w;

	world_make(&w, 1024, 16);
	draw_cached_reads(&w, NR, 4096);
	for (unsigned i = NR / 2; i < NR; i++)
		w.params[i].fh = w.handles[1 + i % 2];
	submit(&w, NR);
	assert_int_equal(w.sub->nr_sorts, 1);
	assert_int_equal(w.sub->nr_streaks, 1);
	while (take(&w, &log))
		continue;
	end_taken(&w);
	cf_submission_put(w.sub);
	world_end(&w);
}

/*
 * Any number may write what the file has, and two what it has not. Without
 * windows, else large entries are never taken to be like the one before.
 */
static void what_makes_a_file_longer_is_of_another_sort(void **state)
{
	struct log log = { .nr = 0 };
	struct th_file file;
	struct world w;

	setenv("OCF_MAPPED", "off", 1);
	world_make(&w, 4096, 16);
	unsetenv("OCF_MAPPED");
	th_file_make(&file, TH_TMPFS, O_RDWR, NULL, 3 * TH_MIB);
	draw_cached_reads(&w, 4, TH_MIB);
	for (unsigned i = 0; i < 4; i++) {
		w.params[i].opcode = CUFILE_WRITE;
		w.params[i].fh = i ? w.params[0].fh : th_handle(file.fd);
		w.params[i].u.batch.devPtr_base = w.host.ptr;
		w.params[i].u.batch.file_offset = (off_t)(i * TH_MIB);
	}
	submit(&w, 4);
	while (take(&w, &log))
		continue;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(w.sub->sorts[log.sort_of[i]].way,
				 i < 3 ? CF_WAY_EACH : CF_WAY_WRITES);
	end_taken(&w);
	cf_submission_put(w.sub);
	cuFileHandleDeregister(w.params[0].fh);
	th_file_end(&file);
	world_end(&w);
}

/* What was taken is its taker's to end: it is still whole. */
static void take_some_and_strip(struct world *w, unsigned nr, unsigned takings)
{
	struct log log = { .nr = 0 };

	draw_all(w, nr, 5);
	submit(w, nr);
	while (takings-- && take(w, &log))
		continue;
	w->nr_ended = 0;
	cf_queue_strip(&w->queue);
	assert_null(w->queue.first);
	assert_int_equal(w->queue.events.pending, w->nr_taken);
	assert_int_equal(w->nr_ended, w->nr_taken ? 0 : 1);
	assert_false(take(w, &log));
	if (w->nr_taken)
		end_taken(w);
	assert_int_equal(w->nr_ended, 1);
	assert_int_equal(w->queue.events.pending, 0);
	cf_submission_put(w->sub);
}

static void a_cancel_ends_what_nobody_took(void **state)
{
	struct world w;

	world_make(&w, 1024, 16);
	for (unsigned round = 0; round < TH_SCALE(ROUNDS); round++)
		for (unsigned takings = 0; takings < 8; takings++)
			take_some_and_strip(&w, 1 + (unsigned)th_below(NR),
					    takings);
	world_end(&w);
}

static void gives(ssize_t result, CUfileStatus_t status, ssize_t ret)
{
	static char cookie;
	CUfileIOEvents_t event = cf_entry_event(&cookie, result);

	assert_ptr_equal(event.cookie, &cookie);
	assert_int_equal(event.status, status);
	assert_int_equal((ssize_t)event.ret, ret);
}

/* It has no place for an error of the driver. */
static void an_event_has_a_code_that_clients_know(void **state)
{
	(void)state;
	gives(4096, CUFILE_COMPLETE, 4096);
	gives(0, CUFILE_COMPLETE, 0);
	gives(-EIO, CUFILE_FAILED, -EIO);
	gives(-CU_FILE_DRIVER_CLOSING, CUFILE_FAILED, -CU_FILE_DRIVER_CLOSING);
	gives(CF_ECUDA(700), CUFILE_FAILED, -CU_FILE_CUDA_DRIVER_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_fair_shares_in_order),
		cmocka_unit_test(who_has_a_crew_takes_what_a_slot_holds),
		cmocka_unit_test(a_batch_is_worth_the_workers_of_its_gpus),
		cmocka_unit_test(no_more_take_than_there_are_crews),
		cmocka_unit_test(what_costs_the_same_is_one_row),
		cmocka_unit_test(what_makes_a_file_longer_is_of_another_sort),
		cmocka_unit_test(an_event_has_a_code_that_clients_know),
		cmocka_unit_test(a_cancel_ends_what_nobody_took),
	};

	th_start(100);
	return th_finish(
		cmocka_run_group_tests_name("submission", tests, NULL, NULL));
}
