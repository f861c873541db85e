// SPDX-License-Identifier: Apache-2.0
/*
 * request_run - who waits for its stream, who is tried again and how, and what
 * the log is told. Any path moves what the test says, and the log is its own.
 */
#include "engine/request.h"

#include <cufile.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/ferry.h"
#include "core/log.h"
#include "core/windows.h"
#include "engine/detour.h"
#include "engine/drawn.h"
#include "engine/explain.h"
#include "engine/plan.h"
#include "harness.h"

#define SIZE ((size_t)4096)

static struct cf_handle handle;
static struct cf_ferry ferry;
static struct cf_request req;

/* What the runs make, one after the other. */
static struct {
	ssize_t n[3];
	const struct cf_path_ops *path[3];
	unsigned nr;
} runs;

static unsigned waits, drawn, early;
static bool detour_is_due;
static ssize_t detoured;   /* what that makes */
static int look_again_err; /* 0: it is a GPU's after all */
static unsigned looks;
static char lines[4][256];
static unsigned nr_lines;

#pragma GCC visibility push(default)
bool __wrap_cf_plan_is_alone(const struct cf_piece *piece,
			     const struct cf_path_ops *path);
ssize_t __wrap_cf_path_host_whole(const struct cf_piece *piece);
int __wrap_cf_ferry_wait_begun(struct cf_ferry *asked);
void __wrap_cf_windows_note(const struct cf_piece *piece);
void __wrap_cf_drawn_note(const struct cf_piece *piece);
void __wrap_cf_detour_early(struct cf_request *asked);
bool __wrap_cf_detour_is_due(const struct cf_request *asked, int code);
ssize_t __wrap_cf_detour(struct cf_request *asked, ssize_t n, int code);
int __wrap_cf_request_look_again(struct cf_request *asked);
void __wrap_cf_explain_new_route(const struct cf_request *asked);
unsigned __wrap_cf_handle_number(const struct cf_handle *asked);
bool __wrap_cf_log_site_may(struct cf_log_site *site);
void __wrap_cf_log_write(enum cf_log_level level, const char *file, int line,
			 const char *fmt, ...);
#pragma GCC visibility pop

bool __wrap_cf_plan_is_alone(const struct cf_piece *piece,
			     const struct cf_path_ops *path)
{
	assert_true(runs.nr < 3);
	runs.path[runs.nr] = path;
	return true;
}

ssize_t __wrap_cf_path_host_whole(const struct cf_piece *piece)
{
	return runs.n[runs.nr++];
}

int __wrap_cf_ferry_wait_begun(struct cf_ferry *asked)
{
	assert_ptr_equal(asked, &ferry);
	waits++;
	return 0;
}

void __wrap_cf_windows_note(const struct cf_piece *piece)
{
}

void __wrap_cf_drawn_note(const struct cf_piece *piece)
{
	drawn++;
}

void __wrap_cf_detour_early(struct cf_request *asked)
{
	assert_int_equal(runs.nr, 0);
	early++;
}

bool __wrap_cf_detour_is_due(const struct cf_request *asked, int code)
{
	return detour_is_due && code == -EREMOTEIO;
}

ssize_t __wrap_cf_detour(struct cf_request *asked, ssize_t n, int code)
{
	return detoured;
}

int __wrap_cf_request_look_again(struct cf_request *asked)
{
	looks++;
	return look_again_err;
}

void __wrap_cf_explain_new_route(const struct cf_request *asked)
{
}

unsigned __wrap_cf_handle_number(const struct cf_handle *asked)
{
	return 1;
}

bool __wrap_cf_log_site_may(struct cf_log_site *site)
{
	return true;
}

void __wrap_cf_log_write(enum cf_log_level level, const char *file, int line,
			 const char *fmt, ...)
{
	va_list args;

	assert_true(nr_lines < 4);
	va_start(args, fmt);
	vsnprintf(lines[nr_lines++], sizeof(lines[0]), fmt, args);
	va_end(args);
}

static int begin(void **state)
{
	memset(&runs, 0, sizeof(runs));
	runs.n[0] = runs.n[1] = SIZE;
	ferry.at_once = false;
	waits = drawn = early = looks = nr_lines = 0;
	detour_is_due = false;
	detoured = SIZE;
	look_again_err = 0;
	req = (struct cf_request){ .piece = { .op = CF_READ,
					      .handle = &handle,
					      .mem.kind = CF_MEMORY_HOST,
					      .size = SIZE },
				   .route.path = &cf_path_staged };
	atomic_store(&cf_log_threshold, CF_LOG_ERROR);
	return 0;
}

/* ------------------------------------------------------------ its stream */

/* Whether it waits, there by that ferry's kernel or not. */
static bool waits_for_it(const struct cf_path_ops *path, bool by_kernel,
			 bool at_once)
{
	begin(NULL);
	req.route.path = path;
	req.ferry = &ferry;
	req.piece.ferry = by_kernel ? &ferry : NULL;
	ferry.at_once = at_once;
	assert_int_equal(cf_request_run(&req), SIZE);
	assert_int_equal(runs.nr, 1);
	assert_int_equal(drawn, by_kernel);
	return waits;
}

static void what_its_kernel_moves_waits_for_no_stream(void **state)
{
	assert_false(waits_for_it(&cf_path_staged, true, false));
	assert_false(waits_for_it(&cf_path_mapped, true, false));
	assert_false(waits_for_it(&cf_path_mapped, true, true));
	/* that run is meant for reads that the kernel makes itself */
	assert_true(waits_for_it(&cf_path_staged, true, true));
}

