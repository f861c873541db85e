// SPDX-License-Identifier: Apache-2.0
/*
 * check_topology - gdscheck -t: how far disks and NICs are from the GPUs.
 *
 * Distances have nvidia-smi's names: PIX (one bridge or switch between), PXB
 * (several), PHB (one host bridge), NODE (one NUMA node), SYS (further).
 */
#include "check_topology.h"

#include <stdbool.h>
#include <string.h>
#include "gpus.h"
#include "sysfs.h"

#define DEVICES "/sys/bus/pci/devices"

static bool path_of(const char *bdf, char *path, size_t size)
{
	return sys_real(path, size, DEVICES "/%s", bdf);
}

/* Slashes from there on: the bridges above a device, and itself. */
static unsigned depth(const char *path)
{
	unsigned nr = 0;

	for (; *path; path++)
		nr += *path == '/';
	return nr;
}

/* Bytes of both that are the same, up to the end of a name. */
static size_t in_common(const char *a, const char *b)
{
	size_t same = 0;

	for (size_t i = 0;; i++) {
		if ((a[i] == '/' || !a[i]) && (b[i] == '/' || !b[i]))
			same = i;
		if (a[i] != b[i] || !a[i])
			return same;
	}
}

/* "/sys/devices/pci0000:00" is a host bridge; below it are its ports. */
static const char *distance(const char *a, int node_a, const char *b,
			    int node_b)
{
	size_t same = in_common(a, b);
	char common[SYS_PATH];

	snprintf(common, sizeof(common), "%.*s", (int)same, a);
	if (depth(common) > 3)
		return depth(a + same) <= 2 && depth(b + same) <= 2 ? "PIX" :
								      "PXB";
	if (depth(common) == 3)
		return "PHB";
	return node_a == node_b && node_a >= 0 ? "NODE" : "SYS";
}

/* Storage that is not SATA's or SCSI's, and networks. */
static const char *kind_of(const char *bdf)
{
	long long class = sys_number(0, DEVICES "/%s/class", bdf) >> 8;

	if (class == 0x0108)
		return "NVMe";
	return class >> 8 == 2 ? "NIC" : NULL;
}

/* The name that people know: nvme0n1, mlx5_0, eth0. */
static void common_name(const char *bdf, char *name, size_t size)
{
	static const char *const folders[] = { "nvme", "infiniband", "net" };

	snprintf(name, size, "-");
	for (size_t i = 0; i < 3; i++) {
		struct dirent **names = NULL;
		int nr = sys_list(&names, DEVICES "/%s/%s", bdf, folders[i]);

		if (nr)
			snprintf(name, size, "%.63s", names[0]->d_name);
		sys_list_free(names, nr);
		if (nr)
			return;
	}
}

static void print_peer(FILE *out, const struct gpu_facts *gpu,
		       const char *gpu_path, const char *bdf)
{
	const char *kind = kind_of(bdf);
	char path[SYS_PATH], name[64];
	int node;

	if (!kind || !path_of(bdf, path, sizeof(path)))
		return;
	node = (int)sys_number(-1, DEVICES "/%s/numa_node", bdf);
	common_name(bdf, name, sizeof(name));
	fprintf(out, "  %-4s %s %-10s NUMA %2d  %s\n", kind, bdf, name, node,
		distance(gpu_path, gpu->node, path, node));
}

void topology_print(FILE *out)
{
	static struct gpu_facts gpus[MAX_GPUS];
	struct dirent **names = NULL;
	int nr = gpus_find(gpus), nr_names = sys_list(&names, DEVICES);
	char path[SYS_PATH];

	for (int i = 0; i < nr; i++) {
		fprintf(out, "GPU %d %s %s NUMA %d\n", i, gpus[i].bdf,
			gpus[i].name[0] ? gpus[i].name : "-", gpus[i].node);
		if (!path_of(gpus[i].bdf, path, sizeof(path)))
			continue;
		for (int k = 0; k < nr_names; k++)
			print_peer(out, &gpus[i], path, names[k]->d_name);
	}
	if (!nr)
		fprintf(out, "there is no GPU\n");
	sys_list_free(names, nr_names);
}
