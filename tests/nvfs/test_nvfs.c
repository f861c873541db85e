// SPDX-License-Identifier: Apache-2.0
/*
 * Data by nvidia-fs: the bytes, the rules of the driver, and what happens
 * when it cannot. All bytes of file and memory are looked at each time.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common.h"
#include "core/nvfs_abi.h"
#include "core/nvfs_map.h"
#include "seam/os.h"

#define SIZE (12 * TH_MIB)

static void begin(struct rig *r, size_t size)
{
	(void)th_need_fake();
	fake_nvfs_begin();
	rig_begin(r, size);
}

static void end(struct rig *r)
{
	rig_end(r);
	fake_nvfs_end();
}

/* ------------------------------------------------------------- the bytes */

static void whole_blocks_never_meet_host_memory(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	assert_null(rig_why(&r, TH_MIB, 0, 0));
	rig_read(&r, 4096, 8192, 4096, 4096);
	rig_read(&r, TH_MIB, 0, 64 * TH_KIB, TH_MIB);
	rig_write(&r, 3 * TH_MIB, 4096, 8192, 3 * TH_MIB);
	rig_read(&r, SIZE, 0, 0, SIZE);
	assert_int_equal(fake_nvfs_count(FAKE_BYTES), 4096 + 4 * TH_MIB + SIZE);
	end(&r);
}

/* Two that differ by whole blocks, any edges. */
static void any_offsets_and_sizes_travel(void **state)
{
	unsigned long whole = 0; /* blocks that lie alike in memory and file */
	struct rig r;

	begin(&r, SIZE);
	for (int i = 0; i < 60; i++) {
		size_t size =
			1 + th_below(th_below(2) ? SIZE / 2 : 100 * TH_KIB);
		off_t off = (off_t)th_below(SIZE - size);
		size_t at = th_below(SIZE - size);

		/* half of them lie alike in a block */
		if (th_below(2))
			at = (at & ~(size_t)4095) | ((size_t)off & 4095);
		if (at > SIZE - size)
			at -= 4096;
		if (!((at ^ (size_t)off) & 4095) && size > 8192)
			whole += (size - 8192) & ~4095ul;
		if (th_below(2))
			rig_read(&r, size, off, at, (ssize_t)size);
		else
			rig_write(&r, size, off, at, (ssize_t)size);
	}
	assert_true(fake_nvfs_count(FAKE_BYTES) >= whole);
	end(&r);
}

/* A buffer whose base is anywhere in a GPU's page, of any size. */
static void small_buffers_are_mapped_too(void **state)
{
	static const struct {
		size_t base, size;
	} buffers[] = {
		{ 0, 4096 },
		{ 4096, 8192 },
		{ 60 * 1024, 16384 },
		{ 4096, 64 * 1024 },
		{ 61440, 65536 + 4096 },
		{ 100, 40000 },
		{ 12288, 300000 },
	};
	struct rig r;

	begin(&r, TH_MIB);
	assert_int_equal(cuFileBufDeregister(r.mem.ptr).err, 0);
	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
		char *base = (char *)r.mem.ptr + buffers[i].base;
		size_t size = buffers[i].size, before;

		before = fake_nvfs_count(FAKE_MAPS);
		assert_int_equal(cuFileBufRegister(base, size, 0).err, 0);
		assert_int_equal(
			cuFileRead(r.fh, base, size, (off_t)buffers[i].base, 0),
			size);
		memcpy(r.gpu + buffers[i].base, r.bytes + buffers[i].base,
		       size);
		rig_check(&r, "after a read into a small buffer");
		assert_int_equal(fake_nvfs_count(FAKE_MAPS) - before,
				 size < 8192 && buffers[i].base % 4096 ? 0 : 1);
		assert_int_equal(cuFileBufDeregister(base).err, 0);
		assert_int_equal(fake_nvfs_live(), 0);
	}
	assert_int_equal(cuFileBufRegister(r.mem.ptr, r.size, 0).err, 0);
	end(&r);
}

