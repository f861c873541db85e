// SPDX-License-Identifier: Apache-2.0
/* nvfs - what the session tells the path by nvidia-fs. */
#ifndef CF_PATH_NVFS_H
#define CF_PATH_NVFS_H

struct cf_config;

/* For requests from now on; one that runs may still use the old values. */
void cf_path_nvfs_configure(const struct cf_config *config);

#endif
