// SPDX-License-Identifier: Apache-2.0
/*
 * guest - what runs inside the emulated machine: cuFile calls between a file
 * or block device and "device memory" that is the memory of a PCI device.
 *
 *	guest FILE near|far|blind
 *
 * near: the disk reaches that memory, and no byte may take another way. far:
 * there is no way between their ports (EREMOTEIO, since Linux 7.3 EINVAL).
 * blind: the disk's driver knows nothing of peers (EREMOTEIO). There the bytes
 * must be right all the same. FILE's first bytes are replaced. Sizes are small:
 *each access of the CPU to that memory leaves the emulated processor.
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/random.h>
#include <unistd.h>
#include <cmocka.h>
#include "cuda_client.h"
#include "fakecuda.h"

#define KIB ((size_t)1 << 10)
#define BLOCK ((size_t)4096)
#define SIZE (512 * KIB)
#define MEM_SIZE (SIZE + 2 * BLOCK)
#define FILE_SIZE (SIZE + 64 * KIB)
#define FILL 0x5a

static const char *path;
static bool far, blind; /* the first of both */
static int fd;		/* O_DIRECT, for the library and for looking */
static CUfileHandle_t fh;
static CUdeviceptr gpu;
static char *cpu; /* the same memory */
static unsigned char *content, *scratch;

/* -------------------------------------------------------------- provider */

static int map(void *arg, int ordinal, const void *device, size_t size,
	       void **address)
{
	*address = fakecuda_alias((CUdeviceptr)(uintptr_t)device, size);
	return *address ? 0 : -ENOTSUP;
}

static void unmap(void *arg, void *address, size_t size)
{
}

/* ---------------------------------------------------------------- set up */

static void *aligned(size_t size)
{
	void *mem = NULL;

	assert_int_equal(posix_memalign(&mem, BLOCK, size), 0);
	return mem;
}

static void fill(void *buf, size_t size)
{
	for (size_t at = 0; at < size; at += 256)
		assert_true(getrandom((char *)buf + at,
				      size - at < 256 ? size - at : 256,
				      0) > 0);
}

static void make_file(void)
{
	fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0644);
	assert_true(fd >= 0);
	content = aligned(FILE_SIZE);
	scratch = aligned(FILE_SIZE);
	fill(content, FILE_SIZE);
	assert_int_equal(pwrite(fd, content, FILE_SIZE, 0), FILE_SIZE);
	assert_int_equal(fsync(fd), 0);
}

static int set_up(void **state)
{
	const ocf_alias_provider_t by = { .struct_size = sizeof(by),
					  .map = map,
					  .unmap = unmap };
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUcontext ctx;

	make_file();
	assert_int_equal(cuInit(0), 0);
	assert_int_equal(cuDevicePrimaryCtxRetain(&ctx, 0), 0);
	assert_int_equal(cuCtxSetCurrent(ctx), 0);
	assert_int_equal(cuMemAlloc(&gpu, MEM_SIZE), 0);
	cpu = fakecuda_alias(gpu, MEM_SIZE);
	assert_non_null(cpu);
	assert_int_equal(cuFileSetStatsLevel(3).err, 0);
	assert_int_equal(cuFileDriverOpen().err, 0);
	assert_int_equal(cuFileStatsStart().err, 0);
	assert_int_equal(ocf_alias_set_provider(&by).err, 0);
	assert_int_equal(cuFileBufRegister((void *)gpu, MEM_SIZE, 0).err, 0);
	descr.handle.fd = fd;
	assert_int_equal(cuFileHandleRegister(&fh, &descr).err, 0);
	return 0;
}

static int tear_down(void **state)
{
	cuFileHandleDeregister(fh);
	assert_int_equal(cuFileBufDeregister((void *)gpu).err, 0);
	assert_int_equal(cuMemFree(gpu), 0);
	assert_int_equal(cuFileDriverClose_v2().err, 0);
	close(fd);
	free(content);
	free(scratch);
	return 0;
}

