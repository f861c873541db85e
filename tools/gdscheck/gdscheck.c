// SPDX-License-Identifier: Apache-2.0
/*
 * gdscheck - what this machine, its configuration and a file allow.
 *
 * Only the public headers are used, and no GPU is opened. Here is the command
 * line; the check_*.c have a part of the answer each.
 */
#include <cufile.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check_config.h"
#include "check_file.h"
#include "check_json.h"
#include "check_platform.h"
#include "check_topology.h"
#include "report.h"
#include "sysfs.h"

struct options {
	bool platform, versions, mounts, topology, dump, json;
	const char *file;
	const char *engine; /* of the topology */
	const char *out;
};

static const char usage_text[] =
	"usage: gdscheck [-pvVt] [-f FILE] [--dump-config] [--json]\n"
	"\n"
	"  -p            the platform and its configuration\n"
	"  -f FILE       which way the file's bytes go, and what would change it;\n"
	"                of a directory: those of a new file in it\n"
	"  -v            versions\n"
	"  -V            which way files of each mount would go\n"
	"  -t            how far disks and NICs are from the GPUs\n"
	"  -e ENGINE     who is asked for -t: sysfs (default) or cufile\n"
	"  -o FILE       where -t writes to\n"
	"  --dump-config each value of the configuration, and its origin\n"
	"  --json        -f and --dump-config answer in JSON\n"
	"  --root DIR    read /proc and /sys of a tree that was copied to DIR\n"
	"  -h, --help    this text\n"
	"\n"
	"Exit status: 0 all is well; 1 a request would fail, or the platform\n"
	"does not work; 2 usage; 3 the file cannot be checked.\n";

enum { DUMP = 256, JSON, ROOT };

static bool take(int c, struct options *o)
{
	switch (c) {
	case 'p':
		return o->platform = true;
	case 'v':
		return o->versions = true;
	case 'V':
		return o->mounts = true;
	case 't':
		return o->topology = true;
	case DUMP:
		return o->dump = true;
	case JSON:
		return o->json = true;
	case 'f':
		if (o->file)
			return fail("-f answers for one file at a time");
		o->file = optarg;
		return true;
	case 'e':
		o->engine = optarg;
		return true;
	case 'o':
		o->out = optarg;
		return true;
	case ROOT:
		return sys_set_root(optarg) || fail_errno("--root", optarg);
	default:
		return false;
	}
}

static bool is_complete(const struct options *o)
{
	if (strcmp(o->engine, "sysfs") != 0 && strcmp(o->engine, "cufile") != 0)
		return fail("-e %s: sysfs and cufile can be asked, and no "
			    "other",
			    o->engine);
	if (!strcmp(o->engine, "cufile") && !o->out)
		return fail("-e cufile needs -o FILE");
	if (o->out && !o->topology)
		return fail("-o goes with -t");
	if (o->json && !o->file && !o->dump)
		return fail("--json goes with -f and --dump-config");
	if (o->json && o->file && o->dump)
		return fail("--json answers one question at a time");
	return o->platform || o->versions || o->mounts || o->topology ||
	       o->dump || o->file || fail("nothing was asked");
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "dump-config", no_argument, NULL, DUMP },
		{ "json", no_argument, NULL, JSON },
		{ "root", required_argument, NULL, ROOT },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool ok = true;
	int c;

	*o = (struct options){ .engine = "sysfs" };
	while (ok &&
	       (c = getopt_long(argc, argv, "pvVtf:e:o:h", longs, NULL)) >= 0) {
		if (c == 'h') {
			fputs(usage_text, stdout);
			return 0;
		}
		ok = take(c, o);
	}
	if (ok && optind < argc)
		ok = fail("%s: nothing is to be done with it", argv[optind]);
	if (ok && is_complete(o))
		return -1;
	fprintf(stderr, "try gdscheck --help\n");
	return GDSCHECK_USAGE;
}

static int topology(const struct options *o)
{
	FILE *out = stdout;

	if (!strcmp(o->engine, "cufile"))
		return check(cuFileExportPCIeTopology(o->out),
			     "cuFileExportPCIeTopology", o->out) ?
			       GDSCHECK_OK :
			       GDSCHECK_NO_PATH;
	if (o->out)
		out = fopen(o->out, "we");
	if (!out) {
		fail_errno("open", o->out);
		return GDSCHECK_CANNOT;
	}
	topology_print(out);
	if (o->out && fclose(out)) {
		fail_errno("write", o->out);
		return GDSCHECK_CANNOT;
	}
	return GDSCHECK_OK;
}

static void keep_worst(int *status, int another)
{
	if (another > *status)
		*status = another;
}

static int run(const struct options *o)
{
	int status = GDSCHECK_OK;

	if (o->versions && !o->platform)
		platform_versions();
	if (o->platform && !platform_check())
		return GDSCHECK_NO_PATH;
	if (!check(cuFileDriverOpen(), "cuFileDriverOpen", ""))
		return GDSCHECK_NO_PATH;
	if (o->dump && !(o->json ? json_config() : config_dump()))
		status = GDSCHECK_CANNOT;
	if (o->dump && !o->json)
		config_problems();
	if (o->topology)
		keep_worst(&status, topology(o));
	if (o->mounts)
		keep_worst(&status, check_mounts());
	if (o->file)
		keep_worst(&status, check_file(o->file, o->json));
	(void)cuFileDriverClose();
	return status;
}

int main(int argc, char **argv)
{
	struct options o;
	int status = parse(argc, argv, &o);

	if (status < 0)
		status = run(&o);
	return wrote_all() ? status : GDSCHECK_CANNOT;
}
