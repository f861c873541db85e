// SPDX-License-Identifier: Apache-2.0
/* aperture_trial - writes by system calls, reads back by the driver. */
#include "core/aperture_trial.h"

#include <errno.h>
#include <string.h>
#include "core/clock.h"
#include "core/lane.h"
#include "core/trial.h"
#include "seam/os.h"

#define CHUNK CF_TRIAL_CHUNK
#define TIMES 16 /* chunks written, the quickest is the time */
/* so much slower than other memory is all right; combined it is half of that */
#define SLOWER 4
#define SLOWER_NS 10000

/* Another pattern each time: memory may still hold that of an earlier trial. */
static uint64_t new_round(void)
{
	static _Atomic uint64_t rounds;

	return ++rounds;
}

/* By a read(2), as all later use. */
static int put(const int pipe[2], char *mem, const void *bytes)
{
	int err = cf_trial_move(pipe, mem, bytes, CHUNK);

	cf_aperture_fence();
	return err;
}

static int try_chunk(const struct cf_cuda *cuda, const struct cf_aperture *a,
		     const int pipe[2], size_t at, CUstream stream)
{
	uint64_t sent[CF_TRIAL_WORDS], got[CF_TRIAL_WORDS] = { 0 };
	CUresult res;
	int err;

	cf_trial_pattern(sent, at, new_round());
	err = put(pipe, a->mem + at, sent);
	if (err)
		return err;
	res = cuda->memcpy_dtoh_async(got, a->gpu + at, CHUNK, stream);
	if (res == CF_CU_SUCCESS)
		res = cf_lane_settle_stream(cuda, stream);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	return memcmp(sent, got, CHUNK) ? -EILSEQ : 0;
}

/* The quickest of TIMES writes of a chunk, in nanoseconds. */
static int64_t time_of(const int pipe[2], char *mem)
{
	static const char bytes[CHUNK];
	int64_t best = INT64_MAX;

	for (int i = 0; i < TIMES; i++) {
		int64_t begun = cf_clock_ns(), took;

		if (put(pipe, mem, bytes))
			return INT64_MAX;
		took = cf_clock_ns() - begun;
		best = took < best ? took : best;
	}
	return best;
}

/*
 * An administrator may have turned write combining off for the sake of peer to
 * peer DMA. Then each word crosses the bus by itself, and it is too slow.
 */
static int try_speed(const struct cf_aperture *a, const int pipe[2])
{
	char other[CHUNK];
	int64_t plain = time_of(pipe, other), ours = time_of(pipe, a->mem);

	if (plain == INT64_MAX || ours == INT64_MAX)
		return -EIO;
	return ours > SLOWER * plain + SLOWER_NS ? -ETIME : 0;
}

/* What the CPU writes is not seen by compute-sanitizer, which tells of each
 * read of memory that was never written. */
static int write_all(const struct cf_cuda *cuda, const struct cf_aperture *a,
		     CUstream stream)
{
	CUresult res = CF_CU_SUCCESS;

	if (cuda->memset_d8_async)
		res = cuda->memset_d8_async(a->gpu, 0, a->size, stream);
	if (res == CF_CU_SUCCESS)
		res = cf_lane_settle_stream(cuda, stream);
	return cf_cuda_code(res);
}

int cf_aperture_try(const struct cf_aperture *a, CUstream stream)
{
	const struct cf_cuda *cuda = cf_cuda_entered();
	const size_t ats[] = { 0, a->size / 2, a->size - CHUNK };
	int pipe[2], err = cf_os->pipe(pipe);

	if (err)
		return err;
	err = write_all(cuda, a, stream);
	for (int i = 0; i < 3 && !err; i++)
		err = try_chunk(cuda, a, pipe, ats[i], stream);
	if (!err)
		err = try_speed(a, pipe);
	cf_os->close(pipe[0]);
	cf_os->close(pipe[1]);
	return err;
}
