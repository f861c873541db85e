// SPDX-License-Identifier: Apache-2.0
/* handles - which files register, which do not, and what a handle is worth. */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT "some bytes in a file"

static char path[256];

/* A file with TEXT in it, opened with these flags. */
static int text_fd(int flags)
{
	int fd;

	snprintf(path, sizeof(path), "%s", fresh_text_file("data", TEXT));
	fd = open(path, flags | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void assert_register(int fd, int code)
{
	CUfileHandle_t fh;

	assert_true(fd >= 0);
	assert_code(fresh_register(fd, &fh), code);
	if (!code)
		cuFileHandleDeregister(fh);
	close(fd);
}

/* Registers, reads TEXT, and deregisters. */
static void assert_reads_text(int fd)
{
	char buf[64] = "";
	CUfileHandle_t fh;

	assert_true(fd >= 0);
	assert_ok(fresh_register(fd, &fh));
	assert_int_equal(cuFileRead(fh, buf, sizeof(buf), 0, 0), strlen(TEXT));
	assert_string_equal(buf, TEXT);
	cuFileHandleDeregister(fh);
	close(fd);
}

/* "NULL fh, NULL descr, fd -1, closed fd"; contract 3.6. */
static void null_arguments_and_bad_fds_are_refused_5022(void **state)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = text_fd(O_RDWR) };
	CUfileHandle_t fh;
	/* high, so that the log does not get the number meanwhile */
	int closed = dup2(descr.handle.fd, 500);

	close(closed);
	assert_ok(cuFileDriverOpen());
	assert_code(cuFileHandleRegister(NULL, &descr), CU_FILE_INVALID_VALUE);
	assert_code(cuFileHandleRegister(&fh, NULL), CU_FILE_INVALID_VALUE);
	assert_code(fresh_register(-1, &fh), CU_FILE_INVALID_VALUE);
	assert_code(fresh_register(closed, &fh), CU_FILE_INVALID_VALUE);
	assert_code(fresh_register(9999, &fh), CU_FILE_INVALID_VALUE);
	assert_code(fresh_register(INT32_MIN, &fh), CU_FILE_INVALID_VALUE);
	assert_code(fresh_register(AT_FDCWD, &fh), CU_FILE_INVALID_VALUE);
}

/* "type 0, WIN32, unknown"; contract 3.6. */
static void other_types_are_refused_5008(void **state)
{
	static const int types[] = { 0, CU_FILE_HANDLE_TYPE_OPAQUE_WIN32, 4, 7,
				     -1 };
	CUfileDescr_t descr = { .handle.fd = text_fd(O_RDWR) };
	CUfileHandle_t fh;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		descr.type = (enum CUfileFileHandleType)types[i];
		assert_code(cuFileHandleRegister(&fh, &descr),
			    CU_FILE_IO_NOT_SUPPORTED);
	}
}

/* "USERSPACE_FS without ops". */
static void a_user_space_file_without_ops_is_refused_5008(void **state)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS };
	CUfileHandle_t fh;

	assert_code(cuFileHandleRegister(&fh, &descr),
		    CU_FILE_IO_NOT_SUPPORTED);
}

struct user_file {
	char bytes[64];
	int reads, writes;
};

static ssize_t user_read(const void *handle, char *buf, size_t size, off_t off,
			 const cufileRDMAInfo_t *info)
{
	struct user_file *file = (struct user_file *)(uintptr_t)handle;

	file->reads++;
	if (off >= (off_t)sizeof(file->bytes))
		return 0;
	if (size > sizeof(file->bytes) - (size_t)off)
		size = sizeof(file->bytes) - (size_t)off;
	/* short on purpose: the caller comes back for the rest */
	if (size > 10)
		size = 10;
	memcpy(buf, file->bytes + off, size);
	return (ssize_t)size;
}

static ssize_t user_write(const void *handle, const char *buf, size_t size,
			  off_t off, const cufileRDMAInfo_t *info)
{
	struct user_file *file = (struct user_file *)(uintptr_t)handle;

	file->writes++;
	if (off + (off_t)size > (off_t)sizeof(file->bytes))
		return -ENOSPC;
	memcpy(file->bytes + off, buf, size);
	return (ssize_t)size;
}

