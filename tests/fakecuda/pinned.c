// SPDX-License-Identifier: Apache-2.0
/*
 * pinned - bytes of pages that were registered read-only, or pinned.
 *
 * A GPU reads the pages that were pinned, whatever the file has in their place
 * by now, and whatever lies at their addresses: a page that was replaced comes
 * back there as another. Pipes hold on to them for us, as far as they may be so
 * large. What no pipe has is read where a mapping of our own has it, as long as
 * it is there and nobody touched it; else it gets poison, which is as wrong as
 * the old bytes, and easier to see.
 *
 * Bytes are read by a system call: the page may go at any moment, and a load
 * would then be a SIGBUS, which a GPU does not get.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "internal.h"

#define POISON 0xdb
#define PRESENT (1ull << 63)
#define PIECE ((size_t)1 << 20) /* what anybody may make a pipe hold */

struct fc_pages {
	const char *mem;
	size_t size;
	char *ours; /* the same pages, if pipes hold too little; or NULL */
	size_t nr;
	int pipes[][2]; /* for a piece each; -1: none */
};

static atomic_int nr_ends;

int fakecuda_descriptors(void)
{
	return atomic_load(&nr_ends);
}

static void close_pipe(int *ends)
{
	if (ends[0] < 0)
		return;
	close(ends[0]);
	close(ends[1]);
	atomic_fetch_sub(&nr_ends, 2);
}

static void open_pipe(int *ends)
{
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
		ends[0] = -1;
		return;
	}
	atomic_fetch_add(&nr_ends, 2);
	(void)fcntl(ends[1], F_SETPIPE_SZ, (int)PIECE);
}

/* Of shared mappings there is a second one for the asking. */
static void map_ours(struct fc_pages *pages)
{
	void *at = MAP_FAILED;

	if (!pages->ours)
		at = mremap((void *)(uintptr_t)pages->mem, 0, pages->size,
			    MREMAP_MAYMOVE);
	if (at != MAP_FAILED && !madvise(at, pages->size, MADV_POPULATE_READ))
		pages->ours = at;
	else if (at != MAP_FAILED)
		munmap(at, pages->size);
}

struct fc_pages *fc_pages_hold(const void *mem, size_t size)
{
	size_t nr = (size + PIECE - 1) / PIECE;
	struct fc_pages *pages =
		fc_zalloc(sizeof(*pages) + nr * sizeof(pages->pipes[0]));

	pages->mem = mem;
	pages->size = size;
	pages->nr = nr;
	for (size_t i = 0; i < nr; i++) {
		size_t at = i * PIECE;
		struct iovec piece = { (char *)(uintptr_t)mem + at,
				       size - at < PIECE ? size - at : PIECE };

		open_pipe(pages->pipes[i]);
		if (pages->pipes[i][0] < 0 ||
		    vmsplice(pages->pipes[i][1], &piece, 1,
			     SPLICE_F_NONBLOCK) != (ssize_t)piece.iov_len)
			map_ours(pages);
	}
	return pages;
}

void fc_pages_let_go(struct fc_pages *pages)
{
	for (size_t i = 0; pages && i < pages->nr; i++)
		close_pipe(pages->pipes[i]);
	if (pages && pages->ours)
		munmap(pages->ours, pages->size);
	free(pages);
}

/*
 * Reads n bytes behind skip others; what the pipe holds stays there. The plain
 * system call: no sanitizer looks at what GPUs do in their own time.
 */
static bool read_again(int pipe, char *to, size_t skip, size_t n)
{
	int ends[2], nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ssize_t held = -1, gone = -1, got = -1;

	open_pipe(ends);
	if (ends[0] >= 0)
		held = tee(pipe, ends[1], skip + n, SPLICE_F_NONBLOCK);
	if (held == (ssize_t)(skip + n))
		gone = skip ? splice(ends[0], NULL, nowhere, NULL, skip, 0) : 0;
	if (gone == (ssize_t)skip)
		got = syscall(SYS_read, ends[0], to, n);
	close_pipe(ends);
	if (nowhere >= 0)
		close(nowhere);
	return got == (ssize_t)n;
}

static bool copy_held(const struct fc_pages *pages, char *to, const char *from,
		      size_t n)
{
	size_t at = (size_t)(from - pages->mem);
	int pipe = pages->pipes[at / PIECE][0];

	return pipe >= 0 && read_again(pipe, to, at % PIECE, n);
}

static bool is_there(int fd, uintptr_t addr)
{
	uint64_t word;

	return fd < 0 ||
	       pread(fd, &word, sizeof(word),
		     (off_t)(addr / fc_page() * sizeof(word))) !=
		       sizeof(word) ||
	       word & PRESENT;
}

static bool copy_there(int fd, char *to, const char *from, size_t n)
{
	struct iovec local = { to, n };
	struct iovec remote = { (void *)(uintptr_t)from, n };

	return is_there(fd, (uintptr_t)from) &&
	       process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
		       (ssize_t)n;
}

/* Where pipes may hold little. */
static void copy_by_page(char *to, const char *from, size_t size)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	while (size) {
		size_t n = fc_page() - (uintptr_t)from % fc_page();

		if (n > size)
			n = size;
		if (!copy_there(fd, to, from, n))
			memset(to, POISON, n);
		to += n;
		from += n;
		size -= n;
	}
	if (fd >= 0)
		close(fd);
}

static const char *there(const struct fc_pages *pages, const char *from)
{
	return pages->ours ? pages->ours + (from - pages->mem) : from;
}

void fc_pages_copy(const struct fc_pages *pages, char *to, const char *from,
		   size_t size)
{
	while (size) {
		size_t n = PIECE - (size_t)(from - pages->mem) % PIECE;

		if (n > size)
			n = size;
		if (!copy_held(pages, to, from, n))
			copy_by_page(to, there(pages, from), n);
		to += n;
		from += n;
		size -= n;
	}
}
