// SPDX-License-Identifier: Apache-2.0
/*
 * main - ocf-bench: parses the grid, walks it, prints a row a measurement.
 *
 * usage: see usage() below. Libraries are asked in turns, `rounds` times
 * each, and the median by bandwidth stands.
 */
#include "bench.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_LIST 16
#define MAX_ROUNDS 9

struct library {
	const char *name; /* as printed */
	const char *path;
	int ask, answer; /* pipes to and from its process */
	double open_ms;
};

struct grid {
	struct library libraries[MAX_LIST];
	size_t sizes[MAX_LIST];
	unsigned threads[MAX_LIST];
	int nr_libraries, nr_sizes, nr_threads;
	bool reads, writes, cached, direct, host, unregistered;
	int rounds;
	double seconds;
	const char *file;
	size_t file_size;
	FILE *json;
};

static void usage(FILE *out)
{
	fputs("usage: ocf-bench --lib NAME=PATH [--lib ...] [--lib byhand]\n"
	      "  --file PATH     data file, made if it is not there\n"
	      "  --file-size N   its size (1G)\n"
	      "  --sizes LIST    4K,1M,16M,256M\n"
	      "  --threads LIST  1\n"
	      "  --ops LIST      read,write\n"
	      "  --media LIST    cached,direct\n"
	      "  --host          host memory instead of a GPU's\n"
	      "  --unregistered  do not register the buffer\n"
	      "  --rounds N      3\n"
	      "  --seconds S     0.5, of each measurement\n"
	      "  --json PATH     a JSON object a line\n",
	      out);
}

static size_t parse_size(const char *text)
{
	char *end;
	size_t n = strtoul(text, &end, 10);

	switch (*end) {
	case 'K':
		return n << 10;
	case 'M':
		return n << 20;
	case 'G':
		return n << 30;
	default:
		return n;
	}
}

static const char *size_text(size_t size)
{
	static char text[32];
	int shift = size >= 1 << 30 ? 30 : size >= 1 << 20 ? 20 : 10;

	snprintf(text, sizeof(text), "%zu%c", size >> shift,
		 shift == 30 ? 'G' :
		 shift == 20 ? 'M' :
			       'K');
	return text;
}

/* The process of one library: answers cells until its pipe closes. */
static void serve(const struct library *lib, const struct grid *grid, int ask,
		  int answer)
{
	struct mover mover;
	struct cell cell;
	struct result result;
	const char *error = grid->host ? NULL : gpu_open();
	double begin;
	CUfileError_t err;

	if (!error)
		error = mover_load(lib->path, &mover);
	begin = now_s();
	if (!error) {
		err = mover.open();
		if (err.err)
			error = "driver open failed";
	}
	begin = (now_s() - begin) * 1e3;
	if (write(answer, &begin, sizeof(begin)) != sizeof(begin))
		_exit(1);
	while (read(ask, &cell, sizeof(cell)) == sizeof(cell)) {
		memset(&result, 0, sizeof(result));
		if (error)
			snprintf(result.error, sizeof(result.error), "%s",
				 error);
		else
			cell_run(&mover, &cell, &result);
		if (write(answer, &result, sizeof(result)) != sizeof(result))
			break;
	}
	_exit(0);
}

