// SPDX-License-Identifier: Apache-2.0
/* Vectored reads and writes (contract 3.9). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"

static void refused(ssize_t n, int code)
{
	int err = errno;

	assert_int_equal(n, -1);
	assert_int_equal(err, code);
}

/* Elements of all kinds of memory that are here, with odd sizes. */
struct mixed {
	struct th_mem mem[TH_NR_MEM_KINDS];
	CUfileIOVec_t iov[TH_NR_MEM_KINDS];
	size_t nr, total;
};

static void mixed_init(struct mixed *m)
{
	static const size_t sizes[TH_NR_MEM_KINDS] = {
		4096, 1, 70001, 0, 333, 1048576, 3000000, 17,
	};

	m->nr = 0;
	m->total = 0;
	for (unsigned kind = 0; kind < TH_NR_MEM_KINDS; kind++) {
		struct th_mem *mem = &m->mem[m->nr];

		if (!th_gpu(NULL) && kind != TH_MALLOC && kind != TH_MMAP)
			continue;
		th_mem_alloc(mem, kind, sizes[kind] + 200);
		m->iov[m->nr].base = (char *)mem->ptr + 100;
		m->iov[m->nr].len = sizes[kind];
		m->total += sizes[kind];
		m->nr++;
	}
}

static void mixed_fini(struct mixed *m)
{
	for (size_t i = 0; i < m->nr; i++)
		th_mem_free(&m->mem[i]);
}

/* Elements hold bytes, up to a total of filled; everything else is 0xa5. */
static void mixed_check(struct mixed *m, const unsigned char *bytes,
			size_t filled)
{
	for (size_t i = 0; i < m->nr; i++) {
		size_t len = m->iov[i].len, size = m->mem[i].size;
		size_t n = filled < len ? filled : len;
		unsigned char *got = malloc(size);

		assert_non_null(got);
		th_mem_get(&m->mem[i], 0, got, size);
		th_all("before an element", got, 0xa5, 100);
		th_equal("an element", got + 100, bytes, n);
		th_all("behind an element", got + 100 + n, 0xa5,
		       size - 100 - n);
		bytes += n;
		filled -= n;
		free(got);
	}
}

static void a_vector_mixes_all_kinds_of_memory(void **state)
{
	enum th_file_kind kind = *(enum th_file_kind *)*state;
	struct th_file file;
	unsigned char *bytes, *got;
	CUfileHandle_t fh;
	struct mixed m;

	mixed_init(&m);
	bytes = th_bytes(m.total + 10000);
	got = malloc(m.total + 10000);
	assert_non_null(got);
	th_file_make(&file, kind, O_RDWR, bytes, m.total + 10000);
	fh = th_handle(file.fd);
	for (off_t off = 4096; off < 4100; off += 3) {
		for (size_t i = 0; i < m.nr; i++)
			th_mem_set(&m.mem[i], 0xa5);
		assert_int_equal(cuFileReadv(fh, m.iov, m.nr, off, 0), m.total);
		mixed_check(&m, bytes + off, m.total);
		/* the same bytes to another place */
		assert_int_equal(cuFileWritev(fh, m.iov, m.nr, off - 90, 0),
				 m.total);
		memmove(bytes + off - 90, bytes + off, m.total);
		assert_int_equal(th_file_size(&file), m.total + 10000);
		th_file_get(&file, 0, got, m.total + 10000);
		th_equal("the file", got, bytes, m.total + 10000);
	}
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	mixed_fini(&m);
	free(bytes);
	free(got);
}

static void a_vector_read_is_short_at_the_end_of_the_file(void **state)
{
	struct th_file file;
	unsigned char *bytes;
	CUfileHandle_t fh;
	struct mixed m;
	size_t have;

	(void)state;
	mixed_init(&m);
	have = m.total - m.iov[m.nr - 1].len - 5;
	bytes = th_bytes(have);
	th_file_make(&file, TH_ODIRECT, O_RDWR, bytes, have);
	fh = th_handle(file.fd);
	for (size_t i = 0; i < m.nr; i++)
		th_mem_set(&m.mem[i], 0xa5);
	assert_int_equal(cuFileReadv(fh, m.iov, m.nr, 0, 0), have);
	mixed_check(&m, bytes, have);
	assert_int_equal(cuFileReadv(fh, m.iov, m.nr, (off_t)have, 0), 0);
	mixed_check(&m, bytes, have);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	mixed_fini(&m);
	free(bytes);
}

