// SPDX-License-Identifier: Apache-2.0
/* fake_rm_files - what the files of fake_rm share. All under its lock. */
#ifndef TESTS_FAKE_RM_FILES_H
#define TESTS_FAKE_RM_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fake_rm.h"

#define FAKE_RM_MAX_PAGES 4
#define FAKE_RM_METADATA 0x5a /* each byte of what goes with an export */

enum fake_rm_status {
	DUPLICATE_NAME = 0x19,
	NO_RESOURCES = 0x1a,
	INVALID_ADDRESS = 0x1e,
	INVALID_ARGUMENT = 0x1f,
	INVALID_CLASS = 0x22,
	INVALID_CLIENT = 0x23,
	INVALID_FLAGS = 0x29,
	INVALID_LIMIT = 0x2e,
	INVALID_HANDLE = 0x33,
	INVALID_PARENT = 0x36,
	INVALID_OFFSET = 0x37,
	INVALID_PARAMETER = 0x3b,
	NOT_SUPPORTED = 0x56,
	NOT_FOUND = 0x57,
	OPERATING_SYSTEM = 0x59,
	OUT_OF_RANGE = 0x5b,
	STATE_IN_USE = 0x63,
};

enum fake_rm_kind { FAKE_RM_IS_CTL, FAKE_RM_IS_NODE, FAKE_RM_IS_PROC };

/* An open file: descriptors share one where they were duplicated. */
struct fake_rm_file {
	enum fake_rm_kind kind;
	unsigned refs; /* of descriptors, mappings, and nodes registered */
	/* nvidiactl's: a client with at most one of each; 0: none */
	uint32_t client, device, memory;
	size_t size; /* of the memory */
	int holder;  /* the descriptor that is the memory's by now */
	uint32_t pages[FAKE_RM_MAX_PAGES]; /* objects of pages; 0: none */
	struct {
		uint64_t addr, size;
	} where[FAKE_RM_MAX_PAGES];
	bool exports; /* something, by this descriptor, and has no client */
	/* a node's: */
	struct fake_rm_file *ctl; /* that it was registered with */
	size_t shown;		  /* what may be mapped of it; 0: nothing */
};

extern unsigned fake_rm_nr_fds, fake_rm_nr_clients;
extern unsigned fake_rm_nr_pages, fake_rm_nr_exports;

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

/* Pages of the process; see fake_rm_pages.c. Statuses, or -errno. */
struct cf_rm_pages_arg;
struct cf_rm_free_arg;
struct cf_rm_export;
int fake_rm_new_handle(const struct fake_rm_file *ctl, uint32_t handle);
int fake_rm_pin(struct fake_rm_file *node, const struct cf_rm_pages_arg *arg);
int fake_rm_free(struct fake_rm_file *ctl, const struct cf_rm_free_arg *arg);
int fake_rm_export(struct fake_rm_file *ctl, const struct cf_rm_export *params,
		   size_t size);

/* The answer of the ioctl itself; a status is in the argument. */
int fake_rm_call(struct fake_rm_file *file, int fd, unsigned long request,
		 void *arg);

#endif
