// SPDX-License-Identifier: Apache-2.0
/*
 * gds_stats_text - the sections of the original, version 8 (contract 5.3).
 *
 * What the library does not have stands as 0 where the section has other
 * numbers too; a section of nothing but that is left out.
 */
#include <stdio.h>
#include <string.h>
#include "gds_stats_print.h"

#define MIB (1 << 20)
#define GIB (1 << 30)
#define NR_LINES 16 /* of the histogram; the last holds all that is larger */

typedef unsigned long long ull;

struct text {
	const struct snapshot *s, *before;
};

static ull now(const struct text *t, const char *name, unsigned nth)
{
	return snapshot_get(t->s, name, nth);
}

/* A reset in between begins at 0 again. */
static double since(const struct text *t, const char *name, unsigned nth)
{
	ull n = now(t, name, nth);
	ull old = t->before ? snapshot_get(t->before, name, nth) : 0;

	return (double)(n >= old ? n - old : n);
}

static double seconds(const struct text *t)
{
	uint64_t ns = t->s->period_ns;

	if (t->before)
		ns = t->s->now_ns - t->before->now_ns;
	return (double)ns / 1e9;
}

static double gib_per_second(const struct text *t, const char *name,
			     unsigned nth)
{
	double s = seconds(t);

	return s > 0 ? since(t, name, nth) / GIB / s : 0;
}

