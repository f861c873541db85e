// SPDX-License-Identifier: Apache-2.0
/*
 * stream_leaving - a stream comes to its operation while the file's handle is
 * being deregistered: that waits for the operation, or is seen by it.
 *
 * The deregister begins between the two looks that the engine takes at the
 * handle, which this program is linked to come between.
 */
#include "fresh.h"

#include <fcntl.h>
#include <opencufile.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/handle.h"
#include "engine/call.h"
#include "engine/entry.h"

#define SIZE (64 * TH_KIB)

static struct {
	unsigned char *bytes;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
	CUstream stream;
	pthread_t leaver;
	atomic_bool left; /* the deregister is back */
} w;

static void *deregister(void *unused)
{
	(void)unused;
	cuFileHandleDeregister(w.fh);
	atomic_store(&w.left, true);
	return NULL;
}

/* Returns when no new reference is to be had. */
static void begin_to_leave(void)
{
	struct cf_handle *handle;

	if (pthread_create(&w.leaver, NULL, deregister, NULL))
		abort();
	while ((handle = cf_handle_get(w.fh))) {
		cf_handle_put(handle);
		th_sleep_ms(1);
	}
}

ssize_t __real_cf_call_serve(const struct cf_call *call, enum cf_door door);
ssize_t __wrap_cf_call_serve(const struct cf_call *call, enum cf_door door);
ssize_t __wrap_cf_call_serve(const struct cf_call *call, enum cf_door door)
{
	begin_to_leave();
	return __real_cf_call_serve(call, door);
}

int __real_cf_entry_init(struct cf_entry *entry, const CUfileIOParams_t *params,
			 struct cf_facts *last, struct cf_handle *held,
			 struct cf_ferry *ferry, const char **why);
int __wrap_cf_entry_init(struct cf_entry *entry, const CUfileIOParams_t *params,
			 struct cf_facts *last, struct cf_handle *held,
			 struct cf_ferry *ferry, const char **why);
int __wrap_cf_entry_init(struct cf_entry *entry, const CUfileIOParams_t *params,
			 struct cf_facts *last, struct cf_handle *held,
			 struct cf_ferry *ferry, const char **why)
{
	static atomic_int looks; /* the submit's is the first */

	if (atomic_fetch_add(&looks, 1) == 1)
		begin_to_leave();
	return __real_cf_entry_init(entry, params, last, held, ferry, why);
}

static void world_make(void)
{
	th_mem_need(TH_DEVICE);
	w.bytes = th_bytes(SIZE);
	th_file_make(&w.file, TH_BUFFERED, O_RDWR, w.bytes, SIZE);
	th_mem_alloc(&w.mem, TH_DEVICE, SIZE);
	assert_ok(cuFileDriverOpen());
	w.fh = th_handle(w.file.fd);
	assert_int_equal(cuStreamCreate(&w.stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
}

static void world_end(void)
{
	unsigned char *got = malloc(SIZE);

	assert_int_equal(cuStreamSynchronize(w.stream), 0);
	pthread_join(w.leaver, NULL);
	assert_true(atomic_load(&w.left));
	th_mem_get(&w.mem, 0, got, SIZE);
	th_equal("memory", got, w.bytes, SIZE);
	free(got);
	assert_int_equal(cuStreamDestroy(w.stream), 0);
	while (cuFileUseCount())
		assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w.mem);
	th_file_end(&w.file);
	free(w.bytes);
}

static void an_operation_that_has_begun_is_carried(void **state)
{
	size_t size = SIZE;
	off_t off = 0;
	ssize_t n = -77;

	world_make();
	assert_ok(cuFileReadAsync(w.fh, w.mem.ptr, &size, &off, &off, &n,
				  w.stream));
	assert_int_equal(cuStreamSynchronize(w.stream), 0);
	assert_int_equal(n, SIZE);
	world_end();
}

static void so_is_one_that_answers_an_int(void **state)
{
	size_t size = SIZE;
	int n = -77;

	world_make();
	assert_ok(ocf_read_async(w.fh, w.mem.ptr, &size, 0, 0, &n, w.stream));
	assert_int_equal(cuStreamSynchronize(w.stream), 0);
	assert_int_equal(n, SIZE);
	world_end();
}

static void so_is_an_entry_of_a_batch(void **state)
{
	CUfileIOParams_t params = { .mode = CUFILE_BATCH,
				    .opcode = CUFILE_READ };
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t event;
	unsigned nr = 1;

	world_make();
	params.fh = w.fh;
	params.u.batch.devPtr_base = w.mem.ptr;
	params.u.batch.size = SIZE;
	assert_ok(cuFileBatchIOSetUp(&batch, 1));
	assert_ok(ocf_batch_submit_stream(batch, 1, &params, 0, w.stream));
	assert_ok(cuFileBatchIOGetStatus(batch, 1, &nr, &event, NULL));
	assert_int_equal(nr, 1);
	assert_int_equal(event.status, CUFILE_COMPLETE);
	assert_int_equal(event.ret, SIZE);
	cuFileBatchIODestroy(batch);
	world_end();
}

static const struct fresh_test tests[] = {
	FRESH(an_operation_that_has_begun_is_carried),
	FRESH(so_is_one_that_answers_an_int),
	FRESH(so_is_an_entry_of_a_batch),
};

FRESH_MAIN(tests, 30)
