// SPDX-License-Identifier: Apache-2.0
/* samples - what NVIDIA's samples rely on in open, setters and threads. */
#include "fresh.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Contract 3.18, sample 007: each of these must succeed, in this order. */
static void sample_007_sets_its_properties_after_an_open(void **state)
{
	CUfileDrvProps_t props;

	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverGetProperties(&props));
	assert_ok(cuFileDriverSetPollMode(true, 32768));
	assert_ok(cuFileDriverSetMaxPinnedMemSize(512));
	assert_ok(cuFileDriverSetMaxDirectIOSize(64));
	assert_ok(cuFileDriverSetMaxCacheSize(64));
	assert_ok(cuFileDriverGetProperties(&props));
	assert_int_equal(props.nvfs.dcontrolflags & 1u << CU_FILE_USE_POLL_MODE,
			 1);
	assert_int_equal(props.nvfs.poll_thresh_size, 32768);
	assert_int_equal(props.max_device_pinned_mem_size, 512);
	assert_int_equal(props.nvfs.max_direct_io_size, 64);
	assert_int_equal(props.max_device_cache_size, 64);
	assert_ok(cuFileDriverClose_v2());
}

#define BUFFER TH_MIB
#define NR_BUFFERS 2

struct job {
	const char *path;
	const unsigned char *bytes;
	size_t size;
	unsigned register_every;
	struct th_bad bad;
};

/* One buffer of the file at off; what is past the end must not change. */
static bool read_matches(const struct job *job, CUfileHandle_t fh,
			 const struct th_mem *mem, size_t off)
{
	size_t left = off < job->size ? job->size - off : 0;
	size_t want = left < BUFFER ? left : BUFFER;
	unsigned char *got = malloc(BUFFER);
	bool same;

	same = cuFileRead(fh, mem->ptr, BUFFER, (off_t)off, 0) == (ssize_t)want;
	th_mem_get(mem, 0, got, want);
	same = same && !memcmp(got, job->bytes + off, want);
	free(got);
	return same;
}

static void read_file(struct job *job, CUfileHandle_t fh,
		      struct th_mem mem[NR_BUFFERS])
{
	for (size_t off = 0, n = 0; off < job->size + 3 * BUFFER;
	     off += BUFFER, n++)
		if (!read_matches(job, fh, &mem[n % NR_BUFFERS],
				  off < job->size ? off : job->size))
			th_bad_note(&job->bad, "wrong at %zu", off);
	if (cuFileRead(fh, mem[0].ptr, BUFFER, (off_t)job->size + 12345, 0))
		th_bad_note(&job->bad, "not 0 past the end");
}

static void read_in_thread(void *arg, unsigned i)
{
	struct job *job = arg;
	enum th_mem_kind kind = th_gpu(NULL) ? TH_DEVICE : TH_MALLOC;
	int fd = open(job->path, O_RDONLY | (i & 1 ? O_DIRECT : 0));
	struct th_mem mem[NR_BUFFERS];
	CUfileHandle_t fh;

	if (fd < 0 || fresh_register(fd, &fh).err) {
		th_bad_note(&job->bad, "thread %u has no handle", i);
		return;
	}
	for (unsigned n = 0; n < NR_BUFFERS; n++) {
		th_mem_alloc(&mem[n], kind, BUFFER);
		if (n % job->register_every == 0 &&
		    cuFileBufRegister(mem[n].ptr, BUFFER, 0).err)
			th_bad_note(&job->bad, "buffer does not register");
	}
	read_file(job, fh, mem);
	for (unsigned n = 0; n < NR_BUFFERS; n++) {
		if (n % job->register_every == 0 &&
		    cuFileBufDeregister(mem[n].ptr).err)
			th_bad_note(&job->bad, "buffer does not deregister");
		th_mem_free(&mem[n]);
	}
	cuFileHandleDeregister(fh);
	close(fd);
}

static void read_in_threads(unsigned nr, unsigned register_every)
{
	const size_t size = 3 * BUFFER + 4321;
	unsigned char *bytes = th_bytes(size);
	struct job job = { .bytes = bytes,
			   .size = size,
			   .register_every = register_every };
	struct th_file file;

	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, size);
	assert_int_equal(fsync(file.plain), 0);
	job.path = file.path;
	th_threads(nr, read_in_thread, &job);
	th_bad_check(&job.bad);
	th_file_end(&file);
	free(bytes);
	/* nobody opened the driver: the first registration did */
	assert_int_equal(cuFileUseCount(), 1);
	assert_ok(cuFileDriverClose_v2());
}

/* Contract 3.18, sample 012: a setter is the first call of the process. */
static void sample_012_reads_in_threads_after_a_first_setter(void **state)
{
	assert_ok(cuFileDriverSetMaxPinnedMemSize(131072));
	read_in_threads(8, 1);
}

/* Contract 3.18, sample 013: two setters, every second buffer registered. */
static void sample_013_registers_every_second_buffer(void **state)
{
	assert_ok(cuFileDriverSetMaxPinnedMemSize(131072));
	assert_ok(cuFileDriverSetMaxCacheSize(65536));
	read_in_threads(8, 2);
}

/* Sample 013 with its 64 threads, in a pool that holds one slot. */
static void sixty_four_threads_get_through_the_smallest_cache(void **state)
{
	assert_ok(cuFileDriverSetMaxCacheSize(0));
	read_in_threads(64, 2);
}

/* Contract 3.18, samples 002 and 003: nothing is opened, nothing closed. */
static void sample_002_writes_with_no_open_and_no_registration(void **state)
{
	enum th_mem_kind kind = th_gpu(NULL) ? TH_DEVICE : TH_MALLOC;
	const size_t size = 128 * TH_KIB;
	unsigned char *bytes = th_bytes(size), *got = malloc(size);
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	th_thread_gpu();
	th_mem_alloc(&mem, kind, size);
	th_mem_put(&mem, 0, bytes, size);
	th_file_make(&file, TH_ODIRECT, O_RDWR, NULL, 0);
	assert_ok(fresh_register(file.fd, &fh));
	assert_int_equal(cuFileWrite(fh, mem.ptr, size, 0, 0), size);
	cuFileHandleDeregister(fh);
	th_file_get(&file, 0, got, size);
	th_equal("file", got, bytes, size);
	/* the sample does not; but then leak checkers would have their say */
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&mem);
	th_file_end(&file);
	free(got);
	free(bytes);
}

static const struct fresh_test tests[] = {
	FRESH(sample_007_sets_its_properties_after_an_open),
	FRESH(sample_012_reads_in_threads_after_a_first_setter),
	FRESH(sample_013_registers_every_second_buffer),
	FRESH(sixty_four_threads_get_through_the_smallest_cache),
	FRESH(sample_002_writes_with_no_open_and_no_registration),
};

FRESH_MAIN(tests, 60)
