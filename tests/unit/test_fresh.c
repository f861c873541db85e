// SPDX-License-Identifier: Apache-2.0
/* fresh - when an aperture is taken for the GPU's, and when it is not. */
#include "core/fresh.h"

#include <string.h>
#include "harness.h"
#include "seam/os.h"

#define SIZE ((size_t)256)
#define AT (SIZE - sizeof(struct cf_fresh_words))
#define GPU 0x7000
#define STREAM ((CUstream)0x99)

static struct cf_os os;
static struct cf_cuda cuda;
static _Alignas(8) char mem[SIZE];
static struct cf_aperture aperture;
static struct cf_fresh fresh;
static struct cf_fresh_words answer;
static unsigned asked; /* of the driver */

static struct cf_fresh_words first; /* what was there when it was made */
static enum { TRUE, FALSE, FIRST, LATER, NO } reply;
static CUresult (*meanwhile)(void);

static void has_answered(void)
{
	memcpy(&answer, mem + AT, sizeof(answer));
}

static CUresult copy(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	assert_ptr_equal(dst, &answer);
	assert_int_equal(src, GPU + AT);
	assert_int_equal(size, sizeof(answer));
	assert_ptr_equal(stream, STREAM);
	asked++;
	if (meanwhile)
		meanwhile();
	if (reply == TRUE)
		has_answered();
	else if (reply == FALSE)
		answer = (struct cf_fresh_words){ 0x1234, ~(uint64_t)0x1234 };
	else if (reply == FIRST)
		answer = first;
	return reply == NO ? CF_CU_INVALID_CONTEXT : CF_CU_SUCCESS;
}

static int setup(void **state)
{
	(void)state;
	os = cf_os_real;
	os.clock_gettime = th_clock;
	cf_os = &os;
	th_clock_ns = 1000000000;
	th_clock_look_ns = 0;
	asked = 0;
	reply = TRUE;
	meanwhile = NULL;
	memset(mem, 0, sizeof(mem));
	cuda.memcpy_dtoh_async = copy;
	aperture = (struct cf_aperture){ .mem = mem, .gpu = GPU, .size = SIZE };
	cf_fresh_init(&fresh, &aperture, AT, STREAM, &answer);
	memcpy(&first, mem + AT, sizeof(first));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cf_os = &cf_os_real;
	return 0;
}

static void finds(enum cf_freshness found)
{
	assert_int_equal(cf_fresh_ask(&cuda, &fresh), found);
}

static void an_answer_holds_for_a_while(void **state)
{
	(void)state;
	th_clock_ns += CF_FRESH_NS - 1;
	finds(CF_FRESH);
	assert_int_equal(asked, 0);
	th_clock_ns++;
	finds(CF_FRESH);
	assert_int_equal(asked, 1);
	th_clock_ns += CF_FRESH_NS - 1;
	finds(CF_FRESH);
	assert_int_equal(asked, 1);
	th_clock_ns++;
	finds(CF_FRESH);
	assert_int_equal(asked, 2);
}

static void what_is_not_what_was_written_is_stale(void **state)
{
	(void)state;
	th_clock_ns += CF_FRESH_NS;
	reply = FALSE;
	finds(CF_FRESH_STALE);
	reply = FIRST;
	finds(CF_FRESH_STALE);
	assert_int_equal(asked, 2);
}

/* Nothing but its word is written. */
static void bytes_in_use_stay(void **state)
{
	(void)state;
	memset(mem, 0x5a, sizeof(mem));
	th_clock_ns += CF_FRESH_NS;
	finds(CF_FRESH);
	th_all("others'", (unsigned char *)mem, 0x5a, AT);
}

static void one_that_is_held_up_is_not_waited_for_twice(void **state)
{
	(void)state;
	th_clock_ns += CF_FRESH_NS;
	reply = LATER;
	th_clock_look_ns = 1000;
	finds(CF_FRESH_UNKNOWN);
	assert_in_range(th_clock_ns, 1000000000 + CF_FRESH_NS + 2000000,
			1000000000 + CF_FRESH_NS + 2010000);
	th_clock_look_ns = 0;
	finds(CF_FRESH_UNKNOWN);
	assert_int_equal(asked, 1);
	has_answered();
	finds(CF_FRESH);
	assert_int_equal(asked, 1);
}

/* Byte by byte, in whatever order. */
static void half_an_answer_is_none(void **state)
{
	(void)state;
	th_clock_ns += CF_FRESH_NS;
	reply = LATER;
	th_clock_look_ns = 1000;
	finds(CF_FRESH_UNKNOWN);
	for (size_t i = 0; i < sizeof(answer); i++) {
		const size_t at = i * 5 % sizeof(answer);

		((char *)&answer)[at] = mem[AT + at];
		finds(i < sizeof(answer) - 1 ? CF_FRESH_UNKNOWN : CF_FRESH);
	}
	assert_int_equal(asked, 1);
}

/* It was so then, and nobody knows for how long. */
static void an_answer_may_come_too_late(void **state)
{
	(void)state;
	th_clock_ns += CF_FRESH_NS;
	reply = LATER;
	th_clock_look_ns = 1000;
	finds(CF_FRESH_UNKNOWN);
	th_clock_look_ns = 0;
	th_clock_ns += CF_FRESH_NS;
	has_answered();
	finds(CF_FRESH_UNKNOWN);
	reply = TRUE;
	finds(CF_FRESH);
	assert_int_equal(asked, 2);
}

/* What was asked of the one before it is no question of the new one's. */
static void one_that_is_made_anew_asks_anew(void **state)
{
	(void)state;
	th_clock_ns += CF_FRESH_NS;
	reply = LATER;
	th_clock_look_ns = 1000;
	finds(CF_FRESH_UNKNOWN);
	th_clock_look_ns = 0;
	cf_fresh_init(&fresh, &aperture, AT, STREAM, &answer);
	th_clock_ns += CF_FRESH_NS;
	reply = TRUE;
	finds(CF_FRESH);
	assert_int_equal(asked, 2);
}

static void a_driver_that_refuses_leaves_it_unknown(void **state)
{
	(void)state;
	th_clock_ns += CF_FRESH_NS;
	reply = NO;
	finds(CF_FRESH_UNKNOWN);
	reply = TRUE;
	finds(CF_FRESH);
}

static CUresult another(void)
{
	meanwhile = NULL;
	finds(CF_FRESH_UNKNOWN);
	return CF_CU_SUCCESS;
}

static void one_asks_at_a_time(void **state)
{
	(void)state;
	th_clock_ns += CF_FRESH_NS;
	meanwhile = another;
	finds(CF_FRESH);
	assert_int_equal(asked, 1);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_holds_for_a_while),
		TEST(what_is_not_what_was_written_is_stale),
		TEST(bytes_in_use_stay),
		TEST(one_that_is_held_up_is_not_waited_for_twice),
		TEST(half_an_answer_is_none),
		TEST(an_answer_may_come_too_late),
		TEST(one_that_is_made_anew_asks_anew),
		TEST(a_driver_that_refuses_leaves_it_unknown),
		TEST(one_asks_at_a_time),
	};

	th_start(10);
	return th_finish(
		cmocka_run_group_tests_name("fresh", tests, NULL, NULL));
}
