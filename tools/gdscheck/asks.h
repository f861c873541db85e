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
	bool in_directory; /* name is one: a file made there for the question */
	struct stat st;
	struct place place;
	struct peers peers; /* the asker's, where there is a block device */
	bool writable;
	bool refused;		  /* it would not be registered */
	char why_not_direct[128]; /* "" where O_DIRECT can be had */
	unsigned nr;		  /* of each operation */
	struct ask asks[NR_OPS][NR_ASKS];
};

/*
 * Of a directory it is a file without a name that is asked about, which is
 * gone afterwards. False: reported in why, and nothing is held.
 */
bool asks_make(struct asks *asks, const char *name, char *why, size_t size);

const char *asks_memory(ocf_memory_t memory);

#endif
