// SPDX-License-Identifier: Apache-2.0
/* fs_kind - which file system a file is on, whatever statfs says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/file_facts.h"
#include "core/handle.h"
#include "seam/os.h"

static struct cf_os odd;
static unsigned long says;	     /* statfs */
static unsigned major_is;	     /* of the file's device */
static uint64_t tells_attributes_of; /* statx */
static const char *mounts;	     /* NULL: there is no /proc */
static unsigned looks;		     /* at the list of mounts */

static int odd_fstatfs(int fd, struct statfs *fs)
{
	(void)fd;
	memset(fs, 0, sizeof(*fs));
	fs->f_type = (__fsword_t)says;
	return says ? 0 : -ENOSYS;
}

static int odd_statx(int fd, unsigned mask, struct statx *stx)
{
	(void)fd, (void)mask;
	*stx = (struct statx){
		.stx_mask = 0x1000, /* STATX_MNT_ID */
		.stx_mode = S_IFREG | 0600,
		.stx_dev_major = major_is,
		.stx_dev_minor = 50,
		.stx_attributes_mask = tells_attributes_of,
	};
	stx->stx_mnt_id = 40;
	return 0;
}

static int odd_open(const char *path, int flags, mode_t mode)
{
	int fd;

	if (!strstr(path, "mountinfo"))
		return cf_os_real.open(path, flags, mode);
	looks++;
	if (!mounts)
		return -ENOENT;
	fd = memfd_create("mounts", MFD_CLOEXEC);
	assert_int_equal(write(fd, mounts, strlen(mounts)), strlen(mounts));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int setup(void **state)
{
	(void)state;
	odd = cf_os_real;
	odd.fstatfs = odd_fstatfs;
	odd.statx = odd_statx;
	odd.open = odd_open;
	cf_os = &odd;
	major_is = 0;
	tells_attributes_of = 0;
	looks = 0;
	mounts = "30 1 0:20 / / rw - overlay overlay rw\n"
		 "40 30 0:50 / /share rw - 9p share rw,trans=virtio\n";
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cf_os = &cf_os_real;
	return 0;
}

static unsigned long kind(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct cf_file_answer answer;
	struct cf_handle handle = { 0 };

	descr.handle.fd = fd;
	cf_file_ask(&descr, &answer);
	assert_int_equal(cf_file_facts(&descr, &answer, &handle), 0);
	close(fd);
	return (unsigned long)handle.fs_magic;
}

static void what_9p_says_of_its_server_is_not_believed(void **state)
{
	static const unsigned long all[] = {
		EXT4_SUPER_MAGIC, 0x58465342 /* XFS */, BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, TMPFS_MAGIC,		OVERLAYFS_SUPER_MAGIC,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		says = all[i];
		assert_int_equal(kind(), V9FS_MAGIC);
	}
}

static void who_has_a_disk_or_attributes_is_believed_at_once(void **state)
{
	(void)state;
	says = EXT4_SUPER_MAGIC;
	major_is = 8;
	assert_int_equal(kind(), EXT4_SUPER_MAGIC);
	says = BTRFS_SUPER_MAGIC;
	major_is = 0;
	tells_attributes_of = STATX_ATTR_IMMUTABLE;
	assert_int_equal(kind(), BTRFS_SUPER_MAGIC);
	says = NFS_SUPER_MAGIC;
	tells_attributes_of = 0;
	assert_int_equal(kind(), NFS_SUPER_MAGIC);
	assert_int_equal(looks, 0);
}

static void the_list_of_mounts_tells_the_others(void **state)
{
	(void)state;
	says = TMPFS_MAGIC;
	mounts = "40 30 0:50 / /share rw - tmpfs 9p rw\n";
	assert_int_equal(kind(), TMPFS_MAGIC);
	assert_int_equal(looks, 1);
	mounts = NULL;
	assert_int_equal(kind(), TMPFS_MAGIC);
}

static void a_file_whose_name_is_gone_is_on_its_mount(void **state)
{
	(void)state;
	says = 0;
	assert_int_equal(kind(), V9FS_MAGIC);
	mounts = "40 30 0:50 / /share rw - cifs //server/share rw\n";
	assert_int_equal(kind(), 0xfe534d42 /* SMB2 */);
	mounts = "40 30 0:50 / /share rw - fuse.sshfs server rw\n";
	assert_int_equal(kind(), 0);
	mounts = NULL;
	assert_int_equal(kind(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_9p_says_of_its_server_is_not_believed),
		TEST(who_has_a_disk_or_attributes_is_believed_at_once),
		TEST(the_list_of_mounts_tells_the_others),
		TEST(a_file_whose_name_is_gone_is_on_its_mount),
	};

	return cmocka_run_group_tests_name("fs_kind", tests, NULL, NULL);
}