static void a_read_ends_with_the_file(void **state)
{
	struct rig r;
	size_t last = 2 * TH_MIB + 100000;

	begin(&r, SIZE);
	assert_int_equal(ftruncate(r.file.plain, (off_t)last), 0);
	assert_int_equal(cuFileRead(r.fh, r.mem.ptr, SIZE, 0, 0), last);
	memcpy(r.gpu, r.bytes, last);
	assert_int_equal(cuFileRead(r.fh, r.mem.ptr, TH_MIB, 3 * TH_MIB, 0), 0);
	assert_int_equal(cuFileRead(r.fh, r.mem.ptr, 4096, 2 * TH_MIB, 0),
			 4096);
	memcpy(r.gpu, r.bytes + 2 * TH_MIB, 4096);
	assert_int_equal(ftruncate(r.file.plain, SIZE), 0);
	memset(r.bytes + last, 0, SIZE - last);
	rig_check(&r, "after reads at the end");
	end(&r);
}

static void a_write_may_make_the_file_longer(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	assert_int_equal(ftruncate(r.file.plain, 0), 0);
	memset(r.bytes, 0, SIZE);
	assert_int_equal(
		cuFileWrite(r.fh, r.mem.ptr, 5 * TH_MIB + 7, 2 * TH_MIB, 0),
		5 * TH_MIB + 7);
	memcpy(r.bytes + 2 * TH_MIB, r.gpu, 5 * TH_MIB + 7);
	assert_int_equal(th_file_size(&r.file), 7 * TH_MIB + 7);
	assert_int_equal(ftruncate(r.file.plain, SIZE), 0);
	rig_check(&r, "after a write past the end");
	end(&r);
}

/* ------------------------------------------------------------------ holes */

/* Where the GPU asks for it: before the read's end, in one or in parts. */
static void a_read_is_flushed_before_it_ends(void **state)
{
	const char *flush = "cuFlushGPUDirectRDMAWrites";
	unsigned long before;
	struct rig r;

	th_need_fake()->writes_ordering(0, 1);
	begin(&r, SIZE);
	before = th_fake()->calls(flush);
	rig_read(&r, SIZE, 0, 0, SIZE);
	assert_int_equal(th_fake()->calls(flush), before + 1);
	rig_read(&r, 64 * TH_KIB, 0, 0, 64 * TH_KIB);
	assert_int_equal(th_fake()->calls(flush), before + 2);
	rig_write(&r, SIZE, 0, 0, SIZE);
	assert_int_equal(th_fake()->calls(flush), before + 2);
	assert_true(fake_nvfs_count(FAKE_BYTES) > 2 * SIZE);
	th_fake()->writes_ordering(100, 1);
	end(&r);
}

/* Nothing of the path itself is in a stream that comes behind it. */
static void a_write_sees_what_a_default_stream_still_does(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	for (int i = 1; i < 4; i++) {
		th_need_fake()->legacy_delay_us(20000);
		assert_int_equal(
			cuMemsetD8Async((uintptr_t)r.mem.ptr, i, SIZE, NULL),
			0);
		memset(r.gpu, i, SIZE);
		rig_write(&r, SIZE, 0, 0, SIZE);
		th_need_fake()->legacy_delay_us(0);
	}
	assert_int_equal(fake_nvfs_count(FAKE_BYTES), 3 * SIZE);
	end(&r);
}

static void holes_are_read_as_zeros(void **state)
{
	static const struct fake_hole holes[] = {
		{ 0, 4096 },
		{ 65536, 8192 },
		{ 1 << 20, 3 << 20 },
		{ (5 << 20) - 4096, 4096 },
	};
	struct rig r;

	begin(&r, SIZE);
	for (int i = 0; i < 4; i++) {
		memset(r.bytes + holes[i].off, 0, holes[i].size);
		th_file_put(&r.file, holes[i].off, r.bytes + holes[i].off,
			    holes[i].size);
	}
	fake_nvfs.holes = holes;
	fake_nvfs.nr_holes = 4;
	for (int i = 0; i < 3; i++) {
		th_fill(r.gpu, SIZE);
		th_mem_put(&r.mem, 0, r.gpu, SIZE);
		if (i == 2) /* a count that ends with a chunk that had holes */
			fake_nvfs.short_at = 128 * TH_KIB;
		rig_read(&r, i ? SIZE : 256 * TH_KIB, 0, i ? 0 : 4096,
			 i ? SIZE : 256 * TH_KIB);
	}
	end(&r);
}

