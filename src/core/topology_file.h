// SPDX-License-Identifier: Apache-2.0
/* topology_file - GPUs and what stands near them, as a file (contract 3.16). */
#ifndef CF_CORE_TOPOLOGY_FILE_H
#define CF_CORE_TOPOLOGY_FILE_H

/*
 * Makes or replaces the file. 0; -5022 where it cannot be opened; -errno of
 * what went wrong after that. Any thread.
 */
int cf_topology_write(const char *path);

#endif
