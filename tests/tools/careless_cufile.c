// SPDX-License-Identifier: Apache-2.0
/*
 * careless_cufile - for LD_PRELOAD: a cuFileRead that makes a mistake, for
 * gdsio_verify to find. CARELESS: skips (moves nothing), spills (one byte
 * more), slips (the byte at 4099 is another), short (says less), fails.
 */
#include <cufile.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef ssize_t read_fn(CUfileHandle_t fh, void *base, size_t size, off_t off,
			off_t devptr_off);

__attribute__((visibility("default"))) ssize_t cuFileRead(
	CUfileHandle_t fh, void *base, size_t size, off_t off, off_t devptr_off)
{
	const char *how = getenv("CARELESS");
	read_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "cuFileRead");
	if (!strcmp(how, "skips"))
		return (ssize_t)size;
	if (!strcmp(how, "spills"))
		return real(fh, base, size + 1, off, devptr_off) - 1;
	if (!strcmp(how, "short"))
		return real(fh, base, size, off, devptr_off) / 2;
	if (!strcmp(how, "slips")) {
		/* from another place of the file */
		(void)real(fh, base, size, off, devptr_off);
		(void)real(fh, base, 1, off, devptr_off + 4099);
		return (ssize_t)size;
	}
	errno = EIO;
	return -1;
}
