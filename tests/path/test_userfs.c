// SPDX-License-Identifier: Apache-2.0
/*
 * Files of a user-space file system: bytes go through the client's callbacks
 * (contract 2, CUfileFSOps), in any portions the callbacks like.
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define SIZE (3 * TH_MIB + 11)

/* A file in memory, and how its callbacks misbehave. */
struct store {
	unsigned char *bytes;
	size_t size;
	size_t portion; /* most bytes a call moves */
	size_t fail_at; /* calls that touch this byte fail; SIZE_MAX: none */
	ssize_t fail_with;
	unsigned interrupts; /* so many calls answer -EINTR first */
	unsigned calls;
};

static ssize_t portion_of(struct store *s, size_t size, off_t off)
{
	size_t at = (size_t)off;

	s->calls++;
	if (s->interrupts && s->interrupts--)
		return -EINTR;
	if (at >= s->size)
		return 0;
	if (size > s->portion)
		size = s->portion;
	if (size > s->size - at)
		size = s->size - at;
	if (s->fail_at >= at && s->fail_at < at + size) {
		size = s->fail_at - at;
		if (!size)
			return s->fail_with;
	}
	return (ssize_t)size;
}

static ssize_t store_read(const void *handle, char *buf, size_t size, off_t off,
			  const cufileRDMAInfo_t *info)
{
	struct store *s = (struct store *)(uintptr_t)handle;
	ssize_t n = portion_of(s, size, off);

	(void)info;
	if (n > 0 && (size_t)n <= size)
		memcpy(buf, s->bytes + off, (size_t)n);
	return n;
}

static ssize_t store_write(const void *handle, const char *buf, size_t size,
			   off_t off, const cufileRDMAInfo_t *info)
{
	struct store *s = (struct store *)(uintptr_t)handle;
	ssize_t n = portion_of(s, size, off);

	(void)info;
	if (n > 0 && (size_t)n <= size)
		memcpy(s->bytes + off, buf, (size_t)n);
	return n;
}

static const CUfileFSOps_t store_ops = { .read = store_read,
					 .write = store_write };

static CUfileHandle_t handle_with(struct store *s, const CUfileFSOps_t *ops)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.handle.handle = s,
				.fs_ops = ops };
	CUfileHandle_t fh = NULL;

	assert_int_equal(cuFileHandleRegister(&fh, &descr).err, 0);
	return fh;
}

static void store_init(struct store *s)
{
	*s = (struct store){ .bytes = th_bytes(SIZE),
			     .size = SIZE,
			     .portion = SIZE_MAX,
			     .fail_at = SIZE_MAX };
}

static enum th_mem_kind kind_of(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;

	th_mem_need(kind);
	th_open();
	return kind;
}

static void check_read(struct th_mem *mem, struct store *s, CUfileHandle_t fh,
		       size_t size, off_t off, ssize_t want)
{
	unsigned char *got = malloc(size);

	assert_non_null(got);
	th_mem_set(mem, 0xa5);
	assert_int_equal(cuFileRead(fh, mem->ptr, size, off, 0), want);
	th_mem_get(mem, 0, got, size);
	th_equal("read by callback", got, s->bytes + off, (size_t)want);
	th_all("behind it", got + want, 0xa5, size - (size_t)want);
	free(got);
}

static void check_write(struct th_mem *mem, struct store *s, CUfileHandle_t fh,
			size_t size, off_t off)
{
	unsigned char *bytes = th_bytes(size);
	unsigned char *want = malloc(SIZE);

	assert_non_null(want);
	memcpy(want, s->bytes, SIZE);
	memcpy(want + off, bytes, size);
	th_mem_put(mem, 0, bytes, size);
	assert_int_equal(cuFileWrite(fh, mem->ptr, size, off, 0),
			 (ssize_t)size);
	th_equal("written by callback", s->bytes, want, SIZE);
	free(bytes);
	free(want);
}

static void callbacks_may_move_any_portion(void **state)
{
	enum th_mem_kind kind = kind_of(state);
	static const size_t portions[] = { SIZE_MAX, 65536, 100001, 4097 };
	struct store s;
	struct th_mem mem;
	CUfileHandle_t fh;

	store_init(&s);
	th_mem_alloc(&mem, kind, SIZE + 4096);
	fh = handle_with(&s, &store_ops);
	for (size_t i = 0; i < 4; i++) {
		s.portion = portions[i];
		s.interrupts = 3;
		check_read(&mem, &s, fh, SIZE, 0, SIZE);
		check_read(&mem, &s, fh, 5000, 1234567, 5000);
		check_read(&mem, &s, fh, 5000, SIZE - 100, 100);
		check_write(&mem, &s, fh, SIZE - 7, 7);
		check_write(&mem, &s, fh, 1, 99);
	}
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	free(s.bytes);
	th_close();
}