static void all_else_in_a_stream_waits_for_it(void **state)
{
	assert_true(waits_for_it(&cf_path_alias, true, false));
	assert_true(waits_for_it(&cf_path_host, true, false));
	assert_true(waits_for_it(&cf_path_staged, false, false));
	assert_true(waits_for_it(&cf_path_mapped, false, false));
	begin(state);
	assert_int_equal(cf_request_run(&req), SIZE);
	assert_int_equal(waits, 0);
}

/* --------------------------------------------------------- another try */

static void what_gives_up_goes_on_by_the_next_path(void **state)
{
	req.route.path = &cf_path_mapped;
	req.route.nr_asked = 0; /* the route's, which asks none */
	runs.n[0] = CF_PATH_GIVES_UP;
	assert_int_equal(cf_request_travel(&req), -CU_FILE_IO_NOT_SUPPORTED);
	assert_int_equal(runs.nr, 1);
	assert_int_equal(cf_request_in_all(100, 50), 150);
	assert_int_equal(cf_request_in_all(100, 0), 100);
	assert_int_equal(cf_request_in_all(100, -EIO), 100);
	assert_int_equal(cf_request_in_all(0, -EIO), -EIO);
	assert_int_equal(cf_request_in_all(0, 0), 0);
}

static void a_refusal_is_gone_around(void **state)
{
	runs.n[0] = -EREMOTEIO;
	detour_is_due = true;
	assert_int_equal(cf_request_run(&req), SIZE);
	assert_int_equal(early, 1);
	assert_int_equal(nr_lines, 0);
	/* what the other way says is the answer */
	begin(state);
	runs.n[0] = -EREMOTEIO;
	detour_is_due = true;
	detoured = -ENOSPC;
	assert_int_equal(cf_request_run(&req), -ENOSPC);
	begin(state);
	runs.n[0] = -EREMOTEIO;
	assert_int_equal(cf_request_run(&req), -EREMOTEIO);
}

static void host_memory_out_of_reach_is_looked_at_again(void **state)
{
	runs.n[0] = -EFAULT;
	assert_int_equal(cf_request_run(&req), SIZE);
	assert_int_equal(looks, 1);
	assert_int_equal(runs.nr, 2);
	begin(state);
	runs.n[0] = -EFAULT;
	look_again_err = -CU_FILE_CUDA_POINTER_RANGE_ERROR;
	assert_int_equal(cf_request_run(&req),
			 -CU_FILE_CUDA_POINTER_RANGE_ERROR);
	assert_int_equal(runs.nr, 1);
	/* no other memory, for no other reason */
	begin(state);
	runs.n[0] = -EFAULT;
	req.piece.mem.kind = CF_MEMORY_DEVICE;
	assert_int_equal(cf_request_run(&req), -EFAULT);
	begin(state);
	runs.n[0] = -EIO;
	assert_int_equal(cf_request_run(&req), -EIO);
	assert_int_equal(looks, 0);
}

/* ---------------------------------------------------------------- the log */

static void assert_line(unsigned i, const char *words)
{
	if (i >= nr_lines || !strstr(lines[i], words))
		fail_msg("no \"%s\" in line %u of %u: \"%s\"", words, i,
			 nr_lines, lines[i]);
}

/* Contract 4.4: scripts look for these words. */
static void each_way_is_traced(void **state)
{
	atomic_store(&cf_log_threshold, CF_LOG_TRACE);
	assert_int_equal(cf_request_run(&req), SIZE);
	assert_int_equal(nr_lines, 1);
	assert_line(0, "cufile IO mode: POSIX");
	cf_request_carried(&req, SIZE);
	assert_int_equal(nr_lines, 2);
	assert_line(1, "cufile IO mode: POSIX");
	req.route.path = &cf_path_mapped;
	cf_request_carried(&req, SIZE);
	assert_int_equal(nr_lines, 3);
	assert_line(2, "cufile IO mode: mapped");
	req.route.path = NULL;
	cf_request_carried(&req, -EIO);
	assert_int_equal(nr_lines, 4);
	assert_line(3, "path none");
}

static void what_fails_is_told_and_nothing_else(void **state)
{
	runs.n[0] = 0;
	assert_int_equal(cf_request_run(&req), 0);
	cf_request_carried(&req, 0);
	cf_request_carried(&req, SIZE);
	assert_int_equal(nr_lines, 0);
	begin(state);
	runs.n[0] = -EIO;
	assert_int_equal(cf_request_run(&req), -EIO);
	assert_int_equal(nr_lines, 1);
	assert_line(0, "code -5, path staged");
	cf_request_carried(&req, CF_ECUDA(700));
	assert_int_equal(nr_lines, 2);
	assert_line(1, "path staged");
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_its_kernel_moves_waits_for_no_stream),
		TEST(all_else_in_a_stream_waits_for_it),
		TEST(what_gives_up_goes_on_by_the_next_path),
		TEST(a_refusal_is_gone_around),
		TEST(host_memory_out_of_reach_is_looked_at_again),
		TEST(each_way_is_traced),
		TEST(what_fails_is_told_and_nothing_else),
	};

	return cmocka_run_group_tests_name("request_run", tests, NULL, NULL);
}
