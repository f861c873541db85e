// SPDX-License-Identifier: Apache-2.0
/*
 * pci - GPUs, disks and NICs of the PCI tree, and how far they are apart.
 *
 * Each list is made anew, sorted by address, and the caller's to free. No
 * driver is called: a GPU is a display device of NVIDIA's in sysfs. Any thread.
 */
#ifndef CF_CORE_PCI_H
#define CF_CORE_PCI_H

#include <stdint.h>

enum cf_pci_kind {
	CF_PCI_GPU,
	CF_PCI_NVME,
	CF_PCI_STORAGE, /* of another kind */
	CF_PCI_NETWORK,
};

struct cf_pci {
	char address[24]; /* "0000:3b:00.0" */
	/* from the host bridge down: "pci0000:3a/0000:3a:00.0/0000:3b:00.0" */
	char path[256];
	char name[32]; /* "nvme0", "mlx5_0", "eth0"; empty: none */
	enum cf_pci_kind kind;
	int node;	  /* of NUMA; -1: not known */
	uint64_t bar_kib; /* of the largest memory region */
};

/* 0 and *list (free it; NULL if there are no devices), or -errno and NULL. */
int cf_pci_list(struct cf_pci **list, unsigned *nr);

/*
 * How well two devices reach one another: 1 to 0x7000, smaller is better.
 * Below 0x1000 it is the number of steps over a bridge that both are under;
 * 0x1000, 0x2000 and 0x4000 are added where the way leads through one host
 * bridge, another one of the same NUMA node, and another node.
 */
unsigned cf_pci_order(const struct cf_pci *a, const struct cf_pci *b);
/* The same in nvidia-smi's words: PIX, PXB, PHB, NODE, SYS. */
const char *cf_pci_distance(const struct cf_pci *a, const struct cf_pci *b);

/* Size in KiB of the largest region in the text of a "resource" file. */
uint64_t cf_pci_largest_kib(const char *resource);

#endif
