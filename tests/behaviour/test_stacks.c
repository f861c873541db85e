// SPDX-License-Identifier: Apache-2.0
/* stacks - calls of a thread with the smallest stack that there may be. */
#include "fresh.h"

#include <fcntl.h>
#include <limits.h>
#include <opencufile.h>
#include <pthread.h>
#include <stdlib.h>

#define SIZE ((size_t)1 << 20)

struct world {
	struct th_file file;
	char *memory;
	CUfileStatsLevel3_t stats; /* not on such a stack */
};

/* No asserts, which need a stack of their own: the call that failed. */
static const char *all_calls(struct world *w)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = w->file.fd };
	CUfileHandle_t fh;

	if (cuFileSetStatsLevel(3).err || cuFileDriverOpen().err)
		return "open";
	if (cuFileHandleRegister(&fh, &descr).err ||
	    cuFileBufRegister(w->memory, SIZE, 0).err)
		return "register";
	if (cuFileRead(fh, w->memory, SIZE, 0, 0) != (ssize_t)SIZE ||
	    cuFileWrite(fh, w->memory, SIZE, 0, 0) != (ssize_t)SIZE)
		return "read and write";
	if (cuFileGetStatsL1((CUfileStatsLevel1_t *)&w->stats).err ||
	    cuFileGetStatsL3(&w->stats).err || cuFileStatsStop().err)
		return "statistics";
	if (cuFileBufDeregister(w->memory).err)
		return "deregister";
	cuFileHandleDeregister(fh);
	return cuFileDriverClose_v2().err ? "close" : NULL;
}

static void *run(void *world)
{
	return (void *)(uintptr_t)all_calls(world);
}

static void the_smallest_stack_is_enough_for_host_memory(void **state)
{
	unsigned char *bytes;
	pthread_attr_t attr;
	pthread_t thread;
	struct world *w;
	void *failed;

	(void)state;
	if (TH_SANITIZED)
		th_skip("sanitizers need larger stacks");
	th_need_fake(); /* a GPU's driver needs larger ones, too */
	bytes = th_bytes(SIZE);
	w = calloc(1, sizeof(*w));
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, bytes, SIZE);
	w->memory = malloc(SIZE);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN),
			 0);
	assert_int_equal(pthread_create(&thread, &attr, run, w), 0);
	pthread_join(thread, &failed);
	if (failed)
		fail_msg("%s failed", (const char *)failed);
	th_file_end(&w->file);
	free(w->memory);
	free(w);
	free(bytes);
}

static const struct fresh_test tests[] = {
	FRESH(the_smallest_stack_is_enough_for_host_memory),
};

FRESH_MAIN(tests, 30)
