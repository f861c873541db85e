// SPDX-License-Identifier: Apache-2.0
/*
 * shuttle_ptx - the kernel of shuttle.c, which the driver compiles for its GPU.
 *
 * One block. Each of its warps has a seat of the board, and looks at its order
 * over and over: three words, the target, the source and the size, each with
 * the low bits of the order's number on top, and a fourth with nothing else.
 * When all four have the number that comes next, the warp moves the bytes and
 * writes the number into the seat's word of what is done, after everything it
 * has moved can be seen by all. The next number is one more than that word
 * when the kernel comes.
 *
 * When it comes, before it looks at any order, the first word of the board
 * becomes the trip's number. When no order has come for a while, or the kernel
 * has been there for long, the second one does, and only then, in the order
 * that the whole machine sees, each warp looks a last time: at once, or, if
 * the kernel has been there for long, when the next trip had time to be
 * launched behind it. The third one does when all warps have looked, and moved
 * what they found.
 *
 * Source and target are alike modulo 16. 4096 bytes are on their way at a time.
 * Loads of what the CPU writes are volatile, and in order without a fence, as
 * in ferry_ptx.h. Times are in the GPU's clocks.
 */
#ifndef CF_CORE_SHUTTLE_PTX_H
#define CF_CORE_SHUTTLE_PTX_H

/* Vector k of a lane: loads, then stores. */
#define CF_SHUTTLE_IN(k) \
	"	add.u32 %j, %i, " #k "*32;\n" \
	"	setp.lt.u32 %p" #k ", %j, %vec;\n" \
	"	@%p" #k " ld.volatile.global.v4.u32 {%a" #k ", %b" #k \
	", %c" #k ", %d" #k "}, [%from+" #k "*512];\n"
#define CF_SHUTTLE_OUT(k) \
	"	@%p" #k " st.global.v4.u32 [%to+" #k "*512], {%a" #k ", %b" #k \
	", %c" #k ", %d" #k "};\n"
/* Lane k's word of the order, for all lanes. */
#define CF_SHUTTLE_WORD(k, word) \
	"	mov.u32 %j, " #k ";\n" \
	"	shfl.sync.idx.b32 %lo, %low, %j, 31, 0xffffffff;\n" \
	"	shfl.sync.idx.b32 %hi, %high, %j, 31, 0xffffffff;\n" \
	"	mov.b64 " word ", {%lo, %hi};\n"
/* clang-format off */
#define CF_SHUTTLE_8(OF) OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7)

