// SPDX-License-Identifier: Apache-2.0
/*
 * ferry_ptx - the kernel of ferries, which the driver compiles for its GPU.
 *
 * If door is not 0, thread 0 of block 0 writes the ticket there first. Of n
 * blocks, block x has each n-th order, counted from x, or, if striped is not
 * 0, each n-th row of every order, a row being a vector for each thread: its
 * thread 0 looks at the state until its next order is there or the run has
 * ended, and all threads move the bytes, a tile at a time: eight vectors of 16
 * bytes for each thread, or, where source and target differ modulo 16, eight
 * bytes. When all can see what was moved, word x of moved is the order's
 * number, from 1; not so of the block's last order, if a look at the state,
 * made before the other threads have moved theirs, tells that it is. The last
 * word is the run's number in word x of left; if far is not 0, what was moved
 * is seen by the CPU by then, else by the GPU.
 *
 * State and orders are read from near, which is board or in an aperture. What
 * the state says of a run before this one counts for nothing.
 *
 * Every block looks at the same words, over the bus, so that few blocks of
 * many threads are quicker than many of few; and blocks that share no order
 * wait for none of each other's. Two blocks have the registers of one
 * multiprocessor, 64 for each thread, of which half are bytes on their way: so
 * beside a client's kernels the next ferry finds room where this one is.
 *
 * The text for GPUs that know it waits itself for what is before it in the
 * stream: before it reads or writes anything, or, if ahead is not 0, when it
 * has rung, looked a few times for its first order, and loaded that order's
 * first tile; block 0 then writes the ticket to the word 256 bytes behind the
 * door. It lets what is behind it come to its processor when each block has
 * come to byte lets of its orders, or of all if it has a part of each, or
 * leaves.
 *
 * claims is 0, or word x of it goes up to the run's number by whoever comes
 * first; a block that finds it there waits for the end and moves nothing. Such
 * a run ends when all has been moved, so a block then leaves at once: what the
 * state says next may be of another run. Without claims a run may end before,
 * and what was ordered is moved first.
 *
 * Loads of what the CPU writes are volatile: a slot has other bytes the next
 * time. The order is looked at when the state is known to have it.
 */
#ifndef CF_CORE_FERRY_PTX_H
#define CF_CORE_FERRY_PTX_H

#include "core/copy_ptx.h"

#define CF_FERRY_THREADS 512
#define CF_FERRY_DIGITS(x) #x
#define CF_FERRY_TEXT_OF(x) CF_FERRY_DIGITS(x)

/* Load k of a thread's vectors, one of each thread apart, if there are so
 * many; its store. */
#define CF_FERRY_VEC_IN(k) \
	"	mad.lo.u32 %j, %nr, " #k ", %i;\n" \
	"	setp.lt.u32 %p" #k ", %j, %vec;\n" \
	"	@%p" #k " ld.volatile.global.v4.u32 {%a" #k ", %b" #k \
	", %c" #k ", %d" #k "}, [%from];\n" \
	"	add.u64 %from, %from, %stride;\n"
#define CF_FERRY_VEC_OUT(k) \
	"	@%p" #k " st.global.v4.u32 [%to], {%a" #k ", %b" #k ", %c" #k \
	", %d" #k "};\n" \
	"	add.u64 %to, %to, %stride;\n"
#define CF_FERRY_BYTE_IN(k) \
	"	mad.lo.u32 %j, %nr, " #k ", %i;\n" \
	"	setp.lt.u32 %p" #k ", %j, %n;\n" \
	"	@%p" #k " ld.volatile.global.u8 %h" #k ", [%from];\n" \
	"	add.u64 %from, %from, %stride;\n"
#define CF_FERRY_BYTE_OUT(k) \
	"	@%p" #k " st.global.u8 [%to], %h" #k ";\n" \
	"	add.u64 %to, %to, %stride;\n"
/* clang-format off */
/*
 * What a look at the state tells thread 0: how many orders are posted, and in
 * %q whether the run has ended.
 */
#define CF_FERRY_TOLD \
	"	cvt.u32.u64 %posted, %state;\n" \
	"	shr.u64 %state, %state, 32;\n" \
	"	cvt.u32.u64 %ended, %state;\n" \
	"	sub.u32 %ended, %ended, %twice;\n" \
	"	setp.lt.s32 %q, %ended, 0;\n" \
	"	@%q mov.u32 %posted, 0;\n" \
	"	setp.gt.s32 %q, %ended, 0;\n" \
	"	@%q mul.lo.u32 %posted, %posted, %late;\n" \
	"	mul.lo.u32 %posted, %posted, %mine;\n"
#define CF_FERRY_8(OF) OF(0) OF(1) OF(2) OF(3) OF(4) OF(5) OF(6) OF(7)

