// SPDX-License-Identifier: Apache-2.0
/* topology - reads /sys/bus/pci for the GPUs the driver counts. */
#include "core/topology.h"

#include <cufile.h>
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "seam/cuda.h"
#include "seam/os.h"

/* Each line of the file is a region: first address, last address, flags. */
static uint64_t largest_region(const char *text)
{
	uint64_t first, last, largest = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%" SCNx64 " %" SCNx64, &first, &last) == 2 &&
		    last > first && last - first + 1 > largest)
			largest = last - first + 1;
	}
	return largest;
}

static uint64_t region_of(const char *bus_id)
{
	char path[96], text[2048];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource",
		 bus_id);
	fd = cf_os->open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	n = cf_os->read(fd, text, sizeof(text) - 1);
	cf_os->close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return largest_region(text);
}

int cf_gpu_bar_kib(int ordinal, uint64_t *kib)
{
	const struct cf_cuda *cuda = cf_cuda_open();
	char bus_id[32] = "";
	CUdevice dev;
	int count = 0;
	CUresult res;

	if (!cuda || cuda->device_get_count(&count) != CF_CU_SUCCESS || !count)
		return -CU_FILE_DEVICE_NOT_FOUND;
	if (ordinal < 0 || ordinal >= count)
		return -CU_FILE_INVALID_VALUE;
	res = cuda->device_get(&dev, ordinal);
	if (res == CF_CU_SUCCESS)
		res = cuda->device_get_pci_bus_id(bus_id, sizeof(bus_id), dev);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	/* the driver writes capitals, sysfs does not */
	for (char *c = bus_id; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	*kib = region_of(bus_id) >> 10;
	return 0;
}
