// SPDX-License-Identifier: Apache-2.0
/* nics - the ports that properties.rdma_dev_addr_list names, and their state.
 */
#ifndef TOOLS_NICS_H
#define TOOLS_NICS_H

struct nics {
	int up;	  /* ports that are active */
	int down; /* ports that are not, and names that lead to none */
};

/* list: the value as the configuration shows it, ["10.0.0.1", "mlx5_0"]. */
void nics_count(const char *list, struct nics *nics);

#endif
