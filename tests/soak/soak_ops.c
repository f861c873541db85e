// SPDX-License-Identifier: Apache-2.0
/* soak_ops - what a worker does, and how it knows that it was right. */
#include "soak.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct range {
	size_t at, size;
};

/* A small range mostly, and an unaligned one half the time. */
static struct range some_range(size_t within)
{
	size_t most = th_below(8) ? 64 * TH_KIB : within;
	struct range r = { .at = th_below(within) };

	if (th_below(2))
		r.at &= ~(size_t)4095;
	if (most > within - r.at)
		most = within - r.at;
	r.size = 1 + th_below(most);
	if (th_below(2) && r.size > 4096)
		r.size &= ~(size_t)4095;
	return r;
}

static bool moved(struct soak_worker *w, const char *what, ssize_t n,
		  size_t want)
{
	if (n == (ssize_t)want) {
		__atomic_fetch_add(&w->bytes, want, __ATOMIC_RELAXED);
		return true;
	}
	th_bad_note(w->bad, "%s: %zd of %zu, errno %d, %s", what, n, want,
		    errno, th_mem_name(w->mem.kind));
	return false;
}

static void check(struct soak_worker *w, const char *what, struct range r,
		  size_t mem_at)
{
	th_mem_get(&w->mem, mem_at, w->scratch, r.size);
	if (memcmp(w->scratch, w->shadow + r.at, r.size))
		th_bad_note(w->bad, "%s: other bytes at %zu len %zu in %s",
			    what, r.at, r.size, th_mem_name(w->mem.kind));
}

static size_t some_place(struct range r)
{
	return th_below(SOAK_MEM - r.size + 1);
}

/* Fresh bytes for a write: in memory, and in the shadow of the file. */
static void put_fresh(struct soak_worker *w, struct range r, size_t mem_at)
{
	th_fill(w->shadow + r.at, r.size);
	th_mem_put(&w->mem, mem_at, w->shadow + r.at, r.size);
}

static void read_range(struct soak_worker *w)
{
	struct range r = some_range(SOAK_SIZE);
	size_t to = some_place(r);

	if (moved(w, "read",
		  cuFileRead(w->fh, w->mem.ptr, r.size, (off_t)r.at, (off_t)to),
		  r.size))
		check(w, "read", r, to);
}

static void write_range(struct soak_worker *w)
{
	struct range r = some_range(SOAK_SIZE);
	size_t from = some_place(r);

	put_fresh(w, r, from);
	moved(w, "write",
	      cuFileWrite(w->fh, w->mem.ptr, r.size, (off_t)r.at, (off_t)from),
	      r.size);
}

/* The whole file, past the library. */
static void verify_file(struct soak_worker *w)
{
	th_file_get(&w->file, 0, w->scratch, SOAK_SIZE);
	if (memcmp(w->scratch, w->shadow, SOAK_SIZE))
		th_bad_note(w->bad, "the file is not what was written");
}

static void vector(struct soak_worker *w)
{
	struct range r = some_range(SOAK_SIZE);
	size_t to = some_place(r), first = th_below(r.size + 1);
	char *mem = (char *)w->mem.ptr + to;
	CUfileIOVec_t iov[2] = { { mem, first },
				 { mem + first, r.size - first } };

	if (moved(w, "readv", cuFileReadv(w->fh, iov, 2, (off_t)r.at, 0),
		  r.size))
		check(w, "readv", r, to);
}

static void reap(struct soak_worker *w, CUfileBatchHandle_t batch, unsigned nr,
		 const struct range *r)
{
	CUfileIOEvents_t events[SOAK_ENTRIES];
	unsigned done = 0;

	while (done < nr) {
		unsigned got = SOAK_ENTRIES;

		if (cuFileBatchIOGetStatus(batch, 1, &got, events, NULL).err) {
			th_bad_note(w->bad, "batch status");
			return;
		}
		for (unsigned i = 0; i < got; i++)
			moved(w, "batch", (ssize_t)events[i].ret,
			      r[(uintptr_t)events[i].cookie].size);
		done += got;
	}
}

/* Entry i has the i-th part of the memory. */
static void batch(struct soak_worker *w)
{
	const size_t part = SOAK_MEM / SOAK_ENTRIES;
	unsigned nr = 1 + (unsigned)th_below(SOAK_ENTRIES);
	CUfileIOParams_t io[SOAK_ENTRIES] = { 0 };
	struct range r[SOAK_ENTRIES];
	CUfileBatchHandle_t id;

	for (unsigned i = 0; i < nr; i++) {
		r[i] = some_range(SOAK_SIZE);
		if (r[i].size > part)
			r[i].size = part;
		io[i].mode = CUFILE_BATCH;
		io[i].opcode = CUFILE_READ;
		io[i].fh = w->fh;
		io[i].cookie = (void *)(uintptr_t)i;
		io[i].u.batch.devPtr_base = w->mem.ptr;
		io[i].u.batch.devPtr_offset = (off_t)(i * part);
		io[i].u.batch.file_offset = (off_t)r[i].at;
		io[i].u.batch.size = r[i].size;
	}
	if (cuFileBatchIOSetUp(&id, nr).err ||
	    cuFileBatchIOSubmit(id, nr, io, 0).err) {
		th_bad_note(w->bad, "batch submit");
		return;
	}
	reap(w, id, nr, r);
	cuFileBatchIODestroy(id);
	for (unsigned i = 0; i < nr; i++)
		check(w, "batch", r[i], i * part);
}

