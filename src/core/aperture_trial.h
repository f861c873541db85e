// SPDX-License-Identifier: Apache-2.0
/*
 * aperture_trial - whether an aperture shows the GPU's memory, and whether
 * system calls write to it fast enough.
 */
#ifndef CF_CORE_APERTURE_TRIAL_H
#define CF_CORE_APERTURE_TRIAL_H

#include "core/aperture.h"

/*
 * 0; -EILSEQ: it is other memory; -ETIME: it is too slow; or a negative code
 * of what failed. The context is current, the stream is the caller's, and idle.
 */
int cf_aperture_try(const struct cf_aperture *a, CUstream stream);

#endif
