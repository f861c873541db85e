// SPDX-License-Identifier: Apache-2.0
/* node - threads on the CPUs of one NUMA node. */
#include "gdsio/node.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

/* "0-3,8,10-11"; false where the node is not there or has no CPUs. */
static bool read_cpus(int node, cpu_set_t *set)
{
	char path[64];
	FILE *file;
	int first, last;
	bool any = false;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist",
		 node);
	file = fopen(path, "re");
	if (!file)
		return false;
	CPU_ZERO(set);
	while (fscanf(file, "%d", &first) == 1) {
		int c = fgetc(file);

		last = first;
		if (c == '-' && fscanf(file, "%d", &last) == 1)
			c = fgetc(file);
		for (int i = first; i <= last && i < CPU_SETSIZE; i++)
			CPU_SET(i, set);
		any = true;
		if (c != ',')
			break;
	}
	fclose(file);
	return any;
}

bool node_exists(int node)
{
	cpu_set_t set;

	return read_cpus(node, &set);
}

bool node_bind(int node)
{
	cpu_set_t set;

	errno = ENOENT;
	return read_cpus(node, &set) &&
	       !sched_setaffinity(0, sizeof(set), &set);
}