/* The hazard of the text: success, and the bytes are in the shadow. */
static void a_read_from_storage_that_lies_is_right_all_the_same(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	fake_nvfs.unhooked = true;
	rig_read(&r, 4 * TH_MIB, 4096, 8192, 4 * TH_MIB);
	end(&r);
}

/* ----------------------------------------------------- sync, async, batch */

static void one_operation_blocks_and_several_are_a_batch(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	rig_read(&r, 64 * TH_KIB, 0, 0, 64 * TH_KIB);
	assert_int_equal(fake_nvfs_count(FAKE_SYNCS), 1);
	assert_int_equal(fake_nvfs_count(FAKE_ASYNCS), 0);
	rig_read(&r, 8 * TH_MIB, 0, 0, 8 * TH_MIB);
	assert_int_equal(fake_nvfs_count(FAKE_BATCHES), 1);
	assert_int_equal(fake_nvfs_count(FAKE_ASYNCS), 8);
	assert_int_equal(fake_nvfs_count(FAKE_MAPS), 4);
	end(&r);
}

static void poll_mode_waits_for_the_fence_of_small_ones(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	assert_int_equal(cuFileDriverSetPollMode(true, 16).err, 0);
	rig_read(&r, 16 * TH_KIB, 0, 0, 16 * TH_KIB);
	assert_int_equal(fake_nvfs_count(FAKE_ASYNCS), 1);
	rig_read(&r, 64 * TH_KIB, 0, 0, 64 * TH_KIB);
	assert_int_equal(fake_nvfs_count(FAKE_SYNCS), 1);
	end(&r);
}

static void slow_requests_are_waited_for(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	fake_nvfs.async_us = 30000;
	rig_read(&r, 6 * TH_MIB, 0, 0, 6 * TH_MIB);
	rig_write(&r, 6 * TH_MIB, 0, 4096, 6 * TH_MIB);
	end(&r);
}

static void a_batch_that_fails_is_the_last(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	fake_nvfs.no_batch = true;
	rig_read(&r, 8 * TH_MIB, 0, 0, 8 * TH_MIB);
	rig_read(&r, 8 * TH_MIB, TH_MIB, 0, 8 * TH_MIB);
	assert_int_equal(fake_nvfs_count(FAKE_BATCHES), 1);
	assert_true(fake_nvfs_count(FAKE_ASYNCS) >= 8);
	end(&r);
}

/* ----------------------------------------------------------------- errors */

static void check_after_error(struct rig *r, int err, bool persist)
{
	fake_nvfs.err = err;
	fake_nvfs.err_persist = persist;
	fake_nvfs.err_at = 2;
	rig_read(r, 4096, 0, 0, 4096);
	rig_read(r, 64 * TH_KIB, 4096, 0, 64 * TH_KIB);
	rig_write(r, 5 * TH_MIB + 99, 8192, 0, 5 * TH_MIB + 99);
	rig_read(r, 5 * TH_MIB + 99, 0, 8192, 5 * TH_MIB + 99);
}

static void what_the_driver_cannot_do_goes_through_host_memory(void **state)
{
	static const int errors[] = { ESTALE, EIO, EINVAL, ENOMEM, EBADF };

	for (size_t i = 0; i < 2 * sizeof(errors) / sizeof(errors[0]); i++) {
		struct rig r;

		begin(&r, SIZE);
		check_after_error(&r, errors[i / 2], i & 1);
		end(&r);
	}
}

/* IBM's answer for what has no keys: not asked again. */
static void a_file_system_that_takes_no_part_is_not_asked_again(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	check_after_error(&r, EOPNOTSUPP, false);
	assert_string_equal(rig_why(&r, 4096, 0, 0),
			    "the file system refused nvidia-fs");
	assert_int_equal(fake_nvfs_count(FAKE_SYNCS), 2);
	end(&r);
}

