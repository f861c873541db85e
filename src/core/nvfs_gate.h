// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_gate - whether a file's bytes reach storage that nvidia-fs has hooked.
 *
 * Strict on purpose: if they do not, or only sometimes, IO would answer success
 * and move other bytes. Asked once, when a file is registered.
 */
#ifndef CF_CORE_NVFS_GATE_H
#define CF_CORE_NVFS_GATE_H

#include <sys/stat.h>
#include "core/nvfs.h"

/*
 * CF_NVFS_PASS and *target, a value of CUfileDriverStatusFlags_t; or why not.
 * stx has basic facts, attributes and the mount's number. Any thread.
 */
enum cf_nvfs_gate cf_nvfs_file_gate(int fd, const struct statx *stx,
				    int *target);

#endif
