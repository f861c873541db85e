// SPDX-License-Identifier: Apache-2.0
/*
 * options - one row for each option: letter, key in a job file, what it says
 * in the help, and how its text is taken.
 */
#ifndef GDSIO_OPTIONS_H
#define GDSIO_OPTIONS_H

#include "gdsio/plan.h"

/* Letters of options that have only a long name. */
enum { OPT_HOST = 256, OPT_JSON, OPT_PLOT, OPT_VERSION };

struct option_row {
	int letter;	  /* 0: only in job files */
	const char *key;  /* in a job file; NULL: not there */
	const char *arg;  /* in the help; NULL: a switch */
	const char *help; /* NULL: another name of a row above */
	bool (*take)(struct plan *plan, struct job *job, const char *text);
	size_t at; /* offset of the switch in the plan, if take is NULL */
};

extern const struct option_row option_rows[];
extern const size_t nr_option_rows;

const struct option_row *option_of_letter(int letter);

/* False: the text is no value for this option; nothing is reported. */
bool option_take(struct plan *plan, struct job *job,
		 const struct option_row *row, const char *text);

#endif
