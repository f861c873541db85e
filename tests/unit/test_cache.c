// SPDX-License-Identifier: Apache-2.0
/* cache - stores past the caches move the same bytes as any others. */
#include "core/cache.h"

#include <string.h>
#include "harness.h"

#define LINE 64
#define LARGEST (5 * LINE)
#define PAD (2 * LINE)

static unsigned char from[LARGEST + LINE];
static _Alignas(LINE) unsigned char to[PAD + LARGEST + LINE + PAD];

static void stores(size_t to_at, size_t from_at, size_t size)
{
	unsigned char *dst = to + PAD + to_at;

	memset(to, 0xa5, sizeof(to));
	cf_cache_store_past(dst, from + from_at, size);
	th_all("before", to, 0xa5, PAD + to_at);
	th_equal("the bytes", dst, from + from_at, size);
	th_all("behind", dst + size, 0xa5,
	       (size_t)(to + sizeof(to) - dst) - size);
}

static void of_any_size_and_place_they_touch_nothing_else(void **state)
{
	(void)state;
	th_fill(from, sizeof(from));
	for (size_t to_at = 0; to_at < LINE; to_at += 7)
		for (size_t from_at = 0; from_at < LINE; from_at += 9)
			for (size_t size = 0; size <= LARGEST; size++)
				stores(to_at, from_at, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_any_size_and_place_they_touch_nothing_else),
	};

	th_start(30);
	return th_finish(
		cmocka_run_group_tests_name("cache", tests, NULL, NULL));
}
