// SPDX-License-Identifier: Apache-2.0
/* loaded - walks the loader's list of objects. */
#include "seam/loaded.h"

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define OUR_NAME "libcufile.so"

struct walk {
	char *path;
	size_t size;
	bool found;
};

static bool has_our_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return !strncmp(name, OUR_NAME, sizeof(OUR_NAME) - 1);
}

/* Is this code in one of the object's segments? */
static bool has_us(const struct dl_phdr_info *info)
{
	uintptr_t us = (uintptr_t)&cf_loaded_other_cufile;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && us >= from &&
		    us - from < segment->p_memsz)
			return true;
	}
	return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct walk *walk = arg;

	if (!info->dlpi_name || !has_our_name(info->dlpi_name) || has_us(info))
		return 0;
	snprintf(walk->path, walk->size, "%s", info->dlpi_name);
	walk->found = true;
	return 1;
}

bool cf_loaded_other_cufile(char *path, size_t size)
{
	struct walk walk = { .path = path, .size = size };

	(void)dl_iterate_phdr(visit, &walk);
	return walk.found;
}
