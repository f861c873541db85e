// SPDX-License-Identifier: Apache-2.0
/* test_plan - parts, helpers and what configuration has to say to them. */
#include <fcntl.h>
#include "core/ahead.h"
#include "core/ferry.h"
#include "engine/plan.h"
#include "engine/plan_limits.h"
#include "engine/worker.h"
#include "plan_asked.h"

static struct cf_handle file = { .open_flags = O_RDWR,
				 .dio_align = 4096,
				 .page_align = 4096 };
static struct cf_handle direct_file = { .open_flags = O_RDWR | O_DIRECT,
					.direct = true,
					.dio_align = 4096,
					.page_align = 4096 };

static struct cf_plan plan(struct cf_handle *handle, enum cf_op op, size_t size,
			   unsigned company)
{
	struct cf_piece piece = piece_of(handle, op, size);

	return plan_of(&piece, &cf_path_staged, company);
}

static void small_reads_may_go_express(void **state)
{
	(void)state;
	configure(0);
	assert_true(plan(&file, CF_READ, 1, 1).express);
	assert_true(plan(&direct_file, CF_READ, 4096, 1).express);
	assert_true(plan(&file, CF_READ, 8 * TH_KIB, 3).express);
	assert_false(plan(&file, CF_READ, 8 * TH_KIB + 1, 3).express);
	assert_true(plan(&file, CF_READ, 16 * TH_KIB, 4).express);
	assert_false(plan(&file, CF_READ, 16 * TH_KIB + 1, 4).express);
	assert_false(plan(&file, CF_WRITE, 4096, 16).express);
}

static void what_a_disk_brings_to_one_is_rare(void **state)
{
	struct cf_piece cold = { .op = CF_READ,
				 .handle = &file,
				 .via = CF_VIA_CACHE,
				 .cold = true,
				 .size = 4096 };

	(void)state;
	configure(0);
	assert_true(plan(&direct_file, CF_READ, 4096, 1).rare);
	assert_false(plan(&direct_file, CF_READ, 4096, 2).rare);
	assert_false(plan(&file, CF_READ, 4096, 1).rare);
	assert_true(plan_of(&cold, &cf_path_staged, 1).rare);
}

static void small_reads_are_their_callers_own(void **state)
{
	configure(0);
	for (size_t size = 1; size < 256 * TH_KIB; size *= 2) {
		assert_int_equal(plan(&file, CF_READ, size, 1).helpers, 0);
		assert_false(plan(&file, CF_READ, size, 1).demote);
	}
	assert_int_equal(plan(&file, CF_READ, 256 * TH_KIB, 1).helpers,
			 HELPERS);
}

static struct cf_piece brisk_read(size_t size)
{
	return (struct cf_piece){ .op = CF_READ,
				  .handle = &file,
				  .via = CF_VIA_CACHE,
				  .mem.kind = CF_MEMORY_DEVICE,
				  .size = size,
				  .brisk = true };
}

static void is_split(size_t size, unsigned helpers, size_t step)
{
	struct cf_piece piece = brisk_read(size);
	struct cf_plan p = plan_of(&piece, &cf_path_staged, 1);

	assert_true(cf_plan_can_be_brisk(&piece, &cf_path_staged));
	assert_int_equal(p.helpers, helpers);
	assert_int_equal(p.step, step);
	assert_false(p.flagged);
}

static void reads_in_haste_are_split_sooner(void **state)
{
	(void)state;
	configure(0);
	is_split(64 * TH_KIB, 3, 16 * TH_KIB);
	is_split(64 * TH_KIB + 1, 4, 16 * TH_KIB);
	is_split(128 * TH_KIB, HELPERS, 16 * TH_KIB);
	is_split(128 * TH_KIB + 1, 4, 32 * TH_KIB);
	is_split(192 * TH_KIB, 5, 32 * TH_KIB);
	is_split(256 * TH_KIB - 1, HELPERS, 32 * TH_KIB);
}

