// SPDX-License-Identifier: Apache-2.0
/*
 * gdsio - moves files to and from GPU memory, and says how fast.
 *
 * Only the public header is used. options.c has the command line, run.c and
 * pass.c what is done with it, xfer*.c the ways to move a request.
 */
#include <stdio.h>
#include <stdlib.h>
#include "gdsio/plan.h"
#include "gdsio/picture.h"
#include "gdsio/plot.h"
#include "gdsio/result.h"
#include "gdsio/run.h"
#include "report.h"

#define EXIT_INTERRUPTED 130

static struct plan plan;
static struct outcome outcomes[2];

/* One pass, and after a write with -V another that reads. */
static bool move(struct run *run, int *nr)
{
	bool write = op_is_write(plan.op);

	if (!run_pass(run, write, &outcomes[(*nr)++]))
		return false;
	if (!plan.json)
		result_print(&plan, &outcomes[0]);
	if (!plan.verify || !write || outcomes[0].interrupted)
		return true;
	if (!plan.json) {
		printf("Verifying data\n");
		fflush(stdout);
	}
	if (!run_pass(run, false, &outcomes[(*nr)++]))
		return false;
	if (!plan.json)
		result_print(&plan, &outcomes[1]);
	return true;
}

int main(int argc, char **argv)
{
	int status = plan_from_args(&plan, argc, argv);
	struct run run;
	int nr = 0;
	bool ok;

	keep_streams();
	if (status < 0) {
		ok = (!plan.plot || picture_check(plan.plot)) &&
		     run_open(&run, &plan);
		if (ok) {
			ok = move(&run, &nr);
			run_close(&run);
		}
		if (ok && plan.json)
			result_print_json(&plan, outcomes, nr);
		if (ok && plan.plot)
			ok = plot_write(plan.plot, &plan, outcomes, nr);
		status = ok ? EXIT_SUCCESS : EXIT_FAILURE;
		if (ok && outcomes[nr - 1].interrupted)
			status = EXIT_INTERRUPTED;
	}
	plan_free(&plan);
	return wrote_all() ? status : EXIT_FAILURE;
}
