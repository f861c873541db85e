// SPDX-License-Identifier: Apache-2.0
/* args - the command line, and the help that is made from its rows. */
#include <cufile.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "gdsio/options.h"
#include "report.h"

#define EXIT_USAGE 2
#define GDSIO_VERSION "1.12" /* of the original whose options these are */

static const struct option longs[] = {
	{ "host", no_argument, NULL, OPT_HOST },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const char *long_name(int letter)
{
	for (const struct option *o = longs; o->name; o++) {
		if (o->val == letter)
			return o->name;
	}
	return "";
}

static void print_version(void)
{
	int version = 0;

	(void)cuFileGetVersion(&version);
	printf("gdsio version :%s (libcufile %d.%d)\n", GDSIO_VERSION,
	       version / 1000, version % 1000 / 10);
}

static void print_row(const struct option_row *row)
{
	char option[40];
	const char *rest = row->help;

	if (row->letter < OPT_HOST)
		snprintf(option, sizeof(option), "-%c%s%s", row->letter,
			 row->arg ? " " : "", row->arg ? row->arg : "");
	else
		snprintf(option, sizeof(option), "--%s%s%s",
			 long_name(row->letter), row->arg ? " " : "",
			 row->arg ? row->arg : "");
	while (rest) {
		const char *end = strchr(rest, '\n');

		printf("  %-16s %.*s\n", option,
		       (int)(end ? end - rest : (long)strlen(rest)), rest);
		option[0] = '\0';
		rest = end ? end + 1 : NULL;
	}
}

static void print_help(void)
{
	print_version();
	printf("Usage [using config file]: gdsio rw-sample.gdsio\n"
	       "Usage [using cmd line options]: gdsio OPTIONS\n");
	for (size_t i = 0; i < nr_option_rows; i++) {
		if (option_rows[i].letter && option_rows[i].help)
			print_row(&option_rows[i]);
	}
	printf("  %-16s %s\n  %-16s %s\n", "-h, --help", "this text",
	       "--version", "the versions");
	printf("\nxfer_type:\n"
	       "0 - Storage->GPU (GDS)\n"
	       "1 - Storage->CPU\n"
	       "2 - Storage->CPU->GPU\n"
	       "3 - Storage->CPU->GPU_ASYNC\n"
	       "4 - Storage->PAGE_CACHE->CPU->GPU\n"
	       "5 - Storage->GPU_ASYNC\n"
	       "6 - Storage->GPU_BATCH\n"
	       "7 - Storage->GPU_BATCH_STREAM\n"
	       "\n"
	       "-f or -D begins a job; they may be given many times, each "
	       "with its own\n-d -n -m -w -s -o -i -O. Reads with -V need "
	       "what writes with -V and the\nsame -k have written; with -I 2 "
	       "also the same -w -s -o -i -a -U.\n"
	       "\n"
	       "Exit status: 0 done, 1 an error or wrong data, 2 usage, "
	       "130 interrupted.\n");
}

static bool take_option(struct plan *plan, struct job **job, int letter,
			const char *text)
{
	const struct option_row *row = option_of_letter(letter);

	if (letter == 'f' || letter == 'D')
		*job = plan_add_job(plan);
	if (!row || !*job)
		return false;
	if (option_take(plan, *job, row, text))
		return true;
	if (letter == 'P')
		return false;
	if (letter >= OPT_HOST)
		return fail("--%s %s: not a name that ends in .svg or .png",
			    long_name(letter), text);
	return fail("-%c %s: not a value for it (%.*s)", letter, text,
		    (int)strcspn(row->help, "\n"), row->help);
}

/* With a job file only what does not change the run may stand beside it. */
static bool finish_args(struct plan *plan, int nr_words, char **words,
			const char *culprit)
{
	if (nr_words > 1)
		return fail("%s: one job file at a time", words[1]);
	if (nr_words && (culprit || plan->nr_jobs))
		return fail("%s: the job file says that, %s", culprit,
			    words[0]);
	if (nr_words && !plan_from_file(plan, words[0]))
		return false;
	return plan_finish(plan);
}

int plan_from_args(struct plan *plan, int argc, char **argv)
{
	static const char letters[] =
		"f:D:d:n:m:w:s:o:i:O:x:I:M:B:T:Vk:Ua:RFbpP:Jh";
	struct job *job = &plan->defaults;
	static char culprit[3] = "-?";
	bool ok = true;
	int c;

	plan_init(plan);
	while (ok && (c = getopt_long(argc, argv, letters, longs, NULL)) >= 0) {
		if (c == 'h' || c == OPT_VERSION) {
			c == 'h' ? print_help() : print_version();
			return 0;
		}
		if (c != 'J' && c < OPT_HOST)
			culprit[1] = (char)c;
		ok = c != '?' && take_option(plan, &job, c, optarg);
	}
	if (ok && finish_args(plan, argc - optind, argv + optind,
			      culprit[1] == '?' ? NULL : culprit))
		return -1;
	fprintf(stderr, "try gdsio --help\n");
	return EXIT_USAGE;
}