/* All of it in one call, which the kernel reads ahead of as it likes. */
static void cold_reads_are_one_part(void **state)
{
	static const size_t sizes[] = { 64 * TH_KIB, TH_MIB, 4 * TH_MIB };
	struct cf_piece piece = brisk_read(0);
	struct cf_plan p;

	(void)state;
	configure(0);
	piece.brisk = false;
	piece.cold = true;
	for (unsigned i = 0; i < 3; i++) {
		piece.size = sizes[i];
		p = plan_of(&piece, &cf_path_staged, 1);
		assert_int_equal(p.helpers, 0);
		assert_int_equal(p.step, 4 * TH_MIB);
		p = plan_of(&piece, &cf_path_host, 1);
		assert_int_equal(p.helpers, 0);
		assert_true(p.step >= piece.size);
	}
	/* or what the client's slots take */
	configure(64);
	p = plan_of(&piece, &cf_path_staged, 1);
	assert_int_equal(p.helpers, 0);
	assert_int_equal(p.step, 64 * TH_KIB);
}

static void reads_whose_pages_are_asked_for_have_two_carriers(void **state)
{
	struct cf_ahead ahead;
	struct cf_piece piece = brisk_read(16 * TH_MIB);
	const struct cf_path_ops *paths[] = { &cf_path_staged, &cf_path_host };

	(void)state;
	piece.brisk = false;
	piece.ahead = &ahead;
	for (unsigned i = 0; i < 2; i++) {
		struct cf_plan p;

		configure(0);
		p = plan_of(&piece, paths[i], 1);
		assert_int_equal(p.helpers, 1);
		assert_int_equal(p.step, 512 * TH_KIB);
		assert_true(cf_plan_can_ask(paths[i]));
		/* of many each has its own */
		p = plan_of(&piece, paths[i], 64);
		assert_int_equal(p.helpers, 0);
	}
	configure(64);
	assert_int_equal(plan_of(&piece, &cf_path_staged, 1).step, 64 * TH_KIB);
	/* who cuts pieces out of it, or has its pages by other means */
	assert_false(cf_plan_can_ask(&cf_path_alias));
	assert_false(cf_plan_can_ask(&cf_path_nvfs));
	assert_false(cf_plan_can_ask(&cf_path_mapped));
}

/* Where half of it is worth a call, which of a write takes a lock, too. */
static void what_one_carries_alone_has_two_halves(void **state)
{
	static const struct {
		size_t size, read, write;
	} rows[] = {
		{ 512 * TH_KIB - 1, 4 * TH_MIB, 4 * TH_MIB },
		{ 512 * TH_KIB, 256 * TH_KIB, 4 * TH_MIB },
		{ TH_MIB - 1, 256 * TH_KIB, 4 * TH_MIB },
		{ TH_MIB, 512 * TH_KIB, 512 * TH_KIB },
		{ 4 * TH_MIB, TH_MIB, TH_MIB },
	};

	(void)state;
	configure(0);
	atomic_store(&cf_plan_bounds.split_from, SIZE_MAX);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t size = rows[i].size;

		assert_int_equal(plan(&file, CF_READ, size, 1).step,
				 rows[i].read);
		assert_int_equal(plan(&file, CF_WRITE, size, 1).step,
				 rows[i].write);
		/* beside another the link is busy as it is */
		assert_int_equal(plan(&file, CF_WRITE, size, 2).step,
				 4 * TH_MIB);
	}
}

static void not_all_reads_can_be_brisk(void **state)
{
	struct cf_ferry ferry = { .blocks = 1 };
	struct cf_piece piece;

	(void)state;
	configure(0);
	piece = brisk_read(64 * TH_KIB - 1);
	assert_false(cf_plan_can_be_brisk(&piece, &cf_path_staged));
	piece = brisk_read(256 * TH_KIB);
	assert_false(cf_plan_can_be_brisk(&piece, &cf_path_staged));
	piece = brisk_read(64 * TH_KIB);
	assert_false(cf_plan_can_be_brisk(&piece, &cf_path_host));
	piece.op = CF_WRITE;
	assert_false(cf_plan_can_be_brisk(&piece, &cf_path_staged));
	piece = brisk_read(64 * TH_KIB);
	piece.ferry = &ferry;
	assert_false(cf_plan_can_be_brisk(&piece, &cf_path_staged));
	piece = brisk_read(64 * TH_KIB);
	piece.handle = &direct_file;
	piece.via = CF_VIA_DIRECT;
	assert_false(cf_plan_can_be_brisk(&piece, &cf_path_staged));
	atomic_store(&cf_plan_bounds.workers[CF_TEAM_IO], 2);
	piece = brisk_read(64 * TH_KIB);
	assert_false(cf_plan_can_be_brisk(&piece, &cf_path_staged));
}

