// SPDX-License-Identifier: Apache-2.0
/*
 * aperture_trial - is it the GPU's memory that the CPU writes to there, and
 * does the kernel copy to it, at a speed that is worth it?
 */
#ifndef CF_CORE_APERTURE_TRIAL_H
#define CF_CORE_APERTURE_TRIAL_H

#include "core/aperture.h"

/*
 * 0; -EILSEQ: it is other memory; -ETIME: it is slow; or why it could not be
 * tried. The context is current, the stream is the caller's, and idle.
 */
int cf_aperture_try(const struct cf_aperture *a, CUstream stream);

#endif
