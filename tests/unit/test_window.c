// SPDX-License-Identifier: Apache-2.0
/*
 * test_window - what a window maps, pins and registers, and what is left of it
 * when a step fails, the driver refuses, or it is closed. Kernel and driver are
 * the test's.
 */
#include "core/window.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/context.h"
#include "core/gpu.h"
#include "core/log.h"
#include "core/pagemap.h"
#include "harness.h"
#include "seam/os.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define FD 42
#define OFF ((off_t)6 << 20)
#define SMALL (CF_PIN_GRANULE / 2)
#define BROKEN CF_ECUDA(719)
#define ID 4711u /* of the registration */

static const struct cf_gpu gpu = { .ordinal = 5, .primary = (CUcontext)0x77 };
static const struct cf_stamp the_file = { .ino = 7, .size = 100 };

/* The witness, and the mapping that is pinned or registered. */
enum { WITNESS, MEM };
static char at[2][16]; /* nobody touches them */

/* What opening takes, in this order. */
enum step {
	MAP_WITNESS,
	KEEP_WITNESS, /* from children */
	FILL,
	FORBID,
	LOOK, /* whether all pages are there */
	MAP_MEM,
	KEEP_MEM,
	STAMP,
	ENTER,
	REGISTER,
	IDENTIFY,
	NR_STEPS,
	PIN = REGISTER
};

static struct world {
	struct cf_window win;
	const char *said; /* the step that failed */
	unsigned done;	  /* steps */
	unsigned fails;	  /* this one does */
	int code;	  /* so */
	bool mapped[2], hidden[2];
	int present; /* what the page table says */
	struct cf_stamp stamp;
	enum cf_pins pins;
	bool no_driver, loses_context, keeps_registered, keeps_pinned;
	bool pin_half_made;
	bool entered, registered, pinned, reached;
	int type; /* what the driver knows of the memory */
	uint64_t id;
	int identify_err;
	unsigned unregistered, unpinned, warned;
} w;

/* The next step is this one. 0, or the code with which it fails. */
static int next(enum step step)
{
	assert_int_equal(w.done, step);
	w.done++;
	return w.fails == step ? w.code : 0;
}

static CUresult result(int code)
{
	return code ? (CUresult)cf_cuda_result(code) : CF_CU_SUCCESS;
}

/* ----------------------------------------------------------- system calls */

static struct cf_os os;

static int which(const void *mem)
{
	assert_true(mem == at[WITNESS] || mem == at[MEM]);
	return mem == at[MEM];
}

static int map_file(int fd, off_t off, size_t size, void **mem)
{
	int i = w.done != MAP_WITNESS;
	int err = next(i ? MAP_MEM : MAP_WITNESS);

	assert_int_equal(fd, FD);
	assert_int_equal(off, OFF);
	assert_int_equal(size, w.win.size);
	if (err)
		return err;
	w.mapped[i] = true;
	*mem = at[i];
	return 0;
}

static int advise(void *mem, size_t size, int advice)
{
	int i = which(mem);

	assert_int_equal(size, w.win.size);
	assert_true(w.mapped[i]);
	if (advice == MADV_DONTFORK)
		return next(i ? KEEP_MEM : KEEP_WITNESS);
	assert_int_equal(advice, MADV_POPULATE_READ);
	assert_int_equal(i, WITNESS);
	return next(FILL);
}

static int forbid(void *mem, size_t size)
{
	assert_int_equal(which(mem), WITNESS);
	assert_int_equal(size, w.win.size);
	return next(FORBID);
}

/* Other memory might be mapped there next. */
static int unmap(void *mem, size_t size)
{
	int i = which(mem);

	assert_int_equal(size, w.win.size);
	assert_true(w.mapped[i]);
	if (i == MEM)
		assert_false(w.registered);
	w.mapped[i] = false;
	return 0;
}

static int map_nothing(void *mem, size_t size)
{
	assert_int_equal(size, w.win.size);
	w.hidden[which(mem)] = true;
	return 0;
}

/* ------------------------------------------------------- the driver's calls */

