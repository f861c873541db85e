// SPDX-License-Identifier: Apache-2.0
/*
 * hidden - data of the library that all of it may use, and nobody else.
 *
 * The compiler hides what it sees defined; of what is only declared it must
 * be told, or it looks up the address each time.
 */
#ifndef CF_SEAM_HIDDEN_H
#define CF_SEAM_HIDDEN_H

#define CF_HIDDEN __attribute__((visibility("hidden")))

#endif
