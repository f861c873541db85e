// SPDX-License-Identifier: Apache-2.0
/*
 * preloaded - linked with the impostor, by the names of 1.0; says which
 * library it runs on, and uses it.
 */
#include <stdio.h>
#include <string.h>

#include <cufile.h>

#undef cuFileDriverClose
CUfileError_t cuFileDriverClose(void);

static void print_libraries(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096], last[4096] = "";

	while (f && fgets(line, sizeof(line), f)) {
		const char *path = strchr(line, '/');

		if (!path || !strstr(path, "libcufile") || !strcmp(path, last))
			continue;
		snprintf(last, sizeof(last), "%s", path);
		printf("library %s", path);
	}
	if (f)
		fclose(f);
}

int main(void)
{
	int version = 0;
	int opened = cuFileDriverOpen().err;
	int closed = cuFileDriverClose().err;
	int again = cuFileDriverClose().err;

	(void)cuFileGetVersion(&version);
	printf("version %d open %d close %d again %d\n", version, opened,
	       closed, again);
	print_libraries();
	return 0;
}