static CUresult attributes(unsigned nr, int *names, void **data,
			   CUdeviceptr ptr)
{
	assert_int_equal(nr, 2);
	assert_int_equal(names[0], CF_CU_POINTER_MEMORY_TYPE);
	assert_int_equal(names[1], CF_CU_POINTER_BUFFER_ID);
	assert_int_equal(ptr, (uintptr_t)at[MEM]);
	if (w.done == IDENTIFY && next(IDENTIFY))
		return 719;
	if (w.identify_err)
		return result(w.identify_err);
	*(int *)data[0] = w.registered ? w.type : 0;
	*(uint64_t *)data[1] = w.registered ? w.id : 0;
	return CF_CU_SUCCESS;
}

/* For all contexts, and of memory that is read-only. */
static CUresult enroll(void *mem, size_t size, unsigned flags)
{
	int err = next(REGISTER);

	assert_true(w.entered);
	assert_int_equal(which(mem), MEM);
	assert_int_equal(size, w.win.size);
	assert_int_equal(flags, CF_CU_MEMHOSTREGISTER_PORTABLE |
					CF_CU_MEMHOSTREGISTER_READ_ONLY);
	w.registered = !err;
	return result(err);
}

static CUresult unregister(void *mem)
{
	assert_true(w.entered);
	assert_int_equal(which(mem), MEM);
	w.unregistered++;
	if (w.keeps_registered)
		return 719;
	w.registered = false;
	return CF_CU_SUCCESS;
}

static const struct cf_cuda cuda = {
	.pointer_get_attributes = attributes,
	.mem_host_register = enroll,
	.mem_host_unregister = unregister,
};

/* --------------------------------------------------- instead of the real ones
 */

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
const struct cf_cuda *__wrap_cf_cuda_entered(void);
const struct cf_cuda *__wrap_cf_cuda_loaded(void);
int __wrap_cf_context_enter(CUcontext ctx, struct cf_scope *scope);
void __wrap_cf_context_leave(struct cf_scope *scope);
enum cf_pins __wrap_cf_pins_state(void);
int __wrap_cf_pin_make(struct cf_pin *pin, const char *mem, size_t size,
		       int ordinal);
bool __wrap_cf_pin_is_reached(const struct cf_pin *pin, int ordinal);
bool __wrap_cf_pin_end(struct cf_pin *pin);
int __wrap_cf_pagemap_present(const void *mem, size_t size);
int __wrap_cf_stamp_take(int fd, struct cf_stamp *stamp);
void __wrap_cf_log_write(enum cf_log_level level, const char *src, int line,
			 const char *fmt, ...);
#pragma GCC visibility pop

const struct cf_cuda *__wrap_cf_cuda_entered(void)
{
	assert_true(w.entered);
	return w.no_driver ? NULL : &cuda;
}

const struct cf_cuda *__wrap_cf_cuda_loaded(void)
{
	return w.no_driver ? NULL : &cuda;
}

int __wrap_cf_context_enter(CUcontext ctx, struct cf_scope *scope)
{
	int err = w.done == ENTER ? next(ENTER) : 0;

	(void)scope;
	assert_ptr_equal(ctx, gpu.primary);
	assert_false(w.entered);
	if (w.loses_context)
		err = BROKEN;
	w.entered = !err;
	return err;
}

void __wrap_cf_context_leave(struct cf_scope *scope)
{
	(void)scope;
	assert_true(w.entered);
	w.entered = false;
}

enum cf_pins __wrap_cf_pins_state(void)
{
	return w.pins;
}

int __wrap_cf_pin_make(struct cf_pin *pin, const char *mem, size_t size,
		       int ordinal)
{
	int err = next(PIN);

	assert_true(w.entered);
	assert_int_equal(which(mem), MEM);
	assert_int_equal(size, w.win.size);
	assert_int_equal(ordinal, gpu.ordinal);
	w.pinned = !err;
	pin->gpu = err && !w.pin_half_made ? 0 : 0x1000;
	return err;
}

bool __wrap_cf_pin_is_reached(const struct cf_pin *pin, int ordinal)
{
	assert_ptr_equal(pin, &w.win.pin);
	assert_int_equal(ordinal, gpu.ordinal);
	return w.reached;
}

bool __wrap_cf_pin_end(struct cf_pin *pin)
{
	assert_ptr_equal(pin, &w.win.pin);
	assert_true(w.entered || w.loses_context);
	w.unpinned++;
	w.pinned = w.keeps_pinned;
	return !w.keeps_pinned;
}

static struct {
	const char *mem;
	size_t size;
} looked;

