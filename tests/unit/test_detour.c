// SPDX-License-Identifier: Apache-2.0
/*
 * detour - who is blamed for a refusal, what is remembered and told of it, and
 * where the rest goes. The file, the paths and the log are the test's own.
 */
#include "engine/detour.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "core/log.h"
#include "harness.h"

#define DISK 259
#define GPU 3
#define SIZE ((size_t)1 << 20)
#define BLOCK ((size_t)512)

static struct cf_handle handle;
static struct cf_request req;
static char line[512]; /* the last of the log */

/* ---------------------------------------------------------- reading a block */

static struct {
	ssize_t n;	 /* what the read answers */
	bool is_refused; /* and from then on the file does not go direct */
} answer;

static struct {
	unsigned nr;
	uintptr_t mem;
	size_t size;
	off_t off;
} reads;
static bool is_direct;

/* ------------------------------------------------------- the other decisions
 */

static int refused; /* the pair, with that code */
static unsigned refusals, chosen;
static ssize_t result; /* of the other way */
static bool goes_direct;
static struct cf_request travelled;

#pragma GCC visibility push(default)
ssize_t __wrap_cf_file_read(struct cf_handle *file, enum cf_via via, void *buf,
			    size_t size, off_t off);
bool __wrap_cf_file_is_direct(struct cf_handle *file, enum cf_via via);
void __wrap_cf_alias_refuse(dev_t dev, int ordinal, int code);
int __wrap_cf_alias_refused(dev_t dev, int ordinal);
void __wrap_cf_route_choose(const struct cf_piece *piece,
			    const struct cf_rules *rules,
			    struct cf_route *route);
const struct cf_path_ops *__wrap_cf_route_next(const struct cf_route *route);
ssize_t __wrap_cf_request_travel(struct cf_request *rest);
unsigned __wrap_cf_handle_number(const struct cf_handle *file);
bool __wrap_cf_log_site_may(struct cf_log_site *site);
void __wrap_cf_log_write(enum cf_log_level level, const char *file, int nr,
			 const char *fmt, ...);
#pragma GCC visibility pop

ssize_t __wrap_cf_file_read(struct cf_handle *file, enum cf_via via, void *buf,
			    size_t size, off_t off)
{
	reads.nr++;
	reads.mem = (uintptr_t)buf;
	reads.size = size;
	reads.off = off;
	memset(buf, 0, size);
	is_direct = !answer.is_refused;
	return answer.n;
}

bool __wrap_cf_file_is_direct(struct cf_handle *file, enum cf_via via)
{
	return is_direct;
}

void __wrap_cf_alias_refuse(dev_t dev, int ordinal, int code)
{
	assert_int_equal(dev, DISK);
	assert_int_equal(ordinal, GPU);
	refused = code;
	refusals++;
}

int __wrap_cf_alias_refused(dev_t dev, int ordinal)
{
	return dev == DISK && ordinal == GPU ? refused : 0;
}

static struct cf_file_way way(const struct cf_piece *piece)
{
	return (struct cf_file_way){ .direct = goes_direct ? BLOCK : 0 };
}

static const struct cf_path_ops anew = { .name = "anew", .way = way };
static const struct cf_path_ops next = { .name = "next", .way = way };

void __wrap_cf_route_choose(const struct cf_piece *piece,
			    const struct cf_rules *rules,
			    struct cf_route *route)
{
	chosen++;
	route->path = &anew;
}

const struct cf_path_ops *__wrap_cf_route_next(const struct cf_route *route)
{
	assert_ptr_equal(route, &req.route);
	return &next;
}

ssize_t __wrap_cf_request_travel(struct cf_request *rest)
{
	travelled = *rest;
	return result;
}

unsigned __wrap_cf_handle_number(const struct cf_handle *file)
{
	return 1;
}

bool __wrap_cf_log_site_may(struct cf_log_site *site)
{
	return true;
}

void __wrap_cf_log_write(enum cf_log_level level, const char *file, int nr,
			 const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
}

/* ------------------------------------------------------------------- tests */

static int begin(void **state)
{
	handle = (struct cf_handle){ .disk = DISK, .dio_align = BLOCK };
	req = (struct cf_request){
		.piece = { .op = CF_WRITE,
			   .handle = &handle,
			   .mem = { .kind = CF_MEMORY_DEVICE,
				    .addr = 0x10000 + 512,
				    .ordinal = GPU },
			   .size = SIZE,
			   .file_off = 512 },
		.route.path = &cf_path_alias,
	};
	memset(&reads, 0, sizeof(reads));
	answer.n = BLOCK;
	answer.is_refused = false;
	is_direct = goes_direct = true;
	refused = 0;
	refusals = chosen = 0;
	result = SIZE;
	line[0] = '\0';
	atomic_store(&cf_log_threshold, CF_LOG_NOTICE);
	return 0;
}

static void assert_told(const char *words)
{
	if (!strstr(line, words))
		fail_msg("\"%s\" is not in \"%s\"", words, line);
}

static void assert_refused(int code)
{
	assert_int_equal(refusals, code ? 1 : 0);
	assert_int_equal(refused, code);
}