/*
 * WAIT stands before anything is read or written, RING before it rings, PEEK
 * when it has rung, ARRIVE(label) before it stores anything, LET(label) where it
 * gets on, LEAVE behind the moving.
 */
#define CF_FERRY_TEXT(TARGET, WAIT, RING, PEEK, ARRIVE, LET, LEAVE) \
	TARGET \
	".address_size 64\n" \
	".visible .entry cf_ferry(.param .u64 board, .param .u64 near,\n" \
	"	.param .u64 claims, .param .u64 door, .param .u32 ticket,\n" \
	"	.param .u32 ahead, .param .u32 lets, .param .u32 striped,\n" \
	"	.param .u32 far)\n" \
	".maxntid " CF_FERRY_TEXT_OF(CF_FERRY_THREADS) ", 1, 1\n" \
	".minnctapersm 2\n" \
	"{\n" \
	"	.reg .pred %q, %out, %ahead, %waits, %p<8>;\n" \
	"	.reg .b32 %me, %nr, %block, %blocks, %run, %ended, %posted, %next, %go;\n" \
	"	.reg .b32 %n, %head, %vec, %i, %j, %step, %old, %got, %mine, %late, %twice;\n" \
	"	.reg .b32 %a<8>, %b<8>, %c<8>, %d<8>, %lets;\n" \
	"	.reg .b16 %h<8>;\n" \
	"	.reg .b64 %board, %near, %claim, %order, %state, %dst, %src;\n" \
	"	.reg .b64 %to, %from, %t, %word, %stride;\n" \
	"	.shared .align 8 .b8 told[24];\n" \
	"	mov.u32 %me, %tid.x;\n" \
	"	mov.u32 %nr, %ntid.x;\n" \
	"	mov.u32 %posted, 0;\n" \
	"	mov.u32 %block, %ctaid.x;\n" \
	"	mov.u32 %blocks, %nctaid.x;\n" \
	"	mov.u32 %next, %block;\n" \
	"	ld.param.u32 %lets, [lets];\n" \
	WAIT \
	"	mov.u32 %mine, 1;\n" \
	"	mov.u32 %late, 1;\n" \
	"	ld.param.u64 %board, [board];\n" \
	"	cvta.to.global.u64 %board, %board;\n" \
	"	mul.wide.u32 %word, %block, 4;\n" \
	"	add.u64 %word, %board, %word;\n" \
	"	ld.param.u64 %near, [near];\n" \
	"	cvta.to.global.u64 %near, %near;\n" \
	"	setp.ne.u32 %out, %me, 0;\n" \
	"	ld.param.u32 %got, [striped];\n" \
	"	setp.eq.u32 %q, %got, 0;\n" \
	"	@%q bra APART;\n" \
	"	mad.lo.u32 %me, %block, %nr, %me;\n" \
	"	mul.lo.u32 %nr, %nr, %blocks;\n" \
	"	mov.u32 %next, 0;\n" \
	"	mov.u32 %blocks, 1;\n" \
	"APART:\n" \
	"	@%out bra LOOP;\n" \
	"	setp.ne.u32 %q, %block, 0;\n" \
	"	@%q bra RUNG;\n" \
	"	ld.param.u64 %t, [door];\n" \
	"	setp.eq.u64 %q, %t, 0;\n" \
	"	@%q bra RUNG;\n" \
	"	cvta.to.global.u64 %t, %t;\n" \
	"	ld.param.u32 %got, [ticket];\n" \
	RING \
	"	st.volatile.global.u32 [%t], %got;\n" \
	"RUNG:\n" \
	"	ld.volatile.global.u32 %run, [%board+8];\n" \
	"	shl.b32 %twice, %run, 1;\n" \
	"	ld.param.u64 %claim, [claims];\n" \
	"	setp.eq.u64 %q, %claim, 0;\n" \
	"	@%q bra PEEK;\n" \
	"	mov.u32 %late, 0;\n" \
	"	cvta.to.global.u64 %claim, %claim;\n" \
	"	mul.wide.u32 %t, %block, 4;\n" \
	"	add.u64 %claim, %claim, %t;\n" \
	"CLAIM:\n" \
	"	ld.volatile.global.u32 %old, [%claim];\n" \
	"	sub.u32 %got, %run, %old;\n" \
	"	setp.le.s32 %q, %got, 0;\n" \
	"	@%q bra CLAIMED;\n" \
	"	atom.global.cas.b32 %got, [%claim], %old, %run;\n" \
	"	setp.ne.u32 %q, %got, %old;\n" \
	"	@%q bra CLAIM;\n" \
	"	bra LOOP;\n" \
	"CLAIMED:\n" \
	"	mov.u32 %mine, 0;\n" \
	"	bra LOOP;\n" \
	"PEEK:\n" \
	PEEK \
	"LOOP:\n" \
	"	mov.u32 %j, 0;\n" \
	LET("GOES_ON") \
	"	@%out bra TOLD;\n" \
	"	mov.u32 %go, 1;\n" \
	"	setp.gt.u32 %q, %posted, %next;\n" \
	"	@%q bra ORDER;\n" \
	ARRIVE("NONE") \
	"LOOK:\n" \
	"	ld.volatile.global.u64 %state, [%near];\n" \
	CF_FERRY_TOLD \
	"	setp.gt.u32 %p0, %posted, %next;\n" \
	"	@%p0 bra ORDER;\n" \
	"	@%q bra OVER;\n" \
	"	bra LOOK;\n" \
	"OVER:\n" \
	"	mov.u32 %go, 0;\n" \
	"	st.shared.u32 [told+20], %go;\n" \
	"	bra TOLD;\n" \
	"ORDER:\n" \
	"	and.b32 %got, %next, 15;\n" \
	"	mul.wide.u32 %t, %got, 24;\n" \
	"	add.u64 %order, %near, %t;\n" \
	"	ld.volatile.global.u64 %dst, [%order+256];\n" \
	"	ld.volatile.global.u64 %src, [%order+264];\n" \
	"	ld.volatile.global.u32 %n, [%order+272];\n" \
	"	st.shared.u64 [told], %dst;\n" \
	"	st.shared.u64 [told+8], %src;\n" \
	"	st.shared.u32 [told+16], %n;\n" \
	"	st.shared.u32 [told+20], %go;\n" \
	"	ld.volatile.global.u64 %state, [%near];\n" \
	"TOLD:\n" \
	"	bar.sync 0;\n" \
	"	ld.shared.u32 %go, [told+20];\n" \
	"	setp.eq.u32 %q, %go, 0;\n" \
	"	@%q bra LEAVE;\n" \
	"	ld.shared.u64 %dst, [told];\n" \
	"	ld.shared.u64 %src, [told+8];\n" \
	"	ld.shared.u32 %n, [told+16];\n" \
	"	cvta.to.global.u64 %dst, %dst;\n" \
	"	cvta.to.global.u64 %src, %src;\n" \
	CF_PTX_ALIGN \
	"	shl.b32 %step, %nr, 3;\n" \
	"	mov.u32 %i, %me;\n" \
	"	mul.wide.u32 %stride, %nr, 16;\n" \
	"VECTORS:\n" \
	"	setp.ge.u32 %q, %i, %vec;\n" \
	"	@%q bra ENDS;\n" \
	"	mul.wide.u32 %t, %i, 16;\n" \
	"	cvt.u64.u32 %to, %head;\n" \
	"	add.u64 %t, %t, %to;\n" \
	"	add.u64 %to, %dst, %t;\n" \
	"	add.u64 %from, %src, %t;\n" \
	CF_FERRY_8(CF_FERRY_VEC_IN) \
	ARRIVE("LOADED") \
	"	shl.b32 %j, %i, 4;\n" \
	LET("STORES") \
	CF_FERRY_8(CF_FERRY_VEC_OUT) \
	"	add.u32 %i, %i, %step;\n" \
	"	bra VECTORS;\n" \
	/* what is before the first vector and behind the last */ \
	"ENDS:\n" \
	ARRIVE("SHORT") \
	"	cvt.u64.u32 %t, %me;\n" \
	"	add.u64 %to, %dst, %t;\n" \
	"	add.u64 %from, %src, %t;\n" \
	"	setp.lt.u32 %q, %me, %head;\n" \
	"	@%q ld.volatile.global.u8 %h0, [%from];\n" \
	"	@%q st.global.u8 [%to], %h0;\n" \
	"	mad.lo.u32 %i, %vec, 16, %head;\n" \
	"	cvt.u64.u32 %t, %i;\n" \
	"	add.u32 %i, %i, %me;\n" \
	"	add.u64 %to, %to, %t;\n" \
	"	add.u64 %from, %from, %t;\n" \
	"	setp.lt.u32 %q, %i, %n;\n" \
	"	@%q ld.volatile.global.u8 %h0, [%from];\n" \
	"	@%q st.global.u8 [%to], %h0;\n" \
	"	bra MOVED;\n" \
	"BYTES:\n" \
	ARRIVE("UNLIKE") \
	"	shl.b32 %step, %nr, 3;\n" \
	"	mov.u32 %i, %me;\n" \
	"	cvt.u64.u32 %stride, %nr;\n" \
	"MORE:\n" \
	"	setp.ge.u32 %q, %i, %n;\n" \
	"	@%q bra MOVED;\n" \
	"	cvt.u64.u32 %t, %i;\n" \
	"	add.u64 %to, %dst, %t;\n" \
	"	add.u64 %from, %src, %t;\n" \
	CF_FERRY_8(CF_FERRY_BYTE_IN) \
	CF_FERRY_8(CF_FERRY_BYTE_OUT) \
	"	add.u32 %i, %i, %step;\n" \
	"	bra MORE;\n" \
	"MOVED:\n" \
	"	@%out bra ALL;\n" \
	"	shr.u64 %t, %state, 32;\n" \
	"	cvt.u32.u64 %got, %t;\n" \
	"	sub.u32 %got, %got, %twice;\n" \
	"	setp.gt.s32 %q, %got, 0;\n" \
	"	@!%q ld.volatile.global.u64 %state, [%near];\n" \
	"ALL:\n" \
	"	bar.sync 0;\n" \
	"	min.u32 %got, %n, %lets;\n" \
	"	sub.u32 %lets, %lets, %got;\n" \
	"	add.u32 %got, %next, 1;\n" \
	"	add.u32 %next, %next, %blocks;\n" \
	"	@%out bra LOOP;\n" \
	CF_FERRY_TOLD \
	"	setp.le.and.u32 %q, %posted, %next, %q;\n" \
	"	@%q bra OVER;\n" \
	"	membar.sys;\n" \
	"	st.volatile.global.u32 [%word+64], %got;\n" \
	"	bra LOOP;\n" \
	"LEAVE:\n" \
	LEAVE \
	"	@%out bra END;\n" \
	"	setp.eq.u32 %q, %mine, 0;\n" \
	"	@%q bra END;\n" \
	"	ld.param.u32 %got, [far];\n" \
	"	setp.ne.u32 %q, %got, 0;\n" \
	"	@%q membar.sys;\n" \
	"	@!%q membar.gl;\n" \
	"	st.volatile.global.u32 [%word+128], %run;\n" \
	"END:\n" \
	"	ret;\n" \
	"}\n"

