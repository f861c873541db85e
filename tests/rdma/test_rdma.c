// SPDX-License-Identifier: Apache-2.0
/*
 * User-space file systems whose server reaches registered GPU memory itself:
 * which requests are described to it, and their bytes.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/buffer.h"
#include "core/nic.h"
#include "seam/verbs.h"
#include "store.h"

#define SIZE (3 * TH_MIB + 11)
#define NIC "\"10.0.0.1\""

static void refused(ssize_t n, int code)
{
	int err = errno;

	assert_int_equal(n, -1);
	assert_int_equal(err, code);
}

static void registered_memory_goes_by_rdma_in_any_portions(void **state)
{
	static const size_t portions[] = { SIZE_MAX, 65536, 100001, 4097 };
	const char *why;
	struct rig r;

	store_begin(&r.s, SIZE);
	rig_begin(&r, NIC, "");
	assert_string_equal(store_path(r.fh, r.mem.ptr, 1000, &why), "rdma");
	for (size_t i = 0; i < 4; i++) {
		r.s.portion = portions[i];
		store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 7, SIZE);
		store_check_read(&r.s, r.fh, &r.mem, 5000, 1234567, 4095, 5000);
		store_check_read(&r.s, r.fh, &r.mem, 5000, SIZE - 100, 0, 100);
		store_check_read(&r.s, r.fh, &r.mem, 5000, SIZE, 0, 0);
		store_check_write(&r.s, r.fh, &r.mem, SIZE - 7, 7, 1, SIZE - 7);
		store_check_write(&r.s, r.fh, &r.mem, 1, 99, 12345, 1);
	}
	assert_true(r.s.by_rdma > 100);
	assert_int_equal(r.s.by_host, 0);
	rig_end(&r);
}

/* A client that is given a description must have memory that NICs reach. */
static void other_memory_is_host_memory_without_a_description(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_DEVICE, TH_MANAGED, TH_VMM,
						  TH_MALLOC };
	const char *why;
	struct store s;
	CUfileHandle_t fh;

	store_open(NIC, "");
	store_begin(&s, SIZE);
	fh = store_handle(&s);
	for (int i = 0; i < 4; i++) {
		struct th_mem mem;

		th_mem_alloc(&mem, kinds[i], SIZE);
		if (kinds[i] != TH_DEVICE)
			assert_int_equal(
				cuFileBufRegister(mem.ptr, SIZE, 0).err, 0);
		assert_string_not_equal(store_path(fh, mem.ptr, 1000, &why),
					"rdma");
		assert_non_null(why);
		store_check_read(&s, fh, &mem, SIZE - 5, 3, 2, SIZE - 5);
		store_check_write(&s, fh, &mem, 4099, 1, 0, 4099);
		if (kinds[i] != TH_DEVICE)
			assert_int_equal(cuFileBufDeregister(mem.ptr).err, 0);
		th_mem_free(&mem);
	}
	assert_int_equal(s.by_rdma, 0);
	assert_true(s.by_host > 0);
	cuFileHandleDeregister(fh);
	store_end(&s);
}

static void without_a_nic_nobody_is_asked(void **state)
{
	const char *why;
	struct rig r;

	store_begin(&r.s, SIZE);
	rig_begin(&r, "", "");
	assert_string_equal(store_path(r.fh, r.mem.ptr, 1000, &why), "staged");
	assert_non_null(strstr(why, "rdma_dev_addr_list"));
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	assert_int_equal(r.s.by_rdma + r.s.hosts_asked + r.s.priorities_asked,
			 0);
	for (int row = 0; row < FV_NR_ROWS; row++)
		assert_int_equal(fake_verbs_calls((enum fake_row)row), 0);
	rig_end(&r);
}

static void a_file_system_that_wants_host_memory_gets_it(void **state)
{
	const char *why;
	struct rig r;

	store_begin(&r.s, SIZE);
	rig_begin(&r, NIC, "");
	r.s.host_only = true;
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	assert_int_equal(r.s.by_rdma, 1);
	store_check_write(&r.s, r.fh, &r.mem, SIZE - 3, 3, 0, SIZE - 3);
	assert_int_equal(r.s.by_rdma, 1);
	assert_string_equal(store_path(r.fh, r.mem.ptr, 1000, &why), "staged");
	assert_non_null(strstr(why, "wants host memory"));
	cuFileHandleDeregister(r.fh);
	/* another file of it is asked anew */
	r.s.host_only = false;
	r.fh = store_handle(&r.s);
	store_check_write(&r.s, r.fh, &r.mem, SIZE - 3, 3, 0, SIZE - 3);
	assert_int_equal(r.s.by_rdma, 2);
	rig_end(&r);
}

