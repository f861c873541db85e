// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_calls - calls in any order from up to three threads, on the fake
 * driver, against a model. The program fuzz_hot does it with files whose pages
 * are pinned.
 *
 * The input says how many lanes there are and how the library is set up; its
 * rest goes to the lanes in equal shares, each byte or so a call. Lanes share
 * the session and one file; they own all else, so each knows what it must find.
 * In the end nothing may be left: no descriptor, no object of the driver, no
 * complaint.
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/pins.h"
#include "core/windows.h"
#include "fake_rm.h"
#include "lane.h"

#define MAX_LANES 3
#define SHARED_SIZE 20000

static struct lane lanes[MAX_LANES];
static unsigned nr_lanes;
static int nr_fds;
static bool check_each; /* FUZZ_CHECK=1: after each call, to find the bad one */

/* The file that all lanes read; any of them registers and deregisters it. */
static struct {
	struct th_file file;
	unsigned char bytes[SHARED_SIZE];
	_Atomic(CUfileHandle_t) fh;
} shared;

static struct {
	unsigned long inputs, pinned, used;
} windows;

static void count_windows(void)
{
	struct cf_windows_counts c;

	cf_windows_count(&c);
	windows.inputs++;
	windows.pinned += cf_pins_state() == CF_PINS_GOOD;
	windows.used += c.used;
}

/* Some inputs of the corpus must get pages pinned, and copies out of them. */
static void tell_of_windows(void)
{
	fprintf(stderr, "pages were pinned by %lu inputs, %lu copies\n",
		windows.pinned, windows.used);
	if (windows.inputs >= 9 && !(windows.pinned && windows.used))
		_exit(1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	/* 0: no watchdog, for a run that has no end */
	th_start(0);
	check_each = getenv("FUZZ_CHECK");
	th_thread_gpu();
	must(th_gpu(NULL) && th_fake());
	(void)th_volley_kernel(NULL);
	if (IS_HOT) {
		fake_rm_begin();
		atexit(tell_of_windows);
	}
	for (unsigned i = 0; i < MAX_LANES; i++)
		lane_make(&lanes[i], i);
	th_fill(shared.bytes, SHARED_SIZE);
	th_file_make(&shared.file, TH_ODIRECT, O_RDONLY, shared.bytes,
		     SHARED_SIZE);
	return 0;
}

static void register_shared(void)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = shared.file.fd };
	CUfileHandle_t fh;
	int code = cuFileHandleRegister(&fh, &descr).err;

	if (!code)
		atomic_store(&shared.fh, fh);
	else
		must(code == CU_FILE_HANDLE_ALREADY_REGISTERED);
}

/* A read gives all bytes, or EINVAL if another lane deregistered the file. */
static void read_shared(struct lane *lane)
{
	struct model_mem *m = &lane->mems[in_below(&lane->in, NR_MEMS)];
	size_t at = in_u16(&lane->in) % SHARED_SIZE;
	size_t size = SHARED_SIZE - at;
	ssize_t n;

	lane_settle(lane);
	for (int i = 0; i < NR_RANGES; i++)
		if (m->ranges[i].size)
			return; /* its bounds are another test's */
	n = cuFileRead(atomic_load(&shared.fh), m->mem.ptr, size, (off_t)at,
		       100);
	if (n < 0 && errno == EINVAL)
		return;
	if (n != (ssize_t)size)
		wrong("the shared file: %zd of %zu, errno %d", n, size, errno);
	memcpy(m->bytes + 100, shared.bytes + at, size);
}

static void call_shared(struct lane *lane)
{
	switch (in_u8(&lane->in) % 4) {
	case 0:
		register_shared();
		break;
	case 1:
		cuFileHandleDeregister(atomic_load(&shared.fh));
		break;
	default:
		read_shared(lane);
	}
}

