// SPDX-License-Identifier: Apache-2.0
/* main - ocf-bench: makes the files, measures, removes the files. */
#include "child.h"
#include "file.h"
#include "gpu.h"
#include "grid.h"
#include "report.h"

#include <signal.h>

static bool make(const struct options *o, const char *path)
{
	char out[280];
	bool cells = !o->fresh && !o->rest && !o->counting;

	snprintf(out, sizeof(out), "%s.out", path);
	if ((!cells || list_has(&o->ops, 0)) &&
	    !file_make(path, o->file_size, o->keep))
		return false;
	return !cells || !list_has(&o->ops, 1) ||
	       file_make(out, o->file_size, false);
}

/* tmpfs may be small: then its cells say that there is no file. */
static bool make_files(const struct options *o)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/ocf-bench.data", o->tmpfs);
	if (list_has(&o->media, MEDIUM_TMPFS) && !make(o, path))
		fprintf(stderr, "ocf-bench: no files in %s\n", o->tmpfs);
	if (o->media.nr == 1 && list_has(&o->media, MEDIUM_TMPFS))
		return true;
	return make(o, o->file);
}

static void try_gpu(const void *arg, void *out)
{
	const char *error = gpu_open();

	snprintf(out, ERROR_SIZE, "%s", error ? error : "");
}

/* In a process of its own: no child may inherit a GPU that was opened. */
static void choose_memory(struct options *o)
{
	char error[ERROR_SIZE] = "";
	const char *failure;

	if (o->host || o->memories.nr)
		return;
	failure = child_run(try_gpu, NULL, error, sizeof(error), 60);
	o->host = failure || *error;
	o->memories.nr = 1;
	o->memories.value[0] = o->host ? MEMORY_HOST : MEMORY_DEVICE;
	if (o->host)
		printf("host memory, because %s\n", failure ? failure : error);
}

/* Where the disk is full a row is lost, and nobody else says so. */
static bool wrote_all(FILE *json)
{
	bool ok = !fflush(stdout) && !ferror(stdout);

	if (json) {
		ok &= !ferror(json);
		ok &= !fclose(json);
	}
	if (!ok)
		fprintf(stderr, "ocf-bench: not all results were written\n");
	return ok;
}

int main(int argc, char **argv)
{
	static struct options o;

	if (!options_parse(&o, argc, argv))
		return 2;
	choose_memory(&o);
	signal(SIGPIPE, SIG_IGN); /* a library that died is noticed anyway */
	if (!make_files(&o)) {
		file_remove_all();
		return 1;
	}
	report_machine(o.json);
	if (o.fresh)
		fresh_run(&o);
	if (o.rest)
		rest_run(&o);
	if (o.counting)
		counting_run(&o);
	if (!o.fresh && !o.rest && !o.counting)
		grid_run(&o);
	file_remove_all();
	return !wrote_all(o.json);
}