int __wrap_cf_pagemap_present(const void *mem, size_t size)
{
	int err = w.done == LOOK ? next(LOOK) : 0;

	looked.mem = mem;
	looked.size = size;
	return err ? err : w.present;
}

int __wrap_cf_stamp_take(int fd, struct cf_stamp *stamp)
{
	int err = next(STAMP);

	assert_int_equal(fd, FD);
	*stamp = w.stamp; /* also if it fails: nobody may look at it */
	return err;
}

void __wrap_cf_log_write(enum cf_log_level level, const char *src, int line,
			 const char *fmt, ...)
{
	(void)src;
	(void)line;
	assert_int_equal(level, CF_LOG_WARN);
	assert_non_null(strstr(fmt, "not unpinned"));
	w.warned++;
}

/* ------------------------------------------------------------------ world */

static int setup(void **state)
{
	(void)state;
	w = (struct world){
		.win = { .size = CF_PIN_GRANULE, .stamp = the_file },
		.fails = NR_STEPS,
		.present = 1,
		.stamp = the_file,
		.pins = CF_PINS_NONE,
		.type = CF_CU_MEMORYTYPE_HOST,
		.id = ID,
	};
	os = cf_os_real;
	os.map_file = map_file;
	os.madvise = advise;
	os.forbid = forbid;
	os.unmap = unmap;
	os.map_nothing = map_nothing;
	cf_os = &os;
	atomic_store(&cf_log_threshold, CF_LOG_DEBUG);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cf_os = &cf_os_real;
	atomic_store(&cf_log_threshold, -1);
	return 0;
}

static int open_it(void)
{
	int err = cf_window_open(&w.win, FD, OFF, &gpu, &w.said);

	assert_false(w.entered);
	return err;
}

static void open_well(enum cf_pins pins)
{
	setup(NULL);
	w.pins = pins;
	assert_int_equal(open_it(), 0);
}

/* ---------------------------------------------------------------- opening */

static void the_driver_registers_what_is_not_pinned(void **state)
{
	static const struct {
		enum cf_pins pins;
		size_t size;
	} rows[] = { { CF_PINS_NONE, CF_PIN_GRANULE },
		     { CF_PINS_UNTRIED, CF_PIN_GRANULE },
		     { CF_PINS_GOOD, SMALL },
		     { CF_PINS_GOOD, CF_PIN_GRANULE + SMALL } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(NULL);
		w.pins = rows[i].pins;
		w.win.size = rows[i].size;
		assert_int_equal(open_it(), 0);
		assert_int_equal(w.done, NR_STEPS);
		assert_true(w.registered && !w.pinned);
		assert_true(w.mapped[WITNESS] && w.mapped[MEM]);
		assert_ptr_equal(w.win.witness, at[WITNESS]);
		assert_ptr_equal(w.win.mem, at[MEM]);
		assert_false(cf_window_closes_at_once(&w.win));
		assert_ptr_equal(looked.mem, at[WITNESS]);
		assert_int_equal(looked.size, rows[i].size);
	}
}

static void what_is_pinned_has_no_mapping_but_its_witness(void **state)
{
	(void)state;
	open_well(CF_PINS_GOOD);
	assert_int_equal(w.done, PIN + 1);
	assert_true(w.pinned && !w.registered);
	assert_true(w.mapped[WITNESS] && !w.mapped[MEM]);
	assert_null(w.win.mem);
	assert_true(cf_window_closes_at_once(&w.win));
}

static const char *const names[NR_STEPS] = { "mmap",
					     "madvise DONTFORK",
					     "madvise POPULATE_READ",
					     "mprotect",
					     "pagemap",
					     "mmap",
					     "madvise DONTFORK",
					     "statx",
					     "statx",
					     "cuMemHostRegister",
					     "cuMemHostRegister" };

static void whatever_fails_leaves_nothing(void **state)
{
	(void)state;
	for (unsigned step = 0; step < IDENTIFY; step++) {
		setup(NULL);
		w.fails = step;
		w.code = step >= ENTER ? BROKEN : -ENOMEM;
		assert_int_equal(open_it(), step == STAMP ? -EAGAIN : w.code);
		assert_int_equal(w.done, step + 1);
		assert_string_equal(w.said, names[step]);
		assert_false(w.mapped[WITNESS] || w.mapped[MEM]);
		assert_null(w.win.mem);
	}
	setup(NULL);
	w.pins = CF_PINS_GOOD;
	w.fails = PIN;
	w.code = -EBUSY;
	assert_int_equal(open_it(), -EBUSY);
	assert_string_equal(w.said, "pin");
	assert_false(w.mapped[WITNESS] || w.mapped[MEM]);
}

