// SPDX-License-Identifier: Apache-2.0
/*
 * Files of FUSE: a read ends where the file does, and short counts are gone on
 * with, whatever the kernel makes of them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fuse_world.h"
#include "harness.h"

#define ROOM (16 * TH_MIB) /* more than there is in a file */
#define ENTRIES 16
#define EACH (ROOM / ENTRIES)

static int fds[FUSE_NR_FILES];
static bool mounted;

struct bench {
	struct th_mem mem;
	CUfileHandle_t fh;
	unsigned char *want, *got;
};

static void bench_init(struct bench *b, enum th_mem_kind kind,
		       enum fuse_file file)
{
	if (!mounted)
		th_skip("may not mount a file system of FUSE");
	th_mem_need(kind);
	th_open();
	b->fh = th_handle(fds[file]);
	b->want = malloc(FUSE_FILE_SIZE);
	for (size_t at = 0; at < FUSE_FILE_SIZE; at++)
		b->want[at] = fuse_world_byte(at);
	b->got = malloc(ROOM);
	th_mem_alloc(&b->mem, kind, ROOM);
}

static void bench_fini(struct bench *b)
{
	cuFileHandleDeregister(b->fh);
	th_mem_free(&b->mem);
	free(b->want);
	free(b->got);
	th_close();
}

static void check(struct bench *b, size_t off, ssize_t n)
{
	assert_int_equal(n, FUSE_FILE_SIZE - off);
	th_mem_get(&b->mem, 0, b->got, (size_t)n);
	th_equal("read", b->got, b->want + off, (size_t)n);
}

static void read_beyond(struct bench *b, size_t off)
{
	th_mem_set(&b->mem, 0xa5);
	check(b, off, cuFileRead(b->fh, b->mem.ptr, ROOM, (off_t)off, 0));
}

/* Its entries lie in the memory as in the file. */
static ssize_t read_batch(struct bench *b)
{
	CUfileIOParams_t params[ENTRIES] = { 0 };
	CUfileIOEvents_t events[ENTRIES];
	CUfileBatchHandle_t batch;
	ssize_t sum = 0;

	for (unsigned i = 0; i < ENTRIES; i++) {
		params[i].mode = CUFILE_BATCH;
		params[i].fh = b->fh;
		params[i].opcode = CUFILE_READ;
		params[i].u.batch.devPtr_base = b->mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)(i * EACH);
		params[i].u.batch.file_offset = (off_t)(i * EACH);
		params[i].u.batch.size = EACH;
	}
	assert_int_equal(cuFileBatchIOSetUp(&batch, ENTRIES).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, ENTRIES, params, 0).err, 0);
	for (unsigned done = 0; done < ENTRIES;) {
		unsigned nr = ENTRIES;

		assert_int_equal(
			cuFileBatchIOGetStatus(batch, 1, &nr, events, NULL).err,
			0);
		for (unsigned i = 0; i < nr; i++)
			sum += (ssize_t)events[i].ret;
		done += nr;
	}
	cuFileBatchIODestroy(batch);
	return sum;
}

static void a_read_ends_where_the_file_does(void **state)
{
	struct bench b;

	bench_init(&b, *(enum th_mem_kind *)*state, FUSE_WHOLE);
	read_beyond(&b, 0);
	read_beyond(&b, TH_MIB);
	read_beyond(&b, FUSE_FILE_SIZE - 5);
	th_mem_set(&b.mem, 0xa5);
	check(&b, 0, read_batch(&b));
	bench_fini(&b);
}

static void short_counts_are_gone_on_with(void **state)
{
	struct bench b;

	bench_init(&b, *(enum th_mem_kind *)*state, FUSE_SHORT);
	read_beyond(&b, 0);
	th_mem_set(&b.mem, 0xa5);
	check(&b, 0, read_batch(&b));
	for (unsigned i = 0; i < 2; i++) { /* the second brings it back */
		for (size_t at = 0; at < FUSE_FILE_SIZE; at++)
			b.want[at] ^= 0x3c;
		th_mem_put(&b.mem, 0, b.want, FUSE_FILE_SIZE);
		assert_int_equal(
			cuFileWrite(b.fh, b.mem.ptr, FUSE_FILE_SIZE, 0, 0),
			FUSE_FILE_SIZE);
		read_beyond(&b, 0);
	}
	bench_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TH_OF(a_read_ends_where_the_file_does, TH_MMAP),
		TH_OF(a_read_ends_where_the_file_does, TH_DEVICE),
		TH_OF(short_counts_are_gone_on_with, TH_MMAP),
		TH_OF(short_counts_are_gone_on_with, TH_DEVICE),
	};

	mounted = fuse_world_begin(fds);
	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("fuse", tests, NULL, NULL));
}
