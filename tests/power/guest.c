// SPDX-License-Identifier: Apache-2.0
/*
 * guest - writes inside the emulated machine, and says for each when it was
 * promised to last.
 *
 *	guest DIRECTORY|DISK DISK OFFSET
 *
 * Every way to write (pwrite, and each of the library's) goes with every
 * promise (fsync after it, O_SYNC, O_DSYNC, and none at all) to a file of its
 * own, cached and O_DIRECT, or to a place of its own on a disk. Before and
 * after each write a record goes O_DIRECT to DISK from OFFSET on, which is on
 * the same disk, so that the disk's log has both in their order: "will", with
 * the bytes, and "did", once they are promised. A record itself promises
 * nothing: nobody flushes the disk for it. replay.py reads that log.
 */
#include <cufile.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cuda_client.h"

#define KIB ((size_t)1 << 10)
#define BLOCK ((size_t)4096)
#define MOST (600 * KIB)
#define PLACE (640 * KIB) /* on a disk, of each way */

/* What is written, and where: as large as "large" alone is. */
static const struct span {
	off_t off;
	size_t size;
} spans[] = {
	{ 0, 64 * KIB },     /* makes the file grow, in whole blocks */
	{ 67001, 30011 },    /* and by odd bytes, behind a hole */
	{ BLOCK, 2 * BLOCK } /* over what is there: no size changes */
}, large_span[] = { { 8192 + 300, 590 * KIB + 77 } };

struct way;
static const struct mover {
	const char *name;
	ssize_t (*move)(const struct way *way, size_t size, off_t off);
	bool in_blocks; /* O_DIRECT takes nothing else */
} movers[];

static const struct promise {
	const char *name;
	int flags;
	bool fsync;
} promises[] = {
	{ "fsync", 0, true },
	{ "osync", O_SYNC, false },
	{ "odsync", O_DSYNC, false },
	{ "nothing", 0, false },
};

struct way {
	char name[64];
	const struct mover *mover;
	const struct promise *promise;
	bool direct;
	int fd;
	off_t base;
	CUfileHandle_t fh;
};

static char *host; /* what is written, behind a block for the record */
static CUdeviceptr gpu;
static CUstream stream;
static int marks;
static off_t marks_end;
static unsigned nr_promised;

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	printf("not ok: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void need_err(CUfileError_t e, const char *what)
{
	if (!e.err)
		return;
	printf("not ok: %s answers %d, %d\n", what, e.err, e.cu_err);
	exit(1);
}

/* -------------------------------------------------------------- the ways */

static ssize_t by_pwrite(const struct way *way, size_t size, off_t off)
{
	return pwrite(way->fd, host, size, off);
}

static ssize_t by_host(const struct way *way, size_t size, off_t off)
{
	return cuFileWrite(way->fh, host, size, off, 0);
}

static ssize_t by_gpu(const struct way *way, size_t size, off_t off)
{
	return cuFileWrite(way->fh, (void *)gpu, size, off, 0);
}

static ssize_t by_vector(const struct way *way, size_t size, off_t off)
{
	CUfileIOVec_t iov[] = { { (void *)gpu, size / 3 },
				{ (char *)gpu + size / 3, size - size / 3 } };

	return cuFileWritev(way->fh, iov, 2, off, 0);
}

static ssize_t by_batch(const struct way *way, size_t size, off_t off)
{
	size_t half = size / 2 & ~(BLOCK - 1);
	const size_t sizes[] = { half, size - half };
	CUfileIOParams_t params[2];
	CUfileIOEvents_t events[2];
	CUfileBatchHandle_t batch;
	unsigned nr = 2;

	for (unsigned i = 0; i < 2; i++) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = way->fh,
						.opcode = CUFILE_WRITE };
		params[i].u.batch.devPtr_base = (void *)gpu;
		params[i].u.batch.devPtr_offset = (off_t)(i * half);
		params[i].u.batch.file_offset = off + (off_t)(i * half);
		params[i].u.batch.size = sizes[i];
	}
	need_err(cuFileBatchIOSetUp(&batch, 2), "setup");
	need_err(cuFileBatchIOSubmit(batch, 2, params, 0), "submit");
	need_err(cuFileBatchIOGetStatus(batch, 2, &nr, events, NULL), "status");
	cuFileBatchIODestroy(batch);
	for (unsigned i = 0; i < 2; i++)
		if (events[i].status != CUFILE_COMPLETE)
			return -1;
	return (ssize_t)(events[0].ret + events[1].ret);
}

static ssize_t by_stream(const struct way *way, size_t size, off_t off)
{
	off_t at = 0;
	ssize_t n = -1;

	need_err(cuFileWriteAsync(way->fh, (void *)gpu, &size, &off, &at, &n,
				  stream),
		 "write in a stream");
	need(cuStreamSynchronize(stream) == CUDA_SUCCESS, "stream");
	return n;
}

