// SPDX-License-Identifier: Apache-2.0
/* file - see file.h. */
#include "file.h"
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART (8ul << 20)
#define MORE (1ul << 20) /* behind the last request, for unaligned ones */
#define MAX_FILES 8
#define TAIL 4096

/* Read by a signal handler: a path is whole before nr counts it. */
static char made[MAX_FILES][280];
static volatile sig_atomic_t nr_made;

void file_remove_all(void)
{
	for (int i = 0; i < nr_made; i++)
		unlink(made[i]);
	nr_made = 0;
}

static void on_signal(int signal)
{
	file_remove_all();
	_exit(128 + signal);
}

static void remember(const char *path)
{
	const struct sigaction act = { .sa_handler = on_signal };

	if (nr_made == MAX_FILES)
		return;
	snprintf(made[nr_made], sizeof(made[0]), "%s", path);
	nr_made++;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
}

/* Also takes the file into the page cache. */
static bool is_there(int fd, size_t size, char *mem)
{
	struct stat st;

	if (fstat(fd, &st) || st.st_size != (off_t)size)
		return false;
	for (size_t off = 0; off < size; off += PART) {
		size_t part = size - off < PART ? size - off : PART;

		if (pread(fd, mem, part, (off_t)off) != (ssize_t)part ||
		    !pattern_check(mem, part, off, FILE_SEED))
			return false;
	}
	return true;
}

/* Not another's that has this name: its last bytes are ours, or it is new. */
static bool may_fill(int fd, const char *path, char *mem)
{
	struct stat st;
	off_t at = 0;
	ssize_t n = -1;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		at = st.st_size > TAIL ? st.st_size - TAIL : 0;
		n = pread(fd, mem, TAIL, at);
	}
	if (n >= 0 && pattern_check(mem, (size_t)n, (uint64_t)at, FILE_SEED))
		return true;
	fprintf(stderr, "ocf-bench: %s is not a file that it has made\n", path);
	return false;
}

static bool fill(int fd, size_t size, char *mem)
{
	for (size_t off = 0; off < size; off += PART) {
		size_t part = size - off < PART ? size - off : PART;

		pattern_fill(mem, part, off, FILE_SEED);
		if (pwrite(fd, mem, part, (off_t)off) != (ssize_t)part)
			return false;
	}
	return ftruncate(fd, (off_t)size) == 0 && fsync(fd) == 0;
}

static bool make(int fd, const char *path, size_t size, bool keep, char *mem)
{
	if (!may_fill(fd, path, mem))
		return false;
	if (!keep)
		remember(path);
	if ((keep && is_there(fd, size, mem)) || fill(fd, size, mem))
		return true;
	perror(path);
	return false;
}

bool file_make(const char *path, size_t size, bool keep)
{
	char *mem = malloc(PART);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool good = fd >= 0 && mem;

	if (good)
		good = make(fd, path, size + MORE, keep, mem);
	else
		perror(path);
	if (fd >= 0)
		close(fd);
	free(mem);
	return good;
}
