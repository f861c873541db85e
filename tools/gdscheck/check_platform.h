// SPDX-License-Identifier: Apache-2.0
/* check_platform - gdscheck -p and -v (contract 5.1). */
#ifndef TOOLS_CHECK_PLATFORM_H
#define TOOLS_CHECK_PLATFORM_H

#include <stdbool.h>

void platform_versions(void);

/* CUDA, as the driver's ABI has it, or 0; asks no GPU. */
int platform_cuda_version(void);

/* False: the library does not open here. */
bool platform_check(void);

#endif
