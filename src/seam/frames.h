// SPDX-License-Identifier: Apache-2.0
/*
 * frames - who gets a stack frame of its own on the way to a system call.
 *
 * A function that is called at one place is made part of its caller by the
 * compiler, and the caller then pays for its locals and for their guard on
 * every call, where it seldom comes to that, too: such a one stays apart.
 *
 * The processor guesses where a return goes, but forgets in a system call: each
 * function between a door and the kernel costs a wrong guess, 6 ns or so. So
 * one that most requests pass on their way there is put within its caller.
 */
#ifndef CF_SEAM_FRAMES_H
#define CF_SEAM_FRAMES_H

#define CF_APART __attribute__((noinline))
#define CF_WITHIN inline __attribute__((always_inline))

#endif
