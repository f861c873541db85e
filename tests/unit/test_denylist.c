// SPDX-License-Identifier: Apache-2.0
/*
 * denylist - files that a list names, on a machine made of files: what the
 * library opens under /proc and /sys is looked for in a folder of the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "core/config.h"
#include "core/denylist.h"
#include "core/mount.h"
#include "seam/os.h"

static char root[64];
static unsigned opens;

static int rooted_open(const char *path, int flags, mode_t mode)
{
	char there[512];

	opens++;
	snprintf(there, sizeof(there), "%s%s", root, path);
	return cf_os_real.open(there, flags, mode);
}

static void make(const char *path, const char *text)
{
	char command[1024];
	FILE *f;

	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s%s')\"",
		 root, path);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s%s", root, path);
	f = fopen(command, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void run(const char *fmt, const char *a, const char *b)
{
	char command[1024];

	snprintf(command, sizeof(command), fmt, root, a, root, b);
	assert_int_equal(system(command), 0);
}

#define PCI "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
#define DISK PCI "/host0/target0:0:0/0:0:0:0/block/sda"

/* A SCSI disk of two partitions behind an adapter, and three mounts. */
static int setup(void **state)
{
	static struct cf_os rooted;

	const char *tmp = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%s/denylist.XXXXXX",
		 tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(root))
		return -1;
	make("/proc/thread-self/mountinfo",
	     "22 27 0:21 / /proc rw - proc proc rw\n"
	     "30 27 8:2 / /mnt/the\\040disk rw,relatime shared:1 - xfs "
	     "/dev/sda2 rw\n"
	     "31 27 0:45 /sub /butter rw - btrfs /dev/mapper/butter rw\n"
	     "32 27 0:46 / /nets rw - nfs4 server:/export rw\n"
	     "33 27 8:1 / /mnt/one rw - ext4 /dev/sda1 rw\n");
	make("/sys/devices/pci0000:00/0000:00:01.0/uevent",
	     "DRIVER=pcieport\nPCI_ID=8086:1\n");
	make(PCI "/uevent", "DRIVER=megaraid_sas\nPCI_ID=1000:5D\n");
	make(PCI "/host0/uevent", "DEVTYPE=scsi_host\n");
	make(PCI "/host0/target0:0:0/0:0:0:0/uevent",
	     "DEVTYPE=scsi_device\nDRIVER=sd\n");
	make(DISK "/uevent", "MAJOR=8\nDEVNAME=sda\nDEVTYPE=disk\n");
	make(DISK "/sda1/uevent", "DEVNAME=sda1\nDEVTYPE=partition\n");
	make(DISK "/sda2/uevent", "DEVNAME=sda2\nDEVTYPE=partition\n");
	run("mkdir -p %s%s %s%s", "/sys/dev/block", "/sys");
	run("ln -s ../../../0:0:0:0 %s%s/device #%s%s", DISK, "");
	run("ln -s %s%s %s%s", DISK, "/sys/dev/block/8:0");
	run("ln -s %s%s %s%s", DISK "/sda1", "/sys/dev/block/8:1");
	run("ln -s %s%s %s%s", DISK "/sda2", "/sys/dev/block/8:2");
	rooted = cf_os_real;
	rooted.open = rooted_open;
	cf_os = &rooted;
	opens = 0;
	(void)state;
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	cf_denylist_configure(NULL);
	cf_os = &cf_os_real;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* What a file on that mount or device is, with this in the denylist. */
static enum cf_denied find(const char *denylist, uint64_t number, dev_t dev,
			   dev_t disk)
{
	struct cf_config *config = cf_config_new();
	enum cf_denied denied;
	char text[512];

	assert_non_null(config);
	snprintf(text, sizeof(text), "{\"denylist\": {%s}}", denylist);
	make("/etc/cufile.json", text);
	assert_int_equal(cf_config_load(config, NULL), 0);
	assert_null(cf_config_note_text(config, 0));
	cf_denylist_configure(config);
	opens = 0;
	denied = cf_denylist_find(number, dev, disk);
	cf_denylist_configure(NULL);
	cf_config_free(config);
	return denied;
}

#define SDA makedev(8, 0)
#define SDA2 makedev(8, 2)

static void empty_lists_name_nothing_and_open_nothing(void **state)
{
	assert_int_equal(find("", 30, SDA2, 0), CF_DENIED_NOT);
	assert_int_equal(opens, 0);
	assert_int_equal(find("\"mounts\": [], \"devices\": []", 30, SDA2, 0),
			 CF_DENIED_NOT);
	assert_int_equal(opens, 0);
}

static void a_mount_point_is_named_as_it_is_or_with_a_slash(void **state)
{
	assert_int_equal(
		find("\"mounts\": [\"/x\", \"/mnt/the disk\"]", 30, SDA2, 0),
		CF_DENIED_MOUNT);
	assert_int_equal(find("\"mounts\": [\"/mnt/the disk/\"]", 30, SDA2, 0),
			 CF_DENIED_MOUNT);
	assert_int_equal(
		find("\"mounts\": [\"/mnt\", \"/\", \"\"]", 30, SDA2, 0),
		CF_DENIED_NOT);
	/* a kernel that does not tell the mount's number */
	assert_int_equal(
		find("\"mounts\": [\"/mnt/one\"]", 0, makedev(8, 1), 0),
		CF_DENIED_MOUNT);
}

