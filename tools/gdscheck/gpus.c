// SPDX-License-Identifier: Apache-2.0
/* gpus - the GPUs of the machine, from sysfs and the GPU driver's /proc. */
#include "gpus.h"

#include <inttypes.h>
#include <string.h>
#include "sysfs.h"

#define DEVICES "/sys/bus/pci/devices"
#define NVIDIA 0x10de

/* A line of resource is a region: first, last, flags; BAR 1 is the largest. */
static uint64_t bar_of(const char *bdf)
{
	uint64_t first, last, largest = 0;
	FILE *file = sys_open(DEVICES "/%s/resource", bdf);
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " %" SCNx64, &first, &last) == 2 &&
		    last > first && last - first + 1 > largest)
			largest = last - first + 1;
	if (file)
		fclose(file);
	return largest;
}

/* "Model:   NVIDIA ..." of the driver's information. */
static void name_of(const char *bdf, char *name, size_t size)
{
	FILE *file = sys_open("/proc/driver/nvidia/gpus/%s/information", bdf);
	char line[256];

	*name = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "Model:", 6) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(name, size, "%s", line + 6 + strspn(line + 6, " \t"));
	}
	if (file)
		fclose(file);
}

/* Display or 3D controller of NVIDIA's. */
static bool is_gpu(const char *bdf)
{
	return sys_number(0, DEVICES "/%s/vendor", bdf) == NVIDIA &&
	       sys_number(0, DEVICES "/%s/class", bdf) >> 16 == 3;
}

int gpus_find(struct gpu_facts gpus[MAX_GPUS])
{
	struct dirent **names = NULL;
	int nr_names = sys_list(&names, DEVICES), nr = 0;

	for (int i = 0; i < nr_names && nr < MAX_GPUS; i++) {
		const char *bdf = names[i]->d_name;
		struct gpu_facts *gpu = &gpus[nr];

		if (!is_gpu(bdf))
			continue;
		snprintf(gpu->bdf, sizeof(gpu->bdf), "%.31s", bdf);
		name_of(bdf, gpu->name, sizeof(gpu->name));
		gpu->bar1 = bar_of(bdf);
		gpu->iommu = sys_exists(DEVICES "/%s/iommu_group", bdf);
		gpu->node = (int)sys_number(-1, DEVICES "/%s/numa_node", bdf);
		nr++;
	}
	sys_list_free(names, nr_names);
	return nr;
}