static void refused(ssize_t n, int code)
{
	int err = errno;

	assert_int_equal(n, -1);
	assert_int_equal(err, code);
}

static void errors_of_callbacks_come_through(void **state)
{
	enum th_mem_kind kind = kind_of(state);
	struct store s;
	struct th_mem mem;
	CUfileHandle_t fh;
	ssize_t n;

	store_init(&s);
	th_mem_alloc(&mem, kind, SIZE);
	fh = handle_with(&s, &store_ops);
	s.fail_at = 0;
	s.fail_with = -EACCES;
	refused(cuFileRead(fh, mem.ptr, SIZE, 0, 0), EACCES);
	s.fail_with = -ENOSPC;
	refused(cuFileWrite(fh, mem.ptr, SIZE, 0, 0), ENOSPC);
	s.fail_with = (ssize_t)SIZE * 2; /* more than was asked for */
	refused(cuFileRead(fh, mem.ptr, 4096, 0, 0), EIO);
	s.fail_with = -100000; /* no errno */
	refused(cuFileRead(fh, mem.ptr, 4096, 0, 0), EIO);
	/* in the middle: what made it, then the error itself */
	s.fail_at = 2 * TH_MIB + 77;
	s.fail_with = -EIO;
	check_read(&mem, &s, fh, SIZE, 0, (ssize_t)s.fail_at);
	n = cuFileWrite(fh, mem.ptr, SIZE, 0, 0);
	assert_int_equal(n, s.fail_at);
	refused(cuFileRead(fh, mem.ptr, 10, n, 0), EIO);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	free(s.bytes);
	th_close();
}

/* A write of nothing is no success: a caller that loops would never end. */
static void a_write_that_moves_nothing_is_an_error(void **state)
{
	enum th_mem_kind kind = kind_of(state);
	struct store s;
	struct th_mem mem;
	CUfileHandle_t fh;

	store_init(&s);
	th_mem_alloc(&mem, kind, 4096);
	fh = handle_with(&s, &store_ops);
	refused(cuFileWrite(fh, mem.ptr, 4096, SIZE, 0), EIO);
	assert_int_equal(cuFileRead(fh, mem.ptr, 4096, SIZE, 0), 0);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	free(s.bytes);
	th_close();
}

static void a_missing_callback_is_an_error(void **state)
{
	enum th_mem_kind kind = kind_of(state);
	const CUfileFSOps_t read_only = { .read = store_read };
	struct store s;
	struct th_mem mem;
	CUfileHandle_t fh;

	store_init(&s);
	th_mem_alloc(&mem, kind, 4096);
	fh = handle_with(&s, &read_only);
	assert_int_equal(cuFileRead(fh, mem.ptr, 4096, 0, 0), 4096);
	errno = 0;
	assert_int_equal(cuFileWrite(fh, mem.ptr, 4096, 0, 0), -1);
	assert_int_not_equal(errno, 0);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	free(s.bytes);
	th_close();
}

static void what_is_wrong_with_a_call_is_told_before_a_callback(void **state)
{
	enum th_mem_kind kind = kind_of(state);
	struct store s;
	struct th_mem mem;
	CUfileHandle_t fh;

	store_init(&s);
	th_mem_alloc(&mem, kind, 4096);
	fh = handle_with(&s, &store_ops);
	refused(cuFileRead(fh, NULL, 4096, 0, 0), EINVAL);
	refused(cuFileRead(fh, mem.ptr, 4096, -1, 0), EINVAL);
	refused(cuFileWrite(fh, mem.ptr, 4096, 0, -1), EINVAL);
	if (kind == TH_DEVICE)
		refused(cuFileWrite(fh, mem.ptr, 64 * TH_MIB, 0, 0),
			CU_FILE_CUDA_POINTER_RANGE_ERROR);
	assert_int_equal(s.calls, 0);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	free(s.bytes);
	th_close();
}

static unsigned names_asked;

static const char *name_of(const void *handle)
{
	(void)handle;
	names_asked++;
	return "memfs";
}

static CUfileFSOps_t all_ops;

static int no_devices(const void *handle, sockaddr_t **hostaddrs)
{
	fail();
	return -1;
}

static int no_rank(const void *handle, char *buf, size_t size, off_t off,
		   const sockaddr_t *hostaddr)
{
	fail();
	return -1;
}

/* A configuration that denies these file systems; the caller's to free. */
static char *configuration(const char *list)
{
	char *path = NULL;
	FILE *file;

	assert_true(asprintf(&path, "%s/userfs.json", th_disk_dir()) > 0);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "{\"denylist\": {\"filesystems\": %s}}", list);
	assert_int_equal(fclose(file), 0);
	return path;
}