static CUfileHandle_t user_handle(void *file, const CUfileFSOps_t *ops)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.handle.handle = file,
				.fs_ops = ops };
	CUfileHandle_t fh = NULL;

	assert_ok(cuFileHandleRegister(&fh, &descr));
	return fh;
}

/* "with ops it works"; contract 2.3. */
static void a_user_space_file_is_read_and_written_by_its_ops(void **state)
{
	static const CUfileFSOps_t ops = { .read = user_read,
					   .write = user_write };
	struct user_file file = { .bytes = "0123456789abcdefghijklmnopq" };
	CUfileHandle_t fh = user_handle(&file, &ops);
	char buf[100] = "";

	assert_int_equal(cuFileRead(fh, buf, 27, 0, 0), 27);
	assert_string_equal(buf, "0123456789abcdefghijklmnopq");
	assert_int_equal(file.reads, 3);
	assert_int_equal(cuFileRead(fh, buf, 100, 60, 0), 4);
	assert_int_equal(cuFileRead(fh, buf, 1, 64, 0), 0);
	assert_int_equal(cuFileWrite(fh, "XYZ", 3, 5, 0), 3);
	assert_memory_equal(file.bytes, "01234XYZ", 8);
	assert_errno(cuFileWrite(fh, "XYZ", 3, 63, 0), ENOSPC);
	cuFileHandleDeregister(fh);
}

/* An operation that the file system does not have is an error, no crash. */
static void a_user_space_file_with_empty_ops_answers_enosys(void **state)
{
	static const CUfileFSOps_t none;
	CUfileHandle_t fh = user_handle(NULL, &none);
	char byte = 0;

	assert_errno(cuFileRead(fh, &byte, 1, 0, 0), ENOSYS);
	assert_errno(cuFileWrite(fh, &byte, 1, 0, 0), ENOSYS);
}

/* Of the description nothing need outlive the call, contract 3.6. */
static void the_ops_may_go_once_registered(void **state)
{
	struct user_file file = { .bytes = "0123" };
	CUfileFSOps_t *ops = malloc(sizeof(*ops));
	CUfileHandle_t fh;
	char buf[5] = "";

	assert_non_null(ops);
	*ops = (CUfileFSOps_t){ .read = user_read };
	fh = user_handle(&file, ops);
	memset(ops, 0, sizeof(*ops));
	free(ops);
	assert_int_equal(cuFileRead(fh, buf, 4, 0, 0), 4);
	assert_string_equal(buf, "0123");
	cuFileHandleDeregister(fh);
}

/* The same object twice: only fds are one to a handle. */
static void one_user_space_file_may_be_registered_twice(void **state)
{
	static const CUfileFSOps_t ops = { .read = user_read };
	struct user_file file = { .bytes = "x" };
	CUfileHandle_t one = user_handle(&file, &ops);
	CUfileHandle_t two = user_handle(&file, &ops);
	char byte = 0;

	assert_ptr_not_equal(one, two);
	cuFileHandleDeregister(one);
	assert_int_equal(cuFileRead(two, &byte, 1, 0, 0), 1);
}

/* "same fd number twice ... a dup of it registers"; contract 3.6. */
/* Strict mode tells at the registration what can be known there. */
static void strict_mode_refuses_a_denied_file_5034_and_keeps_nothing(
	void **state)
{
	int fd = text_fd(O_RDWR);
	CUfileHandle_t fh;
	struct cf_mount mount;
	char text[256];

	if (!fresh_mount(&mount))
		th_skip("the mount of the test's folder is outside its root");
	snprintf(text, sizeof(text),
		 "{\"properties\": {\"allow_compat_mode\": false}, "
		 "\"denylist\": {\"filesystems\": [\"%s\"]}}",
		 mount.type);
	setenv("CUFILE_ENV_PATH_JSON", fresh_text_file("strict.json", text), 1);
	assert_code(fresh_register(fd, &fh), CU_FILE_IO_DISABLED);
	assert_null(fh);
	assert_non_null(strstr(fresh_log(), "denylist.filesystems names"));
	assert_non_null(strstr(fresh_log(), "allow_compat_mode is false"));
	assert_int_equal(cuFileUseCount(), 0);
	/* nothing was left behind: without the key the same fd registers */
	setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 1);
	while (!cuFileDriverClose().err)
		continue;
	assert_reads_text(fd);
}

