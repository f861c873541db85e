// SPDX-License-Identifier: Apache-2.0
/*
 * check - one more turn, on memory and file that could not be right before,
 * whose every byte is verified. Not timed.
 */
#include "gpu.h"
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLANK 0x5a
#define GUARD 64 /* bytes after the last request that must stay as they are */

/* Fills memory with what a write should bring, or no read could leave. */
static bool prepare(struct runner *r, char *copy, uint64_t seed)
{
	size_t size = cell_memory(r->cell);

	memset(copy, BLANK, size);
	if (r->cell->write)
		for (unsigned i = 0; i < r->nr_lots; i++)
			pattern_fill(copy + r->lots[i].mem_off, r->lots[i].size,
				     (uint64_t)r->lots[i].file_off, seed);
	return memory_put(r->cell->memory, r->mem, copy, size);
}

static bool is_written(struct runner *r, char *copy, uint64_t seed)
{
	/* Its own descriptor: the runner's may want aligned addresses. */
	int fd = open(r->cell->file, O_RDONLY | O_CLOEXEC);
	bool right = fd >= 0;

	for (unsigned i = 0; i < r->nr_lots && right; i++) {
		const struct lot *lot = &r->lots[i];

		right = pread(fd, copy, lot->size, lot->file_off) ==
				(ssize_t)lot->size &&
			pattern_check(copy, lot->size, (uint64_t)lot->file_off,
				      seed);
	}
	if (fd >= 0)
		close(fd);
	return right;
}

static bool is_read(struct runner *r, char *copy)
{
	const struct lot *last = &r->lots[r->nr_lots - 1];
	const char *end = copy + last->mem_off + last->size;

	if (!memory_get(r->cell->memory, r->mem, copy, cell_memory(r->cell)))
		return false;
	for (unsigned i = 0; i < r->nr_lots; i++)
		if (!pattern_check(copy + r->lots[i].mem_off, r->lots[i].size,
				   (uint64_t)r->lots[i].file_off, FILE_SEED))
			return false;
	for (size_t i = 0; i < GUARD; i++)
		if (end[i] != BLANK)
			return false;
	return true;
}

/*
 * settle: wait for the copy that prepares the memory; a read must, because
 * cuFile promises no order between a read and an unfinished copy.
 */
static bool is_right(struct runner *r, uint64_t seed, bool settle)
{
	char *copy = malloc(cell_memory(r->cell));
	bool right;

	choose_lots(r);
	right = copy && prepare(r, copy, seed);
	if (settle && gpu_is_open())
		gpu_synchronize();
	right = right && r->way->turn(r) &&
		(r->cell->write ? is_written(r, copy, seed) : is_read(r, copy));
	free(copy);
	return right;
}

/* Different from what an earlier check or run left at the same place. */
static uint64_t fresh_seed(void)
{
	return (uint64_t)(now_s() * 1e9) ^ (uint64_t)getpid() << 48;
}

void check(struct runner *r)
{
	if (!r->cell->write) {
		if (!is_right(r, FILE_SEED, true))
			fail(r, "read: wrong data", 0);
		return;
	}
	/* Threads share the file, and would write over each other's bytes. */
	pthread_mutex_lock(r->writing);
	r->stale = !is_right(r, fresh_seed(), false);
	if (r->stale && !*r->error && !is_right(r, fresh_seed(), true))
		fail(r, "write: wrong data", 0);
	pthread_mutex_unlock(r->writing);
}
