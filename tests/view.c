// SPDX-License-Identifier: Apache-2.0
/* view - where else in this process a memory lies. */
#include <stdint.h>
#include <stdio.h>
#include "harness.h"

/* One line of /proc/self/maps: a file's bytes from `off` on, shared or not. */
struct range {
	uintptr_t begin, end;
	unsigned long off, inode;
	char shared;
};

static bool next_range(FILE *maps, struct range *r)
{
	char line[512];

	if (!fgets(line, sizeof(line), maps))
		return false;
	if (sscanf(line, "%lx-%lx %*3s%c %lx %*s %lu", &r->begin, &r->end,
		   &r->shared, &r->off, &r->inode) != 5)
		r->inode = 0;
	return true;
}

static bool find(FILE *maps, uintptr_t at, struct range *found)
{
	rewind(maps);
	while (next_range(maps, found))
		if (at >= found->begin && at < found->end)
			return found->inode && found->shared == 's';
	return false;
}

void *th_other_view(void *at, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct range here, r;
	void *other = at;

	if (!maps)
		return at;
	if (find(maps, (uintptr_t)at, &here)) {
		const unsigned long off =
			here.off + ((uintptr_t)at - here.begin);

		rewind(maps);
		while (next_range(maps, &r))
			if (r.inode == here.inode && r.begin != here.begin &&
			    off >= r.off &&
			    off + size <= r.off + (r.end - r.begin))
				other = (void *)(r.begin + (off - r.off));
	}
	fclose(maps);
	return other;
}