static void refuse_from_now_on(struct store *s)
{
	s->meanwhile = NULL;
	s->host_only = true;
}

/* Some bytes of the call have gone already; a short count would be the end. */
static void a_file_system_may_want_host_memory_for_the_rest(void **state)
{
	struct th_mem mem;
	struct store s;

	store_open(NIC, "");
	store_begin(&s, SIZE);
	s.portion = 65536;
	store_mem(&mem, SIZE, 0);
	for (int write = 0; write < 2; write++) {
		CUfileHandle_t fh = store_handle(&s);

		s.host_only = false;
		s.meanwhile = refuse_from_now_on;
		if (write)
			store_check_write(&s, fh, &mem, SIZE - 3, 3, 0,
					  SIZE - 3);
		else
			store_check_read(&s, fh, &mem, SIZE, 0, 0, SIZE);
		assert_int_equal(s.by_rdma, 2 * (write + 1));
		cuFileHandleDeregister(fh);
	}
	assert_int_equal(cuFileBufDeregister(mem.ptr).err, 0);
	th_mem_free(&mem);
	store_end(&s);
}

static void errors_come_through(void **state)
{
	struct rig r;

	store_begin(&r.s, SIZE);
	rig_begin(&r, NIC, "");
	r.s.fail = -EACCES;
	refused(cuFileRead(r.fh, r.mem.ptr, SIZE, 0, 0), EACCES);
	refused(cuFileWrite(r.fh, r.mem.ptr, SIZE, 0, 0), EACCES);
	r.s.fail = SIZE * 2; /* more than was asked for */
	refused(cuFileRead(r.fh, r.mem.ptr, 4096, 0, 0), EIO);
	r.s.fail = 0;
	refused(cuFileWrite(r.fh, r.mem.ptr, 4096, SIZE, 0), EIO);
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	rig_end(&r);
}

