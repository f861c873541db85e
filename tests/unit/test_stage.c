// SPDX-License-Identifier: Apache-2.0
/*
 * test_stage - a carrier of the staged path, with slots and a lane of the test:
 * which bytes count, what it waits for, and what is back when it returns. The
 * lane makes its copies as late as it may.
 */
#include "path/stage.h"

#include <errno.h>
#include <string.h>
#include "core/copy_in.h"
#include "harness.h"
#include "path/flag.h"
#include "path/slot_io.h"

#define PART (16 * TH_KIB)
#define NR 9	   /* parts of a piece */
#define MOST 4	   /* slots of a carrier */
#define NR_SLOTS 7 /* of the pool */
#define SLOT (64 * TH_KIB)
#define OFF 12345 /* in the file; no block begins there */
#define NONE 1000u
#define BROKEN CF_ECUDA(719) /* what the driver says when it fails */

static struct cf_handle handle;
static struct cf_gpu gpu;
static struct cf_device device = { .gpu = &gpu };
static struct cf_lane lane = { .stream = (CUstream)0x66 };
static struct cf_pool *const pool = (struct cf_pool *)0x88;
static _Alignas(CF_SLOT_ALIGN) char slot_mem[NR_SLOTS][SLOT];
static char file[NR * PART], memory[NR * PART + 1];

static struct world {
	struct cf_piece piece;
	struct cf_feed feed;
	size_t step;
	bool begun;
	struct cf_slot slots[NR_SLOTS];
	bool out[NR_SLOTS];
	unsigned free, leased, most, asked; /* of slots */
	struct {
		char *to;
		const char *from;
		size_t size;
	} copies[2 * NR];
	unsigned queued, ran;		/* in the lane */
	unsigned behind[CF_LANE_DEPTH]; /* an event: so many copies */
	unsigned marks, waits, syncs, notes, plain, flags;
	unsigned flag_behind;
	bool small, turns, flag_comes, dead;
	size_t end; /* of the file, or where it fails */
	ssize_t end_says;
	unsigned bad_copy, bad_mark, bad_wait; /* which of them fails */
	bool bad_sync;
	int lane_err, slot_err, order_err;
	int64_t now;
	char trace[64];
} w;

static void note(char what)
{
	size_t n = strlen(w.trace);

	if (n + 1 < sizeof(w.trace))
		w.trace[n] = what;
}

/* ------------------------------------------------------- the driver's calls */

static void run_to(unsigned nr)
{
	for (; w.ran < nr; w.ran++)
		memcpy(w.copies[w.ran].to, w.copies[w.ran].from,
		       w.copies[w.ran].size);
}

static CUresult put(void *to, const void *from, size_t size)
{
	unsigned nr = w.queued;

	assert_true(nr < 2 * NR);
	if (nr == w.bad_copy) {
		w.bad_copy = NONE;
		return 719;
	}
	w.copies[nr].to = to;
	w.copies[nr].from = from;
	w.copies[nr].size = size;
	w.queued++;
	return CF_CU_SUCCESS;
}

static CUresult htod(CUdeviceptr to, const void *from, size_t size,
		     CUstream stream)
{
	assert_ptr_equal(stream, lane.stream);
	w.plain++;
	return put((void *)(uintptr_t)to, from, size);
}

static CUresult dtoh(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
	assert_ptr_equal(stream, lane.stream);
	return put(to, (const void *)(uintptr_t)from, size);
}

static unsigned *behind(CUevent event)
{
	for (int k = 0; k < CF_LANE_DEPTH; k++)
		if (lane.done[k] == event)
			return &w.behind[k];
	fail();
	return NULL;
}

static CUresult record(CUevent event, CUstream stream)
{
	assert_ptr_equal(stream, lane.stream);
	if (w.marks++ == w.bad_mark)
		return 719;
	*behind(event) = w.queued;
	return CF_CU_SUCCESS;
}

/* For the oldest copy, and none that is younger. */
static CUresult wait_event(CUevent event)
{
	if (w.waits++ == w.bad_wait)
		return 719;
	assert_int_equal(*behind(event), w.waits);
	run_to(*behind(event));
	return CF_CU_SUCCESS;
}

static CUresult sync_stream(CUstream stream)
{
	assert_ptr_equal(stream, lane.stream);
	note('W');
	w.syncs++;
	if (w.bad_sync)
		return 719;
	run_to(w.queued);
	return CF_CU_SUCCESS;
}