/* Then who carries it need not count, plan or ask anybody. */
static void what_is_alone_is_one_part_of_one_carrier(void **state)
{
	struct cf_piece piece = { .mem.kind = CF_MEMORY_HOST };

	configure(0);
	for (unsigned n = 0; n < 2 * 2 * 25 * 7; n++) {
		struct cf_plan p;

		piece.op = n % 2 ? CF_READ : CF_WRITE;
		piece.handle = n / 2 % 2 ? &file : &direct_file;
		piece.via = n / 2 % 2 ? CF_VIA_CACHE : CF_VIA_DIRECT;
		piece.size = (1ul << n / 4 % 25) + n % 3;
		if (!cf_plan_is_alone(&piece, &cf_path_host))
			continue;
		p = plan_of(&piece, &cf_path_host, 1u << n / 100);
		assert_int_equal(p.helpers, 0);
		assert_int_equal(p.flights, 0);
		assert_true(p.step - p.skew >= piece.size);
	}
	piece.size = 4096;
	assert_true(cf_plan_is_alone(&piece, &cf_path_host));
	assert_false(cf_plan_is_alone(&piece, &cf_path_staged));
	piece.size = TH_MIB;
	assert_false(cf_plan_is_alone(&piece, &cf_path_host));
}

/* A flag is one more call of the driver, which others would stand behind. */
static void a_small_read_that_is_alone_has_a_flag(void **state)
{
	configure(0);
	assert_true(plan(&file, CF_READ, 4096, 1).flagged);
	assert_true(plan(&direct_file, CF_READ, 4096, 1).flagged);
	assert_false(plan(&file, CF_READ, 4096, 2).flagged);
	assert_false(plan(&file, CF_READ, 256 * TH_KIB, 1).flagged);
	assert_false(plan(&file, CF_WRITE, 4096, 1).flagged);
}

static void no_flags_without_memory_operations(void **state)
{
	struct cf_config_staged *staged = cf_config_staged();
	struct cf_config *config = cf_config_new();

	assert_non_null(config);
	assert_int_equal(
		cf_staged_set_bool(staged, CF_CFG_STREAM_MEMOPS_BYPASS, true),
		0);
	assert_int_equal(cf_config_load(config, staged), 0);
	cf_staged_reset(staged);
	cf_plan_configure(config);
	cf_config_free(config);
	assert_false(plan(&file, CF_READ, 4096, 1).flagged);
}

static void who_runs_beside_many_has_no_helpers(void **state)
{
	configure(0);
	assert_int_equal(plan(&file, CF_READ, TH_MIB, 4).helpers, 4);
	assert_int_equal(plan(&file, CF_READ, TH_MIB - 1, 4).helpers, 0);
	assert_int_equal(plan(&file, CF_READ, 1536 * TH_KIB, 6).helpers, 2);
	assert_int_equal(plan(&file, CF_READ, 1536 * TH_KIB - 1, 6).helpers, 0);
	assert_int_equal(plan(&file, CF_READ, 8 * TH_MIB - 1, 7).helpers, 0);
	assert_int_equal(plan(&file, CF_READ, 4 * TH_MIB, 16).helpers, 0);
	assert_int_equal(plan(&file, CF_READ, 8 * TH_MIB, 8).helpers, 2);
	assert_int_equal(plan(&file, CF_READ, 8 * TH_MIB, 64).helpers, 0);
}

static void buffered_writes_have_one_carrier_and_direct_ones_four(void **state)
{
	configure(0);
	assert_int_equal(plan(&file, CF_WRITE, 64 * TH_MIB, 1).helpers, 0);
	assert_int_equal(plan(&direct_file, CF_WRITE, 64 * TH_MIB, 1).helpers,
			 3);
	assert_int_equal(plan(&direct_file, CF_READ, TH_MIB, 1).helpers, 0);
}

/* Two that each write a part of one page may do so each its way. */
static void parts_smaller_than_a_page_are_not_written_at_once(void **state)
{
	struct cf_handle paged = direct_file;

	configure(64);
	paged.page_align = 64 * TH_KIB;
	assert_int_equal(plan(&paged, CF_WRITE, 64 * TH_MIB, 1).helpers, 3);
	paged.page_align = 128 * TH_KIB;
	assert_int_equal(plan(&paged, CF_WRITE, 64 * TH_MIB, 1).helpers, 0);
	assert_int_equal(plan(&paged, CF_WRITE, 64 * TH_MIB, 1).flights, 0);
	assert_int_equal(plan(&paged, CF_READ, 64 * TH_MIB, 1).helpers, 3);
}

