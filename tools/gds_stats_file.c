// SPDX-License-Identifier: Apache-2.0
/*
 * gds_stats_file - finds the file, believes none of it unchecked, adds up.
 *
 * The file is another process's. Its size is sealed, or a reader could be
 * killed by a process that cuts it short; and every place that it names is
 * looked at, in a copy, before it is read.
 */
#include "gds_stats_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "report.h"

#define MAX_ROWS 4096
#define MAX_COUNT 4096
#define MAX_SHARDS 65536
#define MAX_SIZE ((off_t)64 << 20) /* bytes; ours has one of them */

struct file {
	int fd;
	size_t size;
	const char *at;		    /* mapped; the process may write there */
	struct ocf_stats_head head; /* a copy, so that it stays as checked */
};

/* ---------------------------------------------------------- finding it */

static FILE *open_maps(long tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/maps", tid);
	return fopen(path, "re");
}

/* A thread that has ended has none. */
static bool has_maps(long tid)
{
	FILE *maps = open_maps(tid);
	bool has = maps && fgetc(maps) != EOF;

	if (maps)
		fclose(maps);
	return has;
}

long process_thread(long pid)
{
	struct dirent *entry;
	char path[64];
	long tid = pid;
	DIR *dir;

	if (has_maps(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		tid = strtol(entry->d_name, NULL, 10);
		if (tid > 0 && has_maps(tid))
			break;
		tid = pid;
	}
	if (dir)
		closedir(dir);
	return tid;
}

int process_has_library(long pid)
{
	FILE *maps = open_maps(process_thread(pid));
	char line[4096];
	int found = 0;

	if (!maps)
		return -1;
	while (!found && fgets(line, sizeof(line), maps))
		found = strstr(line, "/libcufile.so") != NULL;
	fclose(maps);
	return found;
}

static bool fail_to_find(long pid)
{
	if (process_has_library(pid) == 0)
		return fail("process %ld has not loaded libcufile", pid);
	return fail(
		"process %ld keeps no statistics: start it with "
		"OCF_STATS=3, or set profile.cufile_stats to 1, 2 or 3 in "
		"its cufile.json, or have it call cuFileSetStatsLevel and cuFileStatsStart "
		"(its libcufile must be opencufile's)",
		pid);
}

static bool fail_to_look(long pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld", pid);
	if (stat(path, &st))
		return fail("there is no process %ld", pid);
	return fail("process %ld belongs to user %u: run as that user or as "
		    "root",
		    pid, (unsigned)st.st_uid);
}

static bool is_the_file(const char *path)
{
	char text[64];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return !strcmp(text, OCF_STATS_LINK);
}

/*
 * A descriptor of the file; -1, errno 0: the process has no such link. Where
 * the link leads is for the process to say: the open of a pipe would wait.
 */
static int open_among(long tid, DIR *dir)
{
	struct dirent *entry;
	char path[96];

	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%ld/fd/%.20s", tid,
			 entry->d_name);
		if (is_the_file(path))
			return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
						  O_NOCTTY);
	}
	errno = 0;
	return -1;
}

static bool is_sealed(int fd)
{
	int need = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(fd, F_GET_SEALS); /* -1: no memory file */

	return seals >= 0 && (seals & need) == need;
}

/* A file that is still being made has no such word yet. */
static bool has_magic(int fd)
{
	uint64_t magic;

	return pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
	       magic == OCF_STATS_MAGIC;
}

static DIR *open_fds(long tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/fd", tid);
	return opendir(path);
}

int process_file(long pid)
{
	long tid = process_thread(pid);
	DIR *dir = open_fds(tid);
	int fd;

	if (!dir)
		return -1;
	fd = open_among(tid, dir);
	closedir(dir);
	if (fd < 0 || (is_sealed(fd) && has_magic(fd)))
		return fd;
	close(fd);
	return -1;
}

/* Says why, where there is none. */
static int open_file(long pid)
{
	long tid = process_thread(pid);
	DIR *dir = open_fds(tid);
	int fd;

	if (!dir) {
		fail_to_look(pid);
		return -1;
	}
	fd = open_among(tid, dir);
	if (fd < 0 && errno)
		fail_errno("open", "the statistics file");
	else if (fd < 0)
		fail_to_find(pid);
	closedir(dir);
	return fd;
}

/* ------------------------------------------------------------ trusting it */

static bool fits(const struct file *file, uint64_t at, uint64_t size)
{
	return at % sizeof(uint64_t) == 0 && at <= file->size &&
	       size <= file->size - at;
}

static const struct ocf_stats_row *row_at(const struct file *file, unsigned i)
{
	return (const struct ocf_stats_row *)(file->at + file->head.rows_at +
					      (size_t)i * file->head.row_size);
}

static bool row_is_sound(const struct file *file,
			 const struct ocf_stats_row *row)
{
	uint64_t last = row->at + (uint64_t)(row->count - 1) * row->stride;

	return memchr(row->name, '\0', sizeof(row->name)) && row->count &&
	       row->count <= MAX_COUNT && row->at % sizeof(uint64_t) == 0 &&
	       row->stride % sizeof(uint64_t) == 0 &&
	       last + sizeof(uint64_t) <= file->head.shard_size;
}