static void a_vector_takes_0_to_1024_elements(void **state)
{
	unsigned char *bytes = th_bytes(1025 * 7), *got = th_bytes(1025 * 7);
	CUfileIOVec_t *iov = calloc(1025, sizeof(*iov));
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	(void)state;
	assert_non_null(iov);
	th_mem_need(TH_DEVICE);
	th_mem_alloc(&mem, TH_DEVICE, 1025 * 7);
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, 1025 * 7);
	fh = th_handle(file.fd);
	for (size_t i = 0; i < 1025; i++) {
		iov[i].base = (char *)mem.ptr + i * 7;
		iov[i].len = 7;
	}
	assert_int_equal(cuFileReadv(fh, NULL, 0, 0, 0), 0);
	assert_int_equal(cuFileReadv(fh, iov, 0, 0, 0), 0);
	assert_int_equal(cuFileWritev(fh, iov, 0, 0, 0), 0);
	assert_int_equal(cuFileReadv(fh, iov, 1, 0, 0), 7);
	assert_int_equal(cuFileReadv(fh, iov, 1024, 0, 0), 1024 * 7);
	th_mem_get(&mem, 0, got, 1024 * 7);
	th_equal("1024 elements", got, bytes, 1024 * 7);
	refused(cuFileReadv(fh, iov, 1025, 0, 0), EINVAL);
	refused(cuFileWritev(fh, iov, 1025, 0, 0), EINVAL);
	refused(cuFileReadv(fh, NULL, 1, 0, 0), EINVAL);
	refused(cuFileReadv(fh, iov, 1, 0, 1), EINVAL);
	refused(cuFileReadv(fh, iov, 1, -1, 0), EINVAL);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	th_mem_free(&mem);
	free(iov);
	free(bytes);
	free(got);
}

/* Vectors whose last element is bad: nothing before it may have moved. */
static void refused_whole(CUfileHandle_t fh, const struct th_file *file,
			  const struct th_mem *mem, CUfileIOVec_t bad, int code)
{
	CUfileIOVec_t iov[3] = { { mem->ptr, 100 },
				 { (char *)mem->ptr + 100, 100 },
				 bad };
	unsigned char got[300];

	th_mem_set(mem, 0xa5);
	refused(cuFileReadv(fh, iov, 3, 0, 0), code);
	th_mem_get(mem, 0, got, 200);
	th_all("memory of a refused vector", got, 0xa5, 200);
	refused(cuFileWritev(fh, iov, 3, 0, 0), code);
	th_file_get(file, 0, got, 300);
	th_all("file of a refused vector", got, 0x11, 300);
	assert_int_equal(th_file_size(file), 4096);
}

static void a_vector_with_a_bad_element_has_no_effect(void **state)
{
	CUfileIOVec_t one, large[2];
	unsigned char *bytes = th_same(0x11, 4096);
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	(void)state;
	th_mem_need(TH_DEVICE);
	th_mem_alloc(&mem, TH_DEVICE, 65536);
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, 4096);
	fh = th_handle(file.fd);
	large[0] = (CUfileIOVec_t){ mem.ptr, SSIZE_MAX - 9 };
	large[1] = (CUfileIOVec_t){ mem.ptr, 10 };
	refused_whole(fh, &file, &mem, (CUfileIOVec_t){ NULL, 5 }, EINVAL);
	refused_whole(fh, &file, &mem, (CUfileIOVec_t){ mem.ptr, SIZE_MAX - 2 },
		      EINVAL);
	refused_whole(fh, &file, &mem, (CUfileIOVec_t){ mem.ptr, 65537 }, 5014);
	assert_int_equal(cuFileBufRegister((char *)mem.ptr + 4096, 50, 0).err,
			 0);
	refused_whole(fh, &file, &mem,
		      (CUfileIOVec_t){ (char *)mem.ptr + 4096, 51 }, 5017);
	/* all of them: more bytes than a call could answer */
	refused(cuFileReadv(fh, large, 2, 0, 0), EINVAL);
	large[1].len--;
	refused(cuFileReadv(fh, large, 2, 0, 0), 5014);
	cuFileHandleDeregister(fh);
	th_file_end(&file);

	th_file_make(&file, TH_BUFFERED, O_RDONLY, bytes, 4096);
	fh = th_handle(file.fd);
	one = (CUfileIOVec_t){ mem.ptr, 9 };
	refused(cuFileWritev(fh, &one, 1, 0, 0), EBADF);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	refused(cuFileReadv(fh, &one, 1, 0, 0), EINVAL);
	/* of no bytes, too */
	one.len = 0;
	refused(cuFileReadv(fh, &one, 1, 0, 0), EINVAL);
	refused(cuFileReadv(fh, NULL, 0, 0, 0), EINVAL);
	th_mem_free(&mem);
	free(bytes);
}

#define TEST(test) \
	cmocka_unit_test_setup_teardown(test, th_setup_open, th_teardown_close)
#define EACH(test, which) \
	{ \
		.name = #test " (" #which ")", .test_func = test, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(enum th_file_kind) \
		{ \
			which \
		} \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(a_vector_mixes_all_kinds_of_memory, TH_BUFFERED),
		EACH(a_vector_mixes_all_kinds_of_memory, TH_ODIRECT),
		EACH(a_vector_mixes_all_kinds_of_memory, TH_TMPFS),
		TEST(a_vector_read_is_short_at_the_end_of_the_file),
		TEST(a_vector_takes_0_to_1024_elements),
		TEST(a_vector_with_a_bad_element_has_no_effect),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("vector", tests, NULL, NULL));
}
