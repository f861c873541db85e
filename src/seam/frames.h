// SPDX-License-Identifier: Apache-2.0
/*
 * frames - who gets a stack frame of its own on the way of a request.
 *
 * A function that is called at one place is made part of its caller by the
 * compiler, and the caller then pays for its locals and for their guard on
 * every call, where it seldom comes to that, too: such a one stays apart.
 */
#ifndef CF_SEAM_FRAMES_H
#define CF_SEAM_FRAMES_H

#define CF_APART __attribute__((noinline))

#endif