static void registers_in_vain(void)
{
	setup(NULL);
	w.fails = IDENTIFY;
	w.code = BROKEN;
	assert_int_equal(open_it(), BROKEN);
	assert_int_equal(w.done, IDENTIFY + 1);
	assert_string_equal(w.said, names[IDENTIFY]);
}

/* Who opens may carry what a stream waits for, and the end of a registration
 * may wait for streams. */
static void a_registration_that_fails_late_ends_at_the_close(void **state)
{
	(void)state;
	registers_in_vain();
	assert_int_equal(w.unregistered, 0);
	assert_true(w.mapped[WITNESS] && w.mapped[MEM]);
	assert_ptr_equal(w.win.mem, at[MEM]);
	assert_false(cf_window_closes_at_once(&w.win));
	cf_window_close(&w.win);
	assert_int_equal(w.unregistered, 1);
	assert_false(w.mapped[WITNESS] || w.mapped[MEM]);
}

static void pins_by_half(void)
{
	setup(NULL);
	w.pins = CF_PINS_GOOD;
	w.fails = PIN;
	w.code = BROKEN;
	w.pin_half_made = true;
	assert_int_equal(open_it(), BROKEN);
	assert_true(w.mapped[WITNESS] && w.mapped[MEM]);
}

/* Else other memory would come there, and be taken for it. */
static void what_the_driver_does_not_let_go_of_stays_mapped(void **state)
{
	(void)state;
	registers_in_vain();
	w.keeps_registered = true;
	cf_window_close(&w.win);
	assert_int_equal(w.unregistered, 1);
	assert_true(w.mapped[MEM] && !w.mapped[WITNESS]);
	pins_by_half();
	w.keeps_pinned = true;
	cf_window_close(&w.win);
	assert_true(w.mapped[MEM] && !w.mapped[WITNESS]);
	pins_by_half();
	cf_window_close(&w.win);
	assert_false(w.mapped[WITNESS] || w.mapped[MEM]);
}

/* Other pages would be pinned than the witness has, or another file's. */
static void pages_that_left_meanwhile_are_not_pinned(void **state)
{
	(void)state;
	w.present = 0;
	assert_int_equal(open_it(), -EAGAIN);
	assert_int_equal(w.done, LOOK + 1);
	assert_false(w.mapped[WITNESS] || w.mapped[MEM]);
	setup(NULL);
	w.stamp.ino++;
	assert_int_equal(open_it(), -EAGAIN);
	assert_int_equal(w.done, STAMP + 1);
	assert_false(w.mapped[WITNESS] || w.mapped[MEM]);
}

static void a_driver_that_ends_registers_nothing(void **state)
{
	(void)state;
	w.no_driver = true;
	assert_int_equal(open_it(), CF_ECUDA(CF_CU_DEINITIALIZED));
	assert_false(w.mapped[WITNESS] || w.mapped[MEM]);
}

/* ------------------------------------------------------------------ asking */

static void it_ends_between_granules_where_it_is_pinned(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)state;
	for (int pins = CF_PINS_UNTRIED; pins <= CF_PINS_NONE; pins++) {
		w.pins = (enum cf_pins)pins;
		assert_int_equal(cf_window_unit(CF_PIN_GRANULE - 1), page);
		assert_int_equal(cf_window_unit(CF_PIN_GRANULE),
				 pins == CF_PINS_GOOD ? CF_PIN_GRANULE : page);
	}
}

static bool is_reached(void)
{
	return cf_window_is_reached(&w.win, gpu.ordinal);
}

/* Other memory may be registered there by now. */
static void it_is_reached_while_the_driver_knows_it_by_its_number(void **state)
{
	(void)state;
	open_well(CF_PINS_NONE);
	assert_true(is_reached());
	w.id++;
	assert_false(is_reached());
	w.id--;
	w.type = CF_CU_MEMORYTYPE_DEVICE;
	assert_false(is_reached());
	w.type = CF_CU_MEMORYTYPE_HOST;
	w.identify_err = BROKEN;
	assert_false(is_reached());
	w.identify_err = 0;
	w.no_driver = true;
	assert_false(is_reached());
	w.no_driver = false;
	assert_true(is_reached());
}

