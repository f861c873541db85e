// SPDX-License-Identifier: Apache-2.0
/* check_file - gdscheck -f: which way a file's bytes go, and why. */
#include "check_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "asks.h"
#include "check_json.h"
#include "check_platform.h"
#include "report.h"

#define MAX_TEXTS 64

/* Distinct sentences, each with what it is said of. */
struct text {
	const char *subject, *sentence;
	unsigned memories; /* a bit each */
};

struct texts {
	unsigned nr;
	struct text texts[MAX_TEXTS];
};

static void texts_add(struct texts *t, const char *subject,
		      const char *sentence, ocf_memory_t memory)
{
	unsigned i = 0;

	if (!sentence)
		return;
	while (i < t->nr && (strcmp(t->texts[i].subject, subject) != 0 ||
			     strcmp(t->texts[i].sentence, sentence) != 0))
		i++;
	if (i == MAX_TEXTS)
		return;
	if (i == t->nr)
		t->texts[t->nr++] = (struct text){ subject, sentence, 0 };
	t->texts[i].memories |= 1u << memory;
}

/* What is wrong, in a word: "staged, O_DIRECT" or "error 9: ...". */
static void describe(const ocf_explain_t *e, char *text, size_t size)
{
	if (e->problem)
		snprintf(text, size, "error %d", e->code);
	else if (!e->path)
		snprintf(text, size, "none (error %d)", e->code);
	else if (!e->page_cache && !e->direct_bytes)
		snprintf(text, size, "%s", e->path);
	else
		snprintf(text, size, "%s, %s", e->path,
			 !e->page_cache	 ? "O_DIRECT" :
			 e->direct_bytes ? "mostly O_DIRECT" :
					   "page cache");
}

static void print_device(const struct asks *asks)
{
	const struct place *p = &asks->place;

	printf("%-13s", "device");
	if (!p->name[0]) {
		printf("none of the block layer (%s)\n",
		       p->source[0] ? p->source : "unknown");
		return;
	}
	printf("%s (%u:%u)", p->name, p->major, p->minor);
	if (strcmp(p->disk, p->name) != 0)
		printf(" on %s", p->disk);
	if (p->bus[0])
		printf(", %s", p->bus);
	if (p->model[0])
		printf(", %s", p->model);
	if (p->driver[0])
		printf(", driver %s", p->driver);
	printf("\n");
}

static void print_facts(const struct asks *asks)
{
	const struct place *p = &asks->place;

	if (S_ISBLK(asks->st.st_mode))
		printf("%-13s%s, a block device\n", "file", asks->name);
	else if (asks->in_directory)
		printf("%-13sa new one in %s\n", "file", asks->name);
	else
		printf("%-13s%s, %lld bytes\n", "file", asks->name,
		       (long long)asks->st.st_size);
	printf("%-13s%s on %s (%s)\n", "file system",
	       p->type[0] ? p->type : "unknown",
	       p->mount[0] ? p->mount : "a mount that cannot be seen",
	       p->options);
	print_device(asks);
	if (asks->why_not_direct[0])
		printf("%-13sno: %s\n", "O_DIRECT", asks->why_not_direct);
	else if (asks->asks[OCF_READ][0].e.block == 1)
		printf("%-13sof any bytes\n", "O_DIRECT");
	else
		printf("%-13sin blocks of %u bytes\n", "O_DIRECT",
		       asks->asks[OCF_READ][0].e.block);
}

/* The answer to the same question with the file opened the other way. */
static const struct ask *twin(const struct asks *asks, int op,
			      const struct ask *ask, bool direct)
{
	for (unsigned i = 0; i < asks->nr; i++) {
		const struct ask *other = &asks->asks[op][i];

		if (other->direct == direct && other->aligned == ask->aligned &&
		    other->e.memory == ask->e.memory)
			return other;
	}
	return NULL;
}

