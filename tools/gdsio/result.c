// SPDX-License-Identifier: Apache-2.0
/*
 * result - the result line, in the words and with the blanks that scripts
 * have always matched (contract 5.2).
 */
#include "gdsio/result.h"

#include <stdio.h>
#include "gdsio/xfer.h"

const char *result_op_name(const struct plan *plan, bool write)
{
	if (plan->mix != UNSET)
		return op_is_random(plan->op) ? "RANDMIXED" : "MIXED";
	if (op_is_random(plan->op))
		return write ? "RANDWRITE" : "RANDREAD";
	return write ? "WRITE" : "READ";
}

double result_rate(uint64_t bytes, double seconds)
{
	return seconds > 0 ? (double)bytes / seconds / (1 << 30) : 0;
}

static unsigned long long kib(uint64_t bytes)
{
	return (bytes + 1023) / 1024;
}

/* Enough digits for all, or large ones would have an exponent. */
static void print_io_size(const struct io_size *io)
{
	if (io->step)
		printf("IOSize: %.10g-%.10g-%.10g(KiB)", (double)io->min / 1024,
		       (double)io->max / 1024, (double)io->step / 1024);
	else
		printf("IOSize: %.10g(KiB)", (double)io->max / 1024);
}

static void print_line(const struct plan *plan, const struct job *job,
		       const struct outcome *outcome, const struct tally *tally,
		       int threads, uint64_t total)
{
	printf("IoType: %s XferType: %s Threads: %d ",
	       result_op_name(plan, outcome->write),
	       xfer_way((enum xfer)plan->xfer)->name, threads);
	if (xfer_is_batch(plan->xfer))
		printf("IoDepth: %d ", plan_depth(plan, job));
	printf("DataSetSize: %llu/%llu(KiB) ", kib(tally_bytes(tally)),
	       kib(total));
	print_io_size(&job->io);
	printf(" Throughput: %.6f GiB/sec, Avg_Latency: %.6f usecs ops: %llu "
	       "total_time %.6f secs\n",
	       result_rate(tally_bytes(tally), outcome->seconds),
	       tally->ops ? (double)tally->sum_ns / (double)tally->ops / 1e3 :
			    0.0,
	       (unsigned long long)tally->ops, outcome->seconds);
}

void result_print(const struct plan *plan, const struct outcome *outcome)
{
	print_line(plan, &plan->jobs[0], outcome, &outcome->all,
		   outcome->threads, outcome->total);
	for (int i = 0; i < plan->nr_jobs && plan->per_job; i++) {
		const struct job *job = &plan->jobs[i];

		printf("%s: ", job->name ? job->name : job->target);
		print_line(plan, job, outcome, &outcome->jobs[i],
			   plan_threads(plan, job), outcome->job_total[i]);
	}
	fflush(stdout);
}

/* Bytes of the character of UTF-8 that text begins with; 0: there is none. */
static int character(const unsigned char *text)
{
	static const unsigned least[] = { 0, 0x80, 0x800, 0x10000 };
	int more = *text < 0xc0 ? 0 : *text < 0xe0 ? 1 : *text < 0xf0 ? 2 : 3;
	unsigned code = more ? *text & (0x3fu >> more) : *text;

	if (*text >= 0xf8 || (!more && *text >= 0x80))
		return 0;
	for (int i = 1; i <= more; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < least[more] || code >> 11 == 0x1b || code > 0x10ffff)
		return 0;
	return more + 1;
}

/* As JSON; bytes that are no text, as a name may have, as U+FFFD. */
static void print_text(const char *name)
{
	const unsigned char *text = (const unsigned char *)name;
	int size;

	putchar('"');
	for (; *text; text += size ? size : 1) {
		size = character(text);
		if (*text < 0x20 || !size)
			printf("\\u%04x", size ? *text : 0xfffd);
		else if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else
			printf("%.*s", size, (const char *)text);
	}
	putchar('"');
}

static void print_tally(const struct tally *tally, double seconds)
{
	double ops = tally->ops ? (double)tally->ops : 1;

	printf("\"read_bytes\": %llu, \"written_bytes\": %llu, "
	       "\"ops\": %llu, \"gib_per_sec\": %.6f, \"iops\": %.3f, "
	       "\"latency_us\": {\"avg\": %.3f, \"min\": %.3f, "
	       "\"p50\": %.3f, \"p99\": %.3f, \"max\": %.3f}",
	       (unsigned long long)tally->read_bytes,
	       (unsigned long long)tally->written_bytes,
	       (unsigned long long)tally->ops,
	       result_rate(tally_bytes(tally), seconds),
	       seconds > 0 ? (double)tally->ops / seconds : 0,
	       (double)tally->sum_ns / ops / 1e3, (double)tally->min_ns / 1e3,
	       tally_percentile(tally, 0.5) / 1e3,
	       tally_percentile(tally, 0.99) / 1e3,
	       (double)tally->max_ns / 1e3);
}

static void print_job(const struct plan *plan, const struct outcome *outcome,
		      int nr)
{
	const struct job *job = &plan->jobs[nr];

	printf("        {\"name\": ");
	print_text(job->name ? job->name : "");
	printf(", \"target\": ");
	print_text(job->target);
	printf(", \"threads\": %d, \"gpus\": [", plan_threads(plan, job));
	for (int i = 0; i < job->nr_gpus; i++)
		printf("%s%d", i ? ", " : "", job->gpus[i]);
	printf("], \"numa_node\": %d,\n         \"io_size\": {\"min\": %zu, "
	       "\"max\": %zu, \"step\": %zu}, \"total_bytes\": %llu,\n"
	       "         ",
	       job->node, job->io.min, job->io.max, job->io.step,
	       (unsigned long long)outcome->job_total[nr]);
	print_tally(&outcome->jobs[nr], outcome->seconds);
	printf("}%s\n", nr + 1 < plan->nr_jobs ? "," : "");
}

static void print_pass(const struct plan *plan, const struct outcome *outcome)
{
	printf("    {\n      \"io_type\": \"%s\", \"xfer_type\": \"%s\", "
	       "\"memory\": \"%s\",\n      \"threads\": %d, "
	       "\"io_depth\": %d, \"verified\": %s, \"interrupted\": %s,\n"
	       "      \"seconds\": %.6f, \"total_bytes\": %llu,\n      ",
	       result_op_name(plan, outcome->write),
	       xfer_way((enum xfer)plan->xfer)->name,
	       memory_name(outcome->memory), outcome->threads, outcome->depth,
	       outcome->verified ? "true" : "false",
	       outcome->interrupted ? "true" : "false", outcome->seconds,
	       (unsigned long long)outcome->total);
	print_tally(&outcome->all, outcome->seconds);
	printf(",\n      \"jobs\": [\n");
	for (int i = 0; i < plan->nr_jobs; i++)
		print_job(plan, outcome, i);
	printf("      ]\n    }");
}

void result_print_json(const struct plan *plan, const struct outcome *outcomes,
		       int nr)
{
	printf("{\n  \"name\": ");
	print_text(plan->name ? plan->name : "");
	printf(",\n  \"seed\": %llu,\n  \"passes\": [\n",
	       (unsigned long long)plan->seed);
	for (int i = 0; i < nr; i++) {
		print_pass(plan, &outcomes[i]);
		printf("%s\n", i + 1 < nr ? "," : "");
	}
	printf("  ]\n}\n");
	fflush(stdout);
}
