// SPDX-License-Identifier: Apache-2.0
/*
 * check_mounts - gdscheck -V: which way files of each mount would go.
 *
 * A file, without a name if it can be, is made in the mount's top directory,
 * asked about, and gone; where that is not allowed the line says so.
 */
#include <stdio.h>
#include <string.h>
#include "answers.h"
#include "asks.h"
#include "check_file.h"

/* Without a block device of their own, and people keep data there. */
static bool may_hold_data(const struct place *p)
{
	static const char *const types[] = {
		"nfs",	"nfs4",	 "lustre",   "beegfs", "gpfs",	   "wekafs",
		"ceph", "cifs",	 "smb3",     "9p",     "virtiofs", "overlay",
		"zfs",	"btrfs", "bcachefs", "tmpfs",  "scatefs",  "orangefs",
	};

	if (p->name[0] || !strncmp(p->type, "fuse", 4))
		return true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(p->type, types[i]))
			return true;
	return false;
}

/* The answer for GPU memory, aligned, with O_DIRECT if it can be had. */
static void print_answer(const struct asks *asks)
{
	const ocf_explain_t *e = &asks->asks[OCF_READ][0].e;

	printf("%s, %s\n", e->path ? e->path : "no path",
	       e->page_cache ? e->page_cache : "O_DIRECT");
}

static bool print_mount(const struct place *p, void *arg)
{
	struct place shown = *p;
	struct asks asks;
	char why[256];
	bool asked = false;

	if (!may_hold_data(p))
		return true;
	if (answers_in_time(p->mount))
		asked = asks_make(&asks, p->mount, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "did not answer within %d s",
			 ANSWERS_WITHIN_S);
	/* under another one, where no name leads */
	if (asked && asks.place.id != p->id &&
	    !strcmp(asks.place.mount, p->mount))
		return true;
	place_make_plain(&shown);
	printf("%-24s %-8s %-16s ", shown.mount, shown.type,
	       p->name[0] ? p->name : shown.source);
	if (asked)
		print_answer(&asks);
	else
		printf("%s\n", why);
	return true;
}

int check_mounts(void)
{
	printf("%-24s %-8s %-16s %s\n", "mount", "type", "device",
	       "aligned reads into GPU memory");
	place_each(print_mount, NULL);
	return GDSCHECK_OK;
}
