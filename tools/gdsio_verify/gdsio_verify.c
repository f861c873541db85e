// SPDX-License-Identifier: Apache-2.0
/*
 * gdsio_verify - reads a file into GPU memory, and compares what came.
 *
 * Only the public header is used, and nothing is written. Here are the command
 * line and the answer; read.c is the part to learn from.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "gdsio_verify/trial.h"
#include "report.h"
#include "values.h"

#define EXIT_USAGE 2
#define MAX_REQUESTS 65536 /* of a batch */
#define MAX_OFFSET ((off_t)1 << 30)

static const char usage_text[] =
	"usage: gdsio_verify -f FILE [-d GPU | --host] [-o OFFSET] [-s SIZE]\n"
	"                    [-n NR] [-t 0|1 | --batch] [-S] [-g ALIGNMENT]\n"
	"                    [--buffer-offset BYTES] [--devptr-offset BYTES]\n"
	"\n"
	"Reads a file into GPU memory, and compares what came with the file.\n"
	"\n"
	"  -f FILE        a regular file or block device; nothing is written\n"
	"  -d GPU         number of the GPU, default 0\n"
	"  --host         host memory (without -d it is also used where there\n"
	"                 is no GPU)\n"
	"  -o OFFSET      where to begin in the file, default 0\n"
	"  -s SIZE        how much of it, default to its end\n"
	"  -n NR          in so many requests, default 1, at most 65536\n"
	"  -t 0|1         0: in stream order; 1: one call after the other,\n"
	"                 default\n"
	"  --batch        all requests as one batch\n"
	"  -S             the buffer is not registered\n"
	"  -g ALIGNMENT   of the buffer: a multiple of it, and not of twice as\n"
	"                 much; 0, default: whole pages\n"
	"  --buffer-offset BYTES  from there to the pointer of the requests\n"
	"  --devptr-offset BYTES  the first one's offset from that\n"
	"  -m 0|1         taken, and of no effect\n"
	"  -h, --help     this text\n"
	"\n"
	"Sizes are bytes, or with K, M, G or T. Exit status: 0 the bytes are\n"
	"right, 1 they are not or could not be read, 2 usage.\n";

enum { HOST = 256, BATCH, BUFFER_OFFSET, DEVPTR_OFFSET };

static bool take_bytes(const char *option, const char *text, off_t max,
		       off_t *value)
{
	if (value_bytes(text, 0, value) && *value <= max)
		return true;
	return fail("%s %s: not a size from 0 to %lld", option, text,
		    (long long)max);
}

static bool take_number(const char *option, const char *text, long min,
			long max, long *value)
{
	if (value_long(text, min, max, value))
		return true;
	return fail("%s %s: not a number from %ld to %ld", option, text, min,
		    max);
}

static bool take(struct trial *trial, int c, const char *text)
{
	long number = 0;
	bool ok = true;

	switch (c) {
	case 'f':
		trial->file = text;
		return true;
	case 'd':
		ok = take_number("-d", text, 0, 9999, &number);
		trial->gpu = (int)number;
		return ok;
	case HOST:
		trial->host = true;
		return true;
	case 'o':
		return take_bytes("-o", text, (off_t)1 << 60, &trial->off);
	case 's':
		return take_bytes("-s", text, (off_t)1 << 40, &trial->size);
	case 'n':
		return take_number("-n", text, 1, MAX_REQUESTS, &trial->nr);
	case 't':
		ok = take_number("-t", text, 0, 1, &number);
		trial->way = number ? WAY_CALLS : WAY_STREAM;
		return ok;
	case BATCH:
		trial->way = WAY_BATCH;
		return true;
	case 'S':
		trial->registered = false;
		return true;
	case 'g':
		return take_bytes("-g", text, MAX_OFFSET, &trial->align);
	case BUFFER_OFFSET:
		return take_bytes("--buffer-offset", text, MAX_OFFSET,
				  &trial->buffer_off);
	case DEVPTR_OFFSET:
		return take_bytes("--devptr-offset", text, MAX_OFFSET,
				  &trial->devptr_off);
	case 'm':
		return take_number("-m", text, 0, 1, &number);
	default:
		return false;
	}
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct trial *trial)
{
	static const struct option longs[] = {
		{ "host", no_argument, NULL, HOST },
		{ "batch", no_argument, NULL, BATCH },
		{ "buffer-offset", required_argument, NULL, BUFFER_OFFSET },
		{ "devptr-offset", required_argument, NULL, DEVPTR_OFFSET },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool ok = true;
	int c;

	*trial = (struct trial){ .gpu = TRIAL_ANY_GPU,
				 .nr = 1,
				 .registered = true };
	while (ok && (c = getopt_long(argc, argv, "f:d:o:s:n:t:Sg:m:h", longs,
				      NULL)) >= 0) {
		if (c == 'h') {
			fputs(usage_text, stdout);
			return EXIT_SUCCESS;
		}
		ok = take(trial, c, optarg);
	}
	if (ok && trial->host && trial->gpu != TRIAL_ANY_GPU)
		ok = fail("--host and -d exclude each other");
	if (ok && trial->file && optind == argc)
		return -1;
	fputs(usage_text, stderr);
	return EXIT_USAGE;
}

/* As the original prints it, host memory being of no GPU. */
static void print_trial(const struct trial *trial)
{
	printf("gpu index :%d,file :%s, gpu buffer alignment :%lld, "
	       "gpu buffer offset :%lld, gpu devptr offset :%lld, "
	       "file offset :%lld, io_requested :%lld, io_chunk_size :%zu, "
	       "bufregister :%s, sync :%d, nr ios :%ld,\n"
	       "fsync :0,\n"
	       "Batch mode: %d\n",
	       trial->host ? -1 : trial->gpu, trial->file,
	       (long long)trial->align, (long long)trial->buffer_off,
	       (long long)trial->devptr_off, (long long)trial->off,
	       (long long)trial->size, trial->chunk,
	       trial->registered ? "true" : "false", trial->way == WAY_CALLS,
	       trial->nr, trial->way == WAY_BATCH);
	fflush(stdout);
}

static bool verify(struct trial *trial)
{
	bool ok;

	if (!trial_open(trial))
		return false;
	print_trial(trial);
	ok = trial_spoil(trial) && trial_read(trial) && trial_compare(trial);
	ok &= trial_close(trial);
	puts(ok ? "Data Verification Success" : "Data Verification Failed");
	return ok;
}

int main(int argc, char **argv)
{
	struct trial trial;
	int status = parse(argc, argv, &trial);

	if (status < 0)
		status = verify(&trial) ? EXIT_SUCCESS : EXIT_FAILURE;
	return wrote_all() ? status : EXIT_FAILURE;
}