static void a_userspace_file_system_is_called_by_one_thread(void **state)
{
	static const CUfileFSOps_t ops;
	struct cf_handle user = file;

	configure(0);
	user.fs_ops = &ops;
	assert_int_equal(plan(&user, CF_READ, 64 * TH_MIB, 1).helpers, 0);
}

static void is_cut(const struct cf_plan *p, size_t step, size_t demote)
{
	assert_int_equal(p->step, step);
	assert_int_equal(p->demote, demote);
}

static void of_large_reads_only_the_ends_are_demoted(void **state)
{
	static const struct {
		size_t size;
		unsigned company;
		size_t step, demote;
	} rows[] = {
		{ TH_MIB, 1, 32 * TH_KIB, CF_DEMOTE_ALL },
		{ 4 * TH_MIB, 1, 128 * TH_KIB, CF_DEMOTE_ALL },
		{ 64 * TH_MIB - 1, 1, 128 * TH_KIB, CF_DEMOTE_ALL },
		{ 64 * TH_MIB, 1, 512 * TH_KIB, 2 * TH_MIB },
		{ 64 * TH_MIB, 2, 512 * TH_KIB, 2 * TH_MIB },
		{ 128 * TH_MIB, 1, 512 * TH_KIB, 2 * TH_MIB },
		{ TH_GIB, 2, 512 * TH_KIB, 2 * TH_MIB },
		/* side by side */
		{ 8 * TH_MIB - 1, 3, 128 * TH_KIB, CF_DEMOTE_ALL },
		{ 8 * TH_MIB, 3, TH_MIB, 0 },
		{ 32 * TH_MIB, 4, TH_MIB, 0 },
		{ TH_GIB, 5, TH_MIB, 0 },
		{ TH_GIB, 8, TH_MIB, 0 },
		/* carried by one */
		{ 2 * TH_MIB, 7, 4 * TH_MIB, 0 },
		{ 2 * TH_MIB, 8, 4 * TH_MIB, CF_DEMOTE_ALL },
		{ 2 * TH_MIB + 1, 12, 4 * TH_MIB, 0 },
		{ 2 * TH_MIB + 1, 13, 4 * TH_MIB, CF_DEMOTE_ALL },
		{ 3 * TH_MIB, 64, 4 * TH_MIB, CF_DEMOTE_ALL },
		{ 3 * TH_MIB + 1, 25, 4 * TH_MIB, 0 },
		{ 4 * TH_MIB, 24, 4 * TH_MIB, CF_DEMOTE_ALL },
		{ 4 * TH_MIB + 1, 13, 4 * TH_MIB, CF_DEMOTE_ALL },
		{ 16 * TH_MIB, 16, 4 * TH_MIB, CF_DEMOTE_ALL },
		{ 4 * TH_MIB + 1, 17, 4 * TH_MIB, 0 },
		{ 16 * TH_MIB + 1, 16, 4 * TH_MIB, 0 },
	};

	(void)state;
	configure_demoting();
	atomic_store(&cf_plan_bounds.gpu_workers, 12);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cf_plan p =
			plan(&file, CF_READ, rows[i].size, rows[i].company);

		is_cut(&p, rows[i].step, rows[i].demote);
	}
}

/* Workers carry those, and have less time than so many callers. */
static void what_waits_in_a_batch_makes_no_crowd_of_threads(void **state)
{
	struct cf_company company = { .here = 32, .all = 32, .waiting = 20 };
	struct cf_piece piece = { .op = CF_READ,
				  .handle = &file,
				  .via = CF_VIA_CACHE,
				  .mem.kind = CF_MEMORY_DEVICE,
				  .size = 4 * TH_MIB };

	(void)state;
	configure_demoting();
	assert_int_equal(cf_plan_make(&piece, &cf_path_staged, company).demote,
			 0);
	company.waiting = 19;
	assert_int_equal(cf_plan_make(&piece, &cf_path_staged, company).demote,
			 CF_DEMOTE_ALL);
	piece.size = 2 * TH_MIB;
	company.waiting = 31;
	assert_int_equal(cf_plan_make(&piece, &cf_path_staged, company).demote,
			 CF_DEMOTE_ALL);
}

