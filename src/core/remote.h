// SPDX-License-Identifier: Apache-2.0
/*
 * remote - GPU memory that NICs reach, and its description for a server.
 *
 * Made when a buffer is registered while NICs are open (core/nic.h): each NIC
 * registers the range. The buffer's registration and each request that uses it
 * hold a reference; the last put deregisters the range at the NICs.
 *
 * The description is the text that goes by cufileRDMAInfo_t, in hexadecimal:
 *
 *	address:size:rkey:lid:queue pair:1:GID
 *	16      8    8    4   6           32 digits
 *
 * address is the GPU's, which the callback also gets as its buffer; size: the
 * bytes of that call. Public servers and clients agree on these fields (NooBaa,
 * MinIO); the version is 1, and desc_len does not count the final zero.
 */
#ifndef CF_CORE_REMOTE_H
#define CF_CORE_REMOTE_H

#include <stdbool.h>
#include <sys/types.h>
#include "core/handle.h"
#include "core/memory.h"

struct cf_remote;

/*
 * Registers size bytes of mem at every NIC that takes them; NULL: none does, or
 * there is no NIC. relaxed: the client asked for relaxed ordering. Calls the
 * driver and the NICs; the caller holds no lock.
 */
struct cf_remote *cf_remote_make(const struct cf_memory *mem, size_t size,
				 bool relaxed);
void cf_remote_get(struct cf_remote *remote);
void cf_remote_put(struct cf_remote *remote); /* NULL is ignored */

/* Whether one of hosts is a NIC that reaches the memory. Pure. */
bool cf_remote_serves(const struct cf_remote *remote,
		      const struct cf_nic_hosts *hosts);

#define CF_REMOTE_TEXT 88

struct cf_remote_info {
	cufileRDMAInfo_t info;
	char text[CF_REMOTE_TEXT];
};

/*
 * Describes size bytes at addr, a part of the memory, for a callback of
 * handle's file system about file_off. Takes the NIC that the file system ranks
 * highest, else the one nearest to the GPU, in turns if there are several.
 * False: the file system's server may use none. Calls the client.
 */
bool cf_remote_describe(struct cf_remote *remote,
			const struct cf_handle *handle, uintptr_t addr,
			size_t size, off_t file_off,
			struct cf_remote_info *out);

/* The most bytes of one description. */
#define CF_REMOTE_MAX_SIZE ((size_t)1 << 30)

#endif
