// SPDX-License-Identifier: Apache-2.0
/*
 * bad - a libcufile for host memory that goes wrong at certain sizes, each in
 * a way of its own, to see that the benchmark notices.
 */
#include <cufile.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HANGS (8 << 10)
#define DIES (12 << 10)
#define LIES (16 << 10)	   /* the right count, one wrong byte */
#define SHORT (20 << 10)   /* a byte too few */
#define OVERRUN (24 << 10) /* a byte too many into the buffer */
#define SLOW (28 << 10)	   /* right, one at a time, in a millisecond or more */

static CUfileError_t result(CUfileOpError code)
{
	return (CUfileError_t){ code, (CUresult)0 };
}

CUfileError_t cuFileDriverOpen(void)
{
	return result(CU_FILE_SUCCESS);
}

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr)
{
	*fh = (CUfileHandle_t)(intptr_t)descr->handle.fd;
	return result(CU_FILE_SUCCESS);
}

void cuFileHandleDeregister(CUfileHandle_t fh)
{
}

CUfileError_t cuFileBufRegister(const void *base, size_t size, int flags)
{
	return result(CU_FILE_SUCCESS);
}

CUfileError_t cuFileBufDeregister(const void *base)
{
	return result(CU_FILE_SUCCESS);
}

static void be_slow(void)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&one);
	usleep(1000);
	pthread_mutex_unlock(&one);
}

static ssize_t spoil(char *mem, size_t size)
{
	switch (size) {
	case HANGS:
		pause();
		return -1;
	case DIES:
		abort();
	case LIES:
		mem[size / 2] ^= 1;
		return (ssize_t)size;
	case SHORT:
		return (ssize_t)size - 1;
	case SLOW:
		be_slow();
		return (ssize_t)size;
	case OVERRUN:
		mem[size] ^= 1;
		return (ssize_t)size;
	default:
		return (ssize_t)size;
	}
}

ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t file_off,
		   off_t buf_off)
{
	char *mem = (char *)base + buf_off;
	ssize_t n = pread((int)(intptr_t)fh, mem, size, file_off);

	return n == (ssize_t)size ? spoil(mem, size) : n;
}

ssize_t cuFileWrite(CUfileHandle_t fh, const void *base, size_t size,
		    off_t file_off, off_t buf_off)
{
	char *copy = malloc(size + 1);
	ssize_t n;

	memcpy(copy, (const char *)base + buf_off, size);
	n = spoil(copy, size);
	if (n == (ssize_t)size)
		n = pwrite((int)(intptr_t)fh, copy, size, file_off);
	free(copy);
	return n;
}

/* Batches: set up and submitted, and then nothing is ever said of them. */
CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch, unsigned nr)
{
	*batch = &cuFileBatchIOSetUp;
	return result(nr > 8 ? CU_FILE_INVALID_VALUE : CU_FILE_SUCCESS);
}

CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned nr,
				  CUfileIOParams_t *io, unsigned flags)
{
	return result(CU_FILE_SUCCESS);
}

CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch, unsigned min_nr,
				     unsigned *nr, CUfileIOEvents_t *events,
				     struct timespec *timeout)
{
	*nr = 0;
	return result(CU_FILE_SUCCESS);
}

void cuFileBatchIODestroy(CUfileBatchHandle_t batch)
{
}

/* Statistics: every call is a success, and nothing is counted. */
CUfileError_t cuFileSetStatsLevel(int level)
{
	return result(CU_FILE_SUCCESS);
}

CUfileError_t cuFileStatsStart(void)
{
	return result(CU_FILE_SUCCESS);
}

CUfileError_t cuFileStatsStop(void)
{
	return result(CU_FILE_SUCCESS);
}

CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats)
{
	memset(stats, 0, sizeof(*stats));
	return result(CU_FILE_SUCCESS);
}
