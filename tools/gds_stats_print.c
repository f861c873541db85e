// SPDX-License-Identifier: Apache-2.0
/*
 * gds_stats_print - all numbers by the names that the library gives them,
 * as JSON and as OpenMetrics. A number that this tool has never heard of is
 * printed too.
 */
#include "gds_stats_print.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

/* Names are the library's, but the file is a stranger's. */
static void put_name(const char *name, bool metric)
{
	for (; *name; name++) {
		bool plain = (*name >= 'a' && *name <= 'z') ||
			     (*name >= '0' && *name <= '9') || *name == '_';

		putchar(plain || (*name == '.' && !metric) ? *name : '_');
	}
}

void print_uuid(const struct ocf_stats_gpu *gpu)
{
	const unsigned char *byte = (const unsigned char *)gpu->uuid;

	for (size_t i = 0; i < sizeof(gpu->uuid); i++)
		printf("%02x", byte[i]);
}

/* ----------------------------------------------------------------- JSON */

static void json_values(const struct number *n)
{
	if (n->count == 1) {
		printf("%llu", (ull)n->values[0]);
		return;
	}
	putchar('[');
	for (unsigned i = 0; i < n->count; i++)
		printf("%s%llu", i ? "," : "", (ull)n->values[i]);
	putchar(']');
}

static void json_numbers(const struct snapshot *s)
{
	const char *comma = "";

	for (unsigned i = 0; i < s->nr; i++) {
		const struct number *n = &s->numbers[i];

		if (number_is_of_gpus(n))
			continue;
		printf("%s\"", comma);
		put_name(n->name, false);
		printf("\":");
		json_values(n);
		comma = ",";
	}
}

static void json_pools(const struct ocf_stats_gpu *gpu)
{
	const char *comma = "";

	for (int i = 0; i < OCF_STATS_POOLS; i++) {
		if (!gpu->pool[i].slot_bytes)
			continue;
		printf("%s{\"slot_bytes\":%llu,\"slots\":%llu,\"used\":%llu}",
		       comma, (ull)gpu->pool[i].slot_bytes,
		       (ull)gpu->pool[i].slots, (ull)gpu->pool[i].used);
		comma = ",";
	}
}

static void json_gpu(const struct snapshot *s, unsigned g)
{
	printf("{\"gpu\":%u,\"uuid\":\"", g);
	print_uuid(&s->gpu[g]);
	printf("\",\"registered_bytes\":%llu", (ull)s->gpu[g].registered_bytes);
	for (unsigned i = 0; i < s->nr; i++) {
		const struct number *n = &s->numbers[i];

		if (!number_is_of_gpus(n))
			continue;
		printf(",\"");
		put_name(n->name + strlen("gpu."), false);
		printf("\":%llu", (ull)n->values[g]);
	}
	printf(",\"pools\":[");
	json_pools(&s->gpu[g]);
	printf("]}");
}

void print_json(const struct snapshot *s, long pid)
{
	const char *comma = "";

	printf("{\"pid\":%ld,\"level\":%u,\"counting\":%s,\"seconds\":%.6f,"
	       "\"counts\":{",
	       pid, s->level, s->counting ? "true" : "false",
	       (double)s->period_ns / 1e9);
	json_numbers(s);
	printf("},\"gpus\":[");
	for (unsigned g = 0; s->level >= 3 && g < OCF_STATS_MAX_GPUS; g++) {
		if (!s->gpu[g].known)
			continue;
		printf("%s", comma);
		json_gpu(s, g);
		comma = ",";
	}
	printf("]}\n");
}

/* ---------------------------------------------------------- OpenMetrics */

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), tail = strlen(end);

	return len >= tail && !strcmp(name + len - tail, end);
}

/* The name without its unit, then the unit as the format wants it. */
static void put_metric(const char *name)
{
	char stem[sizeof(((struct number *)0)->name)];
	bool is_time = ends_in(name, ".ns");

	snprintf(stem, sizeof(stem), "%s", name);
	if (is_time)
		stem[strlen(stem) - strlen(".ns")] = '\0';
	printf("opencufile_");
	put_name(stem, true);
	if (is_time)
		printf("_seconds");
}

static void put_value(const struct number *n, unsigned nth)
{
	if (ends_in(n->name, ".ns"))
		printf("%.9f\n", (double)n->values[nth] / 1e9);
	else
		printf("%llu\n", (ull)n->values[nth]);
}

