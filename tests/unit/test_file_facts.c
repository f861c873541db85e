// SPDX-License-Identifier: Apache-2.0
/*
 * test_file_facts - what is made of the kernel's answers about a descriptor,
 * and of a user-space file system's. Both are the test's.
 */
#include "core/file_facts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "core/fs_kind.h"
#include "core/fs_magic.h"
#include "core/nic.h"
#include "core/nvfs_gate.h"
#include "harness.h"
#include "seam/os.h"

#define DIOALIGN 0x2000U /* STATX_DIOALIGN */
#define MNT_ID 0x1000U	 /* STATX_MNT_ID */
#define MEM_ALIGN 0x98	 /* where the kernel puts them in a struct statx */
#define OFFSET_ALIGN 0x9c

static struct cf_os os;
static struct statx says; /* statx */
static int statx_err, flags;
static struct stat plainly; /* fstat */
static long kind;
static enum cf_nvfs_gate gate;
static bool wants_nics;
static uint64_t mount_asked; /* the denylist about it */
static dev_t dev_asked, disk_asked;
static const char *type_asked;

static CUfileDescr_t descr;
static struct cf_file_answer answer;
static struct cf_handle handle;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
long __wrap_cf_fs_kind(int fd, const struct statx *stx);
enum cf_nvfs_gate __wrap_cf_nvfs_file_gate(int fd, const struct statx *stx,
					   int *target);
bool __wrap_cf_nics_wanted(void);
enum cf_denied __wrap_cf_denylist_find(uint64_t mount, dev_t dev, dev_t disk);
enum cf_denied __wrap_cf_denylist_find_type(const char *type);
#pragma GCC visibility pop

long __wrap_cf_fs_kind(int fd, const struct statx *stx)
{
	(void)fd, (void)stx;
	return kind;
}

enum cf_nvfs_gate __wrap_cf_nvfs_file_gate(int fd, const struct statx *stx,
					   int *target)
{
	(void)fd, (void)stx;
	*target = 5;
	return gate;
}

bool __wrap_cf_nics_wanted(void)
{
	return wants_nics;
}

enum cf_denied __wrap_cf_denylist_find(uint64_t mount, dev_t dev, dev_t disk)
{
	mount_asked = mount;
	dev_asked = dev;
	disk_asked = disk;
	return CF_DENIED_MOUNT;
}

enum cf_denied __wrap_cf_denylist_find_type(const char *type)
{
	type_asked = type;
	return CF_DENIED_FILESYSTEM;
}

static int statx_of_the_test(int fd, unsigned mask, struct statx *stx)
{
	assert_int_equal(fd, 7);
	*stx = says;
	stx->stx_mask &= mask;
	return statx_err;
}

static int fstat_of_the_test(int fd, struct stat *st)
{
	assert_int_equal(fd, 7);
	*st = plainly;
	return plainly.st_mode ? 0 : -EIO;
}

static int flags_of_the_test(int fd)
{
	assert_int_equal(fd, 7);
	return flags;
}

static void aligns(uint32_t mem, uint32_t offset)
{
	memcpy((char *)&says + MEM_ALIGN, &mem, sizeof(mem));
	memcpy((char *)&says + OFFSET_ALIGN, &offset, sizeof(offset));
}

