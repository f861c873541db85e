// SPDX-License-Identifier: Apache-2.0
/*
 * check_platform - gdscheck -p and -v (contract 5.1).
 *
 * The sections, their order and their words are those that scripts know of
 * the original, a blank at the start of each line too. What stands there is
 * this library's: any file system works, by way of host memory, and those that
 * nvidia-fs has hooked also by that driver.
 */
#include "check_platform.h"

#include <cufile.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include "check_config.h"
#include "gpus.h"
#include "nics.h"
#include "peers.h"
#include "report.h"
#include "sysfs.h"

/* What the original asks for; this library asks for none. */
#define NVFS_MINIMUM "2.12"
/* Its dma-bufs can be mapped from this driver on. */
#define MAPPABLE_DMA_BUF 13030

static void heading(const char *text)
{
	char line[64];
	size_t len = strlen(text);

	memset(line, '=', sizeof(line));
	printf(" %.*s\n %s\n %.*s\n", (int)len, line, text, (int)len, line);
}

static void nvfs_version(unsigned *major, unsigned *minor)
{
	char text[128];
	const char *digits;

	*major = *minor = 0;
	if (!sys_line(text, sizeof(text), "/proc/driver/nvidia-fs/version"))
		return;
	digits = strpbrk(text, "0123456789");
	if (!digits || sscanf(digits, "%u.%u", major, minor) != 2)
		*major = *minor = 0;
}

void platform_versions(void)
{
	unsigned major, minor;
	int level = 0;

	nvfs_version(&major, &minor);
	(void)cuFileGetVersion(&level);
	printf(" GDS release version: %d.%d.0.0\n", level / 1000,
	       level % 1000 / 10);
	printf(" nvidia_fs version: %u.%u nvidia_fs minimum version: %s\n",
	       major, minor, NVFS_MINIMUM);
	printf(" opencufile version: %s\n", OCF_VERSION);
}

/* Kinds of storage that the nvidia-fs driver has hooked for the library. */
static unsigned hooked_storage(void)
{
	CUfileDrvProps_t props = { 0 };

	return cuFileDriverGetProperties(&props).err ? 0 :
						       props.nvfs.dstatusflags;
}

int platform_cuda_version(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
	int (*get)(int *version);
	int version = 0;

	if (!lib)
		return 0;
	*(void **)&get = dlsym(lib, "cuDriverGetVersion");
	if (!get || get(&version))
		version = 0;
	return version;
}

static bool has_open_driver(void)
{
	char text[512];

	return sys_line(text, sizeof(text), "/proc/driver/nvidia/version") &&
	       strstr(text, "Open Kernel Module");
}

/* Is this the value of the key? */
static bool is_set(const char *key, const char *value)
{
	char text[64] = "";

	return config_value(key, text, sizeof(text)) && !strcmp(text, value);
}

/*
 * May registered GPU memory be mapped by its dma-buf, for IO straight to it?
 * What there is to ask without opening a GPU; whether the memory of one can,
 * and whether its disk reaches it, its registration and its IO find out.
 */
static bool maps_dma_bufs(void)
{
	return platform_cuda_version() >= MAPPABLE_DMA_BUF &&
	       has_open_driver() && !is_set("opencufile.alias", "\"off\"") &&
	       !is_set("properties.force_compat_mode", "true");
}

/* The ways that a kind of storage may go, the better one first. */
static const char *ways(bool nvfs, bool compat)
{
	if (nvfs)
		return compat ? "nvfs, compat" : "nvfs";
	return compat ? "compat" : "Unsupported";
}

/*
 * NICs serve user-space file systems alone. The library has no plug-in, and
 * tries at a registration what a NIC that is up can do.
 */
static void rdma_lines(void)
{
	char list[1024] = "[]";
	struct nics nics;

	(void)config_value("properties.rdma_dev_addr_list", list, sizeof(list));
	nics_count(list, &nics);
	printf(" %-18s : %s\n", "Userspace RDMA",
	       nics.up ? "Supported" : "Unsupported");
	printf(" --Mellanox PeerDirect : %s\n",
	       sys_exists("/sys/module/nvidia_peermem") ||
			       sys_exists("/sys/module/nv_peer_mem") ?
		       "Enabled" :
		       "Disabled");
	printf(" --DmaBuf support      : %s\n",
	       maps_dma_bufs() ? "Enabled" : "Disabled");
	printf(" --rdma library        : Not Loaded (libcufile_rdma.so)\n");
	printf(" --rdma devices        : %s\n",
	       nics.up + nics.down ? "Configured" : "Not configured");
	printf(" --rdma_device_status  : Up: %d Down: %d\n", nics.up,
	       nics.down);
}

