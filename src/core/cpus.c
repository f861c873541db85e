// SPDX-License-Identifier: Apache-2.0
/* cpus - sets of processors, from the kernel's masks and from lists. */
#include "core/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "core/sysfs.h"
#include "seam/os.h"

#define WORD_BITS (8 * sizeof(long))
#define NR_WORDS (CF_MAX_CPUS / WORD_BITS)

unsigned cf_cpus_count(const struct cf_cpus *cpus)
{
	unsigned nr = 0;

	for (size_t i = 0; i < NR_WORDS; i++)
		nr += (unsigned)__builtin_popcountl(cpus->bits[i]);
	return nr;
}

void cf_cpus_add(struct cf_cpus *cpus, const struct cf_cpus *more)
{
	for (size_t i = 0; i < NR_WORDS; i++)
		cpus->bits[i] |= more->bits[i];
}

void cf_cpus_keep(struct cf_cpus *cpus, const struct cf_cpus *only)
{
	for (size_t i = 0; i < NR_WORDS; i++)
		cpus->bits[i] &= only->bits[i];
}

int cf_cpus_bind(const struct cf_cpus *cpus)
{
	return cf_os->set_affinity(cpus->bits, sizeof(cpus->bits));
}

static int affinity_of(pid_t tid, struct cf_cpus *cpus)
{
	return cf_os->get_affinity(tid, cpus->bits, sizeof(cpus->bits));
}

/* Errors are ignored: a thread may end before its mask is read. */
static bool add_thread(void *cpus, const char *tid)
{
	struct cf_cpus mask;

	if (affinity_of((pid_t)strtol(tid, NULL, 10), &mask) >= 0)
		cf_cpus_add(cpus, &mask);
	return true;
}

int cf_cpus_of_process(struct cf_cpus *cpus)
{
	int err = affinity_of(0, cpus);

	if (err < 0)
		memset(cpus, 0, sizeof(*cpus));
	(void)cf_sysfs_each("/proc/self/task", add_thread, cpus);
	return cf_cpus_count(cpus) ? 0 : err;
}

/* Digits only: strtoul would accept blanks and signs, too. */
static bool take_number(const char **text, unsigned long *nr)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*nr = strtoul(*text, &end, 10);
	*text = end;
	return *nr < CF_MAX_CPUS;
}

int cf_cpus_parse(struct cf_cpus *cpus, const char *list)
{
	unsigned long first, last;

	memset(cpus, 0, sizeof(*cpus));
	while (*list && *list != '\n') {
		if (!take_number(&list, &first))
			return -EINVAL;
		last = first;
		if (*list == '-') {
			list++;
			if (!take_number(&list, &last))
				return -EINVAL;
		}
		if (last < first || !strchr(",\n", *list))
			return -EINVAL;
		for (; first <= last; first++)
			cpus->bits[first / WORD_BITS] |= 1ul
							 << first % WORD_BITS;
		list += *list == ',';
	}
	return 0;
}
