// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs - the nvidia-fs kernel driver: whether it is there and may be used, and
 * which storage it has hooked.
 *
 * Opened by the open of the session and closed by its last close, both under
 * the session lock; in between nothing changes, so any thread may ask.
 */
#ifndef CF_CORE_NVFS_H
#define CF_CORE_NVFS_H

#include <stdbool.h>

/* Why nvidia-fs cannot move a file's bytes; in the order of enum cf_why. */
enum cf_nvfs_gate {
	CF_NVFS_PASS,
	CF_NVFS_OFF,	   /* turned off by configuration */
	CF_NVFS_ABSENT,	   /* no device node */
	CF_NVFS_FORBIDDEN, /* a node that we may not open */
	CF_NVFS_OLD,	   /* a version without batches, or an unknown one */
	/* of a file: */
	CF_NVFS_STORAGE,  /* storage that nvidia-fs is not known to serve */
	CF_NVFS_UNHOOKED, /* the storage's module is not in the driver's list */
	CF_NVFS_MOUNT,	  /* mount options under which data takes detours */
	CF_NVFS_INODE,	  /* attributes of the file that have that effect */
};

void cf_nvfs_open(bool wanted);
void cf_nvfs_close(void);

/* CF_NVFS_PASS, or why no file can use nvidia-fs. */
enum cf_nvfs_gate cf_nvfs_state(void);
/* 0.0 without the driver. */
void cf_nvfs_version(unsigned *major, unsigned *minor);
/* Hooked storage: bit n for value n of CUfileDriverStatusFlags_t. */
unsigned cf_nvfs_targets(void);
/* The descriptor of one of the nodes, in turn; -1: there is none. */
int cf_nvfs_node(void);

/* The child closes the nodes: it does not have their mappings. */
void cf_nvfs_fork_child(void);

#endif
