// SPDX-License-Identifier: Apache-2.0
/*
 * remote - GPU memory that NICs reach, and its description for a server.
 *
 * Made when a buffer is registered while NICs are open (core/nic.h): each of
 * them registers the range. The registration of the buffer holds a reference
 * and each request that found it; the last one ends it at the NICs.
 *
 * The description is the text that goes by cufileRDMAInfo_t, in hexadecimal:
 *
 *	address:size:rkey:lid:queue pair:1:GID
 *	16      8    8    4   6           32 digits
 *
 * address is the GPU's, also what the callback gets as its buffer, and size
 * the bytes of that call. Public servers and clients agree on these fields
 * (NooBaa, MinIO); the version is 1, and desc_len leaves out the final zero.
 */
#ifndef CF_CORE_REMOTE_H
#define CF_CORE_REMOTE_H

#include <stdbool.h>
#include <sys/types.h>
#include "core/handle.h"
#include "core/memory.h"

struct cf_remote;

/*
 * size bytes of mem at every NIC that takes them; NULL: none does, or there
 * is no NIC. relaxed: the client asked for relaxed ordering. Asks the driver
 * and the NICs; holds no lock of the caller's.
 */
struct cf_remote *cf_remote_make(const struct cf_memory *mem, size_t size,
				 bool relaxed);
void cf_remote_get(struct cf_remote *remote);
void cf_remote_put(struct cf_remote *remote); /* NULL is nobody's */

/* One of the NICs that have it is one of those. Pure. */
bool cf_remote_serves(const struct cf_remote *remote,
		      const struct cf_nic_hosts *hosts);

#define CF_REMOTE_TEXT 88

struct cf_remote_info {
	cufileRDMAInfo_t info;
	char text[CF_REMOTE_TEXT];
};

/*
 * size bytes at addr, a part of it, for a call of handle's file system about
 * file_off: by the NIC that this ranks highest, else by the one next to the
 * GPU, in turns where several are. False: none serves. Calls the client.
 */
bool cf_remote_describe(struct cf_remote *remote,
			const struct cf_handle *handle, uintptr_t addr,
			size_t size, off_t file_off,
			struct cf_remote_info *out);

/* The most that one description tells of. */
#define CF_REMOTE_MAX_SIZE ((size_t)1 << 30)

#endif