static void nothing_is_demoted_that_no_core_wrote(void **state)
{
	struct cf_piece piece = { .op = CF_READ,
				  .handle = &file,
				  .via = CF_VIA_CACHE,
				  .mem.kind = CF_MEMORY_HOST };

	(void)state;
	configure_demoting();
	for (piece.size = 4096; piece.size <= TH_GIB; piece.size *= 2) {
		assert_int_equal(plan(&file, CF_WRITE, piece.size, 1).demote,
				 0);
		assert_int_equal(plan(&file, CF_WRITE, piece.size, 8).demote,
				 0);
		assert_int_equal(plan_of(&piece, &cf_path_host, 1).demote, 0);
		assert_int_equal(plan_of(&piece, &cf_path_host, 8).demote, 0);
	}
	atomic_store(&cf_plan_bounds.can_demote, false);
	assert_int_equal(plan(&file, CF_READ, 4 * TH_MIB, 1).demote, 0);
	assert_int_equal(plan(&file, CF_READ, 64 * TH_MIB, 1).demote, 0);
}

static struct cf_piece ferried_read(struct cf_ferry *ferry)
{
	return (struct cf_piece){ .op = CF_READ,
				  .handle = &file,
				  .via = CF_VIA_CACHE,
				  .ferry = ferry,
				  .mem.kind = CF_MEMORY_DEVICE };
}

/* Its orders are short, whatever the size of the whole. */
static void what_a_ferry_moves_is_demoted_for_longer(void **state)
{
	struct cf_ferry ferry = { .blocks = 1 };
	struct cf_piece piece = ferried_read(&ferry);
	struct cf_plan p;

	(void)state;
	configure_demoting();
	piece.size = 32 * TH_MIB;
	p = plan_of(&piece, &cf_path_staged, 1);
	is_cut(&p, 512 * TH_KIB, CF_DEMOTE_ALL);
	piece.size = 128 * TH_MIB - 1;
	p = plan_of(&piece, &cf_path_staged, 1);
	is_cut(&p, 512 * TH_KIB, CF_DEMOTE_ALL);
	piece.size = 128 * TH_MIB;
	p = plan_of(&piece, &cf_path_staged, 1);
	is_cut(&p, 512 * TH_KIB, 0);
	piece.size = 8 * TH_MIB;
	p = plan_of(&piece, &cf_path_staged, 3);
	is_cut(&p, 256 * TH_KIB, 0);
}

static bool demotes(size_t piece_size, size_t demote, size_t at, size_t size)
{
	struct cf_piece piece = { .size = piece_size, .demote = demote };
	struct cf_part part = { .at = at, .size = size };

	return cf_piece_demotes(&piece, &part);
}

static void parts_that_begin_or_end_near_an_end_are_demoted(void **state)
{
	size_t size = 32 * TH_MIB, ends = 4 * TH_MIB, step = 512 * TH_KIB;

	(void)state;
	assert_true(demotes(size, ends, 0, step));
	assert_true(demotes(size, ends, ends - 1, step));
	assert_false(demotes(size, ends, ends, step));
	assert_false(demotes(size, ends, size / 2, step));
	assert_false(demotes(size, ends, size - ends - step, step));
	assert_true(demotes(size, ends, size - ends - step + 1, step));
	assert_true(demotes(size, ends, size - ends, step));
	assert_true(demotes(size, ends, size - 1, 1));
	/* all, and none */
	for (size_t at = 0; at < size; at += step) {
		assert_true(demotes(size, CF_DEMOTE_ALL, at, step));
		assert_false(demotes(size, 0, at, step));
	}
	assert_true(demotes(1, ends, 0, 1));
}

static void no_part_is_larger_than_a_slot(void **state)
{
	static const size_t slots[] = { 64, 100, 2048, 16384 };

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		configure(slots[i]);
		for (size_t size = 1; size < 8 * TH_GIB; size *= 2)
			for (unsigned company = 1; company <= 64;
			     company *= 4) {
				size_t step =
					plan(&file, CF_READ, size, company)
						.step;

				assert_in_range(step, 1, slots[i] * TH_KIB);
				/* blocks do not straddle parts */
				assert_int_equal(step % 4096, 0);
			}
	}
}

