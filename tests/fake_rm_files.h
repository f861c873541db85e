// SPDX-License-Identifier: Apache-2.0
/* fake_rm_files - what the files of fake_rm share. All under its lock. */
#ifndef TESTS_FAKE_RM_FILES_H
#define TESTS_FAKE_RM_FILES_H

#include <stddef.h>
#include <stdint.h>
#include "fake_rm.h"

enum fake_rm_kind { FAKE_RM_IS_CTL, FAKE_RM_IS_NODE, FAKE_RM_IS_PROC };

/* An open file: descriptors share one where they were duplicated. */
struct fake_rm_file {
	enum fake_rm_kind kind;
	unsigned refs; /* of descriptors, mappings, and nodes registered */
	/* nvidiactl's: a client with at most one of each; 0: none */
	uint32_t client, device, memory;
	size_t size; /* of the memory */
	int holder;  /* the descriptor that is the memory's by now */
	/* a node's: */
	struct fake_rm_file *ctl; /* that it was registered with */
	size_t shown;		  /* what may be mapped of it; 0: nothing */
};

extern unsigned fake_rm_nr_fds, fake_rm_nr_clients;

/* A new one, by this descriptor; one more descriptor of it. */
void fake_rm_file_add(int fd, enum fake_rm_kind kind);
void fake_rm_file_alias(int fd, struct fake_rm_file *file);
/* Its descriptor is closed; nothing where it is none of ours. */
void fake_rm_file_forget(int fd);
/* A reference less; the last takes the client along. */
void fake_rm_file_put(struct fake_rm_file *file);
/* NULL: the descriptor is none of ours. */
struct fake_rm_file *fake_rm_file(int fd);

/* Counts the step; what it is to answer. */
int fake_rm_refusal(enum fake_rm_step step);

/* The answer of the ioctl itself; a status is in the argument. */
int fake_rm_call(struct fake_rm_file *file, int fd, unsigned long request,
		 void *arg);

#endif
