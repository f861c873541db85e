// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs - the nvidia-fs kernel driver: is it there, is it ours to use, and
 * which storage has it hooked.
 *
 * Looked at by the open of the session, and let go by its last close; in
 * between nothing changes, so any thread may ask. open and close: under the
 * session lock.
 */
#ifndef CF_CORE_NVFS_H
#define CF_CORE_NVFS_H

#include <stdbool.h>

/* Why a file cannot travel by nvidia-fs; the order is that of enum cf_why. */
enum cf_nvfs_gate {
	CF_NVFS_PASS,
	CF_NVFS_OFF,	   /* configuration does not want it */
	CF_NVFS_ABSENT,	   /* no device node */
	CF_NVFS_FORBIDDEN, /* a node that we may not open */
	CF_NVFS_OLD,	   /* a version without batches, or none to be read */
	/* of a file: */
	CF_NVFS_STORAGE,  /* no storage that it is known to serve */
	CF_NVFS_UNHOOKED, /* the storage's module is not in its list */
	CF_NVFS_MOUNT,	  /* mount options under which data takes detours */
	CF_NVFS_INODE,	  /* the same for attributes of the file */
};

void cf_nvfs_open(bool wanted);
void cf_nvfs_close(void);

/* CF_NVFS_PASS, or why nothing can travel this way. */
enum cf_nvfs_gate cf_nvfs_state(void);
/* 0.0 without it. */
void cf_nvfs_version(unsigned *major, unsigned *minor);
/* Hooked storage: bits by number of CUfileDriverStatusFlags_t. */
unsigned cf_nvfs_targets(void);
/* A descriptor of one of the nodes, in turns; -1: there is none. */
int cf_nvfs_node(void);

/* The child lets go of the nodes: what they mapped is not there. */
void cf_nvfs_fork_child(void);

#endif
