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
#include <sys/utsname.h>
#include "gpus.h"
#include "sysfs.h"

#define OPEN_MODULE 565	       /* the first driver that has it */
#define NO_STATIC_BAR1 575     /* its drivers leave static BAR 1 off */
#define MAPPABLE_DMA_BUF 13030 /* CUDA */
#define SMALL_BAR ((uint64_t)256 << 20)

#define REGISTRY \
	"options nvidia NVreg_RegistryDwords=" \
	"\"RMForceStaticBar1=1;RmForceDisableIomapWC=1;\""

static void miss(struct peers *peers, int gpu, const char *what,
		 const char *remedy)
{
	if (peers->nr_missing < MAX_MISSING)
		peers->missing[peers->nr_missing++] =
			(struct missing){ gpu, what, remedy };
}

/* A file's first line with the text; false: the file or the line is not. */
static bool has_line(FILE *file, const char *text)
{
	char line[256];
	bool has = false;

	while (file && !has && fgets(line, sizeof(line), file))
		has = strstr(line, text);
	if (file)
		fclose(file);
	return has;
}

/*
 * What the kernel was built with, where that is kept; otherwise the names of
 * its functions, which are there for all to read. The kernel takes some 40 ms
 * to make that list, more than all the rest of the tool.
 */
static bool kernel_has_p2pdma(bool thorough, bool *known)
{
	static const char *const places[] = { "/boot/config-%s",
					      "/lib/modules/%s/config" };
	struct utsname uts;
	FILE *file = NULL;

	uname(&uts);
	for (int i = 0; i < 2 && !file; i++)
		file = sys_open(places[i], uts.release);
	*known = file;
	if (file)
		return has_line(file, "CONFIG_PCI_P2PDMA=y");
	file = thorough ? sys_open("/proc/kallsyms") : NULL;
	*known = file;
	return has_line(file, " p2pdma_pgmap_ops");
}

static void look_at_kernel(struct peers *peers, bool thorough)
{
	bool known, has = kernel_has_p2pdma(thorough, &known);

	if (known && !has)
		miss(peers, -1, "CONFIG_PCI_P2PDMA in the kernel",
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

static void look_at_driver(struct peers *peers)
{
	bool open;
	int major = driver_major(&open);

	if (!major || !open || major < OPEN_MODULE) {
		miss(peers, -1, "NVIDIA's open kernel module",
		     "install it, 565 or later");
		return;
	}
	if (registry("RMForceStaticBar1", major != NO_STATIC_BAR1 ? 2 : 0) == 0)
		miss(peers, -1, "static BAR 1", REGISTRY);
	if (registry("RmForceDisableIomapWC", 0) != 1)
		miss(peers, -1, "BAR 1 without write-combining", REGISTRY);
}

/* Heads of NVMe multipath pass it on since Linux 7.2. */
static void look_at_disks(struct peers *peers)
{
	char multipath[8];

	if (sys_line(multipath, sizeof(multipath),
		     "/sys/module/nvme_core/parameters/multipath") &&
	    multipath[0] == 'Y')
		miss(peers, -1, "nvme_core.multipath=N",
		     "needed before Linux 7.2 by disks with several "
		     "controllers");
}

static void look_at_gpu(struct peers *peers, int index)
{
	const struct gpu_facts *gpu = &peers->gpus[index];
	bool open = sys_exists("/sys/bus/pci/devices/%s/p2pmem", gpu->bdf);

	peers->open[index] = open;
	if (!open && gpu->bar1 && gpu->bar1 <= SMALL_BAR)
		miss(peers, index, "a BAR 1 as large as the GPU's memory",
		     "turn on Resizable BAR in the firmware");
}

void peers_find(struct peers *peers, int cuda, bool thorough)
{
	bool all_open = true;

	peers->nr_missing = 0;
	peers->nr_gpus = gpus_find(peers->gpus);
	for (int i = 0; i < peers->nr_gpus; i++) {
		look_at_gpu(peers, i);
		all_open &= peers->open[i];
	}
	if (!all_open) {
		look_at_kernel(peers, thorough);
		look_at_driver(peers);
	}
	look_at_disks(peers);
	if (peers->nr_gpus && cuda < MAPPABLE_DMA_BUF)
		miss(peers, -1, "the CPU's address of GPU memory",
		     "a driver of CUDA 13.3 has one, or a program's "
		     "provider (ocf_alias_set_provider)");
}

static void print_missing(const struct peers *peers, int gpu,
			  const char *indent)
{
	for (unsigned i = 0; i < peers->nr_missing; i++)
		if (peers->missing[i].gpu == gpu)
			printf("%smissing: %s; %s\n", indent,
			       peers->missing[i].what,
			       peers->missing[i].remedy);
}

void peers_print(const struct peers *peers, const char *indent)
{
	for (int i = 0; i < peers->nr_gpus; i++) {
		printf("%sGPU index %d %s: disks %s reach its memory\n", indent,
		       i, peers->gpus[i].bdf,
		       peers->open[i] ? "can" : "cannot");
		print_missing(peers, i, indent);
	}
	print_missing(peers, -1, indent);
}
