// SPDX-License-Identifier: Apache-2.0
/* node - threads on the CPUs of one NUMA node. */
#ifndef GDSIO_NODE_H
#define GDSIO_NODE_H

#include <stdbool.h>

/* Is there such a node, with CPUs? */
bool node_exists(int node);

/* This thread, and with it the memory that it touches first. errno. */
bool node_bind(int node);

#endif
