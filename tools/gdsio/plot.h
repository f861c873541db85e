// SPDX-License-Identifier: Apache-2.0
/* plot - throughput over time and latencies of a pass, as a picture. */
#ifndef GDSIO_PLOT_H
#define GDSIO_PLOT_H

#include "gdsio/run.h"

/* False: reported. */
bool plot_write(const char *name, const struct plan *plan,
		const struct outcome *outcomes, int nr);

#endif