static const struct cf_cuda cuda = {
	.memcpy_htod_async = htod,
	.memcpy_dtoh_async = dtoh,
	.event_record = record,
	.event_synchronize = wait_event,
	.stream_synchronize = sync_stream,
};

/* --------------------------------------------------- instead of the real ones
 */

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
const struct cf_cuda *__wrap_cf_cuda_entered(void);
struct cf_pool *__wrap_cf_gpu_pool(const struct cf_gpu *of, size_t size);
int __wrap_cf_slot_lease(struct cf_pool *from, struct cf_slot **slot);
struct cf_slot *__wrap_cf_slot_try_lease(struct cf_pool *from);
struct cf_slot *__wrap_cf_slot_try_spare(struct cf_pool *from);
void __wrap_cf_slot_give_back(struct cf_pool *to, struct cf_slot *slot);
int __wrap_cf_lane_lease(struct cf_lanes *lanes, struct cf_lane **leased);
void __wrap_cf_lane_give_back(struct cf_lanes *lanes, struct cf_lane *of);
void __wrap_cf_lane_drop(struct cf_lanes *lanes, struct cf_lane *of);
int __wrap_cf_lane_order(struct cf_lane *of);
void __wrap_cf_lane_settle(struct cf_lane *of);
bool __wrap_cf_device_failed(struct cf_device *dev, int code);
bool __wrap_cf_copy_in_is_small(const struct cf_memory *mem, size_t size);
CUresult __wrap_cf_copy_in(const struct cf_cuda *by,
			   const struct cf_memory *mem, size_t at,
			   const char *from, size_t size, CUstream stream);
bool __wrap_cf_timeshare_holds(struct cf_timeshare *share);
void __wrap_cf_timeshare_note(struct cf_timeshare *share, int64_t took_ns);
int64_t __wrap_cf_clock_ns(void);
bool __wrap_cf_flag_put(const struct cf_cuda *by, const struct cf_slot *slot,
			CUstream stream);
bool __wrap_cf_flag_is_up(const struct cf_slot *slot);
ssize_t __wrap_cf_slot_fill(const struct cf_piece *piece,
			    const struct cf_part *part, char *mem);
ssize_t __wrap_cf_slot_drain(const struct cf_piece *piece,
			     const struct cf_part *part, const char *mem);
#pragma GCC visibility pop

const struct cf_cuda *__wrap_cf_cuda_entered(void)
{
	return &cuda;
}

/* Blocks around the piece come along. */
struct cf_pool *__wrap_cf_gpu_pool(const struct cf_gpu *of, size_t size)
{
	assert_ptr_equal(of, &gpu);
	assert_int_equal(size, w.piece.size + 2 * CF_SLOT_ALIGN);
	return pool;
}

static struct cf_slot *take(void)
{
	unsigned i = 0;

	while (w.out[i])
		i++;
	assert_true(i < NR_SLOTS);
	w.out[i] = true;
	w.leased++;
	w.most = w.leased > w.most ? w.leased : w.most;
	return &w.slots[i];
}

int __wrap_cf_slot_lease(struct cf_pool *from, struct cf_slot **slot)
{
	assert_ptr_equal(from, pool);
	assert_int_equal(w.leased, 0);
	if (w.slot_err)
		return w.slot_err;
	note('l');
	*slot = take();
	return 0;
}

/* Nobody asks for ever. */
struct cf_slot *__wrap_cf_slot_try_lease(struct cf_pool *from)
{
	assert_ptr_equal(from, pool);
	assert_true(w.asked++ < 100);
	return w.leased < w.free ? take() : NULL;
}

struct cf_slot *__wrap_cf_slot_try_spare(struct cf_pool *from)
{
	bool has = w.leased + 1 < w.free;

	assert_ptr_equal(from, pool);
	assert_true(w.asked++ < 100);
	note(has ? 's' : 'n');
	return has ? take() : NULL;
}

/* No copy can touch it any more. */
void __wrap_cf_slot_give_back(struct cf_pool *to, struct cf_slot *slot)
{
	assert_ptr_equal(to, pool);
	assert_int_equal(w.ran, w.queued);
	assert_true(w.out[slot - w.slots]);
	note('G');
	w.out[slot - w.slots] = false;
	w.leased--;
}