static void strict_mode_refuses_what_no_path_can_carry_5008(void **state)
{
	static CUfileFSOps_t ops;
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.handle.handle = &descr,
				.fs_ops = &ops };
	CUfileHandle_t fh;

	setenv("CUFILE_ALLOW_COMPAT_MODE", "false", 1);
	assert_code(cuFileHandleRegister(&fh, &descr),
		    CU_FILE_IO_NOT_SUPPORTED);
	assert_non_null(strstr(fresh_log(), "a user-space file system"));
	/* a plain file registers: its memory decides, and host memory goes */
	assert_reads_text(text_fd(O_RDWR));
	while (!cuFileDriverClose().err)
		continue;
	setenv("OCF_ALIAS", "off", 1);
	assert_register(text_fd(O_RDWR), CU_FILE_IO_NOT_SUPPORTED);
	assert_non_null(strstr(fresh_log(), "opencufile.alias is off"));
	/* and what is mapped may have to go through host memory after all */
	setenv("OCF_MAPPED", "kept", 1);
	assert_register(text_fd(O_RDWR), CU_FILE_IO_NOT_SUPPORTED);
}

static void the_same_fd_twice_is_refused_5028_and_a_dup_is_not(void **state)
{
	int fd = text_fd(O_RDWR);
	CUfileHandle_t fh, other;
	char buf[4] = "";

	assert_ok(fresh_register(fd, &fh));
	assert_code(fresh_register(fd, &other),
		    CU_FILE_HANDLE_ALREADY_REGISTERED);
	assert_ok(fresh_register(dup(fd), &other));
	/* a different fd on the same file, too */
	assert_ok(fresh_register(open(path, O_RDONLY), &other));
	assert_int_equal(cuFileRead(fh, buf, 4, 0, 0), 4);
	cuFileHandleDeregister(fh);
	assert_ok(fresh_register(fd, &other));
	assert_ptr_not_equal(fh, other);
}

/* "O_APPEND ..."; contract 3.6. */
static void a_file_opened_for_append_is_refused_5019(void **state)
{
	assert_register(text_fd(O_RDWR | O_APPEND),
			CU_FILE_INVALID_FILE_OPEN_FLAG);
	assert_register(text_fd(O_WRONLY | O_APPEND | O_DIRECT),
			CU_FILE_INVALID_FILE_OPEN_FLAG);
}

/* "O_PATH". */
static void a_path_descriptor_is_refused_5019(void **state)
{
	assert_register(text_fd(O_PATH), CU_FILE_INVALID_FILE_OPEN_FLAG);
}

