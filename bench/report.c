// SPDX-License-Identifier: Apache-2.0
/* report - see report.h. Rows are flushed: a run may be cut short. */
#include "report.h"
#include "options.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

const char *report_size(size_t size)
{
	static char text[32];
	int shift = size >= 1 << 30 ? 30 : size >= 1 << 20 ? 20 : 10;

	snprintf(text, sizeof(text), "%zu%c", size >> shift,
		 shift == 30 ? 'G' :
		 shift == 20 ? 'M' :
			       'K');
	return text;
}

/* Quotes, backslashes and controls become spaces: they are words of errors. */
static void put_text(FILE *json, const char *name, const char *text)
{
	fprintf(json, "\"%s\":\"", name);
	for (; *text; text++)
		fputc(*text == '"' || *text == '\\' ||
				      (unsigned char)*text < ' ' ?
			      ' ' :
			      *text,
		      json);
	fputs("\",", json);
}

void report_begin(FILE *json, const char *kind, const char *library,
		  const char *error)
{
	fputc('{', json);
	put_text(json, "kind", kind);
	put_text(json, "library", library);
	put_text(json, "error", error);
}

void report_machine(FILE *json)
{
	struct utsname name;
	long pages = sysconf(_SC_PHYS_PAGES);

	if (!json || uname(&name))
		return;
	fputc('{', json);
	put_text(json, "kind", "machine");
	put_text(json, "kernel", name.release);
	fprintf(json, "\"processors\":%ld,\"memory_gib\":%.0f}\n",
		sysconf(_SC_NPROCESSORS_ONLN),
		(double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 30));
}

void report_library(FILE *json, const struct library *lib)
{
	const struct hello *h = &lib->hello;

	if (*h->error)
		printf("%-8s %s\n", lib->name, h->error);
	else
		printf("%-8s driver open %.3f ms, version %d\n", lib->name,
		       h->open_ms, h->version);
	fflush(stdout);
	if (!json)
		return;
	report_begin(json, "library", lib->name, h->error);
	put_text(json, "gpu", h->gpu);
	fprintf(json, "\"open_ms\":%.3f,\"version\":%d,\"cuda\":%d}\n",
		h->open_ms, h->version, h->cuda);
	fflush(json);
}

static const char *shape_text(const struct cell *c)
{
	static char text[64];

	if (c->mode == MODE_SYNC)
		snprintf(text, sizeof(text), "x%u", c->threads);
	else if (c->mode == MODE_BATCH)
		snprintf(text, sizeof(text), "x%u batch %u", c->threads,
			 c->depth);
	else
		snprintf(text, sizeof(text), "x%u stream %ux%u", c->threads,
			 c->streams, c->depth);
	return text;
}

static void print_cell(const char *library, const struct cell *c,
		       const struct result *r)
{
	printf("%-8s %-5s %-8s %5s %-12s %-7s %-5s", library,
	       op_names[c->write], medium_names[c->medium],
	       report_size(c->size), shape_text(c), memory_names[c->memory],
	       c->registered ? "reg" : "unreg");
	if (c->align != ALIGN_ALL)
		printf(" odd %s", align_names[c->align]);
	if (c->gpus > 1)
		printf(" on %u GPUs", c->gpus);
	if (*r->error)
		printf("  %s\n", r->error);
	else
		printf(" %8.3f GB/s %10.0f op/s  p50 %9.1f us  p99 %9.1f us  "
		       "cpu %6.3f s/GB  steal %.2f s%s\n",
		       r->bytes_per_s * 1e-9, r->ops_per_s, r->p50_us,
		       r->p99_us, r->cpu_s_per_gb, r->steal_s,
		       r->stale ? "  (wrote stale bytes)" : "");
	fflush(stdout);
}

void report_cell(FILE *json, const char *library, const struct cell *c,
		 const struct result *r)
{
	print_cell(library, c, r);
	if (!json)
		return;
	report_begin(json, "cell", library, r->error);
	fprintf(json,
		"\"mode\":\"%s\",\"op\":\"%s\",\"medium\":\"%s\","
		"\"memory\":\"%s\",\"registered\":%s,\"align\":\"%s\","
		"\"size\":%zu,\"file_size\":%zu,\"threads\":%u,"
		"\"gpus\":%u,\"depth\":%u,\"streams\":%u,",
		mode_names[c->mode], op_names[c->write],
		medium_names[c->medium], memory_names[c->memory],
		c->registered ? "true" : "false", align_names[c->align],
		c->size, c->file_size, c->threads, c->gpus, c->depth,
		c->streams);
	fprintf(json,
		"\"stale\":%s,\"gb_per_s\":%.6f,\"ops_per_s\":%.1f,"
		"\"p50_us\":%.2f,\"p99_us\":%.2f,\"cpu_s_per_gb\":%.4f,"
		"\"steal_s\":%.2f}\n",
		r->stale ? "true" : "false", r->bytes_per_s * 1e-9,
		r->ops_per_s, r->p50_us, r->p99_us, r->cpu_s_per_gb,
		r->steal_s);
	fflush(json);
}
