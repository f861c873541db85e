// SPDX-License-Identifier: Apache-2.0
/* file_facts - what is learnt about a file once, when it is registered. */
#ifndef CF_CORE_FILE_FACTS_H
#define CF_CORE_FILE_FACTS_H

#include <linux/stat.h>
#include "core/handle.h"

/* What the kernel says of a descriptor; nothing for user-space files. */
struct cf_file_answer {
	int flags; /* fcntl(F_GETFL), or -errno */
	int err;   /* of statx */
	struct statx stx;
	long fs_kind; /* cf_fs_kind */
};

/*
 * Asks the kernel, which asks a file's server, and waits for one that is away.
 * So the caller holds no lock.
 */
void cf_file_ask(const CUfileDescr_t *descr, struct cf_file_answer *answer);

/* Whether cf_file_facts takes the descriptor that has answered so. */
bool cf_file_is_taken(const struct cf_file_answer *answer);

/*
 * Fills the file's fields of handle. 0, or -5022 (no such fd), -5008 (type),
 * -5018 (not a regular file or block device), -5019 (open flags), or the -errno
 * of asking about it.
 */
int cf_file_facts(const CUfileDescr_t *descr,
		  const struct cf_file_answer *answer,
		  struct cf_handle *handle);

/*
 * Whether the file's O_DIRECT is one in name alone, and its bytes go through
 * the page cache. Asks the kernel again where that was so at registration: a
 * small file that lies in its inode may have grown.
 */
bool cf_file_lacks_dio(const struct cf_handle *handle);

#endif
