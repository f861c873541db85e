// SPDX-License-Identifier: Apache-2.0
/*
 * copy_ptx - PTX that our kernels share: a block moves up to 4096 bytes.
 *
 * 256 threads move %n bytes, 1 to 4096, from %src to %dst, both global. Each
 * moves 16 bytes, by one access where both addresses allow it, else bytewise.
 * %me is the thread's number. All threads leave at the label MOVED.
 */
#ifndef CF_CORE_COPY_PTX_H
#define CF_CORE_COPY_PTX_H

#define CF_PTX_COPY_REGS \
	"	.reg .pred %q, %p<16>;\n" \
	"	.reg .b32 %me, %at, %n, %i, %head, %vec, %v<4>;\n" \
	"	.reg .b16 %b<16>;\n" \
	"	.reg .b64 %dst, %src, %to, %from, %t;\n"

/* Byte k * 256 + thread, if the block has so many: loads, then stores. */
#define CF_PTX_BYTE_IN(k) \
	"	add.u32 %i, %me, " #k "*256;\n" \
	"	setp.lt.u32 %p" #k ", %i, %n;\n" \
	"	@%p" #k " ld.global.u8 %b" #k ", [%src+" #k "*256];\n"
#define CF_PTX_BYTE_OUT(k) \
	"	@%p" #k " st.global.u8 [%dst+" #k "*256], %b" #k ";\n"
/* clang-format off */
#define CF_PTX_16(OF) \
	OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7) \
	OF(8) OF(9) OF(10) OF(11) OF(12) OF(13) OF(14) OF(15)

/* %head: bytes before the first multiple of 16; %vec: vectors after them. */
#define CF_PTX_ALIGN \
	/* can both be brought to a multiple of 16 by the same step? */ \
	"	xor.b64 %t, %dst, %src;\n" \
	"	and.b64 %t, %t, 15;\n" \
	"	setp.ne.u64 %q, %t, 0;\n" \
	"	@%q bra BYTES;\n" \
	"	cvt.u32.u64 %head, %dst;\n" \
	"	neg.s32 %head, %head;\n" \
	"	and.b32 %head, %head, 15;\n" \
	"	min.u32 %head, %head, %n;\n" \
	"	sub.u32 %vec, %n, %head;\n" \
	"	shr.u32 %vec, %vec, 4;\n"

/* Moves the head, the vectors, and the bytes that are left. */
#define CF_PTX_COPY \
	CF_PTX_ALIGN \
	"	mad.lo.u32 %at, %me, 16, %head;\n" \
	"	cvt.u64.u32 %t, %at;\n" \
	"	add.u64 %to, %dst, %t;\n" \
	"	add.u64 %from, %src, %t;\n" \
	"	setp.lt.u32 %q, %me, %vec;\n" \
	"	@%q ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%from];\n" \
	"	@%q st.global.v4.u32 [%to], {%v0, %v1, %v2, %v3};\n" \
	"	cvt.u64.u32 %t, %me;\n" \
	"	add.u64 %to, %dst, %t;\n" \
	"	add.u64 %from, %src, %t;\n" \
	"	setp.lt.u32 %q, %me, %head;\n" \
	"	@%q ld.global.u8 %b0, [%from];\n" \
	"	@%q st.global.u8 [%to], %b0;\n" \
	"	mad.lo.u32 %at, %vec, 16, %head;\n" \
	"	add.u32 %i, %at, %me;\n" \
	"	cvt.u64.u32 %t, %at;\n" \
	"	add.u64 %to, %to, %t;\n" \
	"	add.u64 %from, %from, %t;\n" \
	"	setp.lt.u32 %q, %i, %n;\n" \
	"	@%q ld.global.u8 %b0, [%from];\n" \
	"	@%q st.global.u8 [%to], %b0;\n" \
	"	bra MOVED;\n" \
	"BYTES:\n" \
	"	cvt.u64.u32 %t, %me;\n" \
	"	add.u64 %dst, %dst, %t;\n" \
	"	add.u64 %src, %src, %t;\n" \
	CF_PTX_16(CF_PTX_BYTE_IN) \
	CF_PTX_16(CF_PTX_BYTE_OUT) \
	"MOVED:\n"
/* clang-format on */

#endif