static void a_file_system_is_named_by_its_type(void **state)
{
	assert_int_equal(
		find("\"filesystems\": [\"nfs4\"]", 32, makedev(0, 46), 0),
		CF_DENIED_FILESYSTEM);
	assert_int_equal(
		find("\"filesystems\": [\"nfs\"]", 32, makedev(0, 46), 0),
		CF_DENIED_NOT);
}

static void a_disk_is_named_with_or_without_its_folder(void **state)
{
	static const char *const lists[] = {
		"\"devices\": [\"/dev/sda2\"]",
		"\"devices\": [\"sda2\"]",
		"\"devices\": [\"/dev/sda\"]",
		"\"devices\": [\"nvme0n1\", \"sda\"]",
	};

	for (int i = 0; i < 4; i++)
		assert_int_equal(find(lists[i], 30, SDA2, 0), CF_DENIED_DEVICE);
	assert_int_equal(
		find("\"devices\": [\"sda1\", \"sd\", \"sdb\"]", 30, SDA2, 0),
		CF_DENIED_NOT);
	/* the device itself, in whichever mount its node stands */
	assert_int_equal(
		find("\"devices\": [\"sda\"]", 22, makedev(0, 21), SDA),
		CF_DENIED_DEVICE);
	/* by what is mounted, where the number is made up */
	assert_int_equal(find("\"devices\": [\"/dev/mapper/butter\"]", 31,
			      makedev(0, 45), 0),
			 CF_DENIED_DEVICE);
}

static void a_driver_is_any_from_the_disk_up_to_its_adapter(void **state)
{
	assert_int_equal(find("\"drivers\": [\"megaraid_sas\"]", 30, SDA2, 0),
			 CF_DENIED_DRIVER);
	assert_int_equal(find("\"drivers\": [\"sd\"]", 30, SDA2, 0),
			 CF_DENIED_DRIVER);
	assert_int_equal(find("\"drivers\": [\"sd\"]", 22, makedev(0, 21), SDA),
			 CF_DENIED_DRIVER);
	/* bridges are no disk's drivers */
	assert_int_equal(
		find("\"drivers\": [\"pcieport\", \"nvme\"]", 30, SDA2, 0),
		CF_DENIED_NOT);
}

static void the_old_name_of_the_list_counts(void **state)
{
	struct cf_config *config = cf_config_new();

	make("/etc/cufile.json", "{\"blacklist\": {\"mounts\": [\"/nets\"]}}");
	assert_int_equal(cf_config_load(config, NULL), 0);
	cf_denylist_configure(config);
	assert_int_equal(cf_denylist_find(32, makedev(0, 46), 0),
			 CF_DENIED_MOUNT);
	cf_denylist_configure(NULL);
	cf_config_free(config);
}

static void without_proc_and_sys_a_file_is_on_no_list(void **state)
{
	struct cf_mount mount;

	run("rm -r %s%s %s%s", "/proc", "/sys");
	assert_int_equal(find("\"mounts\": [\"/nets\"], \"drivers\": [\"sd\"]",
			      32, makedev(0, 46), 0),
			 CF_DENIED_NOT);
	assert_int_equal(cf_mount_find(32, 0, &mount), -ENOENT);
}

static void a_mount_that_is_not_there_is_told_so(void **state)
{
	struct cf_mount mount;

	assert_int_equal(cf_mount_find(99, 0, &mount), -ENOENT);
	assert_int_equal(cf_mount_find(0, makedev(9, 9), &mount), -ENOENT);
	assert_int_equal(cf_mount_find(30, 0, &mount), 0);
	assert_string_equal(mount.point, "/mnt/the disk");
	assert_string_equal(mount.type, "xfs");
	assert_string_equal(mount.source, "/dev/sda2");
	assert_int_equal(mount.dev, SDA2);
}

/* Long lines, many of them, and none that is complete. */
static void any_mountinfo_is_read(void **state)
{
	static char text[400000];
	struct cf_mount mount;
	size_t n = 0;

	for (int i = 0; i < 1000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%d 1 0:%d / /m%d rw%0200d - ext4 s rw\n",
				      1000 + i, i, i, 0);
	make("/proc/thread-self/mountinfo", text);
	assert_int_equal(cf_mount_find(1999, 0, &mount), 0);
	assert_string_equal(mount.point, "/m999");
	make("/proc/thread-self/mountinfo",
	     "1 - \n - x\n1 2 3:4 / \\\n\n1 2 3:4 / /x "
	     "rw -\n");
	assert_int_equal(cf_mount_find(1, 0, &mount), -ENOENT);
	make("/proc/thread-self/mountinfo", "");
	assert_int_equal(cf_mount_find(1, 0, &mount), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(empty_lists_name_nothing_and_open_nothing),
		TEST(a_mount_point_is_named_as_it_is_or_with_a_slash),
		TEST(a_file_system_is_named_by_its_type),
		TEST(a_disk_is_named_with_or_without_its_folder),
		TEST(a_driver_is_any_from_the_disk_up_to_its_adapter),
		TEST(the_old_name_of_the_list_counts),
		TEST(without_proc_and_sys_a_file_is_on_no_list),
		TEST(a_mount_that_is_not_there_is_told_so),
		TEST(any_mountinfo_is_read),
	};

	unsetenv("CUFILE_ENV_PATH_JSON");
	return cmocka_run_group_tests_name("denylist", tests, NULL, NULL);
}
