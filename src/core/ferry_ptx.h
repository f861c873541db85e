// SPDX-License-Identifier: Apache-2.0
/*
 * ferry_ptx - the kernel of ferries, which the driver compiles for its GPU.
 *
 * If door is not 0, thread 0 of block 0 first writes the ticket there. Block x
 * of n carries out orders x, x + n and so on; or, if striped is not 0, a part
 * of every order: each n-th row, a row being a vector for each thread. Its
 * thread 0 looks at the state until the next order is there or the run has
 * ended. All its threads move the bytes, a tile at a time: eight vectors of 16
 * bytes for each thread, or eight bytes where source and target differ
 * modulo 16.
 *
 * When an order has been moved and all can see it, word x of moved gets the
 * order's number, counted from 1. The block leaves that out for its last order,
 * if thread 0 has seen the end of the run before it waits for the other
 * threads. Last of all, word x of left gets the run's number; what was moved is
 * seen by the GPU by then, and if far is not 0 by the CPU, too.
 *
 * State and orders are read from near: the board, or the one in an aperture. A
 * state of an earlier run counts as one without orders.
 *
 * Every block looks at the same words, over the bus, so few blocks of many
 * threads are quicker than many blocks of few; blocks that share no order do
 * not wait for each other. Two blocks have the registers of one multiprocessor,
 * 64 for each thread, half of them for bytes on their way: so beside a client's
 * kernels the next ferry finds room where this one is.
 *
 * The second text, for GPUs from compute capability 9.0 on, waits itself for
 * what is before it in the stream. If ahead is 0 it does so before it touches
 * any memory. If not, block 0 rings before the wait, and each block looks a few
 * times for its first order, and loads the first tile if it is there; after the
 * wait block 0 writes the ticket to the word 256 bytes behind the door. The
 * next kernel may start when each block has come to byte lets of its orders (of
 * all orders, if striped), or leaves.
 *
 * If claims is not 0, kernels of several launches share the board. Block x that
 * comes first raises word x of claims to the run's number; another kernel's
 * block x, which finds it there, waits for the end of the run and moves
 * nothing. Such a run ends when all has been moved, so then a block leaves at
 * once: the state may be of a later run by now. Without claims a run may end
 * earlier, and what was ordered is moved first.
 *
 * Loads of what the CPU writes are volatile: a slot has other bytes the next
 * time. An order is read only when the state says that it is there. No fence is
 * between the two, which the rules of PTX alone would want: a GPU begins no
 * load before the branch to it is taken, and a volatile one passes the caches
 * that may hold something older.
 */
#ifndef CF_CORE_FERRY_PTX_H
#define CF_CORE_FERRY_PTX_H

#include "core/copy_ptx.h"

#define CF_FERRY_THREADS 512
#define CF_FERRY_DIGITS(x) #x
#define CF_FERRY_TEXT_OF(x) CF_FERRY_DIGITS(x)

/* Load k of a thread's vectors, which lie a row apart, if the order has so
 * many; and its store. */
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
 * What a look at the state tells thread 0: in %posted how many orders it may
 * carry out, and in %q whether the run has ended.
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
 * Where the two texts differ: WAIT is before memory is touched, RING before the
 * bell, PEEK behind it, ARRIVE(label) before an order's bytes are stored,
 * LET(label) at each order and each tile, LEAVE when all has been moved.
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

/* Each thread waits for itself; thread 0 of block 0 rings the second bell. */
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

/* The thread has come to byte %j of this order: may the next kernel start? */
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
	/* whoever hears the bell reads the operation's numbers: what is before
	 * it may have written them, unless it comes ahead */
	"	@!%ahead membar.sys;\n",
	/* if the first order is seen here, LOOP does not look for it again */
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