/* "O_NONBLOCK, O_NOFOLLOW, O_TMPFILE ... register"; record section d. */
static void harmless_open_flags_register_and_read(void **state)
{
	static const int flags[] = {
		O_RDONLY,
		O_RDWR,
		O_NONBLOCK,
		O_NOCTTY,
		O_NOFOLLOW,
		O_NOATIME,
		O_SYNC,
		O_DSYNC,
		O_ASYNC,
		O_CLOEXEC,
		O_DIRECT,
		O_DIRECT | O_RDWR | O_SYNC,
		O_NONBLOCK | O_DIRECT,
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		assert_reads_text(text_fd(flags[i]));
	assert_register(text_fd(O_WRONLY), 0);
}

/* "O_TMPFILE ... register". */
static void a_nameless_temporary_file_registers(void **state)
{
	int fd = open(th_disk_dir(), O_TMPFILE | O_RDWR, 0600);

	if (fd < 0)
		th_skip("the file system has no O_TMPFILE");
	assert_int_equal(write(fd, TEXT, strlen(TEXT)), strlen(TEXT));
	assert_reads_text(fd);
	fd = open(th_disk_dir(), O_TMPFILE | O_RDWR | O_DIRECT, 0600);
	if (fd >= 0)
		assert_register(fd, 0);
}

/* "directory, pipe, socket, character device". */
static void what_is_no_file_is_refused_5018(void **state)
{
	int ends[2], pair[2];

	assert_register(open(th_disk_dir(), O_RDONLY | O_DIRECTORY),
			CU_FILE_INVALID_FILE_TYPE);
	assert_int_equal(pipe(ends), 0);
	assert_register(ends[0], CU_FILE_INVALID_FILE_TYPE);
	assert_register(ends[1], CU_FILE_INVALID_FILE_TYPE);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_register(pair[0], CU_FILE_INVALID_FILE_TYPE);
	close(pair[1]);
	assert_register(open("/dev/null", O_RDWR), CU_FILE_INVALID_FILE_TYPE);
	assert_register(open("/dev/zero", O_RDWR), CU_FILE_INVALID_FILE_TYPE);
}

/* "tmpfs, memfd". */
static void files_in_memory_register_and_read(void **state)
{
	static const enum th_file_kind kinds[] = { TH_TMPFS, TH_MEMFD };

	for (size_t i = 0; i < 2; i++) {
		struct th_file file;

		th_file_make(&file, kinds[i], O_RDWR, TEXT, strlen(TEXT));
		assert_reads_text(dup(file.fd));
		th_file_end(&file);
	}
}

/* "procfs and other files that have no size: buffered reads work". */
static void a_procfs_file_is_read_to_its_end(void **state)
{
	static const char *const names[] = { "/proc/self/status",
					     "/proc/version" };

	for (size_t i = 0; i < 2; i++) {
		static char want[65536], got[65536];
		int fd = open(names[i], O_RDONLY);
		CUfileHandle_t fh;
		ssize_t n;

		assert_true(fd >= 0);
		assert_ok(fresh_register(fd, &fh));
		n = cuFileRead(fh, got, sizeof(got), 0, 0);
		assert_true(n > 20);
		assert_true(pread(fd, want, 20, 0) == 20);
		assert_memory_equal(got, want, 20);
		cuFileHandleDeregister(fh);
		close(fd);
	}
}

/* "procfs": into GPU memory as well. */
static void a_procfs_file_is_read_into_gpu_memory(void **state)
{
	char want[4096] = "", got[4096] = "";
	int fd = open("/proc/version", O_RDONLY);
	struct th_mem mem;
	ssize_t n = pread(fd, want, sizeof(want), 0);

	th_need_gpu();
	th_mem_alloc(&mem, TH_DEVICE, sizeof(got));
	assert_true(n > 0);
	assert_int_equal(cuFileRead(th_handle(fd), mem.ptr, sizeof(got), 0, 0),
			 n);
	th_mem_get(&mem, 0, got, (size_t)n);
	th_equal("/proc/version", got, want, (size_t)n);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&mem);
}

/* "unlinked file". */
static void an_unlinked_file_registers_reads_and_writes(void **state)
{
	int fd = text_fd(O_RDWR | O_DIRECT);
	CUfileHandle_t fh;
	char buf[64] = "";

	unlink(path);
	assert_ok(fresh_register(fd, &fh));
	assert_int_equal(cuFileWrite(fh, "more", 4, 0, 0), 4);
	assert_int_equal(cuFileRead(fh, buf, sizeof(buf), 0, 0), strlen(TEXT));
	assert_string_equal(buf, "more bytes in a file");
	cuFileHandleDeregister(fh);
}

/* Contract 3.6: the access mode is enforced at IO time. */
static void the_access_mode_is_enforced_when_bytes_move(void **state)
{
	CUfileHandle_t fh;
	char byte = 0;

	assert_ok(fresh_register(text_fd(O_RDONLY), &fh));
	assert_errno(cuFileWrite(fh, &byte, 1, 0, 0), EBADF);
	assert_int_equal(cuFileRead(fh, &byte, 1, 0, 0), 1);
	assert_ok(fresh_register(text_fd(O_WRONLY), &fh));
	assert_errno(cuFileRead(fh, &byte, 1, 0, 0), EBADF);
	assert_int_equal(cuFileWrite(fh, &byte, 1, 0, 0), 1);
}

