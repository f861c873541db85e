// SPDX-License-Identifier: Apache-2.0
/* options - see options.h. Every list has a default. */
#include "options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

const char *const op_names[] = { "read", "write", NULL };
const char *const medium_names[] = { "cached", "uncached", "direct",
				     "tmpfs",  "scan",	   NULL };
const char *const memory_names[] = { "device", "host", "managed", "pinned",
				     NULL };
const char *const align_names[] = { "aligned", "offset", "size", "buffer",
				    NULL };
const char *const mode_names[] = { "sync", "batch", "stream", NULL };
static const char *const yes_no[] = { "yes", "no", NULL };

static void usage(FILE *to)
{
	fputs("usage: ocf-bench --lib NAME=PATH [--lib ...]\n"
	      "  --lib byhand      the loop by hand; --lib limit: one stage\n"
	      "                    of a request alone, which none can pass\n"
	      "  --sizes LIST      4K,1M,16M,64M\n"
	      "  --threads LIST    1\n"
	      "  --gpus LIST       1: threads take so many GPUs in turn\n"
	      "  --ops LIST        read,write\n"
	      "  --media LIST      cached,direct (also uncached; scan: uncached,\n"
	      "                    from front to end; tmpfs)\n"
	      "  --memory LIST     device, host where there is no GPU (also\n"
	      "                    managed, pinned)\n"
	      "  --align LIST      aligned (also offset, size, buffer: what\n"
	      "                    is not aligned)\n"
	      "  --register LIST   yes (also no)\n"
	      "  --batch LIST      entries: batches instead of single requests\n"
	      "  --stream LIST     requests on a stream before it is waited for\n"
	      "  --streams LIST    1, streams of each thread\n"
	      "  --fresh           the first read of a new process, in steps\n"
	      "  --rest            what a process uses that does nothing\n"
	      "  --statistics      what statistics of level 3 cost reads\n"
	      "  --host            leave the GPU alone: host memory only\n"
	      "  --rounds N        3\n"
	      "  --seconds S       0.2, of each measurement\n"
	      "  --patience S      10, until a library counts as hung\n"
	      "  --file PATH       /var/tmp/ocf-bench.data, made and removed;\n"
	      "                    what others have made is left alone\n"
	      "  --file-size N     1G, or the largest size\n"
	      "  --tmpfs DIR       /dev/shm\n"
	      "  --keep            leave the files, and use those there are\n"
	      "  --json PATH       a JSON object a line\n"
	      "  --help            this\n",
	      to);
}

static bool parse_size(const char *text, size_t *size)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	*size = strtoul(text, &end, 10);
	if (end == text || *text == '-')
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		*size <<= 10 * (unit - units + 1);
		end++;
	}
	return !*end && *size > 0;
}

static bool parse_name(const char *text, const char *const *names, size_t *at)
{
	for (*at = 0; names[*at]; ++*at)
		if (strcmp(names[*at], text) == 0)
			return true;
	return false;
}

/* names: NULL where the items are numbers. */
static bool parse_list(struct list *list, const char *const *names, char *text)
{
	list->nr = 0;
	for (char *item = strtok(text, ","); item; item = strtok(NULL, ",")) {
		size_t *value = &list->value[list->nr];

		if (list->nr == MAX_LIST ||
		    !(names ? parse_name(item, names, value) :
			      parse_size(item, value))) {
			fprintf(stderr, "ocf-bench: %s?\n", item);
			return false;
		}
		list->nr++;
	}
	return list->nr > 0;
}

bool list_has(const struct list *list, size_t value)
{
	for (int i = 0; i < list->nr; i++)
		if (list->value[i] == value)
			return true;
	return false;
}

static bool add_library(struct options *o, char *text)
{
	char *path = strchr(text, '=');

	if (o->nr_libraries == MAX_LIST)
		return false;
	if (path)
		*path++ = '\0';
	o->libraries[o->nr_libraries].name = text;
	o->libraries[o->nr_libraries++].path = path ? path : text;
	return true;
}

enum { LIB = 1, FILE_SIZE, FILE_PATH, TMPFS, ROUNDS, SECONDS, PATIENCE, JSON };
enum { HOST = 20, FRESH, REST, COUNTING, KEEP, HELP };
enum { LISTS = 40 };