static const struct mover movers[] = {
	{ "pwrite", by_pwrite, true }, { "host", by_host, false },
	{ "gpu", by_gpu, false },      { "vector", by_vector, false },
	{ "batch", by_batch, false },  { "stream", by_stream, false },
	{ "large", by_gpu, false },
};

#define NR(array) (sizeof(array) / sizeof((array)[0]))
#define NR_WAYS (NR(movers) * NR(promises) * 2)
static struct way ways[NR_WAYS];

/* --------------------------------------------------------------- records */

static void record(const struct way *way, const char *kind, size_t size,
		   off_t off, size_t data)
{
	char *head = host - BLOCK;
	size_t all = BLOCK + ((data + BLOCK - 1) & ~(BLOCK - 1));

	memset(head, 0, BLOCK);
	snprintf(head, BLOCK, "opencufile %s %s %s %lld %lld %zu\n", kind,
		 way->name, way->promise->name, (long long)way->base,
		 (long long)off, size);
	need(pwrite(marks, head, all, marks_end) == (ssize_t)all, "record");
	marks_end += (off_t)all;
}

static void write_span(const struct way *way, struct span span)
{
	if (way->mover->in_blocks && way->direct) {
		span.off &= ~(off_t)(BLOCK - 1);
		span.size &= ~(BLOCK - 1);
	}
	for (size_t at = 0; at < span.size; at += 256)
		need(getrandom(host + at, 256, 0) == 256, "getrandom");
	need(cuMemcpyHtoD(gpu, host, span.size) == CUDA_SUCCESS, "copy");
	record(way, "will", span.size, span.off, span.size);
	need(way->mover->move(way, span.size, way->base + span.off) ==
		     (ssize_t)span.size,
	     way->name);
	if (way->promise->fsync)
		need(!fsync(way->fd), "fsync");
	record(way, "did", span.size, span.off, 0);
	nr_promised++;
}

/* ---------------------------------------------------------------- set up */

static void open_way(struct way *way, const char *where, bool disk)
{
	int flags = O_RDWR | way->promise->flags | (way->direct ? O_DIRECT : 0);
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };

	snprintf(way->name, sizeof(way->name), "%s-%s-%s", way->mover->name,
		 way->promise->name, way->direct ? "direct" : "cached");
	way->base = disk ? (off_t)((size_t)(way - ways) * PLACE) : 0;
	way->fd = disk ? open(where, flags) :
			 open(way->name, flags | O_CREAT, 0644);
	need(way->fd >= 0, way->name);
	descr.handle.fd = way->fd;
	need_err(cuFileHandleRegister(&way->fh, &descr), "handle");
}

static void set_up(void)
{
	CUcontext ctx;
	void *mem = NULL;

	need(!posix_memalign(&mem, BLOCK, BLOCK + MOST), "memory");
	host = (char *)mem + BLOCK;
	need(!cuInit(0) && !cuDevicePrimaryCtxRetain(&ctx, 0) &&
		     !cuCtxSetCurrent(ctx) && !cuMemAlloc(&gpu, MOST) &&
		     /* behind the legacy stream: a small copy into GPU memory
		      * returns before it is there */
		     !cuStreamCreate(&stream, 0),
	     "the fake driver");
	/* so that "large" is carried in parts, by several */
	need_err(cuFileSetParameterSizeT(
			 CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, 128),
		 "parameter");
	need_err(cuFileDriverOpen(), "open");
}

int main(int argc, char **argv)
{
	struct stat st;
	struct way *way = ways;

	if (argc != 4)
		return 2;
	alarm(500);
	set_up();
	marks = open(argv[2], O_RDWR | O_DIRECT);
	marks_end = (off_t)strtoll(argv[3], NULL, 0);
	need(marks >= 0 && !stat(argv[1], &st), argv[2]);
	need(S_ISBLK(st.st_mode) || !chdir(argv[1]), argv[1]);
	for (size_t i = 0; i < NR_WAYS; i++, way++) {
		way->mover = &movers[i % NR(movers)];
		way->promise = &promises[i / NR(movers) % NR(promises)];
		way->direct = i >= NR_WAYS / 2;
		open_way(way, argv[1], S_ISBLK(st.st_mode));
	}
	sync(); /* the names last */
	for (way = ways; way < ways + NR_WAYS; way++) {
		bool large = !strcmp(way->mover->name, "large");

		for (size_t k = 0; k < (large ? 1 : NR(spans)); k++)
			write_span(way, large ? large_span[k] : spans[k]);
	}
	printf("%s: %u writes promised\n", argv[1], nr_promised);
	return 0; /* and the power is cut: nothing is closed or flushed */
}