static void start(struct library *lib, const struct grid *grid)
{
	int ask[2], answer[2];

	if (pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC))
		exit(1);
	fflush(NULL);
	if (fork() == 0) {
		close(ask[1]);
		close(answer[0]);
		serve(lib, grid, ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	lib->ask = ask[1];
	lib->answer = answer[0];
	if (read(lib->answer, &lib->open_ms, sizeof(lib->open_ms)) !=
	    sizeof(lib->open_ms))
		fprintf(stderr, "%s died at open\n", lib->name);
	printf("%-10s driver open %.3f ms\n", lib->name, lib->open_ms);
}

static void ask(const struct library *lib, const struct cell *cell,
		struct result *result)
{
	if (write(lib->ask, cell, sizeof(*cell)) == sizeof(*cell) &&
	    read(lib->answer, result, sizeof(*result)) == sizeof(*result))
		return;
	memset(result, 0, sizeof(*result));
	snprintf(result->error, sizeof(result->error), "its process died");
}

static int by_bandwidth(const void *a, const void *b)
{
	double x = ((const struct result *)a)->bytes_per_s;
	double y = ((const struct result *)b)->bytes_per_s;

	return x < y ? -1 : x > y;
}

static void print_row(const struct grid *grid, const struct library *lib,
		      const struct cell *cell, const struct result *r)
{
	const char *op = cell->write ? "write" : "read";
	const char *medium = cell->direct ? "direct" : "cached";
	const char *memory = cell->memory == MEMORY_HOST ? "host" :
			     cell->registered		 ? "reg" :
							   "unreg";

	printf("%-10s %-5s %-6s %5s x%-3u %-5s ", lib->name, op, medium,
	       size_text(cell->size), cell->threads, memory);
	if (*r->error)
		printf("%s\n", r->error);
	else
		printf("%8.3f GB/s %10.0f op/s  p50 %9.1f us  p99 %9.1f us  "
		       "cpu %6.3f s/GB%s\n",
		       r->bytes_per_s * 1e-9, r->ops_per_s, r->p50_us,
		       r->p99_us, r->cpu_s_per_gb,
		       r->stale ? "  (wrote stale bytes)" : "");
	fflush(stdout);
	if (grid->json)
		fprintf(grid->json,
			"{\"library\":\"%s\",\"op\":\"%s\",\"medium\":\"%s\","
			"\"size\":%zu,\"threads\":%u,\"memory\":\"%s\","
			"\"error\":\"%s\",\"stale\":%s,\"gb_per_s\":%.6f,\"ops_per_s\":%.1f,"
			"\"p50_us\":%.2f,\"p99_us\":%.2f,"
			"\"cpu_s_per_gb\":%.4f}\n",
			lib->name, op, medium, cell->size, cell->threads,
			memory, r->error, r->stale ? "true" : "false",
			r->bytes_per_s * 1e-9, r->ops_per_s, r->p50_us,
			r->p99_us, r->cpu_s_per_gb);
}

static void run_cell(const struct grid *grid, const struct cell *cell)
{
	static struct result all[MAX_LIST][MAX_ROUNDS];

	for (int round = 0; round < grid->rounds; round++)
		for (int i = 0; i < grid->nr_libraries; i++)
			ask(&grid->libraries[i], cell, &all[i][round]);
	for (int i = 0; i < grid->nr_libraries; i++) {
		struct result *median = &all[i][grid->rounds / 2];

		for (int round = 0; round < grid->rounds; round++)
			if (*all[i][round].error)
				all[i][0] = all[i][round];
		if (*all[i][0].error)
			median = &all[i][0];
		else
			qsort(all[i], (size_t)grid->rounds, sizeof(all[i][0]),
			      by_bandwidth);
		print_row(grid, &grid->libraries[i], cell, median);
	}
}

static void walk(const struct grid *grid)
{
	for (int op = 0; op < 2; op++)
		for (int medium = 0; medium < 2; medium++)
			for (int s = 0; s < grid->nr_sizes; s++)
				for (int t = 0; t < grid->nr_threads; t++) {
					struct cell cell = {
						.file_size = grid->file_size,
						.write = op,
						.direct = medium,
						.registered =
							!grid->unregistered,
						.memory = grid->host ?
								  MEMORY_HOST :
								  MEMORY_DEVICE,
						.size = grid->sizes[s],
						.threads = grid->threads[t],
						.seconds = grid->seconds,
					};

					if (!(op ? grid->writes :
						   grid->reads) ||
					    !(medium ? grid->direct :
						       grid->cached))
						continue;
					snprintf(cell.file, sizeof(cell.file),
						 "%s%s", grid->file,
						 op ? ".out" : "");
					run_cell(grid, &cell);
				}
}

/* Writes the pattern, which also leaves the file in the page cache. */
static void make_file(const char *path, size_t size)
{
	size_t part = 8 << 20;
	char *mem = malloc(part);
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || !mem) {
		perror(path);
		exit(1);
	}
	for (size_t off = 0; off < size; off += part) {
		pattern_fill(mem, part, off, 1);
		if (pwrite(fd, mem, part, (off_t)off) != (ssize_t)part) {
			perror(path);
			exit(1);
		}
	}
	fsync(fd);
	close(fd);
	free(mem);
}

