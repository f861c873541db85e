// SPDX-License-Identifier: Apache-2.0
/*
 * checksum - 64 bits that tell two files apart, by way of plain pread(2).
 *
 * Four lanes of multiply and rotate, 32 bytes a round, so that a changed,
 * moved or missing word changes the sum. It guards against mistakes, not
 * against malice, and its value is the same on little-endian machines only.
 */
#include "checksum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (1u << 20) /* a multiple of ROUND */
#define ROUND 32
#define LANES 4

/* Odd, with about as many ones as zeros, in no simple relation. */
#define K1 0xd6e8feb86659fd93ull
#define K2 0xa0761d6478bd642full

struct lanes {
	uint64_t at[LANES];
};

static uint64_t rotl(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

/* data: ROUND bytes */
static void mix_round(struct lanes *lanes, const unsigned char *data)
{
	uint64_t word[LANES];

	memcpy(word, data, ROUND);
	for (int i = 0; i < LANES; i++)
		lanes->at[i] =
			rotl(lanes->at[i] ^ (word[i] + K2) * K1, 29) * K2 + K1;
}

/* Only the last block of a file may end within a round. */
static void mix_block(struct lanes *lanes, const unsigned char *data,
		      size_t size)
{
	unsigned char tail[ROUND] = { 0 };
	size_t at = 0;

	for (; at + ROUND <= size; at += ROUND)
		mix_round(lanes, data + at);
	if (at == size)
		return;
	memcpy(tail, data + at, size - at);
	mix_round(lanes, tail);
}

static uint64_t finish(const struct lanes *lanes, off_t size)
{
	uint64_t sum = (uint64_t)size * K1;

	for (int i = 0; i < LANES; i++)
		sum = (rotl(sum, 23) ^ lanes->at[i]) * K2;
	sum ^= sum >> 32;
	sum *= K1;
	return sum ^ sum >> 29;
}

/* As many bytes as there are, or -1. */
static ssize_t read_whole(int fd, void *buf, size_t size, off_t off)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)buf + done, size - done,
				  off + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

off_t checksum_file(int fd, off_t size, uint64_t *sum)
{
	struct lanes lanes = { { K1, K2, ~K1, ~K2 } };
	unsigned char *block = malloc(BLOCK);
	ssize_t n = block ? 0 : -1;
	off_t done = 0;

	while (!n && done < size) {
		size_t want = BLOCK;

		if ((off_t)want > size - done)
			want = (size_t)(size - done);
		n = read_whole(fd, block, want, done);
		if (n <= 0)
			break;
		mix_block(&lanes, block, (size_t)n);
		done += n;
		n = (size_t)n < want;
	}
	free(block);
	if (n < 0)
		return -1;
	*sum = finish(&lanes, done);
	return done;
}
