// SPDX-License-Identifier: Apache-2.0
/* os_memory - entries of the real table (os.h) that are about memory. */
#ifndef CF_SEAM_OS_MEMORY_H
#define CF_SEAM_OS_MEMORY_H

#include <sys/types.h>

void *cf_os_map_anon(size_t size);
int cf_os_map_shared(int fd, size_t size, void **mem);
int cf_os_map_file(int fd, off_t off, size_t size, void **mem);
int cf_os_map_to_write(int fd, off_t off, size_t size, void **mem);
int cf_os_map_nothing(void *mem, size_t size);
int cf_os_map_file_at(void *mem, size_t size, int fd);
int cf_os_map_anon_at(void *mem, size_t size);
int cf_os_unmap(void *mem, size_t size);
int cf_os_forbid(void *mem, size_t size);
int cf_os_madvise(void *mem, size_t size, int advice);
ssize_t cf_os_copy_to(void *mem, const void *buf, size_t size);
ssize_t cf_os_copy_out(void *mem, const void *buf, size_t size);
int cf_os_prefer_node(void *mem, size_t size, unsigned node);
int cf_os_memory_policy(void);

#endif
