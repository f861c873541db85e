// SPDX-License-Identifier: Apache-2.0
/* cpus - a set of processors, as the kernel's masks have it. */
#ifndef CF_CORE_CPUS_H
#define CF_CORE_CPUS_H

#include <stdbool.h>

#define CF_MAX_CPUS 8192 /* the most a Linux kernel can be built for */

struct cf_cpus {
	unsigned long bits[CF_MAX_CPUS / (8 * sizeof(long))];
};

/*
 * The processors on which any thread of the process may run. The mask of the
 * calling thread would not do: applications pin threads, and workers started by
 * a pinned one would share its processor. 0, or -errno and an empty set. Reads
 * /proc; any thread.
 */
int cf_cpus_of_process(struct cf_cpus *cpus);

/* A list as sysfs writes it, "0-3,8". 0, or -EINVAL where it is none. */
int cf_cpus_parse(struct cf_cpus *cpus, const char *list);

unsigned cf_cpus_count(const struct cf_cpus *cpus);
void cf_cpus_add(struct cf_cpus *cpus, const struct cf_cpus *more);
void cf_cpus_keep(struct cf_cpus *cpus, const struct cf_cpus *only);

/* Binds the calling thread to these processors. 0 or -errno. */
int cf_cpus_bind(const struct cf_cpus *cpus);

#endif