int __wrap_cf_lane_lease(struct cf_lanes *lanes, struct cf_lane **leased)
{
	assert_ptr_equal(lanes, &device.lanes);
	if (w.lane_err)
		return w.lane_err;
	note('L');
	*leased = &lane;
	return 0;
}

void __wrap_cf_lane_give_back(struct cf_lanes *lanes, struct cf_lane *of)
{
	assert_ptr_equal(lanes, &device.lanes);
	assert_ptr_equal(of, &lane);
	note('B');
}

void __wrap_cf_lane_drop(struct cf_lanes *lanes, struct cf_lane *of)
{
	assert_ptr_equal(lanes, &device.lanes);
	assert_ptr_equal(of, &lane);
	note('D');
}

int __wrap_cf_lane_order(struct cf_lane *of)
{
	assert_ptr_equal(of, &lane);
	assert_int_equal(w.queued, 0);
	note('O');
	return w.order_err;
}

void __wrap_cf_lane_settle(struct cf_lane *of)
{
	assert_ptr_equal(of, &lane);
	note('S');
	run_to(w.queued);
}

bool __wrap_cf_device_failed(struct cf_device *dev, int code)
{
	assert_ptr_equal(dev, &device);
	assert_int_equal(code, BROKEN);
	return w.dead;
}

bool __wrap_cf_copy_in_is_small(const struct cf_memory *mem, size_t size)
{
	assert_ptr_equal(mem, &w.piece.mem);
	assert_in_range(size, 1, SLOT);
	return w.small;
}

CUresult __wrap_cf_copy_in(const struct cf_cuda *by,
			   const struct cf_memory *mem, size_t at,
			   const char *from, size_t size, CUstream stream)
{
	assert_ptr_equal(by, &cuda);
	assert_ptr_equal(mem, &w.piece.mem);
	assert_ptr_equal(stream, lane.stream);
	return put((char *)mem->addr + at, from, size);
}

bool __wrap_cf_timeshare_holds(struct cf_timeshare *share)
{
	assert_ptr_equal(share, &gpu.timeshare);
	return w.turns;
}

void __wrap_cf_timeshare_note(struct cf_timeshare *share, int64_t took_ns)
{
	assert_ptr_equal(share, &gpu.timeshare);
	assert_int_equal(took_ns, 100);
	w.notes++;
}

int64_t __wrap_cf_clock_ns(void)
{
	return w.now += 100;
}

bool __wrap_cf_flag_put(const struct cf_cuda *by, const struct cf_slot *slot,
			CUstream stream)
{
	assert_ptr_equal(by, &cuda);
	assert_ptr_equal(slot, &w.slots[0]);
	assert_ptr_equal(stream, lane.stream);
	w.flags++;
	w.flag_behind = w.queued;
	return true;
}

bool __wrap_cf_flag_is_up(const struct cf_slot *slot)
{
	assert_ptr_equal(slot, &w.slots[0]);
	assert_true(w.flags); /* or the word is a file's */
	if (w.flag_comes)
		run_to(w.flag_behind);
	return w.flag_comes;
}

/* So much of a part there is; or how it ends there. */
static ssize_t bytes_of(const struct cf_part *part)
{
	assert_in_range(part->at, 0, w.piece.size - 1);
	if (part->at >= w.end)
		return w.end_says;
	return (ssize_t)(part->size < w.end - part->at ? part->size :
							 w.end - part->at);
}

ssize_t __wrap_cf_slot_fill(const struct cf_piece *piece,
			    const struct cf_part *part, char *mem)
{
	ssize_t n = bytes_of(part);

	assert_ptr_equal(piece, &w.piece);
	if (n > 0)
		memcpy(mem + cf_slot_delta(piece, part), file + part->at,
		       (size_t)n);
	return n;
}

ssize_t __wrap_cf_slot_drain(const struct cf_piece *piece,
			     const struct cf_part *part, const char *mem)
{
	ssize_t n = bytes_of(part);

	assert_ptr_equal(piece, &w.piece);
	if (n > 0)
		memcpy(file + part->at, mem + cf_slot_delta(piece, part),
		       (size_t)n);
	return n;
}

/* ------------------------------------------------------------------ world */