static void type_of(const struct number *n, const char *type)
{
	printf("# TYPE ");
	put_metric(n->name);
	printf(" %s\n", type);
	if (ends_in(n->name, ".ns") || ends_in(n->name, ".bytes")) {
		printf("# UNIT ");
		put_metric(n->name);
		printf(" %s\n", ends_in(n->name, ".ns") ? "seconds" : "bytes");
	}
}

static void metric_counter(const struct number *n, long pid)
{
	type_of(n, "counter");
	put_metric(n->name);
	printf("_total{pid=\"%ld\"} ", pid);
	put_value(n, 0);
}

/*
 * Bin 0 ends below 4 KiB, each further one reaches twice as far. What the sizes
 * add up to is not known, failed requests being among them, and the format has
 * a _count beside a _sum only.
 */
static void metric_histogram(const struct number *n, long pid)
{
	ull sum = 0;

	type_of(n, "histogram");
	for (unsigned i = 0; i < n->count; i++) {
		bool last = i + 1 == n->count;

		sum += n->values[i];
		put_metric(n->name);
		printf("_bucket{pid=\"%ld\",le=\"", pid);
		if (last || i > 50)
			printf("+Inf");
		else
			printf("%llu.0", (4096ull << i) - 1);
		printf("\"} %llu\n", sum);
	}
}

/* Leaves the closing brace to the caller, who may have more labels. */
static void gpu_labels(const struct snapshot *s, unsigned g, long pid)
{
	printf("{pid=\"%ld\",gpu=\"%u\",uuid=\"", pid, g);
	print_uuid(&s->gpu[g]);
	putchar('"');
}

static void metric_gpus(const struct snapshot *s, const struct number *n,
			long pid)
{
	type_of(n, "counter");
	for (unsigned g = 0; g < n->count; g++) {
		if (!s->gpu[g].known)
			continue;
		put_metric(n->name);
		printf("_total");
		gpu_labels(s, g, pid);
		printf("} ");
		put_value(n, g);
	}
}

static void metric_registered(const struct snapshot *s, long pid)
{
	static const char name[] = "opencufile_gpu_registered_bytes";

	printf("# TYPE %s gauge\n# UNIT %s bytes\n", name, name);
	for (unsigned g = 0; g < OCF_STATS_MAX_GPUS; g++) {
		if (!s->gpu[g].known)
			continue;
		printf("%s", name);
		gpu_labels(s, g, pid);
		printf("} %llu\n", (ull)s->gpu[g].registered_bytes);
	}
}

/* The slots of each size that a GPU has, or those in use. */
static void metric_pools(const struct snapshot *s, long pid, bool used)
{
	const char *name =
		used ? "opencufile_gpu_pool_used" : "opencufile_gpu_pool_slots";

	printf("# TYPE %s gauge\n", name);
	for (unsigned g = 0; g < OCF_STATS_MAX_GPUS; g++) {
		for (int i = 0; i < OCF_STATS_POOLS; i++) {
			const struct ocf_stats_pool *pool = &s->gpu[g].pool[i];

			if (!s->gpu[g].known || !pool->slot_bytes)
				continue;
			printf("%s", name);
			gpu_labels(s, g, pid);
			printf(",slot_bytes=\"%llu\"} %llu\n",
			       (ull)pool->slot_bytes,
			       (ull)(used ? pool->used : pool->slots));
		}
	}
}

void print_openmetrics(const struct snapshot *s, long pid)
{
	printf("# TYPE opencufile_stats_level gauge\n"
	       "opencufile_stats_level{pid=\"%ld\"} %u\n",
	       pid, s->level);
	for (unsigned i = 0; i < s->nr; i++) {
		const struct number *n = &s->numbers[i];

		if (number_is_of_gpus(n) && s->level >= 3)
			metric_gpus(s, n, pid);
		else if (n->count == 1)
			metric_counter(n, pid);
		else if (!number_is_of_gpus(n) && s->level >= 2)
			metric_histogram(n, pid);
	}
	if (s->level >= 3) {
		metric_registered(s, pid);
		metric_pools(s, pid, false);
		metric_pools(s, pid, true);
	}
	printf("# EOF\n");
}
