// SPDX-License-Identifier: Apache-2.0
/*
 * ferry_kernel - the kernel of ferries, loaded into one context, launched.
 *
 * DESIGN  A GPU that computes has no room for a block until one of the client's
 * is over, and where each of those stays as long as its kernel, an operation
 * waits for all of that. So a ferry has the greatest priority; and from compute
 * capability 9.0 on the next operation's takes the place of the one before it,
 * which it may do while that is still there (programmatic dependent launch): it
 * then waits until that one, or whatever is before it in the stream, is over.
 * Where the numbers of an operation are known when it is submitted, it rings
 * before it waits, so that its bytes are on their way already.
 *
 * Owned by whose context it is; no lock, for nothing changes once it is loaded.
 */
#ifndef CF_CORE_FERRY_KERNEL_H
#define CF_CORE_FERRY_KERNEL_H

#include "core/ferry.h"

struct cf_ferry_kernel {
	CUmodule module; /* NULL: there is none */
	CUfunction function;
	int priority;
	bool follows; /* waits itself for what is before it */
};

/*
 * For the context that is current. May wait until that context has nothing to
 * do. 0, or a CUDA code: there are no ferries in it.
 */
int cf_ferry_load(const struct cf_cuda *cuda, struct cf_ferry_kernel *kernel);

/*
 * How many blocks size bytes are worth, and when the next one may come. drawn:
 * they are likely to come out of windows (path/draws.h).
 */
void cf_ferry_shape(struct cf_ferry *ferry, size_t size, bool drawn);

/* door: a word that gets the ticket when the kernel begins, or 0. */
CUresult cf_ferry_launch(const struct cf_cuda *cuda,
			 const struct cf_ferry_kernel *kernel,
			 const struct cf_ferry *ferry, CUdeviceptr door,
			 uint32_t ticket, CUstream stream);

#endif
