// SPDX-License-Identifier: Apache-2.0
/*
 * gds_stats_list - see gds_stats_list.h.
 *
 * Only processes whose maps may be read are seen: those of the same user, and
 * for root all. One that ends while it is looked at is left out.
 */
#include "gds_stats_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "gds_stats_file.h"
#include "report.h"

#define FIRST_ROOM 64
#define GIB (1 << 30)

struct listed {
	long pid;
	bool counts;
	struct snapshot s; /* where it counts */
};

struct listing {
	unsigned nr, room;
	struct listed *processes;
};

static void listing_free(struct listing *l)
{
	while (l->nr > 0)
		snapshot_free(&l->processes[--l->nr].s);
	free(l->processes);
	*l = (struct listing){ 0 };
}

static bool make_room(struct listing *l)
{
	unsigned room = l->room ? 2 * l->room : FIRST_ROOM;
	struct listed *more;

	if (l->nr < l->room)
		return true;
	more = reallocarray(l->processes, room, sizeof(*more));
	if (!more)
		return fail("no memory for %u processes", room);
	l->processes = more;
	l->room = room;
	return true;
}

static bool look_at(struct listing *l, long pid)
{
	struct listed *p;
	int fd;

	if (pid == (long)getpid() || process_has_library(pid) != 1)
		return true;
	if (!make_room(l))
		return false;
	p = &l->processes[l->nr];
	*p = (struct listed){ .pid = pid };
	fd = process_file(pid);
	p->counts = fd >= 0 && snapshot_of_file(&p->s, pid, fd);
	/* without numbers it may also have ended meanwhile */
	if (p->counts || process_has_library(pid) == 1)
		l->nr++;
	return true;
}

static bool look(struct listing *l)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool ok = true;

	if (!dir)
		return fail_errno("open", "/proc");
	while (ok && (entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && !*end)
			ok = look_at(l, pid);
	}
	closedir(dir);
	return ok;
}

static const struct snapshot *find(const struct listing *l, long pid)
{
	for (unsigned i = 0; i < l->nr; i++)
		if (l->processes[i].pid == pid && l->processes[i].counts)
			return &l->processes[i].s;
	return NULL;
}

/* The sum for single requests and for batches. */
static uint64_t both(const struct snapshot *s, const char *op, const char *part)
{
	char name[64], batch[64];

	snprintf(name, sizeof(name), "%s.%s", op, part);
	snprintf(batch, sizeof(batch), "batch_%s.%s", op, part);
	return snapshot_get(s, name, 0) + snapshot_get(s, batch, 0);
}

static double gib_per_second(const struct snapshot *s,
			     const struct snapshot *before, const char *op)
{
	uint64_t bytes = both(s, op, "bytes"), ns = s->period_ns;
	uint64_t old = before ? both(before, op, "bytes") : 0;

	if (before)
		ns = s->now_ns - before->now_ns;
	/* after a reset in between the count begins at 0 again */
	return ns ? (double)(bytes >= old ? bytes - old : bytes) / GIB /
			       ((double)ns / 1e9) :
		    0;
}

/* The command line of the process, one line of it. */
static void print_command(long pid)
{
	char path[64], text[80];
	FILE *file;
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%ld/cmdline", process_thread(pid));
	file = fopen(path, "re");
	if (file) {
		n = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 127)
			text[i] = ' ';
	while (n > 0 && text[n - 1] == ' ')
		n--;
	printf("%.*s\n", (int)n, text);
}

static void print_process(const struct listed *p, const struct snapshot *before)
{
	if (p->counts)
		printf("%8ld %5u %10.3f %10.3f %12llu %12llu %8llu  ", p->pid,
		       p->s.level, gib_per_second(&p->s, before, "read"),
		       gib_per_second(&p->s, before, "write"),
		       (unsigned long long)both(&p->s, "read", "ok"),
		       (unsigned long long)both(&p->s, "write", "ok"),
		       (unsigned long long)(both(&p->s, "read", "err") +
					    both(&p->s, "write", "err")));
	else
		printf("%8ld %5s %10s %10s %12s %12s %8s  ", p->pid, "-", "-",
		       "-", "-", "-", "-");
	print_command(p->pid);
}

static void print_listing(const struct listing *l, const struct listing *before)
{
	printf("%8s %5s %10s %10s %12s %12s %8s  %s\n", "PID", "LEVEL",
	       "READ GiB/s", "WRITE GiB/s", "READS", "WRITES", "ERRORS",
	       "COMMAND");
	for (unsigned i = 0; i < l->nr; i++)
		print_process(&l->processes[i],
			      find(before, l->processes[i].pid));
}

void wait_for(double seconds)
{
	struct timespec left = {
		.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	while (nanosleep(&left, &left) && errno == EINTR)
		continue;
}

bool list_processes(double watch)
{
	struct listing now = { 0 }, before = { 0 };
	bool ok = look(&now);

	while (ok) {
		print_listing(&now, &before);
		ok = wrote_all();
		if (!ok || watch <= 0)
			break;
		wait_for(watch);
		putchar('\n');
		listing_free(&before);
		before = now;
		now = (struct listing){ 0 };
		ok = look(&now);
	}
	listing_free(&now);
	listing_free(&before);
	return ok;
}
