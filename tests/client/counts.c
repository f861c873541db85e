// SPDX-License-Identifier: Apache-2.0
/* counts - what a process sees of itself, with nothing but libc. */
#include "client.h"

#include <dirent.h>
#include <unistd.h>

int count_entries(const char *dir)
{
	DIR *d = opendir(dir);
	int nr = -2;

	CHECK(d);
	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

int count_mapped(const char *substr)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096], last[4096] = "";
	int nr = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		const char *path = strchr(line, '/');

		if (!path || !strstr(path, substr) || !strcmp(path, last))
			continue;
		snprintf(last, sizeof(last), "%s", path);
		nr++;
	}
	fclose(f);
	return nr;
}
