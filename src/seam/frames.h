// SPDX-License-Identifier: Apache-2.0
/*
 * frames - which functions have a stack frame of their own on the way to a
 * system call.
 *
 * CF_APART: the compiler inlines a function that is called at one place only.
 * Its caller then pays for the function's locals, and for their stack guard, on
 * every call. So a function that is seldom reached stays apart.
 *
 * CF_WITHIN: the processor predicts where a return goes, but forgets it in a
 * system call: each function between the API call and the kernel costs a wrong
 * guess, 6 ns or so. So one that most requests pass is put into its caller.
 */
#ifndef CF_SEAM_FRAMES_H
#define CF_SEAM_FRAMES_H

#define CF_APART __attribute__((noinline))
#define CF_WITHIN inline __attribute__((always_inline))

#endif
