// SPDX-License-Identifier: Apache-2.0
/*
 * gds_stats - shows what libcufile does in a running process.
 *
 * It loads no libcufile and touches no GPU: all it reads is the memory file
 * that the process counts in (opencufile_stats.h).
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "gds_stats_file.h"
#include "gds_stats_list.h"
#include "gds_stats_print.h"
#include "report.h"
#include "values.h"

#define EXIT_USAGE 2

struct options {
	long pid;
	unsigned level; /* 0: as much as there is */
	bool json, openmetrics, list;
	double watch; /* seconds; 0: once */
};

static const char usage_text[] =
	"usage: gds_stats -p PID [-l LEVEL] [--watch SECONDS] [--json]\n"
	"       gds_stats -p PID --openmetrics\n"
	"       gds_stats --list [--watch SECONDS]\n"
	"\n"
	"Shows what libcufile does in a running process of the same user.\n"
	"\n"
	"  -p PID           the process\n"
	"  -l LEVEL         of the text: 1 totals, 2 also sizes, 3 also each\n"
	"                   GPU; without it, as much as the process counts\n"
	"  --watch SECONDS  again and again, with the rates of each interval,\n"
	"                   until the process ends\n"
	"  --json           all numbers, one line an object\n"
	"  --openmetrics    all numbers, for Prometheus and its like\n"
	"  --list           a line for each process that has a libcufile and\n"
	"                   may be seen, with rates; a - where it counts nothing\n"
	"  --help           this text\n"
	"\n"
	"The process counts if it was started with OCF_STATS=1, 2 or 3, if its\n"
	"cufile.json has profile.cufile_stats of that, or if it calls\n"
	"cuFileSetStatsLevel and cuFileStatsStart.\n"
	"\n"
	"Exit status: 0 well, 1 no numbers to be had, 2 usage.\n";

static bool parse_whole(const char *what, const char *text, long min, long max,
			long *value)
{
	return value_long(text, min, max, value) ||
	       fail("%s %s: not a number from %ld to %ld", what, text, min,
		    max);
}

static bool parse_watch(const char *text, double *seconds)
{
	if (value_seconds(text, seconds) && *seconds >= 0.01 &&
	    *seconds <= 86400)
		return true;
	return fail("--watch %s: not seconds from 0.01 to 86400", text);
}

static bool parse_option(struct options *o, int c, const char *text)
{
	long level;

	switch (c) {
	case 'p':
		return parse_whole("-p", text, 1, INT_MAX, &o->pid);
	case 'l':
		if (!parse_whole("-l", text, 1, 3, &level))
			return false;
		o->level = (unsigned)level;
		return true;
	case 'w':
		return parse_watch(text, &o->watch);
	case 'j':
		return o->json = true;
	case 'o':
		return o->openmetrics = true;
	case 'L':
		return o->list = true;
	default:
		return false;
	}
}

static bool are_sound(const struct options *o, int rest)
{
	if (rest)
		return fail("too many arguments");
	if (o->list && (o->pid || o->level || o->json || o->openmetrics))
		return fail("--list goes with --watch only");
	if (!o->pid && !o->list)
		return fail("-p PID is needed, or --list");
	if (o->openmetrics && (o->json || o->watch > 0))
		return fail("--openmetrics goes with neither --json nor "
			    "--watch");
	return true;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "watch", required_argument, NULL, 'w' },
		{ "json", no_argument, NULL, 'j' },
		{ "openmetrics", no_argument, NULL, 'o' },
		{ "list", no_argument, NULL, 'L' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool ok = true;
	int c;

	memset(o, 0, sizeof(*o));
	while (ok && (c = getopt_long(argc, argv, "p:l:h", longs, NULL)) >= 0) {
		if (c == 'h') {
			fputs(usage_text, stdout);
			return EXIT_SUCCESS;
		}
		ok = parse_option(o, c, optarg);
	}
	if (ok && are_sound(o, argc - optind))
		return -1;
	fprintf(stderr, "try gds_stats --help\n");
	return EXIT_USAGE;
}

/* What the process does not keep is not shown as zeros. */
static unsigned level_to_show(const struct options *o, const struct snapshot *s)
{
	if (!o->level || o->level <= s->level)
		return o->level ? o->level : s->level;
	fail("process %ld counts at level %u: for level %u set "
	     "profile.cufile_stats or OCF_STATS, or call "
	     "cuFileSetStatsLevel in it",
	     o->pid, s->level, o->level);
	return s->level;
}

static void print(const struct options *o, const struct snapshot *s,
		  const struct snapshot *before)
{
	if (o->json)
		print_json(s, o->pid);
	else if (o->openmetrics)
		print_openmetrics(s, o->pid);
	else
		print_text(s, before, level_to_show(o, s));
}

/* A process that ends may still be there, but maps no library any more. */
static bool has_ended(long pid)
{
	int library;

	if (kill((pid_t)pid, 0) && errno == ESRCH)
		return true;
	library = process_has_library(pid);
	return !library || (library < 0 && errno == ESRCH);
}

/* The end of the process is the end of the work, and no error. */
static int watch(const struct options *o, struct snapshot *before)
{
	struct snapshot s;
	int status = EXIT_SUCCESS;
	int fd;

	while (!ferror(stdout) && fflush(stdout) == 0) {
		wait_for(o->watch);
		fd = process_file(o->pid);
		if (fd < 0 && has_ended(o->pid))
			break;
		if (fd < 0 ? !snapshot_take(&s, o->pid) :
			     !snapshot_of_file(&s, o->pid, fd)) {
			status = EXIT_FAILURE;
			break;
		}
		if (!o->json)
			putchar('\n');
		print(o, &s, before);
		snapshot_free(before);
		*before = s;
	}
	snapshot_free(before);
	return wrote_all() ? status : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct snapshot s;
	struct options o;
	int status = parse(argc, argv, &o);

	if (status >= 0)
		return wrote_all() ? status : EXIT_FAILURE;
	if (o.list)
		return list_processes(o.watch) ? EXIT_SUCCESS : EXIT_FAILURE;
	if (!snapshot_take(&s, o.pid))
		return EXIT_FAILURE;
	print(&o, &s, NULL);
	if (o.watch > 0)
		return watch(&o, &s);
	snapshot_free(&s);
	return wrote_all() ? EXIT_SUCCESS : EXIT_FAILURE;
}
