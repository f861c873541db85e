// SPDX-License-Identifier: Apache-2.0
/*
 * asks - what the library would do with every kind of request on one file.
 *
 * It is asked through ocf_explain_memory: nothing is read or written, and no
 * GPU is needed.
 */
#ifndef TOOLS_ASKS_H
#define TOOLS_ASKS_H

#include <opencufile.h>
#include <stdbool.h>
#include <sys/stat.h>
#include "peers.h"
#include "place.h"

#define NR_OPS 2
#define NR_MEMORIES 3
#define NR_ASKS (2 * NR_MEMORIES * 2) /* opened, memory, aligned */

struct ask {
	bool direct; /* the file is opened with O_DIRECT */
	bool aligned;
	ocf_explain_t e;
};

struct asks {
	const char *name;
	bool in_directory; /* name is a directory; asked of a file made there */
	struct stat st;
	struct place place;
	struct peers peers; /* check_file fills it in, if on a block device */
	bool writable;
	bool refused;		  /* the library would not register it */
	char why_not_direct[128]; /* "" if O_DIRECT can be had */
	unsigned nr;		  /* asks of each operation */
	struct ask asks[NR_OPS][NR_ASKS];
};

/*
 * If name is a directory, asks about a file that is made there, without a
 * name if it can be, and gone afterwards. False: why says so, and nothing is
 * held.
 */
bool asks_make(struct asks *asks, const char *name, char *why, size_t size);

const char *asks_memory(ocf_memory_t memory);

#endif
