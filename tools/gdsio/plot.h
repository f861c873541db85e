// SPDX-License-Identifier: Apache-2.0
/* plot - throughput over time and latencies of a pass, as an SVG file. */
#ifndef GDSIO_PLOT_H
#define GDSIO_PLOT_H

#include "gdsio/run.h"

/* Can there be such a file? Asked before a run that may be long. */
bool plot_check(const char *name);

/* False: reported. */
bool plot_write(const char *name, const struct plan *plan,
		const struct outcome *outcomes, int nr);

#endif
