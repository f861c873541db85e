// SPDX-License-Identifier: Apache-2.0
/*
 * batch_crowd - more batches at once than the workers can be offered: all are
 * carried, and those that are destroyed before are not.
 *
 * A user-space file system whose read waits for a gate holds the workers.
 */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCHES 200
#define ENTRIES 4 /* the last one writes, the others read */
#define CELL 4096 /* each has one, and less than that to carry */
#define HEAD 17
#define SIZE (CELL - HEAD - 23)
#define ALL (BATCHES * ENTRIES * CELL)

struct crowd {
	struct th_file from, to;
	struct th_mem mem;
	CUfileHandle_t in, out;
	unsigned char *bytes;		   /* of the file that is read */
	unsigned char *want_mem, *want_to; /* as all should be in the end */
	CUfileBatchHandle_t batches[BATCHES];
};

static size_t place_of(unsigned batch, unsigned i)
{
	return ((size_t)batch * ENTRIES + i) * CELL + HEAD;
}

static bool writes(unsigned i)
{
	return i == ENTRIES - 1;
}

static void crowd_begin(struct crowd *c, enum th_mem_kind kind)
{
	assert_ok(cuFileDriverOpen());
	c->bytes = th_bytes(ALL);
	c->want_mem = th_bytes(ALL);
	c->want_to = th_same(0x5c, ALL);
	th_file_make(&c->from, TH_BUFFERED, O_RDWR, c->bytes, ALL);
	th_file_make(&c->to, TH_BUFFERED, O_RDWR, c->want_to, ALL);
	th_mem_alloc(&c->mem, kind, ALL);
	th_mem_put(&c->mem, 0, c->want_mem, ALL);
	assert_ok(fresh_register(c->from.fd, &c->in));
	assert_ok(fresh_register(c->to.fd, &c->out));
	for (unsigned b = 0; b < BATCHES; b++)
		assert_ok(cuFileBatchIOSetUp(&c->batches[b], ENTRIES));
}

/* Nothing is left of the batches that keeps a file. */
static void crowd_end(struct crowd *c)
{
	for (unsigned b = 0; b < BATCHES; b++)
		cuFileBatchIODestroy(c->batches[b]);
	cuFileHandleDeregister(c->in);
	cuFileHandleDeregister(c->out);
	th_file_end(&c->from);
	th_file_end(&c->to);
	th_mem_free(&c->mem);
	free(c->bytes);
	free(c->want_mem);
	free(c->want_to);
	while (cuFileUseCount() > 0)
		assert_ok(cuFileDriverClose_v2());
}

static CUfileError_t submit(struct crowd *c, unsigned batch)
{
	CUfileIOParams_t params[ENTRIES];

	for (unsigned i = 0; i < ENTRIES; i++) {
		size_t at = place_of(batch, i);

		params[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH,
			.fh = writes(i) ? c->out : c->in,
			.opcode = writes(i) ? CUFILE_WRITE : CUFILE_READ,
			.cookie = (void *)at,
		};
		params[i].u.batch.devPtr_base = c->mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)at;
		params[i].u.batch.file_offset = (off_t)at;
		params[i].u.batch.size = SIZE;
	}
	return cuFileBatchIOSubmit(c->batches[batch], ENTRIES, params, 0);
}

static unsigned which(unsigned batch, const CUfileIOEvents_t *event)
{
	unsigned i = 0;

	while (i < ENTRIES && (size_t)event->cookie != place_of(batch, i))
		i++;
	return i;
}

/* What a thread may ask: all entries' events, each once, and well. */
static const char *reap(struct crowd *c, unsigned batch)
{
	CUfileIOEvents_t events[ENTRIES];
	unsigned nr = ENTRIES, seen = 0;

	if (cuFileBatchIOGetStatus(c->batches[batch], ENTRIES, &nr, events,
				   NULL)
		    .err ||
	    nr != ENTRIES)
		return "not all events came";
	for (unsigned i = 0; i < ENTRIES; i++) {
		if (events[i].status != CUFILE_COMPLETE ||
		    events[i].ret != SIZE)
			return "an entry did not complete";
		seen |= 1u << which(batch, &events[i]);
	}
	return seen == (1u << ENTRIES) - 1 ? NULL : "an event came twice";
}

static void reap_well(struct crowd *c, unsigned batch)
{
	const char *wrong = reap(c, batch);

	if (wrong)
		fail_msg("batch %u: %s", batch, wrong);
}

/* Its entries were carried: so are both sides to look. */
static void expect(struct crowd *c, unsigned batch)
{
	for (unsigned i = 0; i < ENTRIES; i++) {
		size_t at = place_of(batch, i);

		if (writes(i))
			memcpy(c->want_to + at, c->want_mem + at, SIZE);
		else
			memcpy(c->want_mem + at, c->bytes + at, SIZE);
	}
}

static void check_bytes(const struct crowd *c)
{
	unsigned char *got = malloc(ALL);

	th_mem_get(&c->mem, 0, got, ALL);
	th_equal("the memory", got, c->want_mem, ALL);
	th_file_get(&c->to, 0, got, ALL);
	th_equal("the file that was written", got, c->want_to, ALL);
	assert_int_equal(th_file_size(&c->to), ALL);
	free(got);
}

/* ------------------------------------------------- a worker that is held */

static struct {
	sem_t gate;
	atomic_bool begun;
	CUfileHandle_t fh;
	CUfileBatchHandle_t batch;
	char to[CELL];
} slow;