static void print_table(const struct asks *asks, int op)
{
	char direct[64], buffered[64];

	printf("\n%-27s%-27s%s\n", op == OCF_READ ? "read into" : "write from",
	       "opened with O_DIRECT", "opened without");
	for (unsigned i = 0; i < asks->nr; i++) {
		const struct ask *ask = &asks->asks[op][i], *other;

		if (ask->direct)
			continue;
		describe(&ask->e, buffered, sizeof(buffered));
		snprintf(direct, sizeof(direct), "-");
		other = twin(asks, op, ask, true);
		if (other)
			describe(&other->e, direct, sizeof(direct));
		printf("%-8s memory, %-10s %-26s %s\n",
		       asks_memory(ask->e.memory),
		       ask->aligned ? "aligned" : "unaligned", direct,
		       buffered);
	}
}

static void print_texts(const char *heading, const struct texts *t)
{
	static const char *const kinds[] = {
		"",	   "host",	    "device",	  "host, device",
		"managed", "host, managed", "GPU memory", "all memory",
	};

	if (t->nr)
		printf("\n%s\n", heading);
	for (unsigned i = 0; i < t->nr; i++)
		printf("  %s%s%s (%s)\n", t->texts[i].subject,
		       *t->texts[i].subject ? ": " : "", t->texts[i].sentence,
		       kinds[t->texts[i].memories & 7]);
}

static void print_reasons(const struct asks *asks)
{
	struct texts why = { 0 }, change = { 0 };

	for (unsigned n = 0; n < NR_OPS * asks->nr; n++) {
		const ocf_explain_t *e = &asks->asks[n % 2][n / 2].e;

		texts_add(&why, e->op == OCF_READ ? "read" : "write",
			  e->problem, e->memory);
		texts_add(&why, "page cache", e->page_cache, e->memory);
		texts_add(&change, "", e->page_cache_remedy, e->memory);
		for (unsigned i = 0; i < e->nr_refusals; i++) {
			/* the tests' own path is nobody's hope */
			if (!strcmp(e->refusals[i].path, "null"))
				continue;
			texts_add(&why, e->refusals[i].path,
				  e->refusals[i].reason, e->memory);
			texts_add(&change, "", e->refusals[i].remedy,
				  e->memory);
		}
	}
	print_texts("why not another way:", &why);
	print_texts("what would change it:", &change);
}

/*
 * What is asked about above is memory that is not registered. Whether it would
 * help to register it depends on the machine, which nothing but a disk needs.
 */
static void print_peers(const struct asks *asks)
{
	if (!asks->place.name[0])
		return;
	printf("\nwhether the disk can reach registered GPU memory:\n");
	if (!asks->peers.nr_gpus)
		printf("  there is no GPU\n");
	else
		peers_print(&asks->peers, "  ");
}

/* Every request that may be made has a path. */
static bool all_have_paths(const struct asks *asks)
{
	for (unsigned n = 0; n < NR_OPS * asks->nr; n++) {
		const struct ask *ask = &asks->asks[n % 2][n / 2];

		if (ask->e.op == OCF_WRITE && !asks->writable)
			continue;
		if (!ask->e.path)
			return false;
	}
	return true;
}

int check_file(const char *name, bool json)
{
	static struct asks asks;
	char why[256];

	if (!asks_make(&asks, name, why, sizeof(why))) {
		if (json)
			json_file_error(name, why);
		else
			fail("%s: %s", name, why);
		return asks.refused ? GDSCHECK_NO_PATH : GDSCHECK_CANNOT;
	}
	if (asks.place.name[0])
		peers_find(&asks.peers, platform_cuda_version(), false);
	if (json) {
		if (!json_file(&asks))
			return GDSCHECK_CANNOT;
	} else {
		place_make_plain(&asks.place);
		print_facts(&asks);
		print_table(&asks, OCF_READ);
		print_table(&asks, OCF_WRITE);
		print_reasons(&asks);
		print_peers(&asks);
	}
	return all_have_paths(&asks) ? GDSCHECK_OK : GDSCHECK_NO_PATH;
}