static int setup(void **state)
{
	(void)state;
	says = (struct statx){
		.stx_mask = STATX_BASIC_STATS | DIOALIGN | MNT_ID,
		.stx_mode = S_IFREG | 0600,
		.stx_ino = 77,
		.stx_blksize = 4096,
		.stx_dev_major = 8,
		.stx_dev_minor = 3,
	};
	says.stx_mnt_id = 40;
	aligns(512, 512);
	plainly = (struct stat){ .st_mode = S_IFREG | 0600,
				 .st_ino = 78,
				 .st_dev = makedev(9, 4) };
	statx_err = 0;
	flags = O_RDWR;
	kind = EXT4_SUPER_MAGIC;
	gate = CF_NVFS_PASS;
	wants_nics = true;
	type_asked = NULL;
	descr = (CUfileDescr_t){ .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	descr.handle.fd = 7;
	return 0;
}

static int facts(void)
{
	handle = (struct cf_handle){ 0 };
	cf_file_ask(&descr, &answer);
	return cf_file_facts(&descr, &answer, &handle);
}

static bool taken(void)
{
	cf_file_ask(&descr, &answer);
	return cf_file_is_taken(&answer);
}

/* ----------------------------------------------------------- the kernel's */

static void direct_io_wants_the_larger_alignment(void **state)
{
	static const struct {
		uint32_t mem, offset;
		unsigned align;
	} rows[] = {
		{ 512, 512, 512 },   { 4, 512, 512 },	  { 512, 4096, 4096 },
		{ 4096, 512, 4096 }, { 1, 1, 1 },	  { 0, 0, 4096 },
		{ 512, 1536, 4096 }, { 512, 8192, 4096 }, { 65536, 4, 4096 },
		{ 0, 512, 512 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		aligns(rows[i].mem, rows[i].offset);
		assert_int_equal(facts(), 0);
		assert_int_equal(cf_handle_block(&handle), rows[i].align);
		assert_int_equal(handle.no_dio, !rows[i].mem);
		assert_int_equal(cf_file_lacks_dio(&handle), !rows[i].mem);
	}
}

static void where_nobody_tells_it_wants_a_page(void **state)
{
	static const struct {
		long kind;
		unsigned align;
	} rows[] = { { EXT4_SUPER_MAGIC, 4096 },
		     { NFS_SUPER_MAGIC, 1 },
		     { FUSE_SUPER_MAGIC, 4096 },
		     { 0, 4096 } };

	(void)state;
	says.stx_mask &= ~DIOALIGN;
	aligns(0, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		kind = rows[i].kind;
		assert_int_equal(facts(), 0);
		assert_int_equal(cf_handle_block(&handle), rows[i].align);
		assert_false(handle.no_dio);
	}
}

/* It may have lain in its inode, and has grown. */
static void what_lacked_direct_io_may_have_it_now(void **state)
{
	(void)state;
	aligns(0, 0);
	assert_int_equal(facts(), 0);
	assert_true(cf_file_lacks_dio(&handle));
	statx_err = -EIO;
	assert_false(cf_file_lacks_dio(&handle));
	statx_err = 0;
	aligns(512, 512);
	assert_false(cf_file_lacks_dio(&handle));
	/* what has it is not asked about */
	assert_int_equal(facts(), 0);
	aligns(0, 0);
	assert_false(cf_file_lacks_dio(&handle));
}

static void parts_end_at_the_largest_of_the_blocks(void **state)
{
	static const struct {
		long kind;
		uint32_t block;
		unsigned align; /* or a page, if it is larger */
	} rows[] = {
		{ EXT4_SUPER_MAGIC, 1024, 4096 },
		{ EXT4_SUPER_MAGIC, 16384, 16384 },
		{ EXT4_SUPER_MAGIC, 65536, 65536 },
		{ EXT4_SUPER_MAGIC, 131072, 4096 },
		{ EXT4_SUPER_MAGIC, 24576, 4096 },
		{ NFS_SUPER_MAGIC, 16384, 4096 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t want = rows[i].align;

		if (want < th_page())
			want = th_page();
		kind = rows[i].kind;
		says.stx_blksize = rows[i].block;
		assert_int_equal(facts(), 0);
		assert_int_equal(handle.page_align, want);
	}
}

static void a_file_is_known_by_its_disk_its_device_and_its_mount(void **state)
{
	(void)state;
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.fd, 7);
	assert_int_equal(handle.ino, 77);
	assert_int_equal(handle.dev, makedev(8, 3));
	assert_int_equal(handle.disk, makedev(8, 3));
	assert_int_equal(handle.fs_magic, EXT4_SUPER_MAGIC);
	assert_int_equal(handle.denied, CF_DENIED_MOUNT);
	assert_int_equal(handle.nvfs, CF_NVFS_PASS);
	assert_int_equal(handle.nvfs_target, 5);
	assert_int_equal(mount_asked, 40);
	assert_int_equal(dev_asked, makedev(8, 3));
	assert_int_equal(disk_asked, 0);
	assert_false(handle.bare);
	says.stx_mask &= ~MNT_ID; /* the number is anything */
	assert_int_equal(facts(), 0);
	assert_int_equal(mount_asked, 0);
	says.stx_mode = S_IFBLK | 0600;
	says.stx_rdev_major = 259;
	says.stx_rdev_minor = 2;
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.disk, makedev(259, 2));
	assert_int_equal(handle.dev, makedev(8, 3));
	assert_int_equal(disk_asked, makedev(259, 2));
	assert_true(handle.bare);
}

static void a_sandbox_without_statx_is_asked_by_fstat(void **state)
{
	(void)state;
	statx_err = -EPERM;
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.ino, 78);
	assert_int_equal(handle.dev, makedev(9, 4));
	assert_int_equal(mount_asked, 0);
	assert_int_equal(cf_handle_block(&handle), 4096);
	assert_int_equal(handle.page_align, th_page());
	assert_false(handle.no_dio);
	/* attributes that nobody knows may mean that data takes detours */
	assert_int_equal(handle.nvfs, CF_NVFS_INODE);
	gate = CF_NVFS_OFF;
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.nvfs, CF_NVFS_OFF);
	plainly.st_mode = S_IFBLK | 0600;
	plainly.st_rdev = makedev(259, 2);
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.disk, makedev(259, 2));
	plainly.st_mode = 0;
	assert_int_equal(facts(), -EIO);
	plainly.st_mode = S_IFREG;
	statx_err = -ESTALE; /* is the file's */
	assert_int_equal(facts(), -ESTALE);
}