/* What only asks. */
static void call_ask(struct lane *lane)
{
	static __thread CUfileStatsLevel3_t stats;
	CUfileDrvProps_t props = { 0 };
	size_t value, min, max;
	int code;

	must(!cuFileDriverGetProperties(&props).err);
	must(cuFileUseCount() > 0);
	/* the level that was set is gone after a restart */
	code = cuFileGetStatsL3(&stats).err;
	must(!code || code == CU_FILE_INVALID_VALUE);
	must(cuFileDriverSetMaxDirectIOSize(in_u8(&lane->in)).err !=
	     CU_FILE_DRIVER_CLOSING);
	value = in_u8(&lane->in);
	(void)cuFileGetParameterMinMaxValue((CUFileSizeTConfigParameter_t)value,
					    &min, &max);
	(void)cuFileGetParameterSizeT((CUFileSizeTConfigParameter_t)value,
				      &min);
	must(cuFileSetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, 1).err ==
	     CU_FILE_DRIVER_ALREADY_OPEN);
}

/* One more use, and back: the session stays what it was. */
static void call_open_and_close(void)
{
	must(!cuFileDriverOpen().err);
	must(!cuFileDriverClose_v2().err);
}

/* Alone a lane may end the session under all that it has. */
static void call_restart(struct lane *lane)
{
	unsigned one = 1;
	CUfileIOEvents_t event;
	struct model_file *f = &lane->files[0];

	lane_settle(lane);
	while (cuFileUseCount() > 0)
		must(!cuFileDriverClose_v2().err);
	lane_forget(lane);
	atomic_store(&shared.fh, NULL);
	must(cuFileDriverClose_v2().err == CU_FILE_DRIVER_NOT_INITIALIZED);
	must(cuFileRead(f->stale, lane->mems[0].mem.ptr, 1, 0, 0) == -1);
	must(cuFileBatchIOGetStatus(lane->old_batch, 0, &one, &event, NULL)
		     .err == CU_FILE_INVALID_VALUE);
	must(cuFileStreamDeregister(lane->stream).err ==
	     CU_FILE_DRIVER_NOT_INITIALIZED);
	must(!cuFileDriverOpen().err);
}

static void call_one(struct lane *lane)
{
	unsigned what = in_u8(&lane->in);

	if (check_each)
		fprintf(stderr, "lane %u: call %u\n", lane->nr, what % 32);
	switch (what % 32) {
	case 0 ... 2:
		call_register(lane);
		break;
	case 3:
		call_deregister(lane);
		break;
	case 4:
		call_buf_register(lane);
		break;
	case 5:
		call_buf_deregister(lane);
		break;
	case 6 ... 13:
		call_move(lane);
		break;
	case 14 ... 15:
		call_vector(lane);
		break;
	case 16:
		call_batch_setup(lane);
		break;
	case 17 ... 20:
		call_batch_submit(lane);
		break;
	case 21 ... 22:
		call_batch_status(lane);
		break;
	case 23:
		call_batch_cancel(lane, what & 32);
		break;
	case 24 ... 26:
		call_stream_move(lane);
		break;
	case 27:
		call_stream_register(lane);
		break;
	case 28:
		call_truncate(lane);
		break;
	case 29:
		call_shared(lane);
		break;
	case 30:
		if (IS_HOT)
			call_outside(lane);
		else
			call_ask(lane);
		break;
	default:
		lane_settle(lane);
		lane_check(lane);
		if (nr_lanes == 1 && what & 32)
			call_restart(lane);
		else
			call_open_and_close();
	}
}

static void run_lane(void *arg, unsigned i)
{
	struct lane *lane = &lanes[i];

	while (lane->in.left) {
		call_one(lane);
		if (!check_each)
			continue;
		lane_settle(lane);
		lane_check(lane);
	}
	lane_finish(lane);
}

/* ----------------------------------------------------------- all of it */