static void strict_mode_tells_the_true_error(void **state)
{
	struct rig r;

	(void)th_need_fake();
	fake_nvfs_begin();
	assert_int_equal(
		cuFileSetParameterBool(
			CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false)
			.err,
		0);
	rig_begin(&r, SIZE);
	rig_read(&r, TH_MIB, 0, 0, TH_MIB);
	fake_nvfs.err = ESTALE;
	fake_nvfs.err_at = 2;
	fake_nvfs.err_persist = true;
	errno = 0;
	assert_int_equal(cuFileRead(r.fh, r.mem.ptr, TH_MIB, 0, 0), -1);
	assert_int_equal(errno, ESTALE);
	rig_check(&r, "after an error");
	rig_end(&r);
	fake_nvfs_end();
}

static void an_error_in_the_middle_keeps_what_came_before(void **state)
{
	struct rig r;

	(void)th_need_fake();
	fake_nvfs_begin();
	assert_int_equal(
		cuFileSetParameterBool(
			CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false)
			.err,
		0);
	rig_begin(&r, SIZE);
	fake_nvfs.map_most = 1; /* in order, one after another */
	fake_nvfs.err = EIO;
	fake_nvfs.err_at = 4;
	assert_int_equal(cuFileRead(r.fh, r.mem.ptr, 8 * TH_MIB, 0, 0),
			 3 * TH_MIB);
	memcpy(r.gpu, r.bytes, 3 * TH_MIB);
	rig_check(&r, "after an error in the middle");
	rig_end(&r);
	fake_nvfs_end();
}

/* One that is told EBUSY has a mapping that is dead for good. */
static void a_mapping_that_was_killed_is_made_anew(void **state)
{
	struct rig r;
	size_t maps;

	begin(&r, SIZE);
	rig_read(&r, 4096, 0, 0, 4096);
	maps = fake_nvfs_count(FAKE_MAPS);
	fake_nvfs.err = EBUSY;
	fake_nvfs.err_at = 2;
	rig_read(&r, 64 * TH_KIB, 4096, 0, 64 * TH_KIB);
	assert_int_equal(fake_nvfs_live(), maps - 1);
	rig_read(&r, 64 * TH_KIB, 4096, 0, 64 * TH_KIB);
	assert_int_equal(fake_nvfs_count(FAKE_MAPS), maps + 1);
	end(&r);
}

static void memory_that_cannot_be_mapped_is_staged(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	fake_nvfs.map_err = ENOMEM;
	rig_read(&r, 5 * TH_MIB, 100, 200, 5 * TH_MIB);
	rig_write(&r, 5 * TH_MIB, 4096, 4096, 5 * TH_MIB);
	assert_int_equal(fake_nvfs_count(FAKE_BYTES), 0);
	assert_int_equal(fake_nvfs_live(), 0);
	end(&r);
}

static void few_mappings_are_enough(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	fake_nvfs.map_most = 2;
	rig_read(&r, SIZE, 0, 0, SIZE);
	rig_write(&r, SIZE, 0, 0, SIZE);
	assert_int_equal(fake_nvfs_count(FAKE_BYTES), 2 * SIZE);
	end(&r);
}

static void no_more_memory_is_pinned_than_allowed(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	assert_int_equal(cuFileDriverSetMaxPinnedMemSize(1024).err, 0);
	rig_read(&r, TH_MIB, 0, 0, TH_MIB);
	assert_int_equal(fake_nvfs_count(FAKE_MAPS), 0);
	assert_int_equal(cuFileDriverSetMaxPinnedMemSize(SIZE / 1024).err, 0);
	rig_read(&r, TH_MIB, 0, 4096, TH_MIB);
	assert_int_equal(fake_nvfs_count(FAKE_MAPS), 1);
	end(&r);
}

/* --------------------------------------------------------------- lifetimes */