static void parse_list(char *text, int *nr, void (*add)(void *, char *),
		       void *list)
{
	for (char *item = strtok(text, ","); item && *nr < MAX_LIST;
	     item = strtok(NULL, ",")) {
		add(list, item);
		(*nr)++;
	}
}

static void add_size(void *list, char *item)
{
	struct grid *grid = list;

	grid->sizes[grid->nr_sizes] = parse_size(item);
}

static void add_threads(void *list, char *item)
{
	struct grid *grid = list;

	grid->threads[grid->nr_threads] = (unsigned)atoi(item);
}

static void add_library(struct grid *grid, char *text)
{
	struct library *lib = &grid->libraries[grid->nr_libraries++];
	char *path = strchr(text, '=');

	lib->name = text;
	lib->path = path ? path + 1 : text;
	if (path)
		*path = '\0';
}

static bool parse(struct grid *grid, int argc, char **argv)
{
	static const struct option options[] = {
		{ "lib", 1, NULL, 'l' },
		{ "file", 1, NULL, 'f' },
		{ "file-size", 1, NULL, 'F' },
		{ "sizes", 1, NULL, 's' },
		{ "threads", 1, NULL, 't' },
		{ "ops", 1, NULL, 'o' },
		{ "media", 1, NULL, 'm' },
		{ "host", 0, NULL, 'h' },
		{ "unregistered", 0, NULL, 'u' },
		{ "rounds", 1, NULL, 'r' },
		{ "seconds", 1, NULL, 'S' },
		{ "json", 1, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'l' && grid->nr_libraries < MAX_LIST)
			add_library(grid, optarg);
		else if (c == 'f')
			grid->file = optarg;
		else if (c == 'F')
			grid->file_size = parse_size(optarg);
		else if (c == 's')
			parse_list(optarg, &grid->nr_sizes, add_size, grid);
		else if (c == 't')
			parse_list(optarg, &grid->nr_threads, add_threads,
				   grid);
		else if (c == 'o') {
			grid->reads = strstr(optarg, "read");
			grid->writes = strstr(optarg, "write");
		} else if (c == 'm') {
			grid->cached = strstr(optarg, "cached");
			grid->direct = strstr(optarg, "direct");
		} else if (c == 'h')
			grid->host = true;
		else if (c == 'u')
			grid->unregistered = true;
		else if (c == 'r')
			grid->rounds = atoi(optarg);
		else if (c == 'S')
			grid->seconds = atof(optarg);
		else if (c == 'j')
			grid->json = fopen(optarg, "w");
		else
			return false;
	}
	return grid->nr_libraries && grid->rounds > 0 &&
	       grid->rounds <= MAX_ROUNDS && optind == argc;
}

static void defaults(struct grid *grid)
{
	char sizes[] = "4K,1M,16M,256M", threads[] = "1";

	if (!grid->nr_sizes)
		parse_list(sizes, &grid->nr_sizes, add_size, grid);
	if (!grid->nr_threads)
		parse_list(threads, &grid->nr_threads, add_threads, grid);
	if (grid->host)
		setenv("OCF_BENCH_HOST", "1", 1);
}

int main(int argc, char **argv)
{
	static struct grid grid = {
		.reads = true,
		.writes = true,
		.cached = true,
		.direct = true,
		.rounds = 3,
		.seconds = 0.5,
		.file_size = 1 << 30,
		.file = "/var/tmp/ocf-bench.data",
	};
	char out[280];

	if (!parse(&grid, argc, argv)) {
		usage(stderr);
		return 2;
	}
	defaults(&grid);
	make_file(grid.file, grid.file_size);
	snprintf(out, sizeof(out), "%s.out", grid.file);
	if (grid.writes)
		make_file(out, grid.file_size);
	for (int i = 0; i < grid.nr_libraries; i++)
		start(&grid.libraries[i], &grid);
	walk(&grid);
	for (int i = 0; i < grid.nr_libraries; i++)
		close(grid.libraries[i].ask);
	while (wait(NULL) > 0)
		;
	if (grid.json)
		fclose(grid.json);
	unlink(grid.file);
	unlink(out);
	return 0;
}
