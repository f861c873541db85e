// SPDX-License-Identifier: Apache-2.0
/*
 * target - what a fuzz target is: libFuzzer's two functions, and one way to
 * say that something is wrong.
 *
 * A target takes any bytes, checks what came of them against what it knows,
 * and aborts where they differ. libFuzzer calls it (./dev fuzz), or drive.c,
 * which needs no compiler of a special kind.
 */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Prints and aborts. */
#define wrong(...) \
	do { \
		wrong_at(__FILE__, __LINE__, __VA_ARGS__); \
		abort(); \
	} while (0)
void wrong_at(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define must(condition) \
	do { \
		if (!(condition)) \
			wrong("not so: %s", #condition); \
	} while (0)

/* The bytes of an input, one after the other; zeros when they are used up. */
struct input {
	const uint8_t *at;
	size_t left;
};

static inline unsigned in_u8(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static inline unsigned in_u16(struct input *in)
{
	unsigned low = in_u8(in);

	return low | in_u8(in) << 8;
}

static inline unsigned in_below(struct input *in, unsigned n)
{
	return n > 256 ? in_u16(in) % n : in_u8(in) % n;
}

#endif
