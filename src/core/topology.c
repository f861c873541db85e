// SPDX-License-Identifier: Apache-2.0
/* topology - reads /sys for the GPUs the driver counts. */
#include "core/topology.h"

#include <cufile.h>
#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include "core/pci.h"
#include "core/sysfs.h"
#include "seam/cuda.h"

/* Reads a file of sysfs about a GPU. 0, -errno or a CUDA code. */
static int read_of_gpu(const struct cf_cuda *cuda, CUdevice dev,
		       const char *name, char *text, size_t size)
{
	char bus_id[32] = "";
	CUresult res = cuda->device_get_pci_bus_id(bus_id, sizeof(bus_id), dev);

	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	/* the driver writes capitals, sysfs does not */
	for (char *c = bus_id; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return cf_sysfs_text(text, size, "/sys/bus/pci/devices/%s/%s", bus_id,
			     name);
}

uint64_t cf_gpu_pci(int ordinal)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	unsigned domain, bus, device, function;
	char bus_id[32] = "";
	CUdevice dev;

	if (!cuda || cuda->device_get(&dev, ordinal) != CF_CU_SUCCESS ||
	    cuda->device_get_pci_bus_id(bus_id, sizeof(bus_id), dev) !=
		    CF_CU_SUCCESS ||
	    sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &device, &function) !=
		    4)
		return 0;
	return (uint64_t)domain << 32 | bus << 8 | device << 3 | function;
}

int cf_gpu_bar_kib(int ordinal, uint64_t *kib)
{
	const struct cf_cuda *cuda = cf_cuda_open();
	char text[2048] = "";
	CUdevice dev;
	int count = 0, err;
	CUresult res;

	if (!cuda || cuda->device_get_count(&count) != CF_CU_SUCCESS || !count)
		return -CU_FILE_DEVICE_NOT_FOUND;
	if (ordinal < 0 || ordinal >= count)
		return -CU_FILE_INVALID_VALUE;
	res = cuda->device_get(&dev, ordinal);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	err = read_of_gpu(cuda, dev, "resource", text, sizeof(text));
	if (cf_is_cuda_error(err))
		return err;
	*kib = cf_pci_largest_kib(text);
	return 0;
}

/* --------------------------------------------------------------- nodes */

static atomic_bool skipped;

void cf_topology_configure(bool skip)
{
	atomic_store_explicit(&skipped, skip, memory_order_relaxed);
}

/* A list of nodes has the form of a list of processors. */
static int read_list(const char *path, struct cf_cpus *list)
{
	char text[4096];
	int err = cf_sysfs_text(text, sizeof(text), "%s", path);

	return err ? err : cf_cpus_parse(list, text);
}

/* Counts nodes with memory or with processors: a node may have one only. */
static bool has_several_nodes(void)
{
	struct cf_cpus nodes, more;

	if (read_list("/sys/devices/system/node/has_memory", &nodes))
		return false;
	if (!read_list("/sys/devices/system/node/has_cpu", &more))
		cf_cpus_add(&nodes, &more);
	return cf_cpus_count(&nodes) > 1;
}

int cf_gpu_node(const struct cf_cuda *cuda, CUdevice dev)
{
	char text[32];
	int node;

	if (atomic_load_explicit(&skipped, memory_order_relaxed) ||
	    !has_several_nodes() ||
	    read_of_gpu(cuda, dev, "numa_node", text, sizeof(text)) ||
	    sscanf(text, "%d", &node) != 1 || node < 0)
		return -1;
	return node;
}

int cf_node_cpus(int node, struct cf_cpus *cpus)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist",
		 node);
	return read_list(path, cpus);
}
