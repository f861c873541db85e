// SPDX-License-Identifier: Apache-2.0
/*
 * quota - processor time that control groups leave the process.
 *
 * A container is often limited by a quota and not by its set of processors:
 * threads for all of these would use it up in a moment, and then none runs
 * until the next period.
 */
#ifndef CF_CORE_QUOTA_H
#define CF_CORE_QUOTA_H

/*
 * The quota in processors, rounded up; UINT_MAX: there is none, or none that
 * can be read. It is the least of the process's own groups, of either version,
 * and of all groups above them. Reads /proc and /sys; any thread.
 */
unsigned cf_quota_cpus(void);

#endif