static void a_pin_says_itself_who_reaches_it(void **state)
{
	(void)state;
	open_well(CF_PINS_GOOD);
	assert_false(is_reached());
	w.reached = true;
	assert_true(is_reached());
}

static void it_is_current_if_its_pages_are_known_to_be_there(void **state)
{
	static const int says[] = { 1, 0, -EIO };

	(void)state;
	open_well(CF_PINS_NONE);
	for (int i = 0; i < 3; i++) {
		w.present = says[i];
		assert_int_equal(cf_window_is_current(&w.win, 5, 9), i == 0);
		assert_ptr_equal(looked.mem, at[WITNESS] + 5);
		assert_int_equal(looked.size, 9);
	}
}

/* ------------------------------------------------------------------ ending */

static void its_file_goes_first(void **state)
{
	(void)state;
	open_well(CF_PINS_NONE);
	cf_window_hide(&w.win);
	assert_true(w.hidden[WITNESS] && w.hidden[MEM]);
	assert_true(w.registered);
	open_well(CF_PINS_GOOD);
	cf_window_hide(&w.win);
	assert_true(w.hidden[WITNESS] && !w.hidden[MEM]);
}

/* What is left of it: the mapping stays where the driver has it yet. */
static void closes(unsigned unregistered, bool stays)
{
	cf_window_close(&w.win);
	assert_false(w.entered);
	assert_int_equal(w.unregistered, unregistered);
	assert_int_equal(w.mapped[MEM], stays);
	assert_false(w.mapped[WITNESS]);
	assert_int_equal(w.warned, stays);
}

static void a_close_ends_the_registration(void **state)
{
	(void)state;
	open_well(CF_PINS_NONE);
	closes(1, false);
	assert_false(w.registered);
	/* also if the driver does not say what it has there */
	open_well(CF_PINS_NONE);
	w.identify_err = BROKEN;
	closes(1, false);
}

/* A reset of the GPU ended it; what is there now is somebody else's. */
static void a_registration_that_is_gone_is_not_ended_again(void **state)
{
	(void)state;
	open_well(CF_PINS_NONE);
	w.registered = false;
	closes(0, false);
}

static void what_the_driver_has_yet_stays_mapped_at_a_close(void **state)
{
	(void)state;
	open_well(CF_PINS_NONE);
	w.keeps_registered = true;
	closes(1, true);
	open_well(CF_PINS_NONE);
	w.loses_context = true;
	closes(0, true);
	open_well(CF_PINS_NONE);
	w.no_driver = true;
	closes(0, true);
}

/* A pin has no context, and needs none to end. */
static void a_close_ends_the_pin(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		open_well(CF_PINS_GOOD);
		w.loses_context = i;
		closes(0, false);
		assert_int_equal(w.unpinned, 1);
		assert_false(w.pinned);
	}
	open_well(CF_PINS_GOOD);
	w.keeps_pinned = true;
	cf_window_close(&w.win);
	assert_false(w.mapped[WITNESS]);
	assert_int_equal(w.warned, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_driver_registers_what_is_not_pinned),
		TEST(what_is_pinned_has_no_mapping_but_its_witness),
		TEST(whatever_fails_leaves_nothing),
		TEST(a_registration_that_fails_late_ends_at_the_close),
		TEST(what_the_driver_does_not_let_go_of_stays_mapped),
		TEST(pages_that_left_meanwhile_are_not_pinned),
		TEST(a_driver_that_ends_registers_nothing),
		TEST(it_ends_between_granules_where_it_is_pinned),
		TEST(it_is_reached_while_the_driver_knows_it_by_its_number),
		TEST(a_pin_says_itself_who_reaches_it),
		TEST(it_is_current_if_its_pages_are_known_to_be_there),
		TEST(its_file_goes_first),
		TEST(a_close_ends_the_registration),
		TEST(a_registration_that_is_gone_is_not_ended_again),
		TEST(what_the_driver_has_yet_stays_mapped_at_a_close),
		TEST(a_close_ends_the_pin),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("window", tests, NULL, NULL));
}