/* Reads of most sizes come out of windows, and there is room for few or all. */
static void set_up_windows(unsigned how)
{
	static const char *const modes[] = { "kept", "always", "auto", "off" };

	setenv("OCF_MAPPED", IS_HOT ? modes[how & 3] : "auto", 1);
	setenv("OCF_MAPPED_CACHE_KB", how & 4 ? "8192" : "1048576", 1);
	setenv("OCF_MAPPED_CHUNK_KB", how & 8 ? "128" : "2048", 1);
	setenv("OCF_MAPPED_MIN_KB", "4", 1);
	setenv("OCF_MAPPED_USE_KB", "4", 1);
	setenv("OCF_MAPPED_SETTLE_MS", "20", 1);
}

/* Small slots make many steps of small requests. */
static void set_up(struct input *in)
{
	static const size_t slots_kib[] = { 4, 16, 64, 1024 };
	unsigned how = in_u8(in), more = in_u8(in);

	setenv("OCF_IO_URING", how & 1 ? "1" : "0", 1);
	setenv("OCF_HYBRID", how & 2 ? "both" : "off", 1);
	setenv("OCF_COMBINE", how & 4 ? "1" : "0", 1);
	must(!cuFileSetParameterBool(CUFILE_PARAM_FORCE_ODIRECT_MODE, how & 8)
		      .err);
	must(!cuFileSetParameterSizeT(
		      CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
		      slots_kib[how >> 4 & 3])
		      .err);
	must(!cuFileSetParameterSizeT(
		      CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB,
		      how & 64 ? 8 : 8192)
		      .err);
	must(!cuFileSetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, 3).err);
	must(!cuFileSetParameterBool(CUFILE_PARAM_STREAM_MEMOPS_BYPASS,
				     how & 128)
		      .err);
	set_up_windows(more >> 3);
	th_fake()->copy_delay_us(more & 1 ? 50 : 0);
	th_fake()->legacy_delay_us(more & 2 ? 50 : 0);
	th_fake()->reuse_handles(!!(more & 4));
}

/* Files and rings; the fake driver keeps memory, libFuzzer what it likes. */
static int count_ours(bool list)
{
	char path[32], link[256];
	int nr = 0;

	for (int fd = 3; fd < 1024; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = '\0';
		if (!strstr(link, "opencufile") && !strstr(link, "io_uring"))
			continue;
		nr++;
		if (list)
			fprintf(stderr, "%d -> %s\n", fd, link);
	}
	return nr;
}

static void nothing_is_left(void)
{
	static const char *const kinds[] = { "event", "host_register", "graph",
					     "module", "graph_exec" };
	int fds = count_ours(false);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (th_fake()->live(kinds[i]))
			wrong("%ld objects of kind %s are left",
			      th_fake()->live(kinds[i]), kinds[i]);
	if (th_fake()->live("stream") != MAX_LANES)
		wrong("%ld streams, not %d", th_fake()->live("stream"),
		      MAX_LANES);
	if (nr_fds && fds != nr_fds && count_ours(true))
		wrong("%d descriptors are open, not %d", fds, nr_fds);
	nr_fds = fds;
	if (th_fake()->complaints(stderr))
		wrong("the driver was misused");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	size_t share;

	nr_lanes = 1 + in_u8(&in) % MAX_LANES;
	set_up(&in);
	share = in.left / nr_lanes;
	for (unsigned i = 0; i < nr_lanes; i++) {
		lane_fill(&lanes[i], (struct input){ in.at, share });
		in.at += share;
	}
	must(!cuFileDriverOpen().err);
	register_shared();
	for (unsigned i = 0; i < nr_lanes && IS_HOT; i++)
		lane_register(&lanes[i]);
	th_threads(nr_lanes, run_lane, NULL);
	count_windows();
	while (cuFileUseCount() > 0)
		must(!cuFileDriverClose_v2().err);
	atomic_store(&shared.fh, NULL);
	nothing_is_left();
	return 0;
}
