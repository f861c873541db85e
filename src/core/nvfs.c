// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs - opens the nvidia-fs kernel driver, and reads what it has hooked.
 *
 * The driver's list of modules is the safety gate: IO to storage that does not
 * know the driver would answer success and move the bytes of a host buffer
 * instead. An open of a node fills the list, so it is read after that.
 */
#include "core/nvfs.h"

#include <cufile.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "core/log.h"
#include "core/sysfs.h"
#include "seam/os.h"

#define MIN_MAJOR 2
#define MIN_MINOR 12
#define MAX_NODES 4 /* of 16; they share nothing that would make more pay */

/* Not wekafsio: it is in the list on every machine, so it proves nothing. */
static const struct {
	const char *name;
	int target;
} modules[] = {
	{ "lnet", CU_FILE_LUSTRE_SUPPORTED },
	{ "rpcrdma", CU_FILE_NFS_SUPPORTED },
	{ "mmfslinux", CU_FILE_GPFS_SUPPORTED },
	{ "nvme", CU_FILE_NVME_SUPPORTED },
	{ "nvme_rdma", CU_FILE_NVMEOF_SUPPORTED },
	{ "scsi_mod", CU_FILE_SCSI_SUPPORTED },
	{ "sfxvdriver", CU_FILE_SCALEFLUX_CSD_SUPPORTED },
	{ "nvmeib_common", CU_FILE_NVMESH_SUPPORTED },
	{ "beegfs", CU_FILE_BEEGFS_SUPPORTED },
	{ "scatefs", CU_FILE_SCATEFS_SUPPORTED },
};

/* All are written under the session lock; state last, with a release store. */
static _Atomic enum cf_nvfs_gate state = CF_NVFS_ABSENT;
static unsigned version[2], targets;
static int nodes[MAX_NODES];
static unsigned nr_nodes;

/* 0, or -errno of the first node; the other nodes may be missing. */
static int open_nodes(void)
{
	char path[32];
	int fd = -ENOENT;

	for (nr_nodes = 0; nr_nodes < MAX_NODES; nr_nodes++) {
		snprintf(path, sizeof(path), "/dev/nvidia-fs%u", nr_nodes);
		fd = cf_os->open(path, O_RDWR | O_CLOEXEC, 0);
		if (fd < 0)
			break;
		nodes[nr_nodes] = cf_os_move_up(fd);
	}
	return nr_nodes ? 0 : fd;
}

static void close_nodes(void)
{
	while (nr_nodes)
		cf_os->close(nodes[--nr_nodes]);
}

static bool read_version(void)
{
	char line[64];

	return !cf_sysfs_line(line, sizeof(line),
			      "/proc/driver/nvidia-fs/version") &&
	       sscanf(line, "version: %u.%u", &version[0], &version[1]) == 2 &&
	       (version[0] > MIN_MAJOR ||
		(version[0] == MIN_MAJOR && version[1] >= MIN_MINOR));
}

static int target_of(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (strlen(modules[i].name) == len &&
		    !memcmp(modules[i].name, name, len))
			return modules[i].target;
	return -1;
}

/* Lines are "name: version"; the last may be cut, and then is not known. */
static unsigned read_targets(void)
{
	unsigned found = 0;
	char text[4096];

	if (cf_sysfs_text(text, sizeof(text), "/proc/driver/nvidia-fs/modules"))
		return 0;
	for (char *line = text; *line; line += strcspn(line, "\n")) {
		size_t len;
		int target;

		line += *line == '\n';
		len = strcspn(line, ":\n");
		target = line[len] == ':' ? target_of(line, len) : -1;
		if (target >= 0)
			found |= 1u << target;
	}
	return found;
}

static enum cf_nvfs_gate find(void)
{
	int err = open_nodes();

	if (err == -EACCES || err == -EPERM)
		return CF_NVFS_FORBIDDEN;
	if (err)
		return CF_NVFS_ABSENT;
	if (!read_version())
		return CF_NVFS_OLD;
	targets = read_targets();
	return CF_NVFS_PASS;
}

void cf_nvfs_open(bool wanted)
{
	enum cf_nvfs_gate found = wanted ? find() : CF_NVFS_OFF;

	if (found != CF_NVFS_PASS)
		close_nodes();
	if (found != CF_NVFS_ABSENT && found != CF_NVFS_OFF)
		cf_log(CF_LOG_INFO,
		       "nvidia-fs %u.%u: %u nodes, storage targets %#x%s",
		       version[0], version[1], nr_nodes, targets,
		       found == CF_NVFS_PASS ? "" : ", not usable");
	atomic_store_explicit(&state, found, memory_order_release);
}

void cf_nvfs_close(void)
{
	atomic_store_explicit(&state, CF_NVFS_ABSENT, memory_order_release);
	close_nodes();
	version[0] = version[1] = targets = 0;
}

enum cf_nvfs_gate cf_nvfs_state(void)
{
	return atomic_load_explicit(&state, memory_order_acquire);
}

void cf_nvfs_version(unsigned *major, unsigned *minor)
{
	*major = version[0];
	*minor = version[1];
}

unsigned cf_nvfs_targets(void)
{
	return cf_nvfs_state() == CF_NVFS_PASS ? targets : 0;
}

/* Relaxed: turns only spread the load over the nodes. */
int cf_nvfs_node(void)
{
	static _Atomic unsigned turn;

	if (cf_nvfs_state() != CF_NVFS_PASS)
		return -1;
	return nodes[atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed) %
		     nr_nodes];
}

void cf_nvfs_fork_child(void)
{
	cf_nvfs_close();
}
