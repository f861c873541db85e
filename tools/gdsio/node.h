// SPDX-License-Identifier: Apache-2.0
/* node - threads on the CPUs of one NUMA node. */
#ifndef GDSIO_NODE_H
#define GDSIO_NODE_H

#include <stdbool.h>

/* Is there such a node, with CPUs? */
bool node_exists(int node);

/* Binds this thread, and so the memory that it touches first. False: errno. */
bool node_bind(int node);

#endif