static void a_deregistered_buffer_is_unmapped(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	rig_read(&r, 4 * TH_MIB, 0, 0, 4 * TH_MIB);
	assert_true(fake_nvfs_live() > 1);
	assert_int_equal(cuFileBufDeregister(r.mem.ptr).err, 0);
	assert_int_equal(fake_nvfs_live(), 0);
	assert_string_equal(rig_why(&r, 4096, 0, 0),
			    "the buffer is not registered");
	rig_read(&r, TH_MIB, 0, 8192, TH_MIB);
	assert_int_equal(cuFileBufRegister(r.mem.ptr, SIZE, 0).err, 0);
	rig_read(&r, TH_MIB, 4096, 0, TH_MIB);
	assert_int_equal(fake_nvfs_live(), 1);
	end(&r);
}

/* Persistent pinning tells nobody: the old pages would get the bytes. */
static void memory_that_was_freed_and_taken_again_is_another(void **state)
{
	CUdeviceptr first, second;
	unsigned char *got;
	struct rig r;

	begin(&r, TH_MIB);
	got = malloc(TH_MIB);
	assert_int_equal(cuMemAlloc(&first, TH_MIB), 0);
	assert_int_equal(
		cuFileBufRegister((void *)(uintptr_t)first, TH_MIB, 0).err, 0);
	assert_int_equal(
		cuFileRead(r.fh, (void *)(uintptr_t)first, TH_MIB, 0, 0),
		TH_MIB);
	assert_int_equal(cuMemFree(first), 0);
	assert_int_equal(cuMemAlloc(&second, TH_MIB), 0);
	if (first == second) {
		size_t bytes = fake_nvfs_count(FAKE_BYTES);

		assert_int_equal(cuFileRead(r.fh, (void *)(uintptr_t)second,
					    TH_MIB, 0, 0),
				 TH_MIB);
		assert_int_equal(fake_nvfs_count(FAKE_BYTES), bytes);
		assert_int_equal(th_fake()->read(second, got, TH_MIB), 0);
		th_equal("in the new memory", got, r.bytes, TH_MIB);
	}
	assert_int_equal(cuFileBufDeregister((void *)(uintptr_t)first).err, 0);
	assert_int_equal(cuMemFree(second), 0);
	free(got);
	end(&r);
}

static void a_close_with_buffers_left_unmaps_all(void **state)
{
	struct rig r;

	begin(&r, SIZE);
	rig_read(&r, 4 * TH_MIB, 0, 0, 4 * TH_MIB);
	th_close();
	assert_int_equal(fake_nvfs_live(), 0);
	th_open();
	assert_int_equal(cuFileBufRegister(r.mem.ptr, SIZE, 0).err, 0);
	r.fh = th_handle(r.file.fd);
	rig_read(&r, TH_MIB, TH_MIB, 0, TH_MIB);
	end(&r);
}

/* ---------------------------------------------------------------- threads */

struct crowd {
	struct rig *r;
	size_t share;
	struct th_bad bad;
	atomic_uint done;
};

/* Each has its own part of file and memory. */
static void move_own_part(void *arg, unsigned i)
{
	struct crowd *c = arg;
	off_t at = (off_t)(i * c->share);

	for (int k = 0; k < TH_SCALE(20); k++) {
		ssize_t n = k & 1 ? cuFileWrite(c->r->fh, c->r->mem.ptr,
						c->share, at, at) :
				    cuFileRead(c->r->fh, c->r->mem.ptr,
					       c->share, at, at);

		if (n != (ssize_t)c->share)
			th_bad_note(&c->bad, "thread %u: %zd", i, n);
	}
}

/* The trap: two at once on a mapping, and it answers EBUSY ever after. */
static void threads_never_meet_on_a_mapping(void **state)
{
	struct crowd c = { .share = SIZE / 12 };
	struct rig r;

	begin(&r, SIZE);
	c.r = &r;
	fake_nvfs.async_us = 50;
	th_threads(12, move_own_part, &c);
	th_bad_check(&c.bad);
	memcpy(r.gpu, r.bytes, SIZE);
	rig_check(&r, "after a crowd");
	assert_int_equal(fake_nvfs_count(FAKE_BUSY), 0);
	assert_true(fake_nvfs_live() <= 8);
	end(&r);
}

