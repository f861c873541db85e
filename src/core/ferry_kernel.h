// SPDX-License-Identifier: Apache-2.0
/*
 * ferry_kernel - the kernel of ferries, loaded into one context, launched.
 *
 * DESIGN  A GPU that computes has no room for a ferry's block until a block of
 * the client's is over. Where those last as long as their kernel, an operation
 * waits for all of that kernel. So ferries have the greatest priority; and from
 * compute capability 9.0 on the next operation's ferry may start beside the one
 * before it, to take its place (programmatic dependent launch). It then waits
 * itself until what is before it in the stream is over. If the numbers of its
 * operation are known at the submission it rings before it waits, so that its
 * bytes are on their way already.
 *
 * Belongs to the context's dock (engine/dock.h); nothing changes once it is
 * loaded, so there is no lock.
 */
#ifndef CF_CORE_FERRY_KERNEL_H
#define CF_CORE_FERRY_KERNEL_H

#include "core/ferry.h"

struct cf_ferry_kernel {
	CUmodule module; /* NULL: there is none */
	CUfunction function;
	int priority;
	bool follows; /* waits itself for what is before it in the stream */
};

/*
 * Loads it into the current context. May wait until that context has nothing to
 * do. 0, or a CUDA code: the context has no ferries.
 */
int cf_ferry_load(const struct cf_cuda *cuda, struct cf_ferry_kernel *kernel);

/*
 * Sets how many blocks an operation of size bytes is worth, and when the next
 * kernel may start. drawn: its bytes are likely to come out of windows
 * (path/draws.h).
 */
void cf_ferry_shape(struct cf_ferry *ferry, size_t size, bool drawn);

/* door: a word that gets the ticket when the kernel begins, or 0. */
CUresult cf_ferry_launch(const struct cf_cuda *cuda,
			 const struct cf_ferry_kernel *kernel,
			 const struct cf_ferry *ferry, CUdeviceptr door,
			 uint32_t ticket, CUstream stream);

#endif
