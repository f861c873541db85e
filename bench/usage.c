// SPDX-License-Identifier: Apache-2.0
/* usage - what this process has used so far, and holds now. */
#include "bench.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void usage_held(struct usage *usage)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	double kib;

	memset(usage, 0, sizeof(*usage));
	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "VmRSS: %lf", &kib) == 1)
			usage->rss_mb = kib / 1024;
		else if (sscanf(line, "VmPin: %lf", &kib) == 1 ||
			 sscanf(line, "VmLck: %lf", &kib) == 1)
			usage->pinned_mb += kib / 1024;
		else
			sscanf(line, "Threads: %u", &usage->threads);
	}
	if (status)
		fclose(status);
}

void usage_spent(double *cpu_s, long *switches)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	*cpu_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		 (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
	*switches = u.ru_nvcsw + u.ru_nivcsw;
}

double steal_now_s(void)
{
	FILE *stat = fopen("/proc/stat", "re");
	double ticks = 0;

	if (!stat)
		return 0;
	/* user nice system idle iowait irq softirq steal */
	if (fscanf(stat, "cpu %*f %*f %*f %*f %*f %*f %*f %lf", &ticks) != 1)
		ticks = 0;
	fclose(stat);
	return ticks / (double)sysconf(_SC_CLK_TCK);
}

double cpu_now_s(void)
{
	double cpu_s;
	long switches;

	usage_spent(&cpu_s, &switches);
	return cpu_s;
}
