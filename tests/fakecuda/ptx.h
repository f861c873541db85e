// SPDX-License-Identifier: Apache-2.0
/*
 * ptx - kernels and their parameter sizes, from PTX text.
 */
#ifndef FC_PTX_H
#define FC_PTX_H

#include <stdbool.h>
#include <stddef.h>

enum { FC_PTX_PARAMS = 32 };

struct fc_ptx_entry {
	size_t sizes[FC_PTX_PARAMS];
	unsigned int nr_params;
};

bool fc_ptx_find(const char *text, const char *name, struct fc_ptx_entry *e);

#endif