static ssize_t slow_read(const void *handle, char *buf, size_t size, off_t off,
			 const cufileRDMAInfo_t *info)
{
	atomic_store(&slow.begun, true);
	while (sem_wait(&slow.gate) && errno == EINTR)
		continue;
	memset(buf, 0x77, size);
	return (ssize_t)size;
}

static void use_threads(size_t nr)
{
	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS,
					  nr));
}

/* The only one. */
static void hold_the_worker(void)
{
	static const CUfileFSOps_t ops = { .read = slow_read };
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.handle.handle = &slow,
				.fs_ops = &ops };
	CUfileIOParams_t params = { .mode = CUFILE_BATCH,
				    .opcode = CUFILE_READ };

	sem_init(&slow.gate, 0, 0);
	assert_ok(cuFileHandleRegister(&slow.fh, &descr));
	assert_ok(cuFileBatchIOSetUp(&slow.batch, 1));
	params.fh = slow.fh;
	params.u.batch.devPtr_base = slow.to;
	params.u.batch.size = sizeof(slow.to);
	assert_ok(cuFileBatchIOSubmit(slow.batch, 1, &params, 0));
	while (!atomic_load(&slow.begun))
		usleep(100);
}

static void let_the_worker_go(void)
{
	CUfileIOEvents_t event;
	unsigned nr = 1;

	sem_post(&slow.gate);
	assert_ok(cuFileBatchIOGetStatus(slow.batch, 1, &nr, &event, NULL));
	assert_int_equal(nr, 1);
	assert_int_equal(event.status, CUFILE_COMPLETE);
	cuFileBatchIODestroy(slow.batch);
	cuFileHandleDeregister(slow.fh);
}

/* All are submitted, and the only worker has no time for them. */
static void all_wait(struct crowd *c, enum th_mem_kind kind)
{
	use_threads(1);
	crowd_begin(c, kind);
	hold_the_worker();
	for (unsigned b = 0; b < BATCHES; b++)
		assert_ok(submit(c, b));
}

static void all_that_wait_for_a_worker_are_carried(enum th_mem_kind kind)
{
	struct crowd c;

	all_wait(&c, kind);
	let_the_worker_go();
	for (unsigned b = BATCHES; b-- > 0;)
		reap_well(&c, b);
	for (unsigned b = 0; b < BATCHES; b++)
		expect(&c, b);
	check_bytes(&c);
	crowd_end(&c);
}

static void all_that_wait_for_a_worker_are_carried_in_host_memory(void **state)
{
	all_that_wait_for_a_worker_are_carried(TH_MALLOC);
}

static void all_that_wait_for_a_worker_are_carried_on_a_gpu(void **state)
{
	th_need_gpu();
	all_that_wait_for_a_worker_are_carried(TH_DEVICE);
}

/* Nothing of theirs was begun, and the others do not notice. */
static void those_destroyed_while_they_wait_are_not_carried(void **state)
{
	struct crowd c;

	all_wait(&c, TH_MALLOC);
	for (unsigned b = 0; b < BATCHES; b += 2)
		cuFileBatchIODestroy(c.batches[b]);
	let_the_worker_go();
	for (unsigned b = 1; b < BATCHES; b += 2) {
		reap_well(&c, b);
		expect(&c, b);
	}
	check_bytes(&c);
	crowd_end(&c);
}

/* The close waits for none of them, and their files are free. */
static void a_crowd_that_waits_may_be_destroyed_as_a_whole(void **state)
{
	struct crowd c;

	all_wait(&c, TH_MALLOC);
	for (unsigned b = 0; b < BATCHES; b++)
		cuFileBatchIODestroy(c.batches[b]);
	cuFileHandleDeregister(c.in);
	cuFileHandleDeregister(c.out);
	check_bytes(&c);
	let_the_worker_go();
	crowd_end(&c);
}

/* ----------------------------------------------------------- many at once */

#define SUBMITTERS 4

struct submitters {
	struct crowd crowd;
	struct th_bad bad;
};

/* Its share of them, all submitted before it asks for the first. */
static void submit_and_reap(void *arg, unsigned i)
{
	struct submitters *s = arg;

	for (unsigned b = i; b < BATCHES; b += SUBMITTERS)
		if (submit(&s->crowd, b).err)
			th_bad_note(&s->bad, "batch %u was refused", b);
	for (unsigned b = i; b < BATCHES; b += SUBMITTERS) {
		const char *wrong = reap(&s->crowd, b);

		if (wrong)
			th_bad_note(&s->bad, "batch %u: %s", b, wrong);
	}
}

static void many_threads_may_make_a_crowd(void **state)
{
	struct submitters s = { .bad = { 0 } };

	th_need_gpu();
	use_threads(3);
	crowd_begin(&s.crowd, TH_DEVICE);
	for (int round = 0; round < 3; round++) {
		th_threads(SUBMITTERS, submit_and_reap, &s);
		th_bad_check(&s.bad);
	}
	for (unsigned b = 0; b < BATCHES; b++)
		expect(&s.crowd, b);
	check_bytes(&s.crowd);
	crowd_end(&s.crowd);
}

static const struct fresh_test tests[] = {
	FRESH(all_that_wait_for_a_worker_are_carried_in_host_memory),
	FRESH(all_that_wait_for_a_worker_are_carried_on_a_gpu),
	FRESH(those_destroyed_while_they_wait_are_not_carried),
	FRESH(a_crowd_that_waits_may_be_destroyed_as_a_whole),
	FRESH(many_threads_may_make_a_crowd),
};

FRESH_MAIN(tests, 60)