#define NR_MOVERS 5

/* Thread 0 takes the buffer away and brings it back while others move. */
static void come_and_go(void *arg, unsigned i)
{
	struct crowd *c = arg;

	if (i) {
		move_own_part(c, i);
		atomic_fetch_add(&c->done, 1);
		return;
	}
	while (atomic_load(&c->done) < NR_MOVERS) {
		cuFileBufDeregister(c->r->mem.ptr);
		cuFileBufRegister(c->r->mem.ptr, SIZE, 0);
		th_sleep_ms(1);
	}
}

static void a_buffer_may_come_and_go_under_requests(void **state)
{
	struct crowd c = { .share = SIZE / (NR_MOVERS + 1) };
	struct rig r;

	begin(&r, SIZE);
	memcpy(r.gpu, r.bytes, SIZE);
	th_mem_put(&r.mem, 0, r.gpu, SIZE);
	c.r = &r;
	/* so long that buffers go while requests have their mappings */
	fake_nvfs.async_us = 300;
	th_threads(NR_MOVERS + 1, come_and_go, &c);
	th_bad_check(&c.bad);
	rig_check(&r, "after a storm");
	end(&r);
}

static void await(atomic_uint *at, unsigned step)
{
	while (atomic_load(at) < step)
		th_sleep_ms(1);
}

/* Thread 1 has found the buffer, as a rule, when thread 0 takes it away. */
static void take_away(void *arg, unsigned i)
{
	struct crowd *c = arg;

	if (i) {
		await(&c->done, 1);
		atomic_store(&c->done, 2);
		if (cuFileRead(c->r->fh, c->r->mem.ptr, 4096, 0, 0) != 4096)
			th_bad_note(&c->bad, "no read");
		return;
	}
	cf_nvfs_maps_fork_prepare();
	atomic_store(&c->done, 1);
	await(&c->done, 2);
	th_sleep_ms(5);
	cf_nvfs_maps_fork_parent();
	cuFileBufDeregister(c->r->mem.ptr);
}

static void a_buffer_that_goes_before_its_first_mapping_leaves_none(
	void **state)
{
	struct rig r;

	begin(&r, TH_MIB);
	for (int i = 0; i < 20; i++) {
		struct crowd c = { .r = &r };

		th_threads(2, take_away, &c);
		th_bad_check(&c.bad);
		assert_int_equal(fake_nvfs_live(), 0);
		assert_int_equal(cuFileBufRegister(r.mem.ptr, TH_MIB, 0).err,
				 0);
	}
	memcpy(r.gpu, r.bytes, 4096);
	rig_check(&r, "after reads");
	end(&r);
}

/* A thread that wants the one mapping there is. */
struct wanter {
	struct cf_memory mem;
	pthread_t thread;
	struct cf_nvfs_mapping *got;
	int err;
	atomic_bool comes, back;
};

static void *want(void *arg)
{
	struct wanter *w = arg;

	atomic_store(&w->comes, true);
	w->err = cf_nvfs_lease(&w->mem, 4096, true, &w->got);
	atomic_store(&w->back, true);
	return NULL;
}

static void want_it(struct wanter *w, const struct rig *r)
{
	*w = (struct wanter){ .err = 1 };
	cf_memory_facts((uintptr_t)r->mem.ptr, &w->mem);
	assert_int_equal(pthread_create(&w->thread, NULL, want, w), 0);
	while (!atomic_load(&w->comes))
		th_sleep_ms(1);
	th_sleep_ms(20);
}

static bool comes_back(const struct wanter *w)
{
	for (int i = 0; i < 10000 && !atomic_load(&w->back); i++)
		th_sleep_ms(1);
	return atomic_load(&w->back);
}

