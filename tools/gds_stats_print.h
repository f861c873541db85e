// SPDX-License-Identifier: Apache-2.0
/*
 * gds_stats_print - a snapshot as text, JSON or OpenMetrics, on stdout.
 *
 * Rates are of the time from snapshot before to snapshot s; if before is NULL,
 * of all the time that was counted.
 */
#ifndef TOOLS_GDS_STATS_PRINT_H
#define TOOLS_GDS_STATS_PRINT_H

#include "gds_stats_file.h"

/* The sections of statistics of this level. */
void print_text(const struct snapshot *s, const struct snapshot *before,
		unsigned level);

/* One line. */
void print_json(const struct snapshot *s, long pid);

void print_openmetrics(const struct snapshot *s, long pid);

/* The identity of a GPU, in digits. */
void print_uuid(const struct ocf_stats_gpu *gpu);

#endif