static bool is_sound(const struct file *file)
{
	const struct ocf_stats_head *head = &file->head;

	return (off_t)file->size <= MAX_SIZE && head->nr_rows <= MAX_ROWS &&
	       head->nr_shards <= MAX_SHARDS &&
	       head->row_size >= sizeof(struct ocf_stats_row) &&
	       head->row_size % sizeof(uint64_t) == 0 &&
	       head->shard_size % sizeof(uint64_t) == 0 &&
	       fits(file, head->rows_at,
		    (uint64_t)head->nr_rows * head->row_size) &&
	       fits(file, head->shards_at,
		    (uint64_t)head->nr_shards * head->shard_size);
}

static bool map_file(struct file *file, long pid)
{
	struct stat st;
	void *at;

	if (!is_sealed(file->fd) || fstat(file->fd, &st) ||
	    st.st_size < (off_t)sizeof(file->head))
		return fail("process %ld: its statistics file is not ready",
			    pid);
	file->size = (size_t)st.st_size;
	at = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
	if (at == MAP_FAILED)
		return fail_errno("mmap", "the statistics file");
	file->at = at;
	if (__atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE) !=
	    OCF_STATS_MAGIC)
		return fail("process %ld: this is no statistics file", pid);
	memcpy(&file->head, at, sizeof(file->head));
	if (file->head.version != OCF_STATS_VERSION)
		return fail("process %ld: its library writes statistics of "
			    "version %u, this tool reads version %d: use the "
			    "tool that came with the library",
			    pid, file->head.version, OCF_STATS_VERSION);
	if (is_sound(file))
		return true;
	return fail("process %ld: its statistics file of %zu bytes is damaged: "
		    "%u rows of %u bytes at %u, %u shards of %u bytes at %u",
		    pid, file->size, file->head.nr_rows, file->head.row_size,
		    file->head.rows_at, file->head.nr_shards,
		    file->head.shard_size, file->head.shards_at);
}

/* ------------------------------------------------------------- reading it */

static uint64_t word(const void *at)
{
	return __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);
}

static uint64_t sum(const struct file *file, size_t at)
{
	const char *shard = file->at + file->head.shards_at + at;
	uint64_t n = 0;

	for (unsigned i = 0; i < file->head.nr_shards; i++) {
		n += i ? word(shard) : -word(shard);
		shard += file->head.shard_size;
	}
	return n;
}

/* room: values that there may still be, or adding up would take for ever. */
static bool read_row(struct number *n, const struct file *file,
		     const struct ocf_stats_row *row, uint64_t *room)
{
	struct ocf_stats_row r = *row;

	if (!row_is_sound(file, &r) || r.count > *room)
		return false;
	*room -= r.count;
	memcpy(n->name, r.name, sizeof(n->name));
	n->values = calloc(r.count, sizeof(*n->values));
	if (!n->values)
		return false;
	n->count = r.count;
	for (unsigned i = 0; i < n->count; i++)
		n->values[i] = sum(file, r.at + (size_t)i * r.stride);
	return true;
}

static void read_head(struct snapshot *s, const struct ocf_stats_head *head)
{
	uint64_t since = word(&head->since_ns);
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	s->now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	s->level = (unsigned)word(&head->level);
	s->counting = word(&head->counting) && s->level;
	s->period_ns = word(&head->period_ns);
	if (s->counting && s->now_ns > since)
		s->period_ns += s->now_ns - since;
	for (int i = 0; i < OCF_STATS_MAX_GPUS; i++)
		for (size_t w = 0; w < sizeof(s->gpu[i]) / 8; w++)
			((uint64_t *)&s->gpu[i])[w] =
				word((const uint64_t *)&head->gpu[i] + w);
}

static bool read_file(struct snapshot *s, const struct file *file, long pid)
{
	uint64_t room = file->head.shard_size / sizeof(uint64_t);
	unsigned nr = file->head.nr_rows;

	read_head(s, (const struct ocf_stats_head *)file->at);
	s->numbers = calloc(nr ? nr : 1, sizeof(*s->numbers));
	if (!s->numbers || nr > MAX_ROWS)
		return fail("out of memory");
	for (; s->nr < nr; s->nr++)
		if (!read_row(&s->numbers[s->nr], file, row_at(file, s->nr),
			      &room))
			return fail("process %ld: row %u of its statistics "
				    "file is damaged",
				    pid, s->nr);
	return true;
}

bool snapshot_of_file(struct snapshot *s, long pid, int fd)
{
	struct file file = { .fd = fd };
	bool ok;

	memset(s, 0, sizeof(*s));
	ok = map_file(&file, pid) && read_file(s, &file, pid);
	if (file.at)
		munmap((void *)(uintptr_t)file.at, file.size);
	close(fd);
	if (!ok)
		snapshot_free(s);
	return ok;
}

bool snapshot_take(struct snapshot *s, long pid)
{
	int fd = open_file(pid);

	return fd >= 0 && snapshot_of_file(s, pid, fd);
}

void snapshot_free(struct snapshot *s)
{
	for (unsigned i = 0; i < s->nr; i++)
		free(s->numbers[i].values);
	free(s->numbers);
	memset(s, 0, sizeof(*s));
}

uint64_t snapshot_get(const struct snapshot *s, const char *name, unsigned nth)
{
	for (unsigned i = 0; i < s->nr; i++)
		if (!strcmp(s->numbers[i].name, name))
			return nth < s->numbers[i].count ?
				       s->numbers[i].values[nth] :
				       0;
	return 0;
}

bool number_is_of_gpus(const struct number *n)
{
	return n->count == OCF_STATS_MAX_GPUS && !strncmp(n->name, "gpu.", 4);
}
