// SPDX-License-Identifier: Apache-2.0
/*
 * pages - of 64 KiB, as kernels for aarch64 may have them, as far as the
 * library can tell: the file's blocks and the memory's are what they are.
 */
#include <unistd.h>

long __real_sysconf(int name);
long __wrap_sysconf(int name);

long __wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE ? 65536 : __real_sysconf(name);
}
