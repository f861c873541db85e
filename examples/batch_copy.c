// SPDX-License-Identifier: Apache-2.0
/*
 * batch_copy - copies a file through GPU memory with one batch, which always
 * has work: as soon as some pieces are done the next ones are submitted.
 *
 *	batch_copy SOURCE COPY
 *
 * Shows: one batch handle used again and again, reads and writes in one
 * submit, cookies that say which piece an event is about, and a wait for
 * "at least one" instead of for all.
 */
#include <cufile.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "gpu_memory.h"

#define DEPTH 32      /* pieces on their way */
#define PIECE 1000000 /* bytes; nothing has to be aligned */

/* One piece of memory, on its way in or out. */
struct piece {
	off_t off; /* in both files */
	size_t size;
	int writing;
};

static struct piece pieces[DEPTH];
static CUfileIOParams_t params[DEPTH];
static CUfileIOEvents_t events[DEPTH];
static CUfileHandle_t in, out; /* the registered files */
static void *mem;
static off_t off, end; /* the next byte to read, and the last one's end */

static int failed(const char *what, CUfileError_t error)
{
	if (error.err == CU_FILE_SUCCESS)
		return 0;
	fprintf(stderr, "%s: %s\n", what, CUFILE_ERRSTR(error.err));
	return 1;
}

/* What an entry of a batch says of its failure. */
static const char *why(const CUfileIOEvents_t *event)
{
	long code = -(long)event->ret;

	if (event->status != CUFILE_FAILED)
		return "ended early";
	return IS_CUFILE_ERR(code) ? CUFILE_ERRSTR(code) : strerror((int)code);
}

static int register_file(int fd, CUfileHandle_t *handle)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };

	descr.handle.fd = fd;
	return failed("register", cuFileHandleRegister(handle, &descr));
}

/* What to ask for a piece; its place in memory is that in the array. */
static CUfileIOParams_t params_of(struct piece *piece)
{
	CUfileIOParams_t p = { .mode = CUFILE_BATCH };

	p.fh = piece->writing ? out : in;
	p.opcode = piece->writing ? CUFILE_WRITE : CUFILE_READ;
	p.cookie = piece;
	p.u.batch.devPtr_base = mem;
	p.u.batch.devPtr_offset = (piece - pieces) * PIECE;
	p.u.batch.file_offset = piece->off;
	p.u.batch.size = piece->size;
	return p;
}

static struct piece next_piece(void)
{
	struct piece piece = { .off = off, .size = PIECE };

	if (end - off < PIECE)
		piece.size = (size_t)(end - off);
	off += (off_t)piece.size;
	return piece;
}

/*
 * What follows an event: 1 if there is something to submit in its place, 0
 * if not, -1 if it tells of a failure.
 */
static int follow(const CUfileIOEvents_t *event, long long *done)
{
	struct piece *piece = event->cookie;

	if (event->status != CUFILE_COMPLETE || event->ret != piece->size) {
		fprintf(stderr, "%s at %lld: %s\n",
			piece->writing ? "write" : "read",
			(long long)piece->off, why(event));
		return -1;
	}
	if (!piece->writing) {
		piece->writing = 1; /* it is there: pass it on */
		return 1;
	}
	*done += (long long)piece->size;
	if (off >= end)
		return 0;
	*piece = next_piece();
	return 1;
}

/* Reaps at least one; answers how many to submit next, or -1. */
static int reap(CUfileBatchHandle_t batch, unsigned *under_way, long long *done)
{
	unsigned ended = DEPTH;
	int nr = 0;

	if (failed("status",
		   cuFileBatchIOGetStatus(batch, 1, &ended, events, NULL)))
		return -1;
	*under_way -= ended;
	for (unsigned i = 0; i < ended; i++) {
		int more = follow(&events[i], done);

		if (more < 0)
			return -1;
		if (more)
			params[nr++] = params_of(events[i].cookie);
	}
	return nr;
}

/* Bytes copied, or -1. */
static long long copy(CUfileBatchHandle_t batch)
{
	unsigned under_way = 0;
	long long done = 0;
	int nr = 0;

	for (; nr < DEPTH && off < end; nr++) {
		pieces[nr] = next_piece();
		params[nr] = params_of(&pieces[nr]);
	}
	while (nr > 0 || under_way) {
		if (nr > 0 &&
		    failed("submit",
			   cuFileBatchIOSubmit(batch, (unsigned)nr, params, 0)))
			return -1;
		under_way += (unsigned)nr;
		nr = reap(batch, &under_way, &done);
		if (nr < 0)
			return -1;
	}
	return done;
}

static int run(int from, int to)
{
	CUfileBatchHandle_t batch = NULL;
	long long done = -1;
	const char *what;

	mem = gpu_memory_alloc((size_t)DEPTH * PIECE, &what);
	if (!mem || failed("open", cuFileDriverOpen()))
		return 1;
	if (!register_file(from, &in) && !register_file(to, &out) &&
	    !failed("set up", cuFileBatchIOSetUp(&batch, DEPTH)))
		done = copy(batch);
	/* a batch may go with entries under way: that waits for them */
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(in);
	cuFileHandleDeregister(out);
	cuFileDriverClose();
	gpu_memory_free(mem);
	if (done == end)
		printf("%lld bytes through %s memory\n", done, what);
	return done == end ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct stat st, copy;
	int from, to;

	if (argc != 3) {
		fprintf(stderr, "usage: batch_copy SOURCE COPY\n");
		return 2;
	}
	from = open(argv[1], O_RDONLY);
	if (from < 0 || fstat(from, &st)) {
		perror(argv[1]);
		return 1;
	}
	to = open(argv[2], O_RDWR | O_CREAT, 0644);
	if (to < 0 || fstat(to, &copy)) {
		perror(argv[2]);
		return 1;
	}
	if (st.st_dev == copy.st_dev && st.st_ino == copy.st_ino) {
		fprintf(stderr, "%s and %s are one file\n", argv[1], argv[2]);
		return 1;
	}
	/* not by O_TRUNC, for it might have been the source */
	if (ftruncate(to, 0)) {
		perror(argv[2]);
		return 1;
	}
	end = st.st_size;
	return run(from, to);
}