/* Each part is an order; one alone would have the kernel wait for all of it. */
static void what_a_ferry_moves_is_cut_in_several_parts(void **state)
{
	struct cf_ferry ferry = { .blocks = 1 };
	struct cf_piece piece = ferried_read(&ferry);

	configure(0);
	for (piece.size = 256 * TH_KIB; piece.size <= 64 * TH_MIB;
	     piece.size += 64 * TH_KIB + 1) {
		size_t step = plan_of(&piece, &cf_path_staged, 1).step;

		assert_true(step >= 64 * TH_KIB && step <= 512 * TH_KIB);
		assert_true(step <= piece.size / 4);
		assert_true(step <= plan_of(&piece, &cf_path_staged, 2).step);
	}
}

static unsigned near_slots(const struct cf_piece *piece, unsigned company)
{
	return plan_of(piece, &cf_path_staged, company).near_slots;
}

static void a_read_that_helpers_slow_down_has_none(void **state)
{
	struct cf_piece piece = { .op = CF_READ,
				  .handle = &file,
				  .via = CF_VIA_CACHE,
				  .mem.kind = CF_MEMORY_DEVICE,
				  .combine = true,
				  .size = TH_MIB,
				  .unhelped = true };

	(void)state;
	configure(0);
	for (int way = 0; way < 3; way++) {
		piece.near = way == 1;
		piece.brisk = way == 2;
		assert_int_equal(plan_of(&piece, &cf_path_staged, 1).helpers,
				 0);
	}
	assert_int_equal(plan_of(&piece, &cf_path_host, 1).helpers, 0);
}

static void what_few_ferries_move_may_be_near(void **state)
{
	struct cf_ahead ahead = { 0 };
	struct cf_ferry ferry = { .blocks = 1 };
	struct cf_piece piece = ferried_read(&ferry);

	(void)state;
	configure(0);
	piece.size = 2 * TH_MIB;
	assert_int_equal(near_slots(&piece, 1), CF_NEAR_SLOTS);
	assert_int_equal(near_slots(&piece, 2), 0);
	piece.size = 512 * TH_KIB;
	assert_int_equal(near_slots(&piece, 4), CF_NEAR_SLOTS);
	assert_int_equal(near_slots(&piece, 5), 0);
	piece.op = CF_WRITE;
	assert_int_equal(near_slots(&piece, 1), 0);
	piece.op = CF_READ;
	piece.ahead = &ahead;
	assert_int_equal(near_slots(&piece, 1), 0);
	piece.ahead = NULL;
	piece.ferry = NULL;
	assert_int_equal(near_slots(&piece, 1), 0);
}

static void of_a_larger_one_three_carriers_may_be_near(void **state)
{
	struct cf_ferry ferry = { .blocks = 1 };
	struct cf_piece piece = ferried_read(&ferry);

	(void)state;
	configure(0);
	for (piece.size = 2 * TH_MIB + 1; piece.size <= TH_GIB;
	     piece.size *= 2) {
		assert_int_equal(near_slots(&piece, 1), 3);
		assert_int_equal(near_slots(&piece, 2), 0);
	}
}

static unsigned helpers_of(const struct cf_piece *piece, unsigned company)
{
	return plan_of(piece, &cf_path_staged, company).helpers;
}

static void all_carry_a_large_one_that_is_alone_in_a_stream(void **state)
{
	struct cf_ferry ferry = { .blocks = 1 };
	struct cf_piece piece = ferried_read(&ferry);

	(void)state;
	configure(0);
	piece.size = 16 * TH_MIB;
	/* who asks for few has few */
	assert_int_equal(helpers_of(&piece, 1), HELPERS);
	atomic_store(&cf_plan_bounds.ferry_helpers, 12);
	assert_int_equal(helpers_of(&piece, 1), 12);
	assert_int_equal(helpers_of(&piece, 2), HELPERS);
	piece.size--;
	assert_int_equal(helpers_of(&piece, 1), HELPERS);
	piece.size++;
	piece.handle = &direct_file;
	piece.via = CF_VIA_DIRECT;
	assert_int_equal(helpers_of(&piece, 1), 3);
	piece.handle = &file;
	piece.via = CF_VIA_CACHE;
	piece.ferry = NULL;
	assert_int_equal(helpers_of(&piece, 1), HELPERS);
}