/* Contract 3.6: "The descriptor need not outlive the call". */
static void the_description_may_go_once_registered(void **state)
{
	CUfileDescr_t *descr = malloc(sizeof(*descr));
	CUfileHandle_t fh;
	char byte = 0;

	assert_non_null(descr);
	*descr = (CUfileDescr_t){ .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				  .handle.fd = text_fd(O_RDWR) };
	assert_ok(cuFileHandleRegister(&fh, descr));
	memset(descr, 0xff, sizeof(*descr));
	free(descr);
	assert_int_equal(cuFileRead(fh, &byte, 1, 0, 0), 1);
}

/* "read or write with NULL, stale or garbage handle". */
static void a_value_that_is_no_handle_is_refused_einval(void **state)
{
	CUfileHandle_t fh, stale;
	char byte = 0;
	uintptr_t bits;

	assert_ok(fresh_register(text_fd(O_RDWR), &stale));
	cuFileHandleDeregister(stale);
	assert_ok(fresh_register(text_fd(O_RDWR), &fh));
	bits = (uintptr_t)fh;
	assert_errno(cuFileRead(NULL, &byte, 1, 0, 0), EINVAL);
	assert_errno(cuFileRead(stale, &byte, 1, 0, 0), EINVAL);
	assert_errno(cuFileRead(&byte, &byte, 1, 0, 0), EINVAL);
	assert_errno(cuFileWrite(stale, &byte, 1, 0, 0), EINVAL);
	/* every value one bit away */
	for (int bit = 0; bit < 64; bit++) {
		CUfileHandle_t near = (CUfileHandle_t)(bits ^ 1ull << bit);

		assert_errno(cuFileRead(near, &byte, 1, 0, 0), EINVAL);
	}
	for (int i = 0; i < 10000; i++) {
		CUfileHandle_t any = (CUfileHandle_t)(uintptr_t)th_random();

		assert_errno(cuFileWrite(any, &byte, 1, 0, 0), EINVAL);
	}
	assert_int_equal(cuFileRead(fh, &byte, 1, 0, 0), 1);
}

/* Contract 3.6: "NULL is harmless; bad values only log an ERROR". */
static void deregistering_what_is_no_handle_is_harmless(void **state)
{
	CUfileHandle_t fh, stale;
	char byte = 0;

	cuFileHandleDeregister(NULL);
	cuFileHandleDeregister(&byte);
	assert_int_equal(cuFileUseCount(), 0);
	assert_ok(fresh_register(text_fd(O_RDWR), &stale));
	cuFileHandleDeregister(stale);
	assert_ok(fresh_register(text_fd(O_RDWR), &fh));
	cuFileHandleDeregister(stale);
	cuFileHandleDeregister((CUfileHandle_t)(uintptr_t)-1);
	cuFileHandleDeregister(&byte);
	assert_int_equal(cuFileRead(fh, &byte, 1, 0, 0), 1);
	assert_non_null(strstr(fresh_log(), "no such handle"));
}

/* "fd closed behind our back". */
static void io_after_the_fd_was_closed_answers_ebadf(void **state)
{
	int fd = text_fd(O_RDWR);
	CUfileHandle_t fh;
	char byte = 0;

	assert_ok(fresh_register(fd, &fh));
	close(fd);
	assert_errno(cuFileRead(fh, &byte, 1, 0, 0), EBADF);
	cuFileHandleDeregister(fh);
}

/*
 * "fd closed behind our back", and then reused: the new file registers, and
 * the old handle reaches neither file.
 */
static void a_reused_fd_number_registers_and_ends_its_old_handle(void **state)
{
	char other[300];
	int fd = text_fd(O_RDWR), reused;
	CUfileHandle_t old, fh;
	char buf[4] = "";

	assert_ok(fresh_register(fd, &old));
	snprintf(other, sizeof(other), "%s/other", th_disk_dir());
	reused = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(reused, "else", 4), 4);
	assert_int_equal(dup2(reused, fd), fd);
	assert_ok(fresh_register(fd, &fh));
	assert_ptr_not_equal(fh, old);
	assert_errno(cuFileWrite(old, "evil", 4, 0, 0), EINVAL);
	assert_int_equal(cuFileRead(fh, buf, 4, 0, 0), 4);
	assert_memory_equal(buf, "else", 4);
	cuFileHandleDeregister(old);
	assert_int_equal(cuFileRead(fh, buf, 4, 0, 0), 4);
	unlink(other);
}