/* "compat" is the word for a detour through host memory. */
static void drivers_section(void)
{
	static const struct {
		const char *name;
		int target;
	} rows[] = {
		{ "NVMe", CU_FILE_NVME_SUPPORTED },
		{ "NVMeOF", CU_FILE_NVMEOF_SUPPORTED },
		{ "SCSI", CU_FILE_SCSI_SUPPORTED },
		{ "ScaleFlux CSD", CU_FILE_SCALEFLUX_CSD_SUPPORTED },
		{ "FSx Lustre", CU_FILE_LUSTRE_SUPPORTED },
		{ "NVMesh", CU_FILE_NVMESH_SUPPORTED },
		{ "DDN EXAScaler", CU_FILE_LUSTRE_SUPPORTED },
		{ "IBM Spectrum Scale", CU_FILE_GPFS_SUPPORTED },
		{ "NFS", CU_FILE_NFS_SUPPORTED },
		{ "BeeGFS", CU_FILE_BEEGFS_SUPPORTED },
		{ "ScaTeFS", CU_FILE_SCATEFS_SUPPORTED },
		{ "VIRTIOFS", CU_FILE_VIRTIOFS_SUPPORTED },
		{ "WekaFS", CU_FILE_WEKAFS_SUPPORTED },
	};
	bool forced = is_set("properties.force_compat_mode", "true");
	bool compat = forced || is_set("properties.allow_compat_mode", "true");
	unsigned hooked = forced ? 0 : hooked_storage();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		printf(" %-18s : %s\n", rows[i].name,
		       ways(hooked & 1u << rows[i].target, compat));
	rdma_lines();
}

static void gpu_section(void)
{
	static struct gpu_facts gpus[MAX_GPUS];
	int nr = gpus_find(gpus);

	if (!nr)
		printf(" none on the PCI bus\n");
	for (int i = 0; i < nr; i++)
		printf(" GPU index %d %s bar:1 bar size (MiB):%llu %s, IOMMU "
		       "State: %s\n",
		       i, gpus[i].name[0] ? gpus[i].name : gpus[i].bdf,
		       (unsigned long long)gpus[i].bar1 >> 20,
		       gpus[i].name[0] ? "supports GDS" : "has no driver",
		       gpus[i].iommu ? "Enabled" : "Disabled");
}

static const char *driver_status(void)
{
	if (!sys_exists("/proc/driver/nvidia/version"))
		return "Not Installed";
	return has_open_driver() ?
		       "Supported(Nvidia Open Driver Installed)" :
		       "Supported(Nvidia Proprietary Driver Installed)";
}

/* An IOMMU that is at work has groups. */
static bool has_iommu(void)
{
	struct dirent **names = NULL;
	int nr = sys_list(&names, "/sys/kernel/iommu_groups");

	sys_list_free(names, nr);
	return nr > 0;
}

static void platform_section(void)
{
	char product[128];
	struct utsname uts;

	uname(&uts);
	if (!sys_line(product, sizeof(product),
		      "/sys/class/dmi/id/product_name"))
		snprintf(product, sizeof(product), "unknown");
	printf(" IOMMU: %s\n", has_iommu() ? "enabled" : "disabled");
	printf(" Nvidia Driver Info Status: %s\n", driver_status());
	printf(" Cuda Driver Version Installed: %d\n", platform_cuda_version());
	printf(" Platform: %s, Arch: %s(%s)\n", product, uts.machine,
	       uts.release);
}

bool platform_check(void)
{
	static struct peers peers;
	struct utsname uts;
	bool ok = check(cuFileDriverOpen(), "cuFileDriverOpen", "");

	uname(&uts);
	platform_versions();
	printf(" Platform: %s\n", uts.machine);
	heading("ENVIRONMENT:");
	config_environment();
	if (ok) {
		heading("DRIVER CONFIGURATION:");
		drivers_section();
		heading("CUFILE CONFIGURATION:");
		config_section();
	}
	heading("GPU INFO:");
	gpu_section();
	heading("PEER TO PEER INFO:");
	peers_find(&peers, platform_cuda_version(), true);
	if (!peers.nr_gpus)
		printf(" there is no GPU\n");
	peers_print(&peers, " ");
	heading("PLATFORM INFO:");
	platform_section();
	printf(" Platform verification %s\n", ok ? "succeeded" : "failed");
	if (ok) {
		config_problems();
		(void)cuFileDriverClose();
	}
	return ok;
}
