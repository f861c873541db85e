// SPDX-License-Identifier: Apache-2.0
/* topology_file - writes GPUs and nearby devices to a file (contract 3.16). */
#ifndef CF_CORE_TOPOLOGY_FILE_H
#define CF_CORE_TOPOLOGY_FILE_H

/*
 * Makes or replaces the file. 0; -5022: it cannot be opened; or the -errno of
 * a failure after that. Any thread.
 */
int cf_topology_write(const char *path);

#endif
