// SPDX-License-Identifier: Apache-2.0
/* aperture_trial - by the kernel into it, and by the driver out again. */
#include "core/aperture_trial.h"

#include <errno.h>
#include <string.h>
#include "core/permit.h"
#include "seam/os.h"

#define CHUNK ((size_t)4096) /* no more than a pipe holds */
#define TIMES 16	     /* it is written for the time it takes */
#define SLOWER 4	     /* than other memory, and */
#define SLOWER_NS 10000	     /* is all right; combined it is half of that */

/* Others each time: memory may hold what an earlier trial has left in it. */
static void pattern(uint64_t *words, size_t at)
{
	static _Atomic uint64_t trials;
	uint64_t first = at + (++trials << 40);

	for (size_t i = 0; i < CHUNK / sizeof(*words); i++)
		words[i] = (first + i + 1) * 0x9e3779b97f4a7c15ull;
}

/* A read by the kernel is what it is for. */
static int put(const int pipe[2], char *mem, const void *bytes)
{
	ssize_t n = cf_os->write(pipe[1], bytes, CHUNK);

	if (n == (ssize_t)CHUNK)
		n = cf_os->read(pipe[0], mem, CHUNK);
	cf_aperture_fence();
	if (n < 0)
		return (int)n;
	return n == (ssize_t)CHUNK ? 0 : -EIO;
}

static int try_chunk(const struct cf_cuda *cuda, const struct cf_aperture *a,
		     const int pipe[2], size_t at, CUstream stream)
{
	uint64_t sent[CHUNK / 8], got[CHUNK / 8] = { 0 };
	CUresult res;
	int err;

	pattern(sent, at);
	err = put(pipe, a->mem + at, sent);
	if (err)
		return err;
	res = cuda->memcpy_dtoh_async(got, a->gpu + at, CHUNK, stream);
	if (res == CF_CU_SUCCESS)
		res = cuda->stream_synchronize(stream);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	return memcmp(sent, got, CHUNK) ? -EILSEQ : 0;
}

/* The quickest of some, in nanoseconds. */
static int64_t time_of(const int pipe[2], char *mem)
{
	static const char bytes[CHUNK];
	int64_t best = INT64_MAX;

	for (int i = 0; i < TIMES; i++) {
		int64_t begun = cf_permit_clock(), took;

		if (put(pipe, mem, bytes))
			return INT64_MAX;
		took = cf_permit_clock() - begun;
		best = took < best ? took : best;
	}
	return best;
}

/*
 * Where writes are not combined, as an administrator may want it for the sake
 * of peer to peer DMA, each word crosses the bus by itself.
 */
static int try_speed(const struct cf_aperture *a, const int pipe[2])
{
	char other[CHUNK];
	int64_t plain = time_of(pipe, other), ours = time_of(pipe, a->mem);

	if (plain == INT64_MAX || ours == INT64_MAX)
		return -EIO;
	return ours > SLOWER * plain + SLOWER_NS ? -ETIME : 0;
}

int cf_aperture_try(const struct cf_aperture *a, CUstream stream)
{
	const struct cf_cuda *cuda = cf_cuda_entered();
	const size_t ats[] = { 0, a->size / 2, a->size - CHUNK };
	int pipe[2], err = cf_os->pipe(pipe);

	if (err)
		return err;
	for (int i = 0; i < 3 && !err; i++)
		err = try_chunk(cuda, a, pipe, ats[i], stream);
	if (!err)
		err = try_speed(a, pipe);
	cf_os->close(pipe[0]);
	cf_os->close(pipe[1]);
	return err;
}