/* ------------------------------------------------------------------ bytes */

static void clear(void)
{
	memset(cpu, FILL, MEM_SIZE);
}

static void same(const void *got, const void *want, size_t size)
{
	assert_memory_equal(got, want, size);
}

static void untouched(size_t at, size_t end)
{
	memcpy(scratch, cpu + at, end - at);
	for (size_t i = 0; i < end - at; i++)
		assert_int_equal(scratch[i], FILL);
}

static void has_read(size_t size, size_t off, size_t at)
{
	memcpy(scratch, cpu + at, size);
	same(scratch, content + off, size);
	untouched(0, at);
	untouched(at + size, at + size + BLOCK);
}

/* New bytes in memory, and in what the file should hold then. */
static void to_write(size_t size, size_t off, size_t at)
{
	fill(content + off, size);
	memcpy(cpu + at, content + off, size);
}

static void has_written(void)
{
	assert_int_equal(pread(fd, scratch, FILE_SIZE, 0), FILE_SIZE);
	same(scratch, content, FILE_SIZE);
}

static void read_at(size_t size, size_t off, size_t at)
{
	clear();
	assert_int_equal(
		cuFileRead(fh, (void *)gpu, size, (off_t)off, (off_t)at), size);
	has_read(size, off, at);
}

static void write_at(size_t size, size_t off, size_t at)
{
	to_write(size, off, at);
	assert_int_equal(
		cuFileWrite(fh, (void *)gpu, size, (off_t)off, (off_t)at),
		size);
	has_written();
}

/* -------------------------------------------------------------- witnesses */

/* The path of a read of blocks; *why: why it is not the alias, or NULL. */
static const char *route(const char **why)
{
	static ocf_explain_t e;

	e.struct_size = sizeof(e);
	assert_int_equal(ocf_explain_read(fh, (void *)gpu, SIZE, 0, 0, &e).err,
			 0);
	*why = NULL;
	for (unsigned i = 0; i < e.nr_refusals; i++)
		if (!strcmp(e.refusals[i].path, "alias"))
			*why = e.refusals[i].reason;
	return e.path;
}

static unsigned long copies(void)
{
	return fakecuda_calls("cuMemcpyHtoDAsync_v2") +
	       fakecuda_calls("cuMemcpy2DAsync_v2") +
	       fakecuda_calls("cuMemcpyDtoHAsync_v2");
}

/* Pages of the file in the guest's page cache. */
static size_t cached_pages(void)
{
	unsigned char pages[FILE_SIZE / BLOCK];
	void *mem = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	size_t nr = 0;

	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(mincore(mem, FILE_SIZE, pages), 0);
	munmap(mem, FILE_SIZE);
	for (size_t i = 0; i < FILE_SIZE / BLOCK; i++)
		nr += pages[i] & 1;
	return nr;
}

static CUfilePerGpuStats_t counts(void)
{
	CUfileStatsLevel3_t stats;

	assert_int_equal(cuFileGetStatsL3(&stats).err, 0);
	return stats.per_gpu_stats[0];
}

/* ------------------------------------------------------------------ near */

/*
 * Data moved, and: no copy was asked of the driver, there is no pinned memory
 * that it could have gone through, the page cache has none of it, and the
 * statistics say so.
 */
static void no_byte_goes_through_host_memory(void **state)
{
	unsigned long before = copies();
	CUfilePerGpuStats_t then = counts(), now;
	const char *why;

	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	assert_string_equal(route(&why), "alias");
	read_at(SIZE, 0, 0);
	write_at(SIZE, BLOCK, BLOCK);
	read_at(BLOCK, 8 * BLOCK, BLOCK);
	assert_int_equal(copies(), before);
	assert_int_equal(fakecuda_live("host_register"), 0);
	assert_int_equal(fakecuda_live("host_alloc"), 0);
	assert_int_equal(cached_pages(), 0);
	now = counts();
	assert_int_equal(now.n_p2p_reads - then.n_p2p_reads, 2);
	assert_int_equal(now.n_p2p_writes - then.n_p2p_writes, 1);
	assert_int_equal(now.n_posix_reads - then.n_posix_reads, 0);
	assert_int_equal(now.n_posix_writes - then.n_posix_writes, 0);
}

