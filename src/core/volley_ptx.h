// SPDX-License-Identifier: Apache-2.0
/*
 * volley_ptx - the kernel of volley.c, which the driver compiles for the GPU.
 *
 * Block x of 256 threads moves row x of the table. First its thread 0 claims
 * the row: it sets word 1 + x of flags to seq, makes a fence for the whole
 * system, and reads word 0, which is seq if the launch is cancelled. In the end
 * it sets word x of done: to seq, when all can see what the block has written;
 * or to seq with its top bit set, if the block was cancelled and has touched
 * nothing.
 *
 * flags are in device memory, so that a claim does not cross the bus and a copy
 * engine can cancel; table and done are in pinned memory. The row is fetched
 * while the claim is on its way.
 */
#ifndef CF_CORE_VOLLEY_PTX_H
#define CF_CORE_VOLLEY_PTX_H

#include "core/copy_ptx.h"

/* clang-format off */
static const char cf_volley_ptx[] =
	".version 6.0\n"
	".target sm_60\n"
	".address_size 64\n"
	".visible .entry cf_volley(.param .u64 table, .param .u64 done,\n"
	"	.param .u64 flags, .param .u32 seq)\n"
	"{\n"
	CF_PTX_COPY_REGS
	"	.reg .b32 %x, %seq, %stop;\n"
	"	.reg .b64 %row, %flags, %mine, %report;\n"
	"	.shared .align 8 .b8 claim[24];\n"
	"	mov.u32 %me, %tid.x;\n"
	"	mov.u32 %x, %ctaid.x;\n"
	"	ld.param.u32 %seq, [seq];\n"
	"	setp.ne.u32 %q, %me, 0;\n"
	"	@%q bra CLAIMED;\n"
	"	ld.param.u64 %flags, [flags];\n"
	"	cvta.to.global.u64 %flags, %flags;\n"
	"	mul.wide.u32 %t, %x, 4;\n"
	"	add.u64 %mine, %flags, %t;\n"
	"	st.volatile.global.u32 [%mine+4], %seq;\n"
	"	ld.param.u64 %row, [table];\n"
	"	cvta.to.global.u64 %row, %row;\n"
	"	mul.wide.u32 %t, %x, 24;\n"
	"	add.u64 %row, %row, %t;\n"
	"	ld.volatile.global.u64 %dst, [%row];\n"
	"	ld.volatile.global.u64 %src, [%row+8];\n"
	"	ld.volatile.global.u32 %n, [%row+16];\n"
	"	membar.sys;\n"
	"	ld.volatile.global.u32 %stop, [%flags];\n"
	"	st.shared.u64 [claim], %dst;\n"
	"	st.shared.u64 [claim+8], %src;\n"
	"	st.shared.u32 [claim+16], %n;\n"
	"	st.shared.u32 [claim+20], %stop;\n"
	"CLAIMED:\n"
	"	bar.sync 0;\n"
	"	ld.shared.u32 %stop, [claim+20];\n"
	"	setp.eq.u32 %q, %stop, %seq;\n"
	"	@%q bra CANCELLED;\n"
	"	ld.shared.u64 %dst, [claim];\n"
	"	ld.shared.u64 %src, [claim+8];\n"
	"	ld.shared.u32 %n, [claim+16];\n"
	"	cvta.to.global.u64 %dst, %dst;\n"
	"	cvta.to.global.u64 %src, %src;\n"
	CF_PTX_COPY
	"	bar.sync 0;\n"
	"	bra REPORT;\n"
	"CANCELLED:\n"
	"	or.b32 %seq, %seq, 0x80000000;\n"
	"REPORT:\n"
	"	setp.ne.u32 %q, %me, 0;\n"
	"	@%q bra END;\n"
	"	membar.sys;\n"
	"	ld.param.u64 %report, [done];\n"
	"	cvta.to.global.u64 %report, %report;\n"
	"	mul.wide.u32 %t, %x, 4;\n"
	"	add.u64 %report, %report, %t;\n"
	"	st.volatile.global.u32 [%report], %seq;\n"
	"END:\n"
	"	ret;\n"
	"}\n";
/* clang-format on */

#endif