/* However long the other one's request takes. */
static void who_waits_for_a_mapping_hears_that_its_buffer_goes(void **state)
{
	struct cf_nvfs_mapping *held;
	struct wanter w;
	struct rig r;
	bool back;

	begin(&r, 4096);
	cf_memory_facts((uintptr_t)r.mem.ptr, &w.mem);
	assert_int_equal(cf_nvfs_lease(&w.mem, 4096, false, &held), 0);
	want_it(&w, &r);
	assert_false(atomic_load(&w.back));
	assert_int_equal(cuFileBufDeregister(r.mem.ptr).err, 0);
	back = comes_back(&w);
	cf_nvfs_give_back(held);
	pthread_join(w.thread, NULL);
	assert_true(back);
	assert_int_equal(w.err, -ENOENT);
	assert_int_equal(cuFileBufRegister(r.mem.ptr, 4096, 0).err, 0);
	end(&r);
}

static struct cf_os late;
static int (*answer_now)(int fd, unsigned long nr, void *arg);
static atomic_bool is_asked, may_answer;

static int map_late(int fd, unsigned long nr, void *arg)
{
	if (nr == CF_NVFS_MAP) {
		atomic_store(&is_asked, true);
		while (!atomic_load(&may_answer))
			th_sleep_ms(1);
	}
	return answer_now(fd, nr, arg);
}

static void who_waits_for_a_mapping_hears_that_it_cannot_be_made(void **state)
{
	const struct cf_os *fake;
	struct wanter maker, w;
	struct rig r;

	begin(&r, 4096);
	fake = cf_os;
	late = *fake;
	answer_now = late.ioctl;
	late.ioctl = map_late;
	cf_os = &late;
	fake_nvfs.map_err = ENOMEM;
	atomic_store(&may_answer, false);
	want_it(&maker, &r);
	while (!atomic_load(&is_asked))
		th_sleep_ms(1);
	want_it(&w, &r);
	assert_false(atomic_load(&w.back));
	atomic_store(&may_answer, true);
	assert_true(comes_back(&maker));
	assert_true(comes_back(&w));
	pthread_join(maker.thread, NULL);
	pthread_join(w.thread, NULL);
	assert_true(maker.err < 0 && w.err < 0);
	cf_os = fake;
	fake_nvfs.map_err = 0;
	end(&r);
}

static void a_child_lets_the_parents_mappings_be(void **state)
{
	struct rig r;
	int status;
	pid_t child;

	begin(&r, SIZE);
	rig_read(&r, 4 * TH_MIB, 0, 0, 4 * TH_MIB);
	child = fork();
	if (!child) {
		CUfileDrvProps_t props = { 0 };

		if (cuFileDriverGetProperties(&props).err ||
		    props.nvfs.dstatusflags)
			_exit(1);
		if (cuFileRead(r.fh, r.mem.ptr, 4096, 0, 0) >= 0)
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	rig_read(&r, 4 * TH_MIB, 4096, 0, 4 * TH_MIB);
	end(&r);
}

/* --------------------------------------------------- batches, statistics */

static void entries_of_batches_travel_too(void **state)
{
	enum { NR = 8 };
	CUfileIOParams_t params[NR] = { 0 };
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t batch;
	CUfileStatsLevel1_t stats;
	unsigned nr = NR;
	struct rig r;

	begin(&r, SIZE);
	assert_int_equal(cuFileSetStatsLevel(1).err, 0);
	assert_int_equal(cuFileStatsStart().err, 0);
	for (int i = 0; i < NR; i++) {
		params[i].mode = CUFILE_BATCH;
		params[i].fh = r.fh;
		params[i].opcode = CUFILE_READ;
		params[i].u.batch.devPtr_base = r.mem.ptr;
		params[i].u.batch.file_offset = i * TH_MIB;
		params[i].u.batch.devPtr_offset = (7 - i) * TH_MIB;
		params[i].u.batch.size = TH_MIB - (i & 1) * 100;
		memcpy(r.gpu + (7 - i) * TH_MIB, r.bytes + i * TH_MIB,
		       params[i].u.batch.size);
	}
	assert_int_equal(cuFileBatchIOSetUp(&batch, NR).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, NR, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, NR, &nr, events, NULL).err, 0);
	assert_int_equal(nr, NR);
	for (int i = 0; i < NR; i++)
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
	cuFileBatchIODestroy(batch);
	rig_check(&r, "after a batch");
	assert_true(fake_nvfs_count(FAKE_BYTES) >= NR * (TH_MIB - 4096));
	assert_int_equal(cuFileGetStatsL1(&stats).err, 0);
	assert_int_equal(stats.batch_processed_ops.ok, NR);
	assert_int_equal(stats.batch_posix_processed_ops.ok, 0);
	end(&r);
}