/* Why a read of it would not take the nvfs path. */
static const char *refusal_of(struct store *s, const char *list,
			      struct th_mem *mem)
{
	static ocf_explain_t e;
	char *before = strdup(getenv("CUFILE_ENV_PATH_JSON"));
	const char *why = NULL;
	char *path = configuration(list);
	CUfileHandle_t fh;

	setenv("CUFILE_ENV_PATH_JSON", path, 1);
	th_open();
	fh = handle_with(s, &all_ops);
	check_read(mem, s, fh, 5000, 77, 5000);
	e.struct_size = sizeof(e);
	assert_int_equal(ocf_explain_read(fh, mem->ptr, 100, 0, 0, &e).err, 0);
	for (unsigned i = 0; i < e.nr_refusals; i++)
		if (!strcmp(e.refusals[i].path, "nvfs"))
			why = e.refusals[i].reason;
	cuFileHandleDeregister(fh);
	th_close();
	setenv("CUFILE_ENV_PATH_JSON", before, 1);
	unlink(path);
	free(path);
	free(before);
	return why;
}

static void its_name_is_asked_once_and_may_be_denied(void **state)
{
	enum th_mem_kind kind = kind_of(state);
	struct th_mem mem;
	struct store s;

	th_close();
	all_ops = store_ops;
	all_ops.fs_type = name_of;
	all_ops.getRDMADeviceList = no_devices;
	all_ops.getRDMADevicePriority = no_rank;
	store_init(&s);
	th_mem_alloc(&mem, kind, 8192);
	names_asked = 0;
	assert_non_null(strstr(refusal_of(&s, "[\"memfs\"]", &mem),
			       "denylist.filesystems"));
	assert_int_equal(names_asked, 1);
	assert_null(strstr(refusal_of(&s, "[\"memf\", \"ext4\"]", &mem),
			   "denylist.filesystems"));
	assert_int_equal(names_asked, 2);
	th_mem_free(&mem);
	free(s.bytes);
}

/* Its callbacks would touch what is no memory there. */
static void a_forked_child_is_refused_gpu_memory(void **state)
{
	struct th_mem mem;
	struct store s;
	CUfileHandle_t fh;
	int status = 0;
	pid_t child;

	if (kind_of(state) != TH_DEVICE)
		return;
	store_init(&s);
	th_mem_alloc(&mem, TH_DEVICE, 8192);
	fh = handle_with(&s, &store_ops);
	check_read(&mem, &s, fh, 5000, 77, 5000);
	child = fork();
	if (!child) {
		unsigned before = s.calls;
		char own[100];

		alarm(100);
		_exit(!(cuFileRead(fh, mem.ptr, 4, 0, 0) == -1 &&
			errno == CU_FILE_CUDA_DRIVER_ERROR &&
			cuFileWrite(fh, mem.ptr, 4, 0, 0) == -1 &&
			errno == CU_FILE_CUDA_DRIVER_ERROR &&
			s.calls == before &&
			cuFileRead(fh, own, 100, 3, 0) == 100 &&
			!memcmp(own, s.bytes + 3, 100)));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	check_read(&mem, &s, fh, 5000, 77, 5000);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	free(s.bytes);
	th_close();
}

static void two_files_of_one_file_system_are_two_handles(void **state)
{
	enum th_mem_kind kind = kind_of(state);
	struct store s[2];
	CUfileHandle_t fh[2];
	struct th_mem mem;

	th_mem_alloc(&mem, kind, SIZE);
	for (int i = 0; i < 2; i++) {
		store_init(&s[i]);
		fh[i] = handle_with(&s[i], &store_ops);
	}
	check_read(&mem, &s[0], fh[0], 10000, 5, 10000);
	check_read(&mem, &s[1], fh[1], 10000, 5, 10000);
	for (int i = 0; i < 2; i++) {
		cuFileHandleDeregister(fh[i]);
		free(s[i].bytes);
	}
	th_mem_free(&mem);
	th_close();
}

#define BOTH(test) TH_OF(test, TH_DEVICE), TH_OF(test, TH_MALLOC)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(callbacks_may_move_any_portion),
		BOTH(errors_of_callbacks_come_through),
		BOTH(a_write_that_moves_nothing_is_an_error),
		BOTH(a_missing_callback_is_an_error),
		BOTH(what_is_wrong_with_a_call_is_told_before_a_callback),
		BOTH(its_name_is_asked_once_and_may_be_denied),
		BOTH(a_forked_child_is_refused_gpu_memory),
		BOTH(two_files_of_one_file_system_are_two_handles),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("userfs", tests, NULL, NULL));
}