static double quotient(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* A batch's entries that have ended, of both kinds. */
#define ENTRIES NULL

static ull part_of(const struct text *t, const char *stem, const char *part)
{
	char name[64];

	if (stem == ENTRIES)
		return part_of(t, "batch_read", part) +
		       part_of(t, "batch_write", part);
	snprintf(name, sizeof(name), "%s.%s", stem, part);
	return now(t, name, 0);
}

/*
 * Of what went well, what went through host memory: an alias and nvidia-fs do
 * not. Counts are read one after the other, and must not fall below nothing.
 */
static ull posix(const struct text *t, const char *stem, unsigned nth)
{
	char ok[64], alias[64], nvfs[64];
	ull all, direct;

	snprintf(ok, sizeof(ok), "%s.ok", stem);
	snprintf(alias, sizeof(alias), "%s.alias", stem);
	snprintf(nvfs, sizeof(nvfs), "%s.nvfs", stem);
	all = now(t, ok, nth);
	direct = now(t, alias, nth) + now(t, nvfs, nth);
	return all > direct ? all - direct : 0;
}

static void print_calls(const struct text *t)
{
	static const char *const calls[][2] = {
		{ "Read", "read" },
		{ "Write", "write" },
		{ "HandleRegister", "handle_register" },
		{ "HandleDeregister", "handle_deregister" },
		{ "BufRegister", "buffer_register" },
		{ "BufDeregister", "buffer_deregister" },
		{ "BatchSubmit", "batch_submit" },
		{ "BatchComplete", ENTRIES },
		{ "BatchSetup", "batch_setup" },
		{ "BatchCancel", "batch_cancel" },
		{ "BatchDestroy", "batch_destroy" },
		{ "BatchEnqueued", "batch_enqueued" },
		{ "PosixBatchEnqueued", "batch_enqueued" },
		{ "BatchProcessed", ENTRIES },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		printf("%s: ok = %llu err = %llu\n", calls[i][0],
		       part_of(t, calls[i][1], "ok"),
		       part_of(t, calls[i][1], "err"));
	printf("PosixBatchProcessed: ok = %llu err = %llu\n",
	       posix(t, "batch_read", 0) + posix(t, "batch_write", 0),
	       part_of(t, ENTRIES, "err"));
}

static void print_flow(const struct text *t, const char *title,
		       const char *bytes, const char *ns, const char *ok)
{
	printf("Total %s Size (MiB): %llu\n", title, now(t, bytes, 0) / MIB);
	printf("%s BandWidth (GiB/s): %g\n", title,
	       gib_per_second(t, bytes, 0));
	printf("Avg %s Latency (us): %.0f\n", title,
	       quotient(since(t, ns, 0), since(t, ok, 0)) / 1000);
}

static void print_batches(const struct text *t)
{
	printf("Total Batch Read Size (MiB): %llu\n",
	       now(t, "batch_read.bytes", 0) / MIB);
	printf("Total Batch Write Size (MiB): %llu\n",
	       now(t, "batch_write.bytes", 0) / MIB);
	printf("Batch Read BandWidth (GiB/s): %g\n",
	       gib_per_second(t, "batch_read.bytes", 0));
	printf("Batch Write BandWidth (GiB/s): %g\n",
	       gib_per_second(t, "batch_write.bytes", 0));
	printf("Avg Batch Submit Latency (us): %.0f\n",
	       quotient(since(t, "batch_submit.ns", 0),
			since(t, "batch_submit.ok", 0)) /
		       1000);
	printf("Avg Batch Completion Latency (us): %.0f\n",
	       quotient(since(t, "batch_read.ns", 0) +
				since(t, "batch_write.ns", 0),
			since(t, "batch_read.ok", 0) +
				since(t, "batch_write.ok", 0)) /
		       1000);
}

static void print_global(const struct text *t)
{
	printf("GLOBAL STATS:\n");
	print_calls(t);
	print_flow(t, "Read", "read.bytes", "read.ns", "read.ok");
	print_flow(t, "Write", "write.bytes", "write.ns", "write.ok");
	print_batches(t);
}

static void print_line(const struct text *t, unsigned first, unsigned end)
{
	ull reads = 0, writes = 0;

	for (unsigned i = first; i < end; i++) {
		reads += now(t, "read.sizes", i);
		writes += now(t, "write.sizes", i);
	}
	if (end - first > 1)
		printf("%u-...(KiB): %llu %llu\n", 2u << first, reads, writes);
	else
		printf("%u-%u(KiB): %llu %llu\n", first ? 2u << first : 0,
		       2u << end, reads, writes);
}

static void print_sizes(const struct text *t)
{
	printf("READ-WRITE SIZE HISTOGRAM :\n");
	for (unsigned i = 0; i < NR_LINES - 1; i++)
		print_line(t, i, i + 1);
	print_line(t, NR_LINES - 1, 32);
}

static ull busy_percent(const struct text *t, const char *name, unsigned gpu)
{
	return (ull)quotient(since(t, name, gpu) / 1e7, seconds(t));
}

static void print_gpu(const struct text *t, unsigned g)
{
	ull rd = now(t, "gpu.read.ok", g), rd_err = now(t, "gpu.read.err", g);
	ull wr = now(t, "gpu.write.ok", g), wr_err = now(t, "gpu.write.err", g);
	ull reg = now(t, "gpu.register.ok", g);
	ull reg_err = now(t, "gpu.register.err", g);

	printf("GPU %u(UUID: ", g);
	print_uuid(&t->s->gpu[g]);
	printf(") Read: bw=%g util(%%)=%llu n=%llu posix=%llu unalign=%llu "
	       "dr=0 r_sparse=0 r_inline=0 err=%llu MiB=%llu ",
	       gib_per_second(t, "gpu.read.bytes", g),
	       busy_percent(t, "gpu.read.ns", g), rd + rd_err,
	       posix(t, "gpu.read", g), now(t, "gpu.read.unaligned", g), rd_err,
	       now(t, "gpu.read.bytes", g) / MIB);
	printf("Write: bw=%g util(%%)=%llu n=%llu posix=%llu unalign=%llu "
	       "dr=0 err=%llu MiB=%llu ",
	       gib_per_second(t, "gpu.write.bytes", g),
	       busy_percent(t, "gpu.write.ns", g), wr + wr_err,
	       posix(t, "gpu.write", g), now(t, "gpu.write.unaligned", g),
	       wr_err, now(t, "gpu.write.bytes", g) / MIB);
	printf("BufRegister: n=%llu err=%llu free=%llu MiB=%llu\n",
	       reg + reg_err, reg_err, now(t, "gpu.deregister.ok", g),
	       (ull)t->s->gpu[g].registered_bytes / MIB);
}

static void print_pools(const struct ocf_stats_gpu *gpu, unsigned g)
{
	printf("GPU %u", g);
	for (int i = 0; i < OCF_STATS_POOLS; i++)
		if (gpu->pool[i].slot_bytes)
			printf(" %llu(KiB) :%llu/%llu",
			       (ull)gpu->pool[i].slot_bytes / 1024,
			       (ull)gpu->pool[i].used, (ull)gpu->pool[i].slots);
	printf("\n");
}

static void print_gpus(const struct text *t)
{
	printf("PER_GPU STATS:\n");
	for (unsigned g = 0; g < OCF_STATS_MAX_GPUS; g++)
		if (t->s->gpu[g].known)
			print_gpu(t, g);
	printf("PER_GPU POSIX POOL BUFFER STATS:\n");
	for (unsigned g = 0; g < OCF_STATS_MAX_GPUS; g++)
		if (t->s->gpu[g].known)
			print_pools(&t->s->gpu[g], g);
}

void print_text(const struct snapshot *s, const struct snapshot *before,
		unsigned level)
{
	struct text t = { s, before };

	printf("cuFile STATS VERSION : 8\n");
	print_global(&t);
	if (level >= 2)
		print_sizes(&t);
	if (level >= 3)
		print_gpus(&t);
}
