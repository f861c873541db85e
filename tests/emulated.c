// SPDX-License-Identifier: Apache-2.0
/*
 * emulated - in an emulator of the processor, which hands on that the kernel
 * tells of O_DIRECT, but not what: as if no file had it.
 */
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "harness.h"

#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000U
#endif

int statx(int dir, const char *path, int flags, unsigned mask,
	  struct statx *stx)
{
	int err = (int)syscall(SYS_statx, dir, path, flags, mask, stx);

	if (!err && th_emulated())
		stx->stx_mask &= ~STATX_DIOALIGN;
	return err;
}