static void what_is_refused_is_refused_for_its_reason(void **state)
{
	static const struct {
		int flags, err;
		uint16_t mode;
		int answer;
	} rows[] = {
		{ O_RDWR, 0, S_IFREG, 0 },
		{ O_RDWR, 0, S_IFBLK, 0 },
		{ O_RDONLY | O_SYNC, 0, S_IFREG, 0 },
		{ O_RDWR, 0, S_IFCHR, -CU_FILE_INVALID_FILE_TYPE },
		{ O_RDWR, 0, S_IFIFO, -CU_FILE_INVALID_FILE_TYPE },
		{ O_RDONLY, 0, S_IFDIR, -CU_FILE_INVALID_FILE_TYPE },
		{ O_RDWR, -ENOMEM, S_IFREG, -ENOMEM },
		{ O_WRONLY | O_APPEND, 0, S_IFREG,
		  -CU_FILE_INVALID_FILE_OPEN_FLAG },
		{ O_PATH, 0, S_IFREG, -CU_FILE_INVALID_FILE_OPEN_FLAG },
		{ -EBADF, 0, S_IFREG, -CU_FILE_INVALID_VALUE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		flags = rows[i].flags;
		statx_err = rows[i].err;
		says.stx_mode = rows[i].mode | 0600;
		assert_int_equal(facts(), rows[i].answer);
		assert_int_equal(taken(), !rows[i].answer);
	}
}

static void how_it_was_opened_is_kept(void **state)
{
	(void)state;
	flags = O_RDONLY | O_DIRECT | O_NOATIME;
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.open_flags, flags);
	assert_true(handle.direct);
	flags = O_WRONLY;
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.open_flags, O_WRONLY);
	assert_false(handle.direct);
}

/* ------------------------------------------------------------ the client's */

#define MANY (CF_MAX_HOSTS + 3)

static struct sockaddr_in list[MANY];
static int nr_listed;
static bool gives_list;