static void blocks_of_512_bytes_go_too(void **state)
{
	read_at(1024, 512, 512);
	write_at(1536, 3 * 512, 512);
	read_at(20 * KIB + 512, 2 * 512, 512);
}

static void edges_are_right(void **state)
{
	read_at(100 * KIB + 77, 300, 300);
	write_at(100 * KIB + 77, 5 * KIB + 300, 300);
	write_at(700, 2 * BLOCK - 100, BLOCK - 100);
	read_at(3, 1, 1);
}

#define NR 8

static void batch(CUfileOpcode_t opcode, size_t size, size_t skew)
{
	CUfileIOParams_t params[NR];
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t b;
	unsigned nr = NR;

	assert_int_equal(cuFileBatchIOSetUp(&b, NR).err, 0);
	for (unsigned i = 0; i < NR; i++) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = fh,
						.opcode = opcode };
		params[i].u.batch.devPtr_base = (void *)gpu;
		params[i].u.batch.devPtr_offset = (off_t)(i * size + skew);
		params[i].u.batch.file_offset = (off_t)(i * size + skew);
		params[i].u.batch.size = size;
	}
	assert_int_equal(cuFileBatchIOSubmit(b, NR, params, 0).err, 0);
	assert_int_equal(cuFileBatchIOGetStatus(b, NR, &nr, events, NULL).err,
			 0);
	assert_int_equal(nr, NR);
	for (unsigned i = 0; i < NR; i++) {
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
		assert_int_equal(events[i].ret, size);
	}
	cuFileBatchIODestroy(b);
}

static void batches_go_straight(void **state)
{
	unsigned long before = copies();

	clear();
	batch(CUFILE_READ, 16 * KIB, 0);
	has_read(NR * 16 * KIB, 0, 0);
	to_write(NR * 16 * KIB, 0, 0);
	batch(CUFILE_WRITE, 16 * KIB, 0);
	has_written();
	assert_int_equal(copies(), before);
}

/* The same place in memory and file. */
static void stream_io(bool write, size_t size, size_t at)
{
	off_t file_off = (off_t)at, mem_off = (off_t)at;
	ssize_t n = -1;
	CUstream s;

	assert_int_equal(cuStreamCreate(&s, 1), 0);
	assert_int_equal((write ? cuFileWriteAsync :
				  cuFileReadAsync)(fh, (void *)gpu, &size,
						   &file_off, &mem_off, &n, s)
				 .err,
			 0);
	assert_int_equal(cuStreamSynchronize(s), 0);
	assert_int_equal(n, size);
	assert_int_equal(cuStreamDestroy(s), 0);
}

static void streams_go_straight(void **state)
{
	unsigned long before = copies();
	size_t size = 64 * KIB;

	clear();
	stream_io(false, size, BLOCK);
	has_read(size, BLOCK, BLOCK);
	to_write(size, BLOCK, BLOCK);
	stream_io(true, size, BLOCK);
	has_written();
	assert_int_equal(copies(), before);
}

/* ----------------------------------------------------------------- table */

#define PART (16 * KIB) /* of a batch's NR */

static void by_call(bool write, size_t at)
{
	size_t size = NR * PART;
	off_t off = (off_t)at;

	assert_int_equal(write ? cuFileWrite(fh, (void *)gpu, size, off, off) :
				 cuFileRead(fh, (void *)gpu, size, off, off),
			 size);
}

static void by_batch(bool write, size_t at)
{
	batch(write ? CUFILE_WRITE : CUFILE_READ, PART, at);
}

static void by_stream(bool write, size_t at)
{
	stream_io(write, NR * PART, at);
}