/* Clients keep thousands; the descriptor table is the only limit. */
static void thousands_of_handles_live_at_once(void **state)
{
	enum { NR = 4096 };
	static CUfileHandle_t fh[NR];
	struct rlimit limit = { NR + 64, NR + 64 };
	int fd = text_fd(O_RDWR);
	char byte = 0;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		th_skip("not as many descriptors for this user");
	for (int i = 0; i < NR; i++)
		assert_ok(fresh_register(dup(fd), &fh[i]));
	for (int i = 0; i < NR; i++)
		assert_int_equal(cuFileRead(fh[i], &byte, 1, 0, 0), 1);
	for (int i = 0; i < NR; i += 2)
		cuFileHandleDeregister(fh[i]);
	for (int i = 0; i < NR; i++) {
		if (i & 1)
			assert_int_equal(cuFileRead(fh[i], &byte, 1, 0, 0), 1);
		else
			assert_errno(cuFileRead(fh[i], &byte, 1, 0, 0), EINVAL);
	}
}

/* Contract 3.6: "Does not close the fd", nor leave one of ours behind. */
static void deregister_closes_what_we_opened_and_nothing_else(void **state)
{
	struct th_file file;
	unsigned char *bytes = th_bytes(65536);
	CUfileHandle_t fh;
	int before;

	assert_ok(cuFileDriverOpen());
	th_file_make(&file, TH_ODIRECT, O_RDWR, bytes, 65536);
	before = th_count_fds();
	assert_ok(fresh_register(file.fd, &fh));
	assert_int_equal(cuFileRead(fh, bytes, 65536, 0, 0), 65536);
	assert_int_equal(cuFileRead(fh, bytes, 777, 3, 0), 777);
	cuFileHandleDeregister(fh);
	assert_int_equal(th_count_fds(), before);
	assert_true(fcntl(file.fd, F_GETFD) >= 0);
	th_file_end(&file);
	free(bytes);
}

/* True if another process cannot have the lock: this one still holds it. */
static bool is_locked(const char *file)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct flock lock = { .l_type = F_WRLCK, .l_len = 4096 };
		int fd = open(file, O_RDWR);

		_exit(fcntl(fd, F_SETLK, &lock) < 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 1;
}

/*
 * Sample 018 locks the record around each unaligned O_DIRECT write. Closing
 * any descriptor of a file drops the process's locks on it, so we may close
 * none before the deregister (core/file.c).
 */
static void record_locks_outlive_everything_before_a_deregister(void **state)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 4096 };
	unsigned char *bytes = th_bytes(65536);
	CUfileHandle_t fh, same;
	struct th_file file;

	th_file_make(&file, TH_ODIRECT, O_RDWR, bytes, 65536);
	assert_int_equal(fcntl(file.fd, F_SETLK, &lock), 0);
	assert_true(is_locked(file.path));
	assert_ok(fresh_register(file.fd, &fh));
	assert_true(is_locked(file.path));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cuFileWrite(fh, bytes, 100, 10, 0), 100);
		assert_int_equal(cuFileRead(fh, bytes, 100, 1000, 3), 100);
		assert_int_equal(cuFileRead(fh, bytes, 8192, 0, 0), 8192);
		assert_true(is_locked(file.path));
	}
	assert_code(fresh_register(file.fd, &same),
		    CU_FILE_HANDLE_ALREADY_REGISTERED);
	assert_true(is_locked(file.path));
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	free(bytes);
}

/* A handle that never needed a second descriptor drops no lock at all. */
static void record_locks_outlive_a_handle_with_aligned_io_only(void **state)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 4096 };
	CUfileHandle_t fh;
	struct th_file file;
	void *buf = NULL;

	assert_int_equal(posix_memalign(&buf, 4096, 8192), 0);
	memset(buf, 0, 8192);
	th_file_make(&file, TH_ODIRECT, O_RDWR, NULL, 65536);
	assert_int_equal(fcntl(file.fd, F_SETLK, &lock), 0);
	assert_ok(fresh_register(file.fd, &fh));
	assert_int_equal(cuFileRead(fh, buf, 8192, 0, 0), 8192);
	cuFileHandleDeregister(fh);
	assert_true(is_locked(file.path));
	th_file_end(&file);
	free(buf);
}

