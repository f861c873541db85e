// SPDX-License-Identifier: Apache-2.0
/*
 * impostor - another libcufile.so.0, which a program was linked with and
 * LD_PRELOAD takes the place of.
 */
#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned long long cuFileDriverOpen(void);
EXPORT unsigned long long cuFileDriverClose(void);
EXPORT unsigned long long cuFileGetVersion(int *version);

unsigned long long cuFileDriverOpen(void)
{
	return 5030;
}

unsigned long long cuFileDriverClose(void)
{
	return 5030;
}

unsigned long long cuFileGetVersion(int *version)
{
	*version = 1;
	return 0;
}