static void is_past(const struct cf_piece *piece, unsigned company, bool past)
{
	struct cf_plan p = plan_of(piece, &cf_path_staged, company);

	assert_int_equal(p.past, past);
	assert_true(p.demote || !p.past);
}

static void what_goes_past_the_caches(void **state)
{
	struct cf_ferry ferry = { .blocks = 1 };
	struct cf_piece piece = ferried_read(&ferry);

	(void)state;
	configure_demoting();
	piece.size = 256 * TH_KIB;
	is_past(&piece, 1, true);
	piece.size = 128 * TH_MIB - 1;
	is_past(&piece, 1, true);
	is_past(&piece, 2, false);
	piece.size++;
	is_past(&piece, 1, false);
	piece.size = 16 * TH_MIB;
	piece.ferry = NULL;
	is_past(&piece, 1, false);
	piece.size = 2 * TH_MIB;
	is_past(&piece, 8, false);
	piece.ferry = &ferry;
	is_past(&piece, 1, true);
	atomic_store(&cf_plan_bounds.can_demote, false);
	is_past(&piece, 1, false);
}

static void a_ferry_has_a_carrier_for_128_kib(void **state)
{
	static const struct {
		size_t kib;
		unsigned helpers;
	} cases[] = { { 128, 0 }, { 256, 1 },	     { 512, 3 },
		      { 768, 5 }, { 1024, HELPERS }, { 4096, HELPERS } };
	struct cf_ferry ferry = { .blocks = 1 };
	struct cf_piece piece = ferried_read(&ferry);

	(void)state;
	configure(0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		piece.size = cases[i].kib * TH_KIB;
		assert_int_equal(plan_of(&piece, &cf_path_staged, 1).helpers,
				 cases[i].helpers);
	}
}

static void the_first_part_ends_where_a_block_does(void **state)
{
	struct cf_piece piece = { .op = CF_READ,
				  .handle = &file,
				  .size = TH_MIB,
				  .file_off = 4096 * 5 + 17 };

	configure(0);
	assert_int_equal(plan_of(&piece, &cf_path_staged, 1).skew, 17);
}

static int teardown(void **state)
{
	cf_workers_configure(0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_reads_may_go_express),
		cmocka_unit_test(what_a_disk_brings_to_one_is_rare),
		cmocka_unit_test(small_reads_are_their_callers_own),
		cmocka_unit_test(reads_in_haste_are_split_sooner),
		cmocka_unit_test(cold_reads_are_one_part),
		cmocka_unit_test(what_one_carries_alone_has_two_halves),
		cmocka_unit_test(
			reads_whose_pages_are_asked_for_have_two_carriers),
		cmocka_unit_test(not_all_reads_can_be_brisk),
		cmocka_unit_test(a_small_read_that_is_alone_has_a_flag),
		cmocka_unit_test(no_flags_without_memory_operations),
		cmocka_unit_test(who_runs_beside_many_has_no_helpers),
		cmocka_unit_test(
			buffered_writes_have_one_carrier_and_direct_ones_four),
		cmocka_unit_test(
			parts_smaller_than_a_page_are_not_written_at_once),
		cmocka_unit_test(
			a_userspace_file_system_is_called_by_one_thread),
		cmocka_unit_test(what_is_alone_is_one_part_of_one_carrier),
		cmocka_unit_test(of_large_reads_only_the_ends_are_demoted),
		cmocka_unit_test(
			what_waits_in_a_batch_makes_no_crowd_of_threads),
		cmocka_unit_test(nothing_is_demoted_that_no_core_wrote),
		cmocka_unit_test(what_a_ferry_moves_is_demoted_for_longer),
		cmocka_unit_test(
			parts_that_begin_or_end_near_an_end_are_demoted),
		cmocka_unit_test(no_part_is_larger_than_a_slot),
		cmocka_unit_test(what_a_ferry_moves_is_cut_in_several_parts),
		cmocka_unit_test(a_read_that_helpers_slow_down_has_none),
		cmocka_unit_test(what_few_ferries_move_may_be_near),
		cmocka_unit_test(of_a_larger_one_three_carriers_may_be_near),
		cmocka_unit_test(
			all_carry_a_large_one_that_is_alone_in_a_stream),
		cmocka_unit_test(what_goes_past_the_caches),
		cmocka_unit_test(a_ferry_has_a_carrier_for_128_kib),
		cmocka_unit_test(the_first_part_ends_where_a_block_does),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