#define CF_FERRY_NOTHING(LABEL)

static const char cf_ferry_ptx[] =
	CF_FERRY_TEXT(".version 6.0\n.target sm_60\n", "", "	membar.sys;\n",
		      "", CF_FERRY_NOTHING, CF_FERRY_NOTHING, "");

/* Each thread for itself; thread 0 of block 0 tells. */
#define CF_FERRY_ARRIVE(LABEL) \
	"	@!%waits bra " LABEL ";\n" \
	"	griddepcontrol.wait;\n" \
	"	setp.ne.u32 %waits, %nr, %nr;\n" \
	"	setp.eq.u32 %q, %lets, 0;\n" \
	"	@%q griddepcontrol.launch_dependents;\n" \
	"	or.b32 %got, %me, %block;\n" \
	"	setp.ne.u32 %q, %got, 0;\n" \
	"	@%q bra " LABEL ";\n" \
	"	ld.param.u64 %claim, [door];\n" \
	"	cvta.to.global.u64 %claim, %claim;\n" \
	"	ld.param.u32 %got, [ticket];\n" \
	"	st.volatile.global.u32 [%claim+256], %got;\n" \
	LABEL ":\n"

/* It has come to byte %j of this order. */
#define CF_FERRY_LET(LABEL) \
	"	setp.lt.u32 %q, %j, %lets;\n" \
	"	@%q bra " LABEL ";\n" \
	"	@%waits bra " LABEL ";\n" \
	"	griddepcontrol.launch_dependents;\n" \
	LABEL ":\n"

