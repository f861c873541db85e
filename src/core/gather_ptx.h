// SPDX-License-Identifier: Apache-2.0
/*
 * gather_ptx - the kernel of gather.c, which the driver compiles for its GPU.
 *
 * Block (x, y) of 256 threads moves the x-th 4096 bytes of entry y, each
 * thread 16 of them, with one access where both addresses allow and bytewise
 * where not. Then it tells the host: word x of the entry's report becomes 1,
 * after everything that the block has written can be seen by all.
 *
 * The table travels as the kernel's parameter, so that no block has to fetch
 * it over the bus. Its rows are struct entry of gather.c.
 */
#ifndef CF_CORE_GATHER_PTX_H
#define CF_CORE_GATHER_PTX_H

/* Byte k * 256 + thread, if the block has so many: loads, then stores. */
#define CF_PTX_BYTE(k) \
	"	add.u32 %i, %me, " #k "*256;\n" \
	"	setp.lt.u32 %p" #k ", %i, %n;\n" \
	"	@%p" #k " ld.global.u8 %b" #k ", [%src+" #k "*256];\n"
#define CF_PTX_BYTE_OUT(k) \
	"	@%p" #k " st.global.u8 [%dst+" #k "*256], %b" #k ";\n"
/* clang-format off */
#define CF_PTX_16(OF) \
	OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7) \
	OF(8) OF(9) OF(10) OF(11) OF(12) OF(13) OF(14) OF(15)
/* clang-format on */

static const char cf_gather_ptx[] =
	".version 6.0\n"
	".target sm_60\n"
	".address_size 64\n"
	".visible .entry cf_gather(.param .align 8 .b8 table[512])\n"
	"{\n"
	"	.reg .pred %q, %p<16>;\n"
	"	.reg .b32 %me, %x, %at, %n, %i, %head, %vec, %v<4>;\n"
	"	.reg .b16 %b<16>;\n"
	"	.reg .b64 %row, %dst, %src, %report, %to, %from, %t;\n"
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
	/* can both be brought to a multiple of 16 by the same step? */
	"	xor.b64 %t, %dst, %src;\n"
	"	and.b64 %t, %t, 15;\n"
	"	setp.ne.u64 %q, %t, 0;\n"
	"	@%q bra BYTES;\n"
	/* bytes up to the first multiple, vectors, bytes that are left */
	"	cvt.u32.u64 %head, %dst;\n"
	"	neg.s32 %head, %head;\n"
	"	and.b32 %head, %head, 15;\n"
	"	min.u32 %head, %head, %n;\n"
	"	sub.u32 %vec, %n, %head;\n"
	"	shr.u32 %vec, %vec, 4;\n"
	"	mad.lo.u32 %at, %me, 16, %head;\n"
	"	cvt.u64.u32 %t, %at;\n"
	"	add.u64 %to, %dst, %t;\n"
	"	add.u64 %from, %src, %t;\n"
	"	setp.lt.u32 %q, %me, %vec;\n"
	"	@%q ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%from];\n"
	"	@%q st.global.v4.u32 [%to], {%v0, %v1, %v2, %v3};\n"
	"	cvt.u64.u32 %t, %me;\n"
	"	add.u64 %to, %dst, %t;\n"
	"	add.u64 %from, %src, %t;\n"
	"	setp.lt.u32 %q, %me, %head;\n"
	"	@%q ld.global.u8 %b0, [%from];\n"
	"	@%q st.global.u8 [%to], %b0;\n"
	"	mad.lo.u32 %at, %vec, 16, %head;\n"
	"	add.u32 %i, %at, %me;\n"
	"	cvt.u64.u32 %t, %at;\n"
	"	add.u64 %to, %to, %t;\n"
	"	add.u64 %from, %from, %t;\n"
	"	setp.lt.u32 %q, %i, %n;\n"
	"	@%q ld.global.u8 %b0, [%from];\n"
	"	@%q st.global.u8 [%to], %b0;\n"
	"	bra MOVED;\n"
	"BYTES:\n"
	"	cvt.u64.u32 %t, %me;\n"
	"	add.u64 %dst, %dst, %t;\n"
	"	add.u64 %src, %src, %t;\n" CF_PTX_16(CF_PTX_BYTE) CF_PTX_16(
		CF_PTX_BYTE_OUT) "MOVED:\n"
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

#undef CF_PTX_BYTE
#undef CF_PTX_BYTE_OUT
#undef CF_PTX_16

#endif
