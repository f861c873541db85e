// SPDX-License-Identifier: Apache-2.0
/*
 * peers - see peers.h.
 *
 * Where all is well the GPU's driver has given BAR 1 to the kernel's P2PDMA,
 * and the GPU has a directory p2pmem. Where there is none, each condition that
 * can be seen to be missing is a line with what to do. Whether a disk's route
 * to a GPU is open the first request tells (gdscheck FILE, cufile-routes(7)).
 */
#include "peers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpus.h"
#include "sysfs.h"

#define OPEN_MODULE 565	       /* the first driver that has it */
#define NO_STATIC_BAR1 575     /* its drivers leave static BAR 1 off */
#define MAPPABLE_DMA_BUF 13030 /* CUDA */
#define SMALL_BAR ((uint64_t)256 << 20)

#define REGISTRY \
	"options nvidia NVreg_RegistryDwords=" \
	"\"RMForceStaticBar1=1;RmForceDisableIomapWC=1;\""

static void missing(const char *what, const char *remedy)
{
	printf(" missing: %s; %s\n", what, remedy);
}

/* Its names are there for all to read, the addresses are not. */
static bool kernel_has_p2pdma(bool *known)
{
	FILE *file = sys_open("/proc/kallsyms");
	char line[256];
	bool has = false;

	*known = file;
	while (file && !has && fgets(line, sizeof(line), file))
		has = strstr(line, " p2pdma_pgmap_ops");
	if (file)
		fclose(file);
	return has;
}

static void look_at_kernel(void)
{
	bool known, has = kernel_has_p2pdma(&known);

	if (known && !has)
		missing("CONFIG_PCI_P2PDMA in the kernel",
			"run a kernel of Linux 6.2 or later that has it");
}

/* The number in "... x86_64  580.65.06  Release Build"; 0: no driver. */
static int driver_major(bool *open)
{
	char text[512];
	const char *word = text;

	*open = false;
	if (!sys_line(text, sizeof(text), "/proc/driver/nvidia/version"))
		return 0;
	*open = strstr(text, "Open Kernel Module");
	while ((word = strpbrk(word, "0123456789"))) {
		char *end;
		long major = strtol(word, &end, 10);

		if (major >= 100 && *end == '.')
			return (int)major;
		word = end;
	}
	return 0;
}

/* The last value that the registry gives a key; otherwise if it does not. */
static long registry(const char *key, long otherwise)
{
	FILE *file = sys_open("/proc/driver/nvidia/params");
	char line[1024];
	long value = otherwise;

	while (file && fgets(line, sizeof(line), file)) {
		const char *at = line;

		if (strncmp(line, "RegistryDwords:", 15) != 0)
			continue;
		while ((at = strstr(at, key))) {
			at += strlen(key);
			if (*at == '=')
				value = strtol(at + 1, NULL, 0);
		}
	}
	if (file)
		fclose(file);
	return value;
}

static void look_at_driver(void)
{
	bool open;
	int major = driver_major(&open);

	if (!major || !open || major < OPEN_MODULE) {
		missing("NVIDIA's open kernel module",
			"install it, 565 or later");
		return;
	}
	if (registry("RMForceStaticBar1", major != NO_STATIC_BAR1 ? 2 : 0) == 0)
		missing("static BAR 1", REGISTRY);
	if (registry("RmForceDisableIomapWC", 0) != 1)
		missing("BAR 1 without write-combining", REGISTRY);
}

/* Heads of NVMe multipath pass it on since Linux 7.2. */
static void look_at_disks(void)
{
	char multipath[8];

	if (sys_line(multipath, sizeof(multipath),
		     "/sys/module/nvme_core/parameters/multipath") &&
	    multipath[0] == 'Y')
		missing("nvme_core.multipath=N",
			"needed before Linux 7.2 by disks with several "
			"controllers");
}

/* False: the kernel has not been given its memory. */
static bool look_at_gpu(int index, const struct gpu_facts *gpu)
{
	bool open = sys_exists("/sys/bus/pci/devices/%s/p2pmem", gpu->bdf);

	printf(" GPU index %d %s: %s\n", index, gpu->bdf,
	       open ? "disks can reach its memory" :
		      "disks cannot reach its memory");
	if (!open && gpu->bar1 && gpu->bar1 <= SMALL_BAR)
		missing("a BAR 1 as large as the GPU's memory",
			"turn on Resizable BAR in the firmware");
	return open;
}

void peers_section(int cuda)
{
	static struct gpu_facts gpus[MAX_GPUS];
	int nr = gpus_find(gpus);
	bool all_open = true;

	for (int i = 0; i < nr; i++)
		all_open &= look_at_gpu(i, &gpus[i]);
	if (!all_open) {
		look_at_kernel();
		look_at_driver();
	}
	look_at_disks();
	if (nr && cuda < MAPPABLE_DMA_BUF)
		missing("the CPU's address of GPU memory",
			"a driver of CUDA 13.3 has one, or a program's "
			"provider (ocf_alias_set_provider)");
}
