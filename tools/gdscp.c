// SPDX-License-Identifier: Apache-2.0
/*
 * gdscp - copies a file through GPU memory and checks the copy.
 *
 * Only the public header is used. Here are the command line and the table at
 * the end; copy.c is the part to learn from.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "copy.h"
#include "report.h"
#include "route_log.h"
#include "values.h"

#define DEFAULT_CHUNK (64ul << 20)
#define MAX_CHUNK ((off_t)1 << 40)
#define EXIT_USAGE 2

struct options {
	bool host;
	int gpu;
	size_t chunk;
	const char *src;
	const char *dst;
};

static const char usage_text[] =
	"usage: gdscp [--host] [-d GPU] [-s CHUNK] SRC DST\n"
	"\n"
	"Copies a file through GPU memory and checks the copy.\n"
	"\n"
	"  --host       go through host memory (without -d it is also used\n"
	"               where there is no GPU)\n"
	"  -d GPU       number of the GPU, default 0\n"
	"  -s CHUNK     bytes read and written at a time, with K, M or G;\n"
	"               default 64M\n"
	"  --help       this text\n"
	"\n"
	"Exit status: 0 the copy is equal, 1 it failed, 2 usage.\n";

static bool parse_gpu(const char *text, int *gpu)
{
	long value;

	if (!value_long(text, 0, 9999, &value))
		return fail("-d %s: not the number of a GPU", text);
	*gpu = (int)value;
	return true;
}

static bool parse_chunk(const char *text, size_t *chunk)
{
	off_t value;

	if (!value_bytes(text, 1, &value) || value > MAX_CHUNK)
		return fail("-s %s: not a size from 1 to 1024G", text);
	*chunk = (size_t)value;
	return true;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "host", no_argument, NULL, 'H' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool ok = true;
	int c;

	*o = (struct options){ .gpu = CHUNK_ANY_GPU, .chunk = DEFAULT_CHUNK };
	while (ok && (c = getopt_long(argc, argv, "d:s:h", longs, NULL)) >= 0) {
		if (c == 'h') {
			fputs(usage_text, stdout);
			return 0;
		}
		o->host |= c == 'H';
		ok = c == 'H' || (c == 'd' && parse_gpu(optarg, &o->gpu)) ||
		     (c == 's' && parse_chunk(optarg, &o->chunk));
	}
	if (ok && o->host && o->gpu >= 0)
		ok = fail("--host and -d exclude each other");
	if (ok && argc - optind != 2)
		ok = fail("SRC and DST are needed");
	if (!ok) {
		fprintf(stderr, "try gdscp --help\n");
		return EXIT_USAGE;
	}
	o->src = argv[optind];
	o->dst = argv[optind + 1];
	return -1;
}

static void print_row(const char *name, off_t bytes, double seconds)
{
	printf("%-10s %.2f GB/s\n", name, copy_rate(bytes, seconds));
}

static void print_table(const struct copy *copy)
{
	double seconds =
		copy->src.seconds + copy->dst.seconds + copy->sync_seconds;

	printf("%-10s %lld\n", "bytes", (long long)copy->done);
	printf("%-10s %.3f (read %.3f, write %.3f, fsync %.3f)\n", "seconds",
	       seconds, copy->src.seconds, copy->dst.seconds,
	       copy->sync_seconds);
	print_row("read", copy->done, copy->src.seconds);
	print_row("write", copy->done, copy->dst.seconds);
	print_row("overall", copy->done, seconds);
	printf("%-10s equal, %016llx, both read back with pread after fsync\n",
	       "checksum", (unsigned long long)copy->src.sum);
	if (copy->chunk.is_gpu)
		printf("%-10s GPU %d, %s\n", "memory", copy->chunk.gpu.ordinal,
		       copy->chunk.gpu.name);
	else
		printf("%-10s host\n", "memory");
}

static bool copy_and_check(struct copy *copy)
{
	bool ok;

	if (!copy_open(copy))
		return false;
	route_log_begin();
	ok = copy_run(copy) && copy_verify(copy);
	if (ok)
		print_table(copy);
	route_log_print(ok ? stdout : stderr, !ok);
	route_log_end();
	return ok;
}

int main(int argc, char **argv)
{
	struct copy copy = { .src.fd = -1, .dst.fd = -1 };
	struct options o;
	int status = parse(argc, argv, &o);
	bool ok;

	keep_streams();
	if (status >= 0)
		return wrote_all() ? status : EXIT_FAILURE;
	copy.src.name = o.src;
	copy.dst.name = o.dst;
	ok = o.host ? chunk_new_host(&copy.chunk, o.chunk) :
		      chunk_new_gpu(&copy.chunk, o.chunk, o.gpu);
	if (!ok)
		return EXIT_FAILURE;
	ok = copy_and_check(&copy);
	copy_close(&copy);
	ok &= chunk_free(&copy.chunk);
	return wrote_all() && ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
