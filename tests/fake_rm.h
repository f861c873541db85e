// SPDX-License-Identifier: Apache-2.0
/*
 * fake_rm - NVIDIA's kernel driver inside the process, as far as it maps the
 * memory of a GPU for a client of its own (core/rm.h), and has pages of that
 * for GPUs (core/rm_pages.h): a machine with one GPU whose nodes are there.
 *
 * It answers for the nodes in front of the table of system calls that it finds
 * when it begins, and refuses what the real driver refuses. What it maps is the
 * memory of the fake CUDA driver behind the descriptor that is imported. Its
 * descriptors are of /dev/null, opened by the table behind it, which is asked
 * first in each later call, too: so a table that counts calls or fails them
 * goes on doing so. Another (tests/fault) may stand in front of this one.
 */
#ifndef TESTS_FAKE_RM_H
#define TESTS_FAKE_RM_H

#include <stdbool.h>

/* What a client does, in its order. */
enum fake_rm_step {
	FAKE_RM_CTL, /* opens /dev/nvidiactl */
	FAKE_RM_CLIENT,
	FAKE_RM_INFO, /* of what was exported */
	FAKE_RM_DEVICE,
	FAKE_RM_PROC, /* opens the GPU's file under /proc */
	FAKE_RM_NODE, /* opens /dev/nvidiaN */
	FAKE_RM_REGISTER,
	/* that maps a GPU's memory */
	FAKE_RM_IMPORT,
	FAKE_RM_MAP,  /* says what the node shows */
	FAKE_RM_SHOW, /* maps the node */
	/* that has pages of its own for GPUs */
	FAKE_RM_PAGES,
	FAKE_RM_EXPORT,
	FAKE_RM_FREE,
	FAKE_RM_NR_STEPS
};

struct fake_rm {
	const char *address; /* of the GPU on PCI, as the kernel spells it */
	unsigned minor;	     /* of the GPU's node */
	/* what the GPU's file under /proc says of it; NULL: the minor */
	const char *minor_line;
	bool is_535;   /* the driver is that old */
	unsigned type; /* of imported memory; 1: a GPU's */
	/* -errno that a step answers, an ioctl also a status; 0: it succeeds */
	int refusal[FAKE_RM_NR_STEPS];
};
extern struct fake_rm fake_rm;

/*
 * A machine that is well, with the first GPU of the fake CUDA driver. Then
 * change it. Nothing of the library may run while a table is swapped.
 */
void fake_rm_begin(void);
/* The table of before is back; fails unless all is closed and unmapped. */
void fake_rm_end(void);

/* How many there are now. A client lasts as long as its descriptor's file. */
unsigned fake_rm_descriptors(void);
unsigned fake_rm_clients(void);
unsigned fake_rm_maps(void);
/* Objects of pages; and of those the ones that are still exported. */
unsigned fake_rm_pages(void);
unsigned fake_rm_exports(void);
/* How often since the begin. */
unsigned fake_rm_asked(enum fake_rm_step step);

#endif