static void a_code_of_the_pair_is_remembered_at_once(void **state)
{
	result = 1000;
	assert_int_equal(cf_detour(&req, 8192, -EREMOTEIO), 8192 + 1000);
	assert_int_equal(reads.nr, 0);
	assert_refused(-EREMOTEIO);
	assert_told("no way between file and gpu");
	/* the rest chooses anew, and what it took is the whole's */
	assert_ptr_equal(travelled.route.path, &anew);
	assert_int_equal(travelled.piece.file_off, 512 + 8192);
	assert_int_equal(travelled.piece.mem.addr, 0x10000 + 512 + 8192);
	assert_int_equal(travelled.piece.size, SIZE - 8192);
	assert_ptr_equal(req.route.path, &anew);
}

static void a_block_that_can_be_read_blames_the_pair(void **state)
{
	assert_int_equal(cf_detour(&req, -EINVAL, -EINVAL), SIZE);
	assert_int_equal(reads.nr, 1);
	assert_refused(-EINVAL);
	assert_told("no way between file and gpu");
	assert_ptr_equal(travelled.route.path, &anew);
}

static void one_that_is_refused_too_blames_the_file(void **state)
{
	answer.n = BLOCK; /* through the page cache, after all */
	answer.is_refused = true;
	assert_int_equal(cf_detour(&req, -EINVAL, -EINVAL), SIZE);
	assert_refused(0);
	assert_told("the file refused its blocks");
	assert_ptr_equal(travelled.route.path, &next);
	assert_int_equal(chosen, 0);
}

/* It is a whole one, as the file has it, where the alias has its bytes. */
static void the_block_lies_as_the_requests_own(void **state)
{
	static const struct {
		size_t block;
		off_t file_off, at;
		size_t addr, mem;
	} cases[] = {
		{ 512, 512, 512, 0x10200, 0x200 },
		{ 512, 100, 512, 0x10064, 0x200 },
		{ 512, 0, 0, 0x10000, 0 },
		{ 4096, 512, 4096, 0x10200, 0 },
		{ 4096, 8191, 8192, 0x103ff, 0x400 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(state);
		handle.dio_align = (unsigned)cases[i].block;
		req.piece.file_off = cases[i].file_off;
		req.piece.mem.addr = cases[i].addr;
		cf_detour(&req, 0, -EINVAL);
		assert_int_equal(reads.nr, 1);
		assert_int_equal(reads.size, cases[i].block);
		assert_int_equal(reads.off, cases[i].at);
		assert_int_equal(reads.mem % 4096, cases[i].mem);
	}
}

static void no_block_is_tried_that_is_larger_than_a_page(void **state)
{
	handle.dio_align = (unsigned)th_page() * 2;
	goes_direct = false;
	assert_int_equal(cf_detour(&req, 0, -EINVAL), SIZE);
	assert_int_equal(reads.nr, 0);
	assert_refused(0);
	assert_ptr_equal(travelled.route.path, &next);
}

/* At the end of the file, or where it may not be read. */
static void learn_late(ssize_t n, bool direct, int code)
{
	static const ssize_t nothing[] = { 0, -EBADF };

	for (size_t i = 0; i < 2; i++) {
		begin(NULL);
		answer.n = nothing[i];
		goes_direct = direct;
		result = n;
		assert_int_equal(cf_detour(&req, 0, -EINVAL), n);
		assert_refused(code);
		assert_told("no way between file and gpu");
		assert_ptr_equal(travelled.route.path, &next);
		assert_int_equal(chosen, 0);
	}
}

static void where_no_block_tells_those_that_go_another_way_do(void **state)
{
	learn_late(SIZE, true, -EINVAL);
	learn_late(SIZE, false, 0);
	learn_late(0, true, 0);
	learn_late(-EIO, true, 0);
}

static void nor_if_they_went_through_the_page_cache_after_all(void **state)
{
	answer.n = -EBADF;
	answer.is_refused = true;
	assert_int_equal(cf_detour(&req, 0, -EINVAL), SIZE);
	assert_refused(0);
}

static void a_pair_that_was_refused_meanwhile_is_not_tried_again(void **state)
{
	cf_detour_early(&req);
	assert_ptr_equal(req.route.path, &cf_path_alias);
	refused = -EFAULT;
	cf_detour_early(&req);
	assert_ptr_equal(req.route.path, &anew);
	/* another path has its route already */
	assert_int_equal(chosen, 1);
	cf_detour_early(&req);
	assert_int_equal(chosen, 1);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_code_of_the_pair_is_remembered_at_once),
		TEST(a_block_that_can_be_read_blames_the_pair),
		TEST(one_that_is_refused_too_blames_the_file),
		TEST(the_block_lies_as_the_requests_own),
		TEST(no_block_is_tried_that_is_larger_than_a_page),
		TEST(where_no_block_tells_those_that_go_another_way_do),
		TEST(nor_if_they_went_through_the_page_cache_after_all),
		TEST(a_pair_that_was_refused_meanwhile_is_not_tried_again),
	};

	return cmocka_run_group_tests_name("detour", tests, NULL, NULL);
}