static void world_of(enum cf_op op)
{
	w = (struct world){
		.piece = { .op = op,
			   .handle = &handle,
			   .mem = { .addr = (uintptr_t)memory },
			   .file_off = OFF,
			   .size = NR * PART - 1 },
		.step = PART,
		.free = NR_SLOTS,
		.end = NR * PART,
		.bad_copy = NONE,
		.bad_mark = NONE,
		.bad_wait = NONE,
	};
	for (size_t i = 0; i < NR_SLOTS; i++)
		w.slots[i] =
			(struct cf_slot){ .mem = slot_mem[i], .size = SLOT };
	for (size_t k = 0; k < CF_LANE_DEPTH; k++)
		lane.done[k] = (CUevent)(0x100 + k);
	memset(slot_mem, 0x3c, sizeof(slot_mem));
	th_fill(op == CF_READ ? file : memory, NR * PART);
	memset(op == CF_READ ? memory : file, 0xa5, NR * PART);
}

/* What it answers; all that it took is back. */
static int carry(void)
{
	int err;

	if (!w.feed.size)
		cf_feed_init(&w.feed, w.piece.size, 0, w.step);
	err = cf_stage_carry(&device, &w.piece, &w.feed, &w.begun);
	assert_int_equal(w.leased, 0);
	assert_int_equal(w.ran, w.queued);
	return err;
}

static int carry_one(enum cf_op op, size_t size)
{
	world_of(op);
	w.piece.size = size;
	return carry();
}

/* So many bytes arrived; and behind these not one. */
static void arrived(size_t n)
{
	const char *to = w.piece.op == CF_READ ? memory : file;
	const char *from = w.piece.op == CF_READ ? file : memory;

	th_equal("the piece", to, from, n);
	th_all("behind it", to + n, 0xa5, NR * PART - n);
}

/* ------------------------------------------------------------------ tests */

static void all_parts_arrive_by_as_many_slots_as_there_are(void **state)
{
	(void)state;
	for (int op = CF_READ; op <= CF_WRITE; op++)
		for (unsigned free = 1; free <= NR_SLOTS; free++) {
			world_of((enum cf_op)op);
			w.free = free;
			assert_int_equal(carry(), 0);
			assert_true(w.begun);
			assert_int_equal(cf_feed_result(&w.feed), w.piece.size);
			arrived(w.piece.size);
			assert_int_equal(w.most, free < MOST ? free : MOST);
		}
}

static void what_is_one_part_takes_one_slot(void **state)
{
	(void)state;
	assert_int_equal(carry_one(CF_READ, PART), 0);
	assert_int_equal(w.most, 1);
	assert_int_equal(carry_one(CF_WRITE, PART), 0);
	assert_int_equal(w.most, 1);
	assert_int_equal(carry_one(CF_WRITE, PART + 1), 0);
	assert_int_equal(w.most, 2);
}

/* With more slots each, some of its threads would get no part. */
static void a_carrier_of_a_spread_takes_one_slot(void **state)
{
	(void)state;
	world_of(CF_WRITE);
	w.piece.spread = (const struct cf_spread *)0x99;
	assert_int_equal(carry(), 0);
	arrived(w.piece.size);
	assert_int_equal(w.most, 1);
}

static void the_last_copy_of_a_read_has_no_event(void **state)
{
	(void)state;
	world_of(CF_READ);
	assert_int_equal(carry(), 0);
	assert_int_equal(w.marks, NR - 1);
	assert_int_equal(w.syncs, 1);
}

static void it_ends_where_the_file_does(void **state)
{
	static const size_t ends[] = { 0, 1, PART - 1, PART, 6 * PART + 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		world_of(CF_READ);
		w.end = ends[i];
		assert_int_equal(carry(), 0);
		assert_int_equal(cf_feed_result(&w.feed), ends[i]);
		arrived(ends[i]);
	}
}

static void what_was_read_before_an_error_counts(void **state)
{
	(void)state;
	for (size_t nr = 0; nr < NR; nr++) {
		world_of(CF_READ);
		w.end = nr * PART;
		w.end_says = -EIO;
		assert_int_equal(carry(), -EIO);
		assert_true(w.begun);
		assert_int_equal(w.feed.code, -EIO);
		assert_int_equal(w.feed.limit, nr * PART);
		arrived(nr * PART);
	}
}

/* Another carrier has the first part, and brings it. */
static void fail_from_the_second_part_on(void)
{
	struct cf_part first;

	cf_feed_init(&w.feed, w.piece.size, 0, PART);
	assert_true(cf_feed_next(&w.feed, &first));
	assert_int_equal(carry(), BROKEN);
	assert_true(w.begun);
	assert_int_equal(w.feed.code, BROKEN);
	assert_int_equal(w.feed.limit, PART);
}