/* A user-space file whose reads wait until the test lets them go. */
struct slow_file {
	sem_t entered, go;
	atomic_bool left;
	CUfileHandle_t fh;
	atomic_bool deregistered;
};

static ssize_t slow_read(const void *handle, char *buf, size_t size, off_t off,
			 const cufileRDMAInfo_t *info)
{
	struct slow_file *file = (struct slow_file *)(uintptr_t)handle;

	sem_post(&file->entered);
	while (sem_wait(&file->go))
		;
	memset(buf, 'x', size);
	atomic_store(&file->left, true);
	return (ssize_t)size;
}

static const CUfileFSOps_t slow_ops = { .read = slow_read };

static void *read_slowly(void *arg)
{
	struct slow_file *file = arg;
	char buf[16] = "";

	return (void *)(intptr_t)cuFileRead(file->fh, buf, sizeof(buf), 0, 0);
}

static void *deregister(void *arg)
{
	struct slow_file *file = arg;

	cuFileHandleDeregister(file->fh);
	atomic_store(&file->deregistered, atomic_load(&file->left));
	return NULL;
}

static void *close_driver(void *arg)
{
	(void)cuFileDriverClose_v2();
	return arg;
}

static void slow_begin(struct slow_file *file, pthread_t *reader)
{
	memset(file, 0, sizeof(*file));
	sem_init(&file->entered, 0, 0);
	sem_init(&file->go, 0, 0);
	file->fh = user_handle(file, &slow_ops);
	assert_int_equal(pthread_create(reader, NULL, read_slowly, file), 0);
	while (sem_wait(&file->entered))
		;
}

/* Waits until the value names no handle any more: the other side is at it. */
static void wait_refused(CUfileHandle_t fh)
{
	char byte = 0;

	/* size 0 never reaches the file's own read */
	while (!cuFileRead(fh, &byte, 0, 0, 0))
		th_sleep_ms(1);
}

/* Lifetime rule: deregister waits, never frees under IO. */
static void deregister_waits_for_the_read_that_runs(void **state)
{
	pthread_t reader, other;
	struct slow_file file;
	void *n;

	slow_begin(&file, &reader);
	assert_int_equal(pthread_create(&other, NULL, deregister, &file), 0);
	wait_refused(file.fh);
	th_sleep_ms(20);
	assert_false(atomic_load(&file.left));
	sem_post(&file.go);
	pthread_join(reader, &n);
	pthread_join(other, NULL);
	assert_int_equal((intptr_t)n, 16);
	assert_true(atomic_load(&file.deregistered));
}

/* Contract 3.2: a close ends no session under running IO. */
static void a_close_waits_for_the_read_that_runs(void **state)
{
	pthread_t reader, other;
	struct slow_file file;
	void *n;

	slow_begin(&file, &reader);
	assert_int_equal(pthread_create(&other, NULL, close_driver, NULL), 0);
	wait_refused(file.fh);
	th_sleep_ms(20);
	assert_int_not_equal(pthread_tryjoin_np(other, NULL), 0);
	sem_post(&file.go);
	pthread_join(reader, &n);
	pthread_join(other, NULL);
	assert_int_equal((intptr_t)n, 16);
	assert_int_equal(cuFileUseCount(), 0);
}

/* The same when a deregister has already made the handle invisible. */
static void a_close_waits_for_a_read_being_deregistered(void **state)
{
	pthread_t reader, first, second;
	struct slow_file file;

	slow_begin(&file, &reader);
	assert_int_equal(pthread_create(&first, NULL, deregister, &file), 0);
	wait_refused(file.fh);
	assert_int_equal(pthread_create(&second, NULL, close_driver, NULL), 0);
	th_sleep_ms(100);
	assert_int_not_equal(pthread_tryjoin_np(second, NULL), 0);
	sem_post(&file.go);
	pthread_join(reader, NULL);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
}

