// SPDX-License-Identifier: Apache-2.0
/*
 * drive - runs a fuzz target without libFuzzer: the corpus first, then inputs
 * made of it by a seeded generator, for so many seconds.
 *
 *     TARGET [-s SECONDS] [-r SEED] [FILE OR DIRECTORY]...
 *
 * Without a seed the time is one; it is printed. An input that ends the
 * process is left in the working directory, to be given as FILE.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "target.h"

#define MAX_SIZE 4096
#define MAX_SEEDS 256
#define MAX_SECONDS 180 /* of one input, under a sanitizer too */

struct bytes {
	size_t size;
	uint8_t at[MAX_SIZE];
};

static struct bytes seeds[MAX_SEEDS], now;
static size_t nr_seeds;
static uint64_t state;
static unsigned long inputs;
static char artifact[128];

/* splitmix64 */
static uint64_t next(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static size_t below(size_t n)
{
	return n ? next() % n : 0;
}

/* Only what a signal handler may do. */
static void keep_input(int signal)
{
	int fd = open(artifact, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd >= 0) {
		ssize_t n = write(fd, now.at, now.size);

		close(fd);
		if (n == (ssize_t)now.size)
			n = write(2, artifact, strlen(artifact));
		n = write(2, ": the input that did it\n", 24);
		(void)n;
	}
	raise(signal); /* the handler is reset: its own action now */
}

static void catch_ends(const char *program)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE,
				       SIGALRM };
	struct sigaction action = { .sa_handler = keep_input,
				    .sa_flags = (int)SA_RESETHAND };
	const char *slash = strrchr(program, '/');

	snprintf(artifact, sizeof(artifact), "crash-%s",
		 slash ? slash + 1 : program);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

static void run_now(void)
{
	inputs++;
	alarm(MAX_SECONDS); /* one that has no end has hung */
	(void)LLVMFuzzerTestOneInput(now.at, now.size);
}

static void take_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, now.at, MAX_SIZE);

	if (n < 0) {
		perror(path);
		exit(1);
	}
	close(fd);
	now.size = (size_t)n;
	if (nr_seeds < MAX_SEEDS)
		seeds[nr_seeds++] = now;
	run_now();
}

static void take(const char *path)
{
	struct dirent **names;
	struct stat st;
	char file[512];
	int nr;

	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		take_file(path);
		return;
	}
	nr = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			take_file(file);
		free(names[i]);
	}
	if (nr >= 0)
		free(names);
}

/* ------------------------------------------------------------- mutation */

static void random_bytes(void)
{
	now.size = below(below(4) ? 200 : MAX_SIZE);
	for (size_t i = 0; i < now.size; i++)
		now.at[i] = (uint8_t)next();
}

static void erase(void)
{
	size_t at = below(now.size), n = below(now.size - at + 1);

	memmove(now.at + at, now.at + at + n, now.size - at - n);
	now.size -= n;
}

/* A part of some other input, or of this one, put in between. */
static void insert(void)
{
	const struct bytes *from = &seeds[below(nr_seeds)];
	size_t first = below(from->size), n = below(from->size - first + 1);
	size_t at = below(now.size + 1);

	if (n > MAX_SIZE - now.size)
		n = MAX_SIZE - now.size;
	memmove(now.at + at + n, now.at + at, now.size - at);
	memcpy(now.at + at, from->at + first, n);
	now.size += n;
}

static void mutate(void)
{
	for (size_t n = 1 + below(8); n && now.size; n--) {
		size_t at = below(now.size);

		switch (below(6)) {
		case 0:
			now.at[at] = (uint8_t)next();
			break;
		case 1:
			now.at[at] ^= (uint8_t)(1u << below(8));
			break;
		case 2:
			now.at[at] += (uint8_t)(below(9) - 4);
			break;
		case 3:
			now.at[at] = now.at[below(now.size)];
			break;
		case 4:
			erase();
			break;
		default:
			insert();
		}
	}
}

static void make_one(void)
{
	if (!nr_seeds || !below(4)) {
		random_bytes();
		return;
	}
	now = seeds[below(nr_seeds)];
	mutate();
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t end;
	double seconds = 1;
	int c;

	state = (uint64_t)time(NULL);
	while ((c = getopt(argc, argv, "s:r:")) >= 0) {
		if (c == '?')
			return 2;
		if (c == 's')
			seconds = atof(optarg);
		else
			state = strtoull(optarg, NULL, 0);
	}
	printf("seed %llu\n", (unsigned long long)state);
	fflush(stdout);
	catch_ends(argv[0]);
	(void)LLVMFuzzerInitialize(&argc, &argv);
	for (int i = optind; i < argc; i++)
		take(argv[i]);
	end = clock_ns() + (uint64_t)(seconds * 1e9);
	while (clock_ns() < end) {
		make_one();
		run_now();
	}
	printf("%lu inputs\n", inputs);
	return 0;
}