static const char cf_ferry_ptx_follows[] = CF_FERRY_TEXT(
	".version 7.8\n.target sm_90\n",
	"	ld.param.u32 %got, [ahead];\n"
	"	setp.ne.u32 %ahead, %got, 0;\n"
	"	setp.ne.u32 %waits, %got, 0;\n"
	"	@%ahead bra RING;\n"
	"	griddepcontrol.wait;\n"
	"RING:\n",
	/* what is before it may have written the numbers; not those of one
	 * that comes ahead */
	"	@!%ahead membar.sys;\n",
	/* what it sees it need not look for again */
	"	@!%ahead bra LOOP;\n"
	"	mov.u32 %i, 16;\n"
	"	ld.param.u32 %got, [striped];\n"
	"	setp.ne.u32 %q, %got, 0;\n"
	"	@%q mov.u32 %i, 48;\n"
	"AGAIN:\n"
	"	ld.volatile.global.u64 %state, [%near];\n"
	CF_FERRY_TOLD
	"	setp.gt.u32 %q, %posted, %next;\n"
	"	@%q bra LOOP;\n"
	"	sub.u32 %i, %i, 1;\n"
	"	setp.ne.u32 %q, %i, 0;\n"
	"	@%q bra AGAIN;\n",
	CF_FERRY_ARRIVE, CF_FERRY_LET,
	"	griddepcontrol.launch_dependents;\n");
/* clang-format on */

#endif
