// SPDX-License-Identifier: Apache-2.0
/* rdma_sys - see rdma_sys.h. The tree is made of files in memory. */
#include "rdma_sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"

#define GPU "pci0000:00/0000:00:01.0/0000:01:00.0"
/* no memory of a test is on it; it is the first in a list, and near other NICs
 */
#define OTHER_GPU "pci0000:80/0000:80:02.0/0000:00:08.0"
#define NONE \
	"1" \
	"0000:0000:0000:0000:0000:0000:0000:0000"

const struct rdma_sys_nic rdma_sys_nics[RDMA_SYS_NICS] = {
	{ "mlx5_0",
	  "pci0000:00/0000:00:01.0/0000:01:00.1",
	  { "1fe80:0000:0000:0000:0202:c9ff:fe00:0001",
	    "10000:0000:0000:0000:0000:ffff:0a00:0001",
	    "20000:0000:0000:0000:0000:ffff:0a00:0001",
	    "2fd00:0000:0000:0000:0000:0000:0000:0001" },
	  0,
	  true },
	{ "mlx5_1",
	  "pci0000:80/0000:80:01.0/0000:81:00.0",
	  { "2fe80:0000:0000:0000:0202:c9ff:fe00:0002", NONE,
	    "20000:0000:0000:0000:0000:ffff:0a00:0002" },
	  7,
	  true },
	{ "mlx5_2",
	  "pci0000:80/0000:80:02.0/0000:82:00.0",
	  { "20000:0000:0000:0000:0000:ffff:0a00:0003" },
	  0x1ff,
	  true },
	{ "plain0",
	  "pci0000:80/0000:80:03.0/0000:83:00.0",
	  { "20000:0000:0000:0000:0000:ffff:0a00:0004" },
	  0,
	  true },
	{ "mlx5_9",
	  "pci0000:80/0000:80:04.0/0000:84:00.0",
	  { "20000:0000:0000:0000:0000:ffff:0a00:0009" },
	  0,
	  false },
};

bool rdma_sys_has_gid(const struct rdma_sys_nic *nic,
		      const unsigned char gid[16])
{
	char text[48] = "";

	for (int i = 0; i < 8; i++)
		snprintf(text + 5 * i, sizeof(text) - 5 * (size_t)i,
			 "%02x%02x:", gid[2 * i], gid[2 * i + 1]);
	text[39] = '\0';
	for (int i = 0; i < 4; i++)
		if (nic->gids[i] && !strcmp(nic->gids[i] + 1, text))
			return true;
	return false;
}

/* --------------------------------------------------------------- the tree */

static char root[64];
static struct cf_os os;

static void put(const char *text, const char *format, const char *name,
		int index)
{
	char path[512];
	FILE *out;
	int n = snprintf(path, sizeof(path), "%s/", root);

	snprintf(path + n, sizeof(path) - (size_t)n, format, name, index);
	for (char *slash = path + n; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			fail_msg("mkdir %s: %s", path, strerror(errno));
		*slash = '/';
	}
	out = fopen(path, "we");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void put_pci(const char *pci, const char *class, const char *vendor,
		    const char *name)
{
	char link[256], to[256], folder[256];

	put(class, "devices/%s/class", pci, 0);
	put(vendor, "devices/%s/vendor", pci, 0);
	put("-1", "devices/%s/numa_node", pci, 0);
	if (name) {
		snprintf(folder, sizeof(folder), "devices/%s/infiniband/%%s/x",
			 pci);
		put("", folder, name, 0);
	}
	put("", "bus/pci/devices/%s", "nothing", 0);
	snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", root,
		 strrchr(pci, '/') + 1);
	snprintf(to, sizeof(to), "../../../devices/%s", pci);
	assert_int_equal(symlink(to, link), 0);
}

static void put_nic(const struct rdma_sys_nic *nic)
{
	put_pci(nic->pci, "0x020000", "0x15b3", nic->name);
	for (int i = 0; i < 4 && nic->gids[i]; i++) {
		put(nic->gids[i] + 1, "class/infiniband/%s/ports/1/gids/%d",
		    nic->name, i);
		put(nic->gids[i][0] == '2' ? "RoCE v2" : "IB/RoCE v1",
		    "class/infiniband/%s/ports/1/gid_attrs/types/%d", nic->name,
		    i);
	}
}

static int open_in_tree(const char *path, int flags, mode_t mode)
{
	char there[512];

	if (strncmp(path, "/sys/", 5))
		return cf_os_real.open(path, flags, mode);
	snprintf(there, sizeof(there), "%s/%s", root, path + 5);
	return cf_os_real.open(there, flags, mode);
}

static ssize_t link_in_tree(const char *path, char *buf, size_t size)
{
	char there[512];

	if (strncmp(path, "/sys/", 5))
		return cf_os_real.read_link(path, buf, size);
	snprintf(there, sizeof(there), "%s/%s", root, path + 5);
	return cf_os_real.read_link(there, buf, size);
}

void rdma_sys_begin(void)
{
	snprintf(root, sizeof(root), "%s/rdma-XXXXXX", th_shm_dir());
	assert_non_null(mkdtemp(root));
	put_pci(GPU, "0x030000", "0x10de", NULL);
	put_pci(OTHER_GPU, "0x030000", "0x10de", NULL);
	for (int i = 0; i < RDMA_SYS_NICS; i++)
		put_nic(&rdma_sys_nics[i]);
	os = cf_os_real;
	os.open = open_in_tree;
	os.read_link = link_in_tree;
	cf_os = &os;
}

void rdma_sys_end(void)
{
	char command[96];

	cf_os = &cf_os_real;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	assert_int_equal(system(command), 0);
}
