// SPDX-License-Identifier: Apache-2.0
/*
 * gather_ptx - the kernel of gather.c, which the driver compiles for its GPU.
 *
 * Block (x, y) of 256 threads moves the x-th 4096 bytes of entry y. Then it
 * tells the host: word x of the entry's report becomes 1, after everything
 * that the block has written can be seen by all.
 *
 * The table travels as the kernel's parameter, so that no block has to fetch
 * it over the bus. Its rows are struct cf_gather_row.
 */
#ifndef CF_CORE_GATHER_PTX_H
#define CF_CORE_GATHER_PTX_H

#include "core/copy_ptx.h"

/* clang-format off */
static const char cf_gather_ptx[] =
	".version 6.0\n"
	".target sm_60\n"
	".address_size 64\n"
	".visible .entry cf_gather(.param .align 8 .b8 table[512])\n"
	"{\n"
	CF_PTX_COPY_REGS
	"	.reg .b32 %x;\n"
	"	.reg .b64 %row, %report;\n"
	"	mov.u32 %me, %tid.x;\n"
	"	mov.u32 %x, %ctaid.x;\n"
	"	mov.u32 %i, %ctaid.y;\n"
	"	mov.u64 %row, table;\n"
	"	mul.wide.u32 %t, %i, 32;\n"
	"	add.u64 %row, %row, %t;\n"
	"	ld.param.u32 %n, [%row+24];\n"
	"	shl.b32 %at, %x, 12;\n"
	"	setp.ge.u32 %q, %at, %n;\n"
	"	@%q bra END;\n"
	"	ld.param.u64 %dst, [%row];\n"
	"	ld.param.u64 %src, [%row+8];\n"
	"	ld.param.u64 %report, [%row+16];\n"
	"	cvta.to.global.u64 %dst, %dst;\n"
	"	cvta.to.global.u64 %src, %src;\n"
	"	cvta.to.global.u64 %report, %report;\n"
	"	sub.u32 %n, %n, %at;\n"
	"	min.u32 %n, %n, 4096;\n"
	"	cvt.u64.u32 %t, %at;\n"
	"	add.u64 %dst, %dst, %t;\n"
	"	add.u64 %src, %src, %t;\n"
	CF_PTX_COPY
	"	bar.sync 0;\n"
	"	setp.ne.u32 %q, %me, 0;\n"
	"	@%q bra END;\n"
	"	membar.sys;\n"
	"	mul.wide.u32 %t, %x, 4;\n"
	"	add.u64 %report, %report, %t;\n"
	"	mov.u32 %i, 1;\n"
	"	st.volatile.global.u32 [%report], %i;\n"
	"END:\n"
	"	ret;\n"
	"}\n";
/* clang-format on */

#endif