static const struct {
	const char *name;
	void (*move)(bool write, size_t at);
} doors[] = {
	{ "call", by_call },
	{ "batch", by_batch },
	{ "stream", by_stream },
};

/* To a bare device whole pages alone are written so; else all sectors are. */
static bool goes_straight(bool write, size_t at)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return !far && at % (write && S_ISBLK(st.st_mode) ? BLOCK : 512) == 0;
}

/* A row: the path, and how many copies the driver was asked for. */
static void row(unsigned door, bool write, size_t at, const char *lies)
{
	unsigned long before = copies();
	const char *why, *taken;

	if (write)
		to_write(NR * PART, at, at);
	else
		memset(cpu, FILL, at + NR * PART + BLOCK);
	doors[door].move(write, at);
	if (write)
		has_written();
	else
		has_read(NR * PART, at, at);
	taken = route(&why);
	print_message("# way %s %s %s: %s, %lu copies\n",
		      write ? "write" : "read", doors[door].name, lies, taken,
		      copies() - before);
	assert_string_equal(taken, far ? "staged" : "alias");
	if (goes_straight(write, at))
		assert_int_equal(copies(), before);
	else
		assert_true(copies() > before);
}

static void every_way_has_its_path(void **state)
{
	for (unsigned door = 0; door < 3; door++)
		for (int write = 0; write < 2; write++) {
			row(door, write, BLOCK, "blocks");
			row(door, write, 1024, "sectors");
			row(door, write, 300, "odd");
		}
}

/* ------------------------------------------------------------------- far */

static void assert_refused(const char *why)
{
	assert_non_null(why);
	assert_true(strstr(why, "EREMOTEIO") ||
		    (!blind && strstr(why, "EINVAL")));
}

static void a_disk_without_a_way_is_routed_around(void **state)
{
	CUfilePerGpuStats_t then = counts(), now;
	const char *why;

	assert_string_equal(route(&why), "alias");
	read_at(SIZE, 0, 0);
	assert_string_equal(route(&why), "staged");
	assert_refused(why);
	write_at(SIZE, BLOCK, BLOCK);
	write_at(1000, 5000, 5000 - BLOCK);
	now = counts();
	assert_int_equal(now.n_p2p_reads - then.n_p2p_reads, 0);
	assert_int_equal(now.n_posix_reads - then.n_posix_reads, 1);
	assert_int_equal(now.n_posix_writes - then.n_posix_writes, 2);
}

/* The pair is forgotten at the close: here a write finds it out. */
static void a_write_without_a_way_is_routed_around(void **state)
{
	const char *why;

	assert_string_equal(route(&why), "alias");
	write_at(SIZE, 2 * BLOCK, BLOCK);
	assert_string_equal(route(&why), "staged");
	assert_refused(why);
	read_at(SIZE, BLOCK, 0);
}

static void a_batch_without_a_way_is_routed_around(void **state)
{
	clear();
	batch(CUFILE_READ, 16 * KIB, 0);
	has_read(NR * 16 * KIB, 0, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest near_tests[] = {
		TEST(no_byte_goes_through_host_memory),
		TEST(blocks_of_512_bytes_go_too),
		TEST(edges_are_right),
		TEST(batches_go_straight),
		TEST(streams_go_straight),
		TEST(every_way_has_its_path),
	};
	const struct CMUnitTest far_tests[] = {
		TEST(a_disk_without_a_way_is_routed_around),
		TEST(a_write_without_a_way_is_routed_around),
		TEST(a_batch_without_a_way_is_routed_around),
		TEST(every_way_has_its_path),
	};

	if (argc != 3)
		return 2;
	path = argv[1];
	alarm(500);
	blind = !strcmp(argv[2], "blind");
	far = blind || !strcmp(argv[2], "far");
	if (far)
		return cmocka_run_group_tests(far_tests, NULL, NULL);
	return cmocka_run_group_tests(near_tests, NULL, NULL);
}