static void configuration_may_keep_writes_in_host_memory(void **state)
{
	struct rig r;

	store_begin(&r.s, SIZE);
	/* by choice and not for want of a way: strict mode allows it */
	rig_begin(&r, NIC,
		  ", \"gds_rdma_write_support\": false,"
		  " \"allow_compat_mode\": false");
	store_check_write(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	assert_int_equal(r.s.by_rdma, 0);
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	assert_true(r.s.by_rdma > 0);
	rig_end(&r);
}

static void strict_mode_has_rdma_alone(void **state)
{
	struct th_mem other;
	struct rig r;

	store_begin(&r.s, SIZE);
	rig_begin(&r, NIC, ", \"allow_compat_mode\": false");
	th_mem_alloc(&other, TH_DEVICE, 4096);
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	assert_int_equal(cuFileRead(r.fh, other.ptr, 4096, 0, 0), -1);
	assert_int_equal(r.s.by_host, 0);
	th_mem_free(&other);
	rig_end(&r);
}

static void compatibility_mode_has_none(void **state)
{
	struct rig r;

	store_begin(&r.s, SIZE);
	rig_begin(&r, NIC, ", \"force_compat_mode\": true");
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	assert_int_equal(r.s.by_rdma, 0);
	rig_end(&r);
}

static void *in_use; /* of the request that runs */
static unsigned mrs_then;

static void deregister_now(struct store *s)
{
	s->meanwhile = NULL;
	assert_int_equal(cuFileBufDeregister(in_use).err, 0);
	mrs_then = fake_verbs_live_mrs();
}

static void a_request_keeps_its_memory_at_the_nic(void **state)
{
	struct th_mem mem;
	struct store s;
	CUfileHandle_t fh;

	store_open(NIC, "");
	store_begin(&s, SIZE);
	store_mem(&mem, SIZE, 0);
	fh = store_handle(&s);
	in_use = mem.ptr;
	s.portion = 100000;
	s.meanwhile = deregister_now;
	store_check_read(&s, fh, &mem, SIZE, 0, 0, SIZE);
	assert_int_equal(mrs_then, 1);
	assert_int_equal(fake_verbs_live_mrs(), 0);
	assert_int_equal(s.by_host, 0);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	store_end(&s);
}

/* Frees memory that is registered, until the driver gives an address again. */
static void take_a_place(struct th_mem *mem)
{
	void *seen[200];
	unsigned i, nr = 0;

	do {
		assert_true(nr < 200);
		assert_int_equal(cuFileBufRegister(mem->ptr, SIZE, 0).err, 0);
		seen[nr++] = mem->ptr;
		th_mem_free(mem); /* a client's mistake */
		th_mem_alloc(mem, TH_DEVICE, SIZE);
		for (i = 0; i < nr && seen[i] != mem->ptr; i++)
			;
	} while (i == nr);
}

static void memory_that_took_its_place_is_not_described(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct th_mem mem;
	struct rig r;

	if (th_emulated())
		th_skip("the emulator gives no address again");
	fake->reuse_handles(1);
	store_begin(&r.s, SIZE);
	rig_begin(&r, NIC, "");
	th_mem_alloc(&mem, TH_DEVICE, SIZE);
	take_a_place(&mem);
	store_check_read(&r.s, r.fh, &mem, SIZE, 0, 0, SIZE);
	assert_int_equal(r.s.by_rdma, 0);
	assert_true(r.s.by_host > 0);
	th_mem_free(&mem);
	rig_end(&r);
	fake->reuse_handles(0);
}

static void batches_and_streams_go_by_rdma_too(void **state)
{
	CUfileIOEvents_t event = { 0 };
	CUfileIOParams_t params = { .mode = CUFILE_BATCH,
				    .opcode = CUFILE_READ };
	size_t size = SIZE;
	off_t zero = 0;
	ssize_t done = 0;
	CUfileBatchHandle_t batch;
	CUfileStatsLevel1_t stats;
	unsigned char *got = malloc(SIZE);
	struct rig r;
	unsigned nr = 1;

	store_begin(&r.s, SIZE);
	rig_begin(&r, NIC, "");
	assert_int_equal(cuFileSetStatsLevel(1).err, 0);
	assert_int_equal(cuFileStatsStart().err, 0);
	params.fh = r.fh;
	params.u.batch.devPtr_base = r.mem.ptr;
	params.u.batch.size = SIZE;
	assert_int_equal(cuFileBatchIOSetUp(&batch, 1).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, 1, &params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, 1, &nr, &event, NULL).err, 0);
	assert_int_equal(event.ret, SIZE);
	cuFileBatchIODestroy(batch);
	th_mem_get(&r.mem, 0, got, SIZE);
	th_equal("by a batch", got, r.s.bytes, SIZE);
	assert_int_equal(cuFileGetStatsL1(&stats).err, 0);
	assert_int_equal(stats.batch_processed_ops.ok, 1);
	assert_int_equal(stats.batch_posix_processed_ops.ok, 0);
	th_mem_set(&r.mem, 0);
	assert_int_equal(cuFileReadAsync(params.fh, r.mem.ptr, &size, &zero,
					 &zero, &done, NULL)
				 .err,
			 0);
	th_mem_get(&r.mem, 0, got, SIZE);
	assert_int_equal(done, SIZE);
	th_equal("in a stream", got, r.s.bytes, SIZE);
	assert_int_equal(r.s.by_host, 0);
	rig_end(&r);
	free(got);
}

static ssize_t write_in_a_batch(CUfileHandle_t fh, const struct th_mem *mem)
{
	CUfileIOEvents_t event = { 0 };
	CUfileIOParams_t params = { .mode = CUFILE_BATCH,
				    .opcode = CUFILE_WRITE,
				    .fh = fh };
	CUfileBatchHandle_t batch;
	unsigned nr = 1;

	params.u.batch.devPtr_base = mem->ptr;
	params.u.batch.size = SIZE;
	assert_int_equal(cuFileBatchIOSetUp(&batch, 1).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, 1, &params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, 1, &nr, &event, NULL).err, 0);
	cuFileBatchIODestroy(batch);
	return (ssize_t)event.ret;
}

/* The server takes the bytes, and no copy of ours waits for anything. */
static void a_write_sees_what_the_default_streams_hold(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct rig r;

	store_begin(&r.s, SIZE);
	rig_begin(&r, NIC, "");
	for (int batch = 0; batch < 2; batch++) {
		ssize_t n;

		fake->legacy_delay_us(100000);
		assert_int_equal(cuMemsetD8Async((uintptr_t)r.mem.ptr,
						 0x42 + batch, SIZE, NULL),
				 0);
		n = batch ? write_in_a_batch(r.fh, &r.mem) :
			    cuFileWrite(r.fh, r.mem.ptr, SIZE, 0, 0);
		assert_int_equal(n, SIZE);
		th_all(batch ? "by a batch" : "by a call", r.s.bytes,
		       0x42 + batch, SIZE);
		assert_int_equal(cuCtxSynchronize(), 0);
		fake->legacy_delay_us(0);
	}
	assert_true(r.s.by_rdma > 0);
	assert_int_equal(r.s.by_host, 0);
	rig_end(&r);
}