/* Waiting for one file's IO must hold up nobody else's. */
static void a_deregister_that_waits_holds_up_no_other_file(void **state)
{
	pthread_t reader, other;
	struct slow_file file;
	CUfileHandle_t fh;
	char byte = 0;

	slow_begin(&file, &reader);
	assert_int_equal(pthread_create(&other, NULL, deregister, &file), 0);
	wait_refused(file.fh);
	assert_ok(fresh_register(text_fd(O_RDWR), &fh));
	assert_int_equal(cuFileRead(fh, &byte, 1, 0, 0), 1);
	cuFileHandleDeregister(fh);
	assert_ok(cuFileBufRegister(&byte, 1, 0));
	sem_post(&file.go);
	pthread_join(reader, NULL);
	pthread_join(other, NULL);
}

/* A fork while a deregister waits: the child is free to go on. */
static void a_child_forked_during_a_deregister_does_not_hang(void **state)
{
	pthread_t reader, other;
	struct slow_file file;
	CUfileHandle_t fh;
	int status;
	pid_t pid;

	slow_begin(&file, &reader);
	assert_ok(fresh_register(text_fd(O_RDWR), &fh));
	assert_int_equal(pthread_create(&other, NULL, deregister, &file), 0);
	wait_refused(file.fh);
	pid = fork();
	if (!pid) {
		char byte = 0;
		int bad = cuFileRead(fh, &byte, 1, 0, 0) != 1;

		alarm(100);
		cuFileHandleDeregister(fh);
		cuFileHandleDeregister(file.fh);
		bad |= cuFileDriverClose_v2().err != 0;
		bad |= cuFileDriverOpen().err != 0;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sem_post(&file.go);
	pthread_join(reader, NULL);
	pthread_join(other, NULL);
}

static const struct fresh_test tests[] = {
	FRESH(null_arguments_and_bad_fds_are_refused_5022),
	FRESH(other_types_are_refused_5008),
	FRESH(a_user_space_file_without_ops_is_refused_5008),
	FRESH(a_user_space_file_is_read_and_written_by_its_ops),
	FRESH(a_user_space_file_with_empty_ops_answers_enosys),
	FRESH(the_ops_may_go_once_registered),
	FRESH(one_user_space_file_may_be_registered_twice),
	FRESH(strict_mode_refuses_a_denied_file_5034_and_keeps_nothing),
	FRESH(strict_mode_refuses_what_no_path_can_carry_5008),
	FRESH(the_same_fd_twice_is_refused_5028_and_a_dup_is_not),
	FRESH(a_file_opened_for_append_is_refused_5019),
	FRESH(a_path_descriptor_is_refused_5019),
	FRESH(harmless_open_flags_register_and_read),
	FRESH(a_nameless_temporary_file_registers),
	FRESH(what_is_no_file_is_refused_5018),
	FRESH(files_in_memory_register_and_read),
	FRESH(a_procfs_file_is_read_to_its_end),
	FRESH(a_procfs_file_is_read_into_gpu_memory),
	FRESH(an_unlinked_file_registers_reads_and_writes),
	FRESH(the_access_mode_is_enforced_when_bytes_move),
	FRESH(the_description_may_go_once_registered),
	FRESH(a_value_that_is_no_handle_is_refused_einval),
	FRESH(deregistering_what_is_no_handle_is_harmless),
	FRESH(io_after_the_fd_was_closed_answers_ebadf),
	FRESH(a_reused_fd_number_registers_and_ends_its_old_handle),
	FRESH(thousands_of_handles_live_at_once),
	FRESH(deregister_closes_what_we_opened_and_nothing_else),
	FRESH(record_locks_outlive_everything_before_a_deregister),
	FRESH(record_locks_outlive_a_handle_with_aligned_io_only),
	FRESH(deregister_waits_for_the_read_that_runs),
	FRESH(a_close_waits_for_the_read_that_runs),
	FRESH(a_close_waits_for_a_read_being_deregistered),
	FRESH(a_deregister_that_waits_holds_up_no_other_file),
	FRESH(a_child_forked_during_a_deregister_does_not_hang),
};

FRESH_MAIN(tests, 30)
