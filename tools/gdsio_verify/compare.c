// SPDX-License-Identifier: Apache-2.0
/*
 * compare - what is in the memory against what pread(2) says of the file.
 *
 * The file is read through the page cache, block by block, and before the
 * requests the memory is filled with other bytes: one that no request wrote
 * cannot be right by chance.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "gdsio_verify/trial.h"
#include "report.h"

#define BLOCK ((size_t)4 << 20)
#define GUARD 0xa5

struct blocks {
	unsigned char *file, *memory; /* BLOCK each */
};

static bool blocks_new(struct blocks *b)
{
	b->file = malloc(BLOCK);
	b->memory = malloc(BLOCK);
	if (b->file && b->memory)
		return true;
	free(b->file);
	free(b->memory);
	return fail("no host memory for two blocks of %zu bytes", BLOCK);
}

static void blocks_free(struct blocks *b)
{
	free(b->file);
	free(b->memory);
}

static bool read_file(const struct trial *trial, size_t at, void *to,
		      size_t size)
{
	size_t done = 0;

	while (done < size) {
		off_t off = trial->off + (off_t)(at + done);
		ssize_t n = pread(trial->plain_fd, (char *)to + done,
				  size - done, off);

		if (n < 0)
			return fail_errno("pread", trial->file);
		if (!n)
			return fail("%s became shorter meanwhile: it ends at "
				    "%lld",
				    trial->file, (long long)off);
		done += (size_t)n;
	}
	return true;
}

static bool copied(const struct trial *trial, const char *why)
{
	return why ? fail("GPU %d: %s", trial->gpu, why) : true;
}

static size_t after(const struct trial *trial)
{
	return trial_at(trial) + (size_t)trial->size;
}

static size_t block_at(const struct trial *trial, size_t at)
{
	size_t left = (size_t)trial->size - at;

	return left < BLOCK ? left : BLOCK;
}

/* ---------------------------------------------------------------- before */

static bool spoil_block(struct trial *trial, struct blocks *b, size_t at,
			size_t size)
{
	if (!read_file(trial, at, b->file, size))
		return false;
	for (size_t i = 0; i < size; i++)
		b->memory[i] = (unsigned char)~b->file[i];
	return copied(trial, buffer_put(&trial->memory, trial_at(trial) + at,
					b->memory, size));
}

static bool put_guards(struct trial *trial)
{
	unsigned char guard[TRIAL_GUARD];
	size_t in_front = trial_at(trial) - TRIAL_GUARD;

	memset(guard, GUARD, sizeof(guard));
	return copied(trial, buffer_put(&trial->memory, in_front, guard,
					sizeof(guard))) &&
	       copied(trial, buffer_put(&trial->memory, after(trial), guard,
					sizeof(guard)));
}

bool trial_spoil(struct trial *trial)
{
	struct blocks b;
	bool ok;

	if (!blocks_new(&b))
		return false;
	ok = put_guards(trial);
	for (size_t at = 0; at < (size_t)trial->size && ok; at += BLOCK)
		ok = spoil_block(trial, &b, at, block_at(trial, at));
	blocks_free(&b);
	return ok;
}

/* ---------------------------------------------------------------- behind */

static bool differs(const struct trial *trial, const struct blocks *b,
		    size_t at, size_t size)
{
	size_t first = 0, nr = 0;

	while (b->file[first] == b->memory[first])
		first++;
	for (size_t i = first; i < size; i++)
		nr += b->file[i] != b->memory[i];
	return fail("%s at offset %lld: the file has %02x, the memory %02x; "
		    "%zu of the %zu bytes from there on are wrong",
		    trial->file,
		    (long long)trial->off + (long long)(at + first),
		    b->file[first], b->memory[first], nr, size - first);
}

static bool compare_block(struct trial *trial, struct blocks *b, size_t at,
			  size_t size)
{
	if (!read_file(trial, at, b->file, size) ||
	    !copied(trial, buffer_get(&trial->memory, trial_at(trial) + at,
				      b->memory, size)))
		return false;
	return !memcmp(b->file, b->memory, size) || differs(trial, b, at, size);
}

static bool compare_guard(struct trial *trial, size_t at, const char *where)
{
	unsigned char guard[TRIAL_GUARD];

	if (!copied(trial,
		    buffer_get(&trial->memory, at, guard, sizeof(guard))))
		return false;
	for (size_t i = 0; i < sizeof(guard); i++)
		if (guard[i] != GUARD)
			return fail("%s: bytes %s the range were changed",
				    trial->file, where);
	return true;
}

bool trial_compare(struct trial *trial)
{
	struct blocks b;
	bool ok;

	if (!blocks_new(&b))
		return false;
	ok = compare_guard(trial, trial_at(trial) - TRIAL_GUARD,
			   "in front of") &&
	     compare_guard(trial, after(trial), "behind");
	for (size_t at = 0; at < (size_t)trial->size && ok; at += BLOCK)
		ok = compare_block(trial, &b, at, block_at(trial, at));
	blocks_free(&b);
	return ok;
}