/* The driver may have lost earlier copies, too, and tell later. */
static void no_part_counts_of_a_carrier_whose_copy_failed(void **state)
{
	(void)state;
	for (unsigned nr = 0; nr < NR - 1; nr++) {
		world_of(CF_READ);
		w.bad_copy = nr;
		fail_from_the_second_part_on();
	}
	for (unsigned nr = 0; nr < NR - 2; nr++) {
		world_of(CF_READ);
		w.bad_mark = nr;
		fail_from_the_second_part_on();
	}
	for (unsigned nr = 0; nr < NR - 1 - MOST; nr++) {
		world_of(CF_READ);
		w.bad_wait = nr;
		fail_from_the_second_part_on();
	}
	world_of(CF_READ);
	w.bad_sync = true;
	fail_from_the_second_part_on();
}

/* ------------------------------------------------------------ small copies */

static void small_copies_go_plain_unless_processes_take_turns(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		world_of(CF_READ);
		w.piece.size = 100;
		w.small = i & 1;
		w.turns = i & 2;
		assert_int_equal(carry(), 0);
		arrived(100);
		assert_int_equal(w.plain, i == 1);
		assert_int_equal(w.notes, i == 1);
	}
	for (int i = 0; i < 2; i++) {
		world_of(CF_READ);
		w.small = i;
		w.end = PART + 100;
		assert_int_equal(carry(), 0);
		arrived(PART + 100);
	}
}

static void a_flag_is_waited_for_in_place_of_the_stream(void **state)
{
	(void)state;
	for (int comes = 0; comes < 2; comes++) {
		world_of(CF_READ);
		w.piece.size = 100;
		w.piece.flagged = true;
		w.flag_comes = comes;
		assert_int_equal(carry(), 0);
		arrived(100);
		assert_int_equal(w.flags, 1);
		assert_int_equal(w.syncs, !comes);
	}
	assert_int_equal(carry_one(CF_READ, 100), 0);
	assert_int_equal(w.flags, 0);
	world_of(CF_READ);
	w.piece.size = 100;
	w.piece.flagged = true;
	w.bad_copy = 0;
	assert_int_equal(carry(), BROKEN);
	assert_int_equal(w.flags, 0);
}

/* One that is up does not say that later copies are done. */
static void a_flag_is_for_a_piece_of_one_part(void **state)
{
	(void)state;
	world_of(CF_READ);
	w.step = 100;
	w.piece.size = 300;
	w.piece.flagged = true;
	w.flag_comes = true;
	assert_int_equal(carry(), 0);
	arrived(300);
	assert_int_equal(w.flags, 0);
}

/* Behind the blocks around it, wherever in its block it begins. */
static void a_flag_wants_room(void **state)
{
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		world_of(CF_READ);
		w.step = SLOT;
		w.piece.size = SLOT - 2 * CF_SLOT_ALIGN - CF_FLAG_ROOM + more;
		w.piece.flagged = true;
		assert_int_equal(carry(), 0);
		arrived(w.piece.size);
		assert_int_equal(w.flags, !more);
	}
}

/* ---------------------------------------------------------------- writing */

static void what_was_written_before_an_error_counts(void **state)
{
	static const struct {
		size_t end;
		ssize_t says;
	} rows[] = {
		{ 0, -ENOSPC },	 { PART, -ENOSPC },   { 5 * PART, -EIO },
		{ 3 * PART, 0 }, { PART + 77, -EIO }, { 8 * PART + 1, 0 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool whole = rows[i].end % PART == 0;

		world_of(CF_WRITE);
		w.end = rows[i].end;
		w.end_says = rows[i].says;
		assert_int_equal(carry(),
				 whole && rows[i].says ? rows[i].says : -EIO);
		assert_int_equal(w.feed.limit, rows[i].end);
		assert_int_equal(w.feed.code, whole ? rows[i].says : 0);
		arrived(rows[i].end);
	}
}

/* They are made so far ahead that as many parts are not written. */
static void no_part_is_written_whose_copy_failed(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 3; how++)
		for (unsigned nr = 0; nr < NR; nr++) {
			size_t made = how == 2	? nr :
				      nr < MOST ? 0 :
						  nr - MOST + 1;

			world_of(CF_WRITE);
			w.bad_copy = how == 0 ? nr : NONE;
			w.bad_mark = how == 1 ? nr : NONE;
			w.bad_wait = how == 2 ? nr : NONE;
			assert_int_equal(carry(), BROKEN);
			assert_true(w.begun);
			assert_int_equal(w.feed.code, BROKEN);
			assert_int_equal(w.feed.limit, made * PART);
			arrived(made * PART);
		}
}

