// SPDX-License-Identifier: Apache-2.0
/* place - where a file lives: mount, file system, block device. */
#ifndef TOOLS_PLACE_H
#define TOOLS_PLACE_H

#include <stdbool.h>

struct place {
	char type[64];	   /* of the file system; "" where none was found */
	char mount[1024];  /* the mount point */
	char source[1024]; /* what is mounted there */
	char options[1024];
	unsigned major, minor; /* of the device; major 0: there is none */
	/* of a block device: */
	char name[64]; /* partition or disk */
	char disk[64]; /* the whole disk */
	char bus[64];  /* "NVMe", "NVMe over tcp", "SCSI", "md raid0", ... */
	char model[128];
	char driver[64]; /* of the adapter or the disk */
	int node;	 /* NUMA; -1: not known */
	unsigned id;	 /* the kernel's number of the mount */
};

/* False: it is in no mount that can be seen. */
bool place_of_file(int fd, struct place *place);

/* Puts a ? for control characters in what users may have called as they like.
 */
void place_make_plain(struct place *place);

/* Calls each for every mount until it answers false. */
void place_each(bool (*each)(const struct place *place, void *arg), void *arg);

#endif
