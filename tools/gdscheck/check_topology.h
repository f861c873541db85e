// SPDX-License-Identifier: Apache-2.0
/* check_topology - gdscheck -t: how far disks and NICs are from the GPUs. */
#ifndef TOOLS_CHECK_TOPOLOGY_H
#define TOOLS_CHECK_TOPOLOGY_H

#include <stdio.h>

void topology_print(FILE *out);

#endif