static int hosts_of(const void *fs, sockaddr_t **hosts)
{
	assert_ptr_equal(fs, &list);
	if (gives_list)
		*hosts = (sockaddr_t *)(void *)list;
	return nr_listed;
}

static const char *type_of(const void *fs)
{
	(void)fs;
	return "weka";
}

static CUfileFSOps_t ops;

static int setup_ops(void **state)
{
	setup(state);
	ops = (CUfileFSOps_t){ .getRDMADeviceList = hosts_of };
	descr = (CUfileDescr_t){ .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				 .fs_ops = &ops };
	descr.handle.handle = &list;
	for (uint32_t i = 0; i < MANY; i++)
		list[i] = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_addr.s_addr = htonl(0x0a000000 + i),
		};
	list[1].sin_family = AF_INET6;
	return 0;
}

static void its_server_names_the_nics(void **state)
{
	static const struct {
		int listed;
		bool list;
		int nr;
	} rows[] = { { 1, true, 1 },
		     { 2, true, 1 },
		     { 3, true, 2 },
		     { 0, true, 0 },
		     { 0, false, -1 },
		     { 2, false, -1 },
		     { -EIO, false, 0 },
		     { -EIO, true, 0 },
		     { MANY, true, CF_MAX_HOSTS } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		nr_listed = rows[i].listed;
		gives_list = rows[i].list;
		assert_int_equal(facts(), 0);
		assert_int_equal(handle.hosts.nr, rows[i].nr);
	}
	assert_int_equal(handle.hosts.ip[0], htonl(0x0a000000));
	for (uint32_t i = 1; i < CF_MAX_HOSTS; i++)
		assert_int_equal(handle.hosts.ip[i], htonl(0x0a000001 + i));
	wants_nics = false;
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.hosts.nr, -1);
	wants_nics = true;
	ops.getRDMADeviceList = NULL;
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.hosts.nr, -1);
}

static void it_reads_and_writes_by_its_callbacks(void **state)
{
	(void)state;
	gives_list = false;
	assert_int_equal(facts(), 0);
	assert_ptr_equal(handle.fs_ops, &ops);
	assert_ptr_equal(handle.fs_handle, &list);
	assert_int_equal(handle.open_flags, O_RDWR);
	assert_int_equal(handle.nvfs, CF_NVFS_STORAGE);
	assert_int_equal(cf_handle_block(&handle), 4096);
	assert_int_equal(handle.page_align, th_page());
	assert_int_equal(handle.denied, CF_DENIED_NOT);
	assert_null(type_asked);
	ops.fs_type = type_of;
	assert_int_equal(facts(), 0);
	assert_int_equal(handle.denied, CF_DENIED_FILESYSTEM);
	assert_string_equal(type_asked, "weka");
	descr.fs_ops = NULL;
	assert_int_equal(facts(), -CU_FILE_IO_NOT_SUPPORTED);
	assert_false(taken());
}

#define TEST(name) cmocka_unit_test_setup(name, setup)
#define OPS(name) cmocka_unit_test_setup(name, setup_ops)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(direct_io_wants_the_larger_alignment),
		TEST(where_nobody_tells_it_wants_a_page),
		TEST(what_lacked_direct_io_may_have_it_now),
		TEST(parts_end_at_the_largest_of_the_blocks),
		TEST(a_file_is_known_by_its_disk_its_device_and_its_mount),
		TEST(a_sandbox_without_statx_is_asked_by_fstat),
		TEST(what_is_refused_is_refused_for_its_reason),
		TEST(how_it_was_opened_is_kept),
		OPS(its_server_names_the_nics),
		OPS(it_reads_and_writes_by_its_callbacks),
	};

	th_start(60);
	os = cf_os_real;
	os.statx = statx_of_the_test;
	os.fstat = fstat_of_the_test;
	os.get_flags = flags_of_the_test;
	cf_os = &os;
	return th_finish(
		cmocka_run_group_tests_name("file_facts", tests, NULL, NULL));
}