static void statistics_tell_it_from_host_memory(void **state)
{
	CUfileStatsLevel3_t stats;
	struct rig r;

	begin(&r, SIZE);
	assert_int_equal(cuFileSetStatsLevel(3).err, 0);
	assert_int_equal(cuFileStatsStart().err, 0);
	rig_read(&r, TH_MIB, 0, 0, TH_MIB);
	rig_read(&r, TH_MIB, 0, 1, TH_MIB); /* skewed */
	rig_write(&r, TH_MIB, 0, 0, TH_MIB);
	assert_int_equal(cuFileGetStatsL3(&stats).err, 0);
	assert_int_equal(stats.per_gpu_stats[0].n_total_reads, 2);
	assert_int_equal(stats.per_gpu_stats[0].n_nvfs_reads, 1);
	assert_int_equal(stats.per_gpu_stats[0].n_posix_reads, 1);
	assert_int_equal(stats.per_gpu_stats[0].n_nvfs_writes, 1);
	assert_int_equal(stats.per_gpu_stats[0].n_posix_writes, 0);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(whole_blocks_never_meet_host_memory),
		RIG_TEST(any_offsets_and_sizes_travel),
		RIG_TEST(small_buffers_are_mapped_too),
		RIG_TEST(a_read_ends_with_the_file),
		RIG_TEST(a_write_may_make_the_file_longer),
		RIG_TEST(a_read_is_flushed_before_it_ends),
		RIG_TEST(a_write_sees_what_a_default_stream_still_does),
		RIG_TEST(holes_are_read_as_zeros),
		RIG_TEST(a_read_from_storage_that_lies_is_right_all_the_same),
		RIG_TEST(one_operation_blocks_and_several_are_a_batch),
		RIG_TEST(poll_mode_waits_for_the_fence_of_small_ones),
		RIG_TEST(slow_requests_are_waited_for),
		RIG_TEST(a_batch_that_fails_is_the_last),
		RIG_TEST(what_the_driver_cannot_do_goes_through_host_memory),
		RIG_TEST(a_file_system_that_takes_no_part_is_not_asked_again),
		RIG_TEST(strict_mode_tells_the_true_error),
		RIG_TEST(an_error_in_the_middle_keeps_what_came_before),
		RIG_TEST(a_mapping_that_was_killed_is_made_anew),
		RIG_TEST(memory_that_cannot_be_mapped_is_staged),
		RIG_TEST(few_mappings_are_enough),
		RIG_TEST(no_more_memory_is_pinned_than_allowed),
		RIG_TEST(a_deregistered_buffer_is_unmapped),
		RIG_TEST(memory_that_was_freed_and_taken_again_is_another),
		RIG_TEST(a_close_with_buffers_left_unmaps_all),
		RIG_TEST(threads_never_meet_on_a_mapping),
		RIG_TEST(a_buffer_may_come_and_go_under_requests),
		RIG_TEST(
			a_buffer_that_goes_before_its_first_mapping_leaves_none),
		RIG_TEST(who_waits_for_a_mapping_hears_that_its_buffer_goes),
		RIG_TEST(who_waits_for_a_mapping_hears_that_it_cannot_be_made),
		RIG_TEST(a_child_lets_the_parents_mappings_be),
		RIG_TEST(entries_of_batches_travel_too),
		RIG_TEST(statistics_tell_it_from_host_memory),
	};

	th_start(250);
	return th_finish(
		cmocka_run_group_tests_name("nvfs", tests, NULL, NULL));
}
