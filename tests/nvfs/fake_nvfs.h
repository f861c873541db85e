// SPDX-License-Identifier: Apache-2.0
/*
 * fake_nvfs - the nvidia-fs driver and a machine that has it, inside the
 * process: a table of system calls that answers for the nodes, for what the
 * driver tells under /proc, and for the disk under the test's file.
 *
 * It has the rules of the driver's interface, and its hazards: a second request
 * on a mapping kills the mapping, errors hide behind EPERM, holes are not
 * written, and storage that is not hooked gets its bytes from the shadow
 * buffer. Each rule that the library breaks counts as a violation. GPU memory
 * is the fake CUDA driver's.
 */
#ifndef TESTS_FAKE_NVFS_H
#define TESTS_FAKE_NVFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fake_hole {
	off_t off;
	size_t size;
};

struct fake_nvfs {
	/* the machine */
	int open_err;		 /* of the nodes; 0: they are there */
	const char *version;	 /* of /proc/driver/nvidia-fs/version */
	const char *modules;	 /* of .../modules */
	const char *fs, *opts;	 /* of the mount under the file */
	const char *transport;	 /* of the disk; NULL: it has none */
	const char *level;	 /* of md; NULL: it is no RAID */
	const char *transport_1; /* of a RAID's second disk, if it is another */
	bool integrity;
	int flags;	     /* what FS_IOC_GETFLAGS answers */
	uint64_t attributes; /* what statx answers of the file */
	/* the driver */
	bool unhooked; /* the disk does not know the driver, despite modules */
	unsigned async_us; /* a queued request takes so long */
	const struct fake_hole *holes;
	unsigned nr_holes;
	size_t short_at; /* most bytes that a request moves; 0: all */
	int err;	 /* READ and WRITE answer this ... */
	unsigned err_at; /* ... at the nth of them, counted from 1; 0: none */
	bool err_persist;
	int map_err;	   /* of MAP */
	unsigned map_most; /* mappings that MAP gives; 0: any number */
	bool no_batch;	   /* BATCH fails after its first entry */
};

extern struct fake_nvfs fake_nvfs;

/* A machine that is well: ext4 on a hooked NVMe disk. Then change it. */
void fake_nvfs_begin(void);
/* The real table is back; fails unless all is unmapped, closed and legal. */
void fake_nvfs_end(void);

enum fake_count {
	FAKE_MAPS,
	FAKE_SYNCS,
	FAKE_ASYNCS,
	FAKE_BATCHES,
	FAKE_BYTES, /* that the driver moved */
	FAKE_BUSY,  /* requests to a mapping that had one */
	FAKE_NR_COUNTS
};
size_t fake_nvfs_count(enum fake_count count);
/* Mappings there are now. */
unsigned fake_nvfs_live(void);
unsigned fake_nvfs_violations(void);

/* The nth call of this row answers -err, and if persist is set all later ones;
 * nth 0: none does. */
enum fake_row {
	FAKE_OPEN,
	FAKE_IOCTL,
	FAKE_MAP_SHARED,
	FAKE_MAP_ANON,
	FAKE_MADVISE,
	FAKE_UNMAP,
	FAKE_FSTAT,
	FAKE_CLOCK,
	FAKE_NR_ROWS
};
void fake_nvfs_fail(enum fake_row row, unsigned nth, bool persist, int err);
bool fake_nvfs_fired(void);

#endif