static const struct option words[] = {
	{ "lib", 1, NULL, LIB },
	{ "file", 1, NULL, FILE_PATH },
	{ "file-size", 1, NULL, FILE_SIZE },
	{ "tmpfs", 1, NULL, TMPFS },
	{ "rounds", 1, NULL, ROUNDS },
	{ "seconds", 1, NULL, SECONDS },
	{ "patience", 1, NULL, PATIENCE },
	{ "json", 1, NULL, JSON },
	{ "help", 0, NULL, HELP },
	{ "host", 0, NULL, HOST },
	{ "fresh", 0, NULL, FRESH },
	{ "rest", 0, NULL, REST },
	{ "statistics", 0, NULL, COUNTING },
	{ "keep", 0, NULL, KEEP },
	/* From here on in the order of rows in take_list(). */
	{ "sizes", 1, NULL, LISTS },
	{ "threads", 1, NULL, LISTS + 1 },
	{ "batch", 1, NULL, LISTS + 2 },
	{ "stream", 1, NULL, LISTS + 3 },
	{ "streams", 1, NULL, LISTS + 4 },
	{ "ops", 1, NULL, LISTS + 5 },
	{ "media", 1, NULL, LISTS + 6 },
	{ "memory", 1, NULL, LISTS + 7 },
	{ "align", 1, NULL, LISTS + 8 },
	{ "register", 1, NULL, LISTS + 9 },
	{ "gpus", 1, NULL, LISTS + 10 },
	{ NULL, 0, NULL, 0 },
};

static bool take_list(struct options *o, int nr, char *text)
{
	const struct {
		struct list *list;
		const char *const *names;
	} rows[] = {
		{ &o->sizes, NULL },	     { &o->threads, NULL },
		{ &o->batch, NULL },	     { &o->stream, NULL },
		{ &o->streams, NULL },	     { &o->ops, op_names },
		{ &o->media, medium_names }, { &o->memories, memory_names },
		{ &o->aligns, align_names }, { &o->registered, yes_no },
		{ &o->gpus, NULL },
	};

	return parse_list(rows[nr].list, rows[nr].names, text);
}

static bool take_value(struct options *o, int word, char *text)
{
	switch (word) {
	case LIB:
		return add_library(o, text);
	case FILE_SIZE:
		return parse_size(text, &o->file_size);
	case FILE_PATH:
		o->file = text;
		return true;
	case TMPFS:
		o->tmpfs = text;
		return true;
	case ROUNDS:
		o->rounds = atoi(text);
		return o->rounds > 0 && o->rounds <= MAX_ROUNDS;
	case SECONDS:
		o->seconds = atof(text);
		return o->seconds > 0;
	case PATIENCE:
		o->patience = atof(text);
		return o->patience > 0;
	default:
		o->json = fopen(text, "we");
		if (!o->json)
			perror(text);
		return o->json != NULL;
	}
}

static bool take(struct options *o, int word, char *text)
{
	if (word >= LISTS)
		return take_list(o, word - LISTS, text);
	if (word < HOST)
		return take_value(o, word, text);
	o->host |= word == HOST;
	o->fresh |= word == FRESH;
	o->rest |= word == REST;
	o->counting |= word == COUNTING;
	o->keep |= word == KEEP;
	return true;
}

static void defaults(struct options *o)
{
	*o = (struct options){
		.sizes = { 4, { 4 << 10, 1 << 20, 16 << 20, 64 << 20 } },
		.threads = { 1, { 1 } },
		.gpus = { 1, { 1 } },
		.streams = { 1, { 1 } },
		.ops = { 2, { 0, 1 } },
		.media = { 2, { MEDIUM_CACHED, MEDIUM_DIRECT } },
		.aligns = { 1, { ALIGN_ALL } },
		.registered = { 1, { 0 } },
		.rounds = 3,
		.seconds = 0.2,
		.patience = 10,
		.file_size = 1 << 30,
		.file = "/var/tmp/ocf-bench.data",
		.tmpfs = "/dev/shm",
	};
}

/* An unaligned size is SHORT bytes less; of a smaller one nothing is left. */
static bool is_large_enough(const struct options *o, size_t size)
{
	if (size > SHORT || !list_has(&o->aligns, ALIGN_SIZE))
		return true;
	fprintf(stderr, "ocf-bench: --align size: %zu is no more than %d\n",
		size, SHORT);
	return false;
}

/* A cell has the names that are made of it; cut off, they are another file's.
 */
static bool is_short_enough(const char *path)
{
	const size_t most = sizeof(((struct cell *)0)->file) -
			    sizeof("/ocf-bench.data.out");

	if (strlen(path) <= most)
		return true;
	fprintf(stderr, "ocf-bench: %s: longer than %zu bytes\n", path, most);
	return false;
}

bool options_parse(struct options *o, int argc, char **argv)
{
	int word;

	defaults(o);
	while ((word = getopt_long(argc, argv, "", words, NULL)) != -1) {
		if (word == HELP) {
			usage(stdout);
			exit(0);
		}
		if (word == '?' || !take(o, word, optarg)) {
			usage(stderr);
			return false;
		}
	}
	if (!o->nr_libraries || optind != argc) {
		usage(stderr);
		return false;
	}
	if (!is_short_enough(o->file) || !is_short_enough(o->tmpfs))
		return false;
	if (o->host)
		o->memories = (struct list){ 1, { MEMORY_HOST } };
	for (int i = 0; i < o->sizes.nr; i++) {
		if (o->sizes.value[i] > o->file_size)
			o->file_size = o->sizes.value[i];
		if (!is_large_enough(o, o->sizes.value[i]))
			return false;
	}
	return true;
}