/* ------------------------------------------------------------------ order */

/*
 * What happens when: s a slot is leased that others can spare, n none can, l
 * one is, L a lane is; O it is ordered, W waited for, S settled; G a slot, B a
 * lane goes back, D one is dropped.
 */
static void ordered(unsigned free, const char *trace)
{
	world_of(CF_WRITE);
	w.free = free;
	w.piece.ordered = true;
	w.piece.size = 100;
	assert_int_equal(carry(), 0);
	arrived(100);
	assert_string_equal(w.trace, trace);
}

static void an_ordered_write_leaves_one_slot_or_waits_without(void **state)
{
	(void)state;
	ordered(2, "sLOGB");
	ordered(1, "nLOWBlLGB");
	world_of(CF_WRITE);
	w.piece.ordered = true;
	w.free = MOST;
	assert_int_equal(carry(), 0);
	arrived(w.piece.size);
	assert_int_equal(w.most, MOST - 1);
	assert_int_equal(carry_one(CF_WRITE, 100), 0);
	assert_string_equal(w.trace, "lLGB");
}

/* The feed is not told, and the caller knows that it was not. */
static void not_begun(int err, const char *trace)
{
	w.piece.size = 100;
	w.begun = true;
	assert_int_equal(carry(), err);
	assert_false(w.begun);
	assert_int_equal(cf_feed_result(&w.feed), 100);
	assert_int_equal(w.queued, 0);
	assert_string_equal(w.trace, trace);
}

static void one_that_does_not_begin_holds_nothing(void **state)
{
	(void)state;
	world_of(CF_READ);
	w.slot_err = -ENOMEM;
	not_begun(-ENOMEM, "");
	world_of(CF_READ);
	w.lane_err = -ENOMEM;
	not_begun(-ENOMEM, "lG");
	world_of(CF_WRITE);
	w.piece.ordered = true;
	w.order_err = BROKEN;
	not_begun(BROKEN, "sLOSGB");
	world_of(CF_WRITE);
	w.piece.ordered = true;
	w.free = 1;
	w.lane_err = -ENOMEM;
	not_begun(-ENOMEM, "n");
}

/* Who leased it next would wait for what it waits for. */
static void a_lane_that_may_wait_goes_unless_its_context_is_dead(void **state)
{
	(void)state;
	for (int dead = 0; dead < 2; dead++) {
		world_of(CF_WRITE);
		w.piece.ordered = true;
		w.dead = dead;
		w.free = 1;
		w.order_err = BROKEN;
		not_begun(BROKEN, dead ? "nLOB" : "nLOD");
		world_of(CF_WRITE);
		w.piece.ordered = true;
		w.dead = dead;
		w.free = 1;
		w.bad_sync = true;
		not_begun(BROKEN, dead ? "nLOWB" : "nLOWD");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			all_parts_arrive_by_as_many_slots_as_there_are),
		cmocka_unit_test(what_is_one_part_takes_one_slot),
		cmocka_unit_test(a_carrier_of_a_spread_takes_one_slot),
		cmocka_unit_test(the_last_copy_of_a_read_has_no_event),
		cmocka_unit_test(it_ends_where_the_file_does),
		cmocka_unit_test(what_was_read_before_an_error_counts),
		cmocka_unit_test(no_part_counts_of_a_carrier_whose_copy_failed),
		cmocka_unit_test(
			small_copies_go_plain_unless_processes_take_turns),
		cmocka_unit_test(a_flag_is_waited_for_in_place_of_the_stream),
		cmocka_unit_test(a_flag_is_for_a_piece_of_one_part),
		cmocka_unit_test(a_flag_wants_room),
		cmocka_unit_test(what_was_written_before_an_error_counts),
		cmocka_unit_test(no_part_is_written_whose_copy_failed),
		cmocka_unit_test(
			an_ordered_write_leaves_one_slot_or_waits_without),
		cmocka_unit_test(one_that_does_not_begin_holds_nothing),
		cmocka_unit_test(
			a_lane_that_may_wait_goes_unless_its_context_is_dead),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("stage", tests, NULL, NULL));
}
