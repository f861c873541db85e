// SPDX-License-Identifier: Apache-2.0
/*
 * hidden - data that all files of the library may use, and no other object.
 *
 * The compiler hides data that it sees defined. Where it sees a declaration
 * only, it must be told: else it looks the address up at each use.
 */
#ifndef CF_SEAM_HIDDEN_H
#define CF_SEAM_HIDDEN_H

#define CF_HIDDEN __attribute__((visibility("hidden")))

#endif