static void stream(struct soak_worker *w)
{
	struct range r = some_range(SOAK_SIZE);
	size_t place = some_place(r);
	off_t file_off = (off_t)r.at, mem_off = (off_t)place;
	bool known = th_below(2), writes = th_below(2);
	ssize_t done = -77;
	CUfileError_t error;

	if (writes)
		put_fresh(w, r, place);
	if (known)
		(void)cuFileStreamRegister(w->stream, 15);
	error = writes ? cuFileWriteAsync(w->fh, w->mem.ptr, &r.size, &file_off,
					  &mem_off, &done, w->stream) :
			 cuFileReadAsync(w->fh, w->mem.ptr, &r.size, &file_off,
					 &mem_off, &done, w->stream);
	if (error.err || cuStreamSynchronize(w->stream))
		th_bad_note(w->bad, "stream: code %d", error.err);
	else if (moved(w, "stream", done, r.size) && !writes)
		check(w, "stream", r, place);
	if (known)
		(void)cuFileStreamDeregister(w->stream);
}

static void change_registration(struct soak_worker *w)
{
	CUfileError_t error =
		w->registered ? cuFileBufDeregister(w->mem.ptr) :
				cuFileBufRegister(w->mem.ptr, SOAK_MEM, 0);

	if (error.err)
		th_bad_note(w->bad, "registration %d: code %d", w->registered,
			    error.err);
	w->registered = !w->registered;
}

static void change_handle(struct soak_worker *w)
{
	cuFileHandleDeregister(w->fh);
	w->fh = th_handle(w->file.fd);
}

/* Another file and other memory, of another kind perhaps. */
static void change_all(struct soak_worker *w)
{
	struct th_bad *bad = w->bad;
	unsigned long bytes = w->bytes;

	verify_file(w);
	soak_worker_end(w);
	soak_worker_make(w, (unsigned)th_below(64), bad);
	w->bytes = bytes;
}

const struct soak_op soak_ops[] = {
	{ "read", read_range, 30, false },
	{ "write", write_range, 20, false },
	{ "readv", vector, 8, false },
	{ "batch", batch, 12, false },
	{ "stream", stream, 12, true },
	{ "verify", verify_file, 4, false },
	{ "buffer", change_registration, 8, false },
	{ "handle", change_handle, 5, false },
	{ "all new", change_all, 1, false },
};
const unsigned soak_nr_ops = sizeof(soak_ops) / sizeof(soak_ops[0]);

/* Where its memory is. */
static void make_stream(struct soak_worker *w)
{
	CUcontext popped;

	if (cuCtxPushCurrent(w->mem.kind == TH_SECOND ? th_second_ctx() :
							th_primary()) ||
	    cuStreamCreate(&w->stream, 1 /* non-blocking */) ||
	    cuCtxPopCurrent(&popped))
		th_bad_note(w->bad, "no stream");
}

void soak_worker_make(struct soak_worker *w, unsigned i, struct th_bad *bad)
{
	static const enum th_file_kind files[] = { TH_ODIRECT, TH_BUFFERED,
						   TH_TMPFS, TH_UNLINKED };
	static const enum th_mem_kind kinds[] = {
		TH_DEVICE, TH_MALLOC, TH_PINNED, TH_MANAGED,
		TH_SECOND, TH_MALLOC, TH_PINNED, TH_MANAGED,
	};
	unsigned kind = i % 4 + i / 16 % 2 * 4;
	bool gpu = th_gpu(NULL);

	*w = (struct soak_worker){ .bad = bad };
	w->shadow = th_bytes(SOAK_SIZE);
	w->scratch = malloc(SOAK_SIZE);
	th_mem_alloc(&w->mem, gpu ? kinds[kind] : TH_MALLOC, SOAK_MEM);
	th_file_make(&w->file, files[i / 4 % 4], O_RDWR, w->shadow, SOAK_SIZE);
	w->fh = th_handle(w->file.fd);
	if (gpu)
		make_stream(w);
}

void soak_worker_end(struct soak_worker *w)
{
	if (w->registered)
		(void)cuFileBufDeregister(w->mem.ptr);
	cuFileHandleDeregister(w->fh);
	if (w->stream)
		(void)cuStreamDestroy(w->stream);
	th_file_end(&w->file);
	th_mem_free(&w->mem);
	free(w->shadow);
	free(w->scratch);
}

void soak_worker_renew(struct soak_worker *w)
{
	w->registered = false;
	w->fh = th_handle(w->file.fd);
}
