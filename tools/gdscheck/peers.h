// SPDX-License-Identifier: Apache-2.0
/*
 * peers - whether disks can reach a GPU's memory over PCI (P2PDMA), and what
 * is missing, from files alone.
 */
#ifndef TOOLS_PEERS_H
#define TOOLS_PEERS_H

/* Lines for gdscheck -p; cuda: the driver's version, 0 for none. */
void peers_section(int cuda);

#endif