/* What the child ends is its own memory of them. */
static void a_fork_leaves_the_nics_with_the_parent(void **state)
{
	struct rig r;
	int status = 0;
	pid_t child;

	store_begin(&r.s, SIZE);
	rig_begin(&r, NIC, "");
	child = fork();
	if (!child) {
		unsigned live = fake_verbs_live();
		bool good = !cuFileBufDeregister(r.mem.ptr).err &&
			    !cuFileDriverClose_v2().err;

		_exit(!good || fake_verbs_live() != live);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	store_check_read(&r.s, r.fh, &r.mem, SIZE, 0, 0, SIZE);
	rig_end(&r);
}

struct crowd {
	struct store *s;
	CUfileHandle_t fh;
	struct th_bad bad;
};

static void live_a_little(void *arg, unsigned i)
{
	struct crowd *c = arg;
	size_t size = 65536;
	unsigned char *got = malloc(size);

	for (int round = 0; round < TH_SCALE(40); round++) {
		off_t off = (off_t)th_below(SIZE - size);
		struct th_mem mem;

		th_mem_alloc(&mem, TH_DEVICE, size);
		if (cuFileBufRegister(mem.ptr, size, 0).err ||
		    cuFileRead(c->fh, mem.ptr, size, off, 0) != (ssize_t)size)
			th_bad_note(&c->bad, "%u: no read", i);
		th_mem_get(&mem, 0, got, size);
		if (memcmp(got, c->s->bytes + off, size))
			th_bad_note(&c->bad, "%u: other bytes", i);
		if (cuFileBufDeregister(mem.ptr).err)
			th_bad_note(&c->bad, "%u: not deregistered", i);
		th_mem_free(&mem);
	}
	free(got);
}

static void threads_register_and_read_at_a_time(void **state)
{
	struct crowd c = { 0 };
	struct store s;

	store_open("\"10.0.0.1\", \"10.0.0.2\", \"10.0.0.3\"", "");
	store_begin(&s, SIZE);
	c.s = &s;
	c.fh = store_handle(&s);
	th_threads(6, live_a_little, &c);
	th_bad_check(&c.bad);
	assert_int_equal(s.by_host, 0);
	assert_int_equal(fake_verbs_live_mrs(), 0);
	cuFileHandleDeregister(c.fh);
	store_end(&s);
}

/* NICs that are opened until a buffer has been registered meanwhile. */
static struct cf_verbs slow;
static void *(*open_at_once)(void *device);
static atomic_bool is_opening, is_registered;

static void wait_for(atomic_bool *done)
{
	while (!atomic_load(done))
		usleep(1000);
}

static void *open_slowly(void *device)
{
	atomic_store(&is_opening, true);
	wait_for(&is_registered);
	return open_at_once(device);
}

static void open_or_register(void *arg, unsigned i)
{
	const struct th_mem *mem = arg;

	if (i)
		wait_for(&is_opening);
	cuFileDriverOpen();
	if (i)
		cuFileBufRegister(mem->ptr, SIZE, 0);
	if (i)
		atomic_store(&is_registered, true);
}

static void what_is_registered_while_nics_are_opened_is_theirs(void **state)
{
	const char *wrong;
	struct th_mem mem;
	CUfileHandle_t fh;
	struct store s;

	store_open("\"10.0.0.1\"", "");
	th_close(); /* the configuration stays */
	slow = *cf_verbs_open(&wrong);
	open_at_once = slow.open_device;
	slow.open_device = open_slowly;
	cf_verbs_replace(&slow);
	th_mem_alloc(&mem, TH_DEVICE, SIZE);
	th_threads(2, open_or_register, &mem);
	assert_int_equal(fake_verbs_live_mrs(), 1);
	store_begin(&s, SIZE);
	fh = store_handle(&s);
	store_check_read(&s, fh, &mem, SIZE, 0, 0, SIZE);
	assert_int_equal(s.by_host, 0);
	cuFileHandleDeregister(fh);
	assert_int_equal(cuFileBufDeregister(mem.ptr).err, 0);
	assert_int_equal(fake_verbs_live_mrs(), 0);
	th_mem_free(&mem);
	store_end(&s);
}

/* What opens the driver has its NICs look for it, and looks for them. */
static void the_first_buffer_is_registered_once(void **state)
{
	struct th_mem mem;

	store_open("\"10.0.0.1\"", "");
	th_close(); /* the configuration stays */
	th_mem_alloc(&mem, TH_DEVICE, SIZE);
	assert_int_equal(cuFileBufRegister(mem.ptr, SIZE, 0).err, 0);
	assert_int_equal(fake_verbs_live_mrs(), 1);
	assert_int_equal(fake_verbs_calls(FV_REG_DMABUF_MR), 1);
	assert_int_equal(cuFileBufDeregister(mem.ptr).err, 0);
	assert_int_equal(fake_verbs_live_mrs(), 0);
	th_mem_free(&mem);
}

/* One that comes late, or was made for one that was there before, ends. */
static void a_registration_has_the_first_that_is_its_own(void **state)
{
	struct cf_buffer_range reg, range;
	struct cf_memory facts;
	struct th_mem mem;
	struct store s;

	store_open("\"10.0.0.1\"", "");
	store_begin(&s, SIZE);
	th_mem_alloc(&mem, TH_DEVICE, SIZE);
	cf_memory_facts((uintptr_t)mem.ptr, &facts);
	assert_int_equal(cf_buffer_register(&facts, SIZE, false), 0);
	assert_true(cf_buffer_unreached(0, &reg));
	for (int i = 0; i < 3; i++) {
		range = reg;
		range.buffer_id += i == 0;
		range.end -= i == 1;
		range.relaxed = i == 2;
		cf_buffer_set_remote(&range,
				     cf_remote_make(&facts, SIZE, false));
		assert_int_equal(fake_verbs_live_mrs(), 0);
		assert_true(cf_buffer_unreached(0, &range));
	}
	for (int i = 0; i < 2; i++) {
		cf_buffer_set_remote(&reg, cf_remote_make(&facts, SIZE, false));
		assert_int_equal(fake_verbs_live_mrs(), 1);
		assert_false(cf_buffer_unreached(0, &range));
	}
	assert_int_equal(cuFileBufDeregister(mem.ptr).err, 0);
	assert_int_equal(fake_verbs_live_mrs(), 0);
	th_mem_free(&mem);
	store_end(&s);
}

static void open_or_close(void *arg, unsigned i)
{
	if (!i) {
		cuFileDriverOpen();
		return;
	}
	wait_for(&is_opening);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	atomic_store(&is_registered, true);
}

static void nics_of_a_session_that_was_closed_meanwhile_end(void **state)
{
	const char *wrong;

	store_open("\"10.0.0.1\"", "");
	th_close();
	slow = *cf_verbs_open(&wrong);
	open_at_once = slow.open_device;
	slow.open_device = open_slowly;
	atomic_store(&is_opening, false);
	atomic_store(&is_registered, false);
	cf_verbs_replace(&slow);
	th_threads(2, open_or_close, NULL);
	assert_int_equal(fake_verbs_live(), 0);
	assert_null(cf_nics_get());
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(registered_memory_goes_by_rdma_in_any_portions),
		TEST(other_memory_is_host_memory_without_a_description),
		TEST(without_a_nic_nobody_is_asked),
		TEST(a_file_system_that_wants_host_memory_gets_it),
		TEST(a_file_system_may_want_host_memory_for_the_rest),
		TEST(errors_come_through),
		TEST(configuration_may_keep_writes_in_host_memory),
		TEST(strict_mode_has_rdma_alone),
		TEST(compatibility_mode_has_none),
		TEST(a_request_keeps_its_memory_at_the_nic),
		TEST(memory_that_took_its_place_is_not_described),
		TEST(batches_and_streams_go_by_rdma_too),
		TEST(a_write_sees_what_the_default_streams_hold),
		TEST(a_fork_leaves_the_nics_with_the_parent),
		TEST(threads_register_and_read_at_a_time),
		TEST(what_is_registered_while_nics_are_opened_is_theirs),
		TEST(the_first_buffer_is_registered_once),
		TEST(a_registration_has_the_first_that_is_its_own),
		TEST(nics_of_a_session_that_was_closed_meanwhile_end),
	};

	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("rdma", tests, NULL, NULL));
}
