// SPDX-License-Identifier: Apache-2.0
/*
 * careless_cufile - for LD_PRELOAD: calls that make a mistake, for gdsio_verify
 * to find. CARELESS: skips (cuFileRead moves nothing), spills (one byte more),
 * slips (the byte at 4099 is another), short (says less), tells (what it is
 * asked, to stderr); or the name of a call, which fails.
 */
#include <cufile.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const CUfileError_t failed = { .err = CU_FILE_INTERNAL_ERROR };

static bool is_asked_for(const char *how)
{
	return !strcmp(getenv("CARELESS"), how);
}

typedef ssize_t read_fn(CUfileHandle_t fh, void *base, size_t size, off_t off,
			off_t devptr_off);

EXPORT ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t off,
			  off_t devptr_off)
{
	read_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "cuFileRead");
	if (is_asked_for("cuFileRead")) {
		errno = EIO;
		return -1;
	}
	if (is_asked_for("skips"))
		return (ssize_t)size;
	if (is_asked_for("spills"))
		return real(fh, base, size + 1, off, devptr_off) - 1;
	if (is_asked_for("short"))
		return real(fh, base, size, off, devptr_off) / 2;
	if (is_asked_for("tells"))
		fprintf(stderr, "%zu %zu %lld %lld\n", (size_t)base, size,
			(long long)off, (long long)devptr_off);
	if (is_asked_for("slips")) {
		/* from another place of the file */
		(void)real(fh, base, size, off, devptr_off);
		(void)real(fh, base, 1, off, devptr_off + 4099);
		return (ssize_t)size;
	}
	return real(fh, base, size, off, devptr_off);
}

typedef CUfileError_t read_async_fn(CUfileHandle_t fh, void *base, size_t *size,
				    off_t *off, off_t *devptr_off, ssize_t *n,
				    CUstream stream);

EXPORT CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *base,
				     size_t *size, off_t *off,
				     off_t *devptr_off, ssize_t *n,
				     CUstream stream)
{
	read_async_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "cuFileReadAsync");
	if (is_asked_for("cuFileReadAsync"))
		return failed;
	return real(fh, base, size, off, devptr_off, n, stream);
}

typedef CUfileError_t submit_fn(CUfileBatchHandle_t batch, unsigned nr,
				CUfileIOParams_t *params, unsigned flags);

EXPORT CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned nr,
					 CUfileIOParams_t *params,
					 unsigned flags)
{
	submit_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "cuFileBatchIOSubmit");
	if (is_asked_for("cuFileBatchIOSubmit"))
		return failed;
	return real(batch, nr, params, flags);
}