static const char cf_shuttle_ptx[] =
	".version 6.0\n"
	".target sm_60\n"
	".address_size 64\n"
	".visible .entry cf_shuttle(.param .u64 board,\n"
	"	.param .u64 orders, .param .u32 trip,\n"
	"	.param .u64 idle, .param .u64 stay, .param .u64 grace)\n"
	"{\n"
	"	.reg .pred %q, %first, %p<8>;\n"
	"	.reg .b32 %me, %lane, %seat, %next, %tag, %want, %trip, %last, %told;\n"
	"	.reg .b32 %n, %head, %vec, %i, %j, %low, %high, %lo, %hi;\n"
	"	.reg .b32 %a<8>, %b<8>, %c<8>, %d<8>;\n"
	"	.reg .b16 %h<2>;\n"
	"	.reg .b64 %board, %order, %done, %word, %t, %dst, %src, %size;\n"
	"	.reg .b64 %now, %until, %idle, %stay, %grace, %to, %from;\n"
	"	.shared .align 8 .b8 busy[8];\n"
	"	.shared .align 4 .b8 leaves[4];\n"
	"	mov.u32 %me, %tid.x;\n"
	"	and.b32 %lane, %me, 31;\n"
	"	shr.u32 %seat, %me, 5;\n"
	"	setp.eq.u32 %first, %me, 0;\n"
	"	ld.param.u64 %board, [board];\n"
	"	cvta.to.global.u64 %board, %board;\n"
	"	ld.param.u32 %trip, [trip];\n"
	"	ld.param.u64 %idle, [idle];\n"
	"	ld.param.u64 %stay, [stay];\n"
	"	ld.param.u64 %grace, [grace];\n"
	"	mov.u64 %now, %clock64;\n"
	"	add.u64 %until, %now, %stay;\n"
	"	mov.u32 %last, 0;\n"
	"	mov.u32 %told, 0;\n"
	"	@!%first bra HERE;\n"
	"	st.volatile.shared.u64 [busy], %now;\n"
	"	st.volatile.shared.u32 [leaves], %last;\n"
	"	st.volatile.global.u32 [%board], %trip;\n"
	"	membar.sys;\n"
	"HERE:\n"
	"	bar.sync 0;\n"
	"	mul.wide.u32 %t, %seat, 64;\n"
	"	ld.param.u64 %order, [orders];\n"
	"	cvta.to.global.u64 %order, %order;\n"
	"	add.u64 %order, %order, %t;\n"
	"	add.u64 %done, %board, %t;\n"
	"	add.u64 %done, %done, 2304;\n"
	"	and.b32 %i, %lane, 3;\n"
	"	mul.wide.u32 %t, %i, 8;\n"
	"	add.u64 %order, %order, %t;\n"
	"	ld.volatile.global.u32 %next, [%done];\n"
	"	add.u32 %next, %next, 1;\n"
	"LOOK:\n"
	"	ld.volatile.shared.u32 %last, [leaves];\n"
	"	membar.cta;\n"
	"	ld.volatile.global.u64 %word, [%order];\n"
	"	shr.u64 %t, %word, 57;\n"
	"	cvt.u32.u64 %tag, %t;\n"
	"	and.b32 %want, %next, 127;\n"
	"	setp.eq.u32 %q, %tag, %want;\n"
	"	vote.sync.all.pred %q, %q, 0xffffffff;\n"
	"	@%q bra MOVE;\n"
	"	setp.ne.u32 %q, %last, 0;\n"
	"	vote.sync.all.pred %q, %q, 0xffffffff;\n"
	"	@%q bra END;\n"
	"	@!%first bra AGAIN;\n"
	"	mov.u64 %now, %clock64;\n"
	"	ld.volatile.shared.u64 %t, [busy];\n"
	"	sub.s64 %t, %now, %t;\n"
	"	setp.gt.s64 %p0, %t, %idle;\n"
	"	setp.ge.s64 %q, %now, %until;\n"
	"	or.pred %q, %q, %p0;\n"
	"	@!%q bra AGAIN;\n"
	/* the first time it is told, the second time the warps are */
	"	setp.ne.u32 %q, %told, 0;\n"
	"	@%q bra LEAVE;\n"
	"	st.volatile.global.u32 [%board+64], %trip;\n"
	"	membar.sys;\n"
	"	mov.u32 %told, 1;\n"
	"	add.u64 %until, %now, %grace;\n"
	"	@!%p0 bra AGAIN;\n"
	"LEAVE:\n"
	"	mov.u32 %last, 1;\n"
	"	st.volatile.shared.u32 [leaves], %last;\n"
	"AGAIN:\n"
	"	bar.warp.sync 0xffffffff;\n"
	"	bra LOOK;\n"
	"MOVE:\n"
	"	shl.b64 %word, %word, 7;\n"
	"	shr.u64 %word, %word, 7;\n"
	"	mov.b64 {%low, %high}, %word;\n"
	CF_SHUTTLE_WORD(0, "%dst")
	CF_SHUTTLE_WORD(1, "%src")
	CF_SHUTTLE_WORD(2, "%size")
	"	cvt.u32.u64 %n, %size;\n"
	/* bytes before the first multiple of 16, vectors, bytes behind them */
	"	cvt.u32.u64 %head, %dst;\n"
	"	neg.s32 %head, %head;\n"
	"	and.b32 %head, %head, 15;\n"
	"	min.u32 %head, %head, %n;\n"
	"	sub.u32 %vec, %n, %head;\n"
	"	and.b32 %n, %vec, 15;\n"
	"	shr.u32 %vec, %vec, 4;\n"
	"	cvta.to.global.u64 %dst, %dst;\n"
	"	cvta.to.global.u64 %src, %src;\n"
	"	cvt.u64.u32 %t, %lane;\n"
	"	add.u64 %to, %dst, %t;\n"
	"	add.u64 %from, %src, %t;\n"
	"	setp.lt.u32 %q, %lane, %head;\n"
	"	@%q ld.volatile.global.u8 %h0, [%from];\n"
	"	@%q st.global.u8 [%to], %h0;\n"
	"	mad.lo.u32 %i, %vec, 16, %head;\n"
	"	cvt.u64.u32 %t, %i;\n"
	"	add.u64 %to, %to, %t;\n"
	"	add.u64 %from, %from, %t;\n"
	"	setp.lt.u32 %q, %lane, %n;\n"
	"	@%q ld.volatile.global.u8 %h1, [%from];\n"
	"	@%q st.global.u8 [%to], %h1;\n"
	"	mov.u32 %i, %lane;\n"
	"	mad.lo.u32 %j, %lane, 16, %head;\n"
	"	cvt.u64.u32 %t, %j;\n"
	"	add.u64 %to, %dst, %t;\n"
	"	add.u64 %from, %src, %t;\n"
	"VECTORS:\n"
	CF_SHUTTLE_8(CF_SHUTTLE_IN)
	CF_SHUTTLE_8(CF_SHUTTLE_OUT)
	"	add.u32 %i, %i, 256;\n"
	"	add.u64 %to, %to, 4096;\n"
	"	add.u64 %from, %from, 4096;\n"
	"	sub.u32 %j, %i, %lane;\n"
	"	setp.lt.u32 %q, %j, %vec;\n"
	"	@%q bra VECTORS;\n"
	"	bar.warp.sync 0xffffffff;\n"
	"	setp.ne.u32 %q, %lane, 0;\n"
	"	@%q bra DONE;\n"
	"	membar.sys;\n"
	"	st.volatile.global.u32 [%done], %next;\n"
	"	mov.u64 %now, %clock64;\n"
	"	st.volatile.shared.u64 [busy], %now;\n"
	"DONE:\n"
	"	bar.warp.sync 0xffffffff;\n"
	"	add.u32 %next, %next, 1;\n"
	"	bra LOOK;\n"
	"END:\n"
	"	bar.sync 0;\n"
	"	@!%first bra GONE;\n"
	"	membar.sys;\n"
	"	st.volatile.global.u32 [%board+128], %trip;\n"
	"GONE:\n"
	"	ret;\n"
	"}\n";
/* clang-format on */

#endif
