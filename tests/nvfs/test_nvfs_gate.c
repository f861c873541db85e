// SPDX-License-Identifier: Apache-2.0
/* What may travel by nvidia-fs, on machines of many kinds, and why not. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common.h"
#include "seam/os.h"

#define SIZE TH_MIB
#define HALF (SIZE / 2)

/* On this machine, a read of whole blocks; text NULL: it travels. */
static void expect(const char *text)
{
	struct rig r;
	const char *why;

	rig_begin(&r, SIZE);
	why = rig_why(&r, HALF, 0, 0);
	if (!text != !why || (text && strcmp(text, why)))
		fail_msg("\"%s\" for \"%s\"", why ? why : "yes",
			 text ? text : "yes");
	rig_read(&r, HALF, 0, 0, HALF);
	assert_int_equal(fake_nvfs_count(FAKE_BYTES), text ? 0 : HALF);
	rig_end(&r);
	fake_nvfs_end();
}

static void begin(void)
{
	(void)th_need_fake();
	fake_nvfs_begin();
}

static void a_driver_that_is_not_there_says_so(void **state)
{
	begin();
	fake_nvfs.open_err = ENOENT;
	expect("there is no nvidia-fs driver");
	begin();
	fake_nvfs.open_err = EACCES;
	expect("/dev/nvidia-fs0 may not be opened");
}

static void versions_below_2_12_are_too_old(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} versions[] = {
		{ "version: 2.11\n", false },
		{ "version: 1.99\n", false },
		{ NULL, false },
		{ "", false },
		{ "nonsense\n", false },
		{ "version: 2.12\n", true },
		{ "version: 2.28\n", true },
		{ "version: 3.0\n", true },
	};

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		begin();
		fake_nvfs.version = versions[i].text;
		expect(versions[i].good ? NULL :
					  "the nvidia-fs driver is older "
					  "than 2.12");
	}
}

#define UNHOOKED "the storage's module is not in nvidia-fs's list"
#define STORAGE "nvidia-fs is not known to serve this storage"
#define MOUNT "the mount's options may send data elsewhere"
#define INODE "the file's attributes may send data elsewhere"

/* The rule that saves files: what is not in the list gets no IO. */
static void storage_that_is_not_listed_is_never_used(void **state)
{
	static const char *const lists[] = {
		"",
		"wekafsio: 1.0\n",
		"nvme_rdma: 2.28\n",
		"nvmex: 1\n",
		"nvm: 1\n",
		"nvme\n",
		"lnet: 2\nwekafsio: 1.0\n",
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		begin();
		fake_nvfs.modules = lists[i];
		expect(UNHOOKED);
	}
	begin();
	fake_nvfs.modules = "lnet: 2.14\nnvme: 2.28\n";
	expect(NULL);
}

static void every_kind_of_storage_has_its_answer(void **state)
{
	static const struct {
		const char *fs, *opts, *transport, *level, *modules;
		const char *why;
	} cases[] = {
		{ "xfs", "rw,noquota", "pcie\n", NULL, "nvme: 1\n", NULL },
		{ "xfs", "rw,rtdev=/dev/x", "pcie\n", NULL, "nvme: 1\n",
		  MOUNT },
		{ "xfs", "rw", "rdma\n", NULL, "nvme: 1\n", UNHOOKED },
		{ "xfs", "rw", "rdma\n", NULL, "nvme_rdma: 1\n", NULL },
		{ "xfs", "rw", "tcp\n", NULL, "nvme: 1\n", STORAGE },
		{ "xfs", "rw", NULL, NULL, "nvme: 1\n", STORAGE },
		{ "xfs", "rw", "pcie\n", "raid0\n", "nvme: 1\n", NULL },
		{ "xfs", "rw", "pcie\n", "raid10\n", "nvme: 1\n", NULL },
		{ "xfs", "rw", "pcie\n", "raid5\n", "nvme: 1\n", STORAGE },
		{ "xfs", "rw", "pcie\n", "raid0\n", "lnet: 1\n", UNHOOKED },
		{ "xfs", "rw", NULL, "raid0\n", "nvme: 1\n", STORAGE },
		{ "ext4", "rw", "pcie\n", NULL, "nvme: 1\n", MOUNT },
		{ "ext4", "rw,data=journal", "pcie\n", NULL, "nvme: 1\n",
		  MOUNT },
		{ "ext4", "rw,nodata=ordered", "pcie\n", NULL, "nvme: 1\n",
		  MOUNT },
		{ "ext4", "data=ordered,x", "pcie\n", NULL, "nvme: 1\n", NULL },
		{ "btrfs", "rw", "pcie\n", NULL, "nvme: 1\n", STORAGE },
		{ "overlay", "rw", "pcie\n", NULL, "nvme: 1\n", STORAGE },
		{ "nfs4", "rw,proto=tcp", NULL, NULL, "rpcrdma: 1\n", MOUNT },
		{ "nfs4", "rw,proto=rdma,x", NULL, NULL, "rpcrdma: 1\n", NULL },
		{ "nfs", "rw,proto=rdma", NULL, NULL, "nvme: 1\n", UNHOOKED },
		{ "lustre", "rw", NULL, NULL, "lnet: 1\n", NULL },
		{ "lustre", "rw", NULL, NULL, "nvme: 1\n", UNHOOKED },
		{ "wekafs", "rw", NULL, NULL, "wekafsio: 1\n", STORAGE },
		{ "gpfs", "rw", NULL, NULL, "mmfslinux: 1\n", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		fake_nvfs.fs = cases[i].fs;
		fake_nvfs.opts = cases[i].opts;
		fake_nvfs.transport = cases[i].transport;
		fake_nvfs.level = cases[i].level;
		fake_nvfs.modules = cases[i].modules;
		expect(cases[i].why);
	}
}

/* In whatever order they are looked at. */
static void every_disk_of_a_raid_must_be_hooked(void **state)
{
	static const struct {
		const char *first, *second, *modules, *why;
	} cases[] = {
		{ "pcie\n", "rdma\n", "nvme: 1\n", UNHOOKED },
		{ "rdma\n", "pcie\n", "nvme: 1\n", UNHOOKED },
		{ "tcp\n", "pcie\n", "nvme: 1\n", STORAGE },
		{ "pcie\n", "tcp\n", "nvme: 1\n", STORAGE },
		{ "pcie\n", "rdma\n", "nvme: 1\nnvme_rdma: 1\n", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		fake_nvfs.level = "raid0\n";
		fake_nvfs.transport = cases[i].first;
		fake_nvfs.transport_1 = cases[i].second;
		fake_nvfs.modules = cases[i].modules;
		expect(cases[i].why);
	}
}

static void disks_that_check_their_data_are_left_alone(void **state)
{
	begin();
	fake_nvfs.integrity = true;
	expect(STORAGE);
}

static void inodes_whose_data_lies_elsewhere_are_left_alone(void **state)
{
	static const int flags[] = { 0, 0x00084000, 0x10080000 };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		begin();
		fake_nvfs.flags = flags[i];
		expect(INODE);
	}
}

/* Compressed, immutable, append-only, encrypted, with verity, DAX. */
static void attributes_of_any_file_system_are_looked_at(void **state)
{
	static const uint64_t attributes[] = { 0x4,   0x10,	0x20,
					       0x800, 0x100000, 0x200000 };

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]);
	     i++) {
		begin();
		fake_nvfs.fs = i & 1 ? "xfs" : "lustre";
		fake_nvfs.modules = "nvme: 1\nlnet: 1\n";
		fake_nvfs.attributes = attributes[i];
		expect(INODE);
	}
	begin();
	fake_nvfs.fs = "xfs";
	fake_nvfs.attributes = 0x40; /* left out of backups */
	expect(NULL);
}

/* ------------------------------------------------------- what is asked for */

static void pieces_that_do_not_fit_say_why(void **state)
{
	struct rig r;

	begin();
	rig_begin(&r, SIZE);
	assert_string_equal(rig_why(&r, HALF, 0, 100),
			    "memory and file offset lie differently in a "
			    "block of 4 KiB");
	assert_string_equal(rig_why(&r, 4095, 0, 0),
			    "the request is too small for nvidia-fs");
	assert_string_equal(rig_why(&r, 8190, 1, 1),
			    "the request is too small for nvidia-fs");
	assert_null(rig_why(&r, 8192, 1, 1));
	assert_null(rig_why(&r, 4096, 4096, 8192));
	rig_end(&r);
	fake_nvfs_end();
}

static void a_buffered_file_is_left_to_the_page_cache(void **state)
{
	struct rig r;
	CUfileHandle_t direct;

	begin();
	rig_begin(&r, SIZE);
	direct = r.fh;
	r.fh = th_handle(r.file.plain);
	assert_string_equal(rig_why(&r, HALF, 0, 0),
			    "the bytes go through the page cache");
	cuFileHandleDeregister(r.fh);
	r.fh = direct;
	rig_end(&r);
	fake_nvfs_end();
}

static void other_memory_is_left_alone(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_MANAGED, TH_VMM, TH_MALLOC,
						  TH_PINNED };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct th_mem device;
		struct rig r;

		begin();
		rig_begin(&r, SIZE);
		device = r.mem;
		th_mem_alloc(&r.mem, kinds[i], SIZE);
		assert_int_equal(cuFileBufRegister(r.mem.ptr, SIZE, 0).err, 0);
		th_mem_put(&r.mem, 0, r.gpu, SIZE);
		/* one mapping of a VMM range is plain, its neighbour another */
		if (kinds[i] != TH_VMM)
			assert_non_null(rig_why(&r, SIZE, 0, 0));
		rig_read(&r, SIZE, 0, 0, SIZE);
		assert_int_equal(cuFileBufDeregister(r.mem.ptr).err, 0);
		th_mem_free(&r.mem);
		r.mem = device;
		rig_end(&r);
		fake_nvfs_end();
	}
}

/* --------------------------------------------------------- configuration */

static void set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

static void nobody_has_it_who_did_not_switch_it_on(void **state)
{
	begin();
	unsetenv("OCF_NVFS");
	expect("opencufile.nvfs is false");
	begin();
	set("OCF_NVFS", "false");
	expect("opencufile.nvfs is false");
}

static void a_user_may_switch_it_off(void **state)
{
	begin();
	set("CUFILE_FORCE_COMPAT_MODE", "true");
	expect("properties.force_compat_mode is true");
	unsetenv("CUFILE_FORCE_COMPAT_MODE");
	begin();
	set("OCF_PATH", "staged");
	expect("opencufile.path names another path");
	unsetenv("OCF_PATH");
}

/* A configuration file of the test's own, and what a request then says. */
static void expect_with(const char *json, const char *fs, const char *modules,
			bool write, const char *text)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };
	const char *why = NULL;
	char path[300], old[400];
	struct rig r;
	FILE *out;

	snprintf(old, sizeof(old), "%s", getenv("CUFILE_ENV_PATH_JSON"));
	snprintf(path, sizeof(path), "%s/nvfs.json", th_shm_dir());
	out = fopen(path, "we");
	fputs(json, out);
	fclose(out);
	set("CUFILE_ENV_PATH_JSON", path);
	begin();
	fake_nvfs.fs = fs;
	fake_nvfs.modules = modules;
	rig_begin(&r, SIZE);
	if (write)
		ocf_explain_write(r.fh, r.mem.ptr, HALF, 0, 0, &e);
	else
		ocf_explain_read(r.fh, r.mem.ptr, HALF, 0, 0, &e);
	for (unsigned i = 0; i < e.nr_refusals; i++)
		if (!strcmp(e.refusals[i].path, "nvfs"))
			why = e.refusals[i].reason;
	if (!text != !why || (text && strcmp(text, why)))
		fail_msg("%s: \"%s\"", json, why ? why : "yes");
	rig_end(&r);
	fake_nvfs_end();
	set("CUFILE_ENV_PATH_JSON", old);
	unlink(path);
}

static void keys_of_distributed_file_systems_are_obeyed(void **state)
{
	static const char no_writes[] =
		"{\"properties\": {\"gds_rdma_write_support\": false}}";
	static const char gpfs[] =
		"{\"fs\": {\"gpfs\": {\"gds_write_support\": true}}}";
	static const char small[] =
		"{\"fs\": {\"lustre\": {\"posix_gds_min_kb\": 512}}}";
	static const char less[] =
		"{\"fs\": {\"lustre\": {\"posix_gds_min_kb\": 508}}}";
	static const char routed[] =
		"{\"properties\": {\"rdma_dynamic_routing\": true, "
		"\"rdma_dynamic_routing_order\": [\"SYS_MEM\"]}}";
	static const char kept[] = "configuration keeps these writes off "
				   "nvidia-fs";

	expect_with(no_writes, "lustre", "lnet: 1\n", true, kept);
	expect_with(no_writes, "lustre", "lnet: 1\n", false, NULL);
	expect_with(no_writes, "xfs", "nvme: 1\n", true, NULL);
	expect_with("{}", "gpfs", "mmfslinux: 1\n", true, kept);
	expect_with(gpfs, "gpfs", "mmfslinux: 1\n", true, NULL);
	expect_with(small, "lustre", "lnet: 1\n", false,
		    "configuration keeps requests of this size off nvidia-fs");
	expect_with(less, "lustre", "lnet: 1\n", false, NULL);
	expect_with(small, "xfs", "nvme: 1\n", false, NULL);
	expect_with(routed, "lustre", "lnet: 1\n", false,
		    "properties.rdma_dynamic_routing_order has SYS_MEM alone");
	expect_with(routed, "xfs", "nvme: 1\n", false, NULL);
}

static void properties_tell_what_is_hooked(void **state)
{
	CUfileP2PFlags_t flags;
	CUfileDrvProps_t props;

	begin();
	fake_nvfs.modules = "nvme: 2.28\nlnet: 2.14\nwekafsio: 1.0\n";
	th_open();
	assert_int_equal(cuFileDriverGetProperties(&props).err, 0);
	assert_int_equal(props.nvfs.major_version, 2);
	assert_int_equal(props.nvfs.minor_version, 28);
	assert_int_equal(props.nvfs.dstatusflags,
			 1 << CU_FILE_NVME_SUPPORTED |
				 1 << CU_FILE_LUSTRE_SUPPORTED);
	assert_int_equal(
		cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &flags).err, 0);
	assert_int_equal(flags, CU_FILE_P2P_FLAG_NVFS);
	assert_int_equal(
		cuFileDriverGetP2PFlags(CU_FILE_NFS_SUPPORTED, &flags).err, 0);
	assert_int_equal(flags, 0);
	th_close();
	fake_nvfs_end();
}

static void sessions_leave_no_descriptor(void **state)
{
	int fds;

	begin();
	th_open();
	th_close();
	fds = th_count_fds();
	for (int i = 0; i < 3; i++) {
		th_open();
		assert_true(th_count_fds() >= fds + 2);
		th_close();
		assert_int_equal(th_count_fds(), fds);
	}
	fake_nvfs.version = "version: 2.2\n";
	th_open();
	assert_int_equal(th_count_fds(), fds);
	th_close();
	fake_nvfs_end();
}

static unsigned low_fds(void)
{
	unsigned nr = 0;

	for (int fd = 0; fd < 48; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* A program that closes a file too early has IO on the number all the same. */
static void nodes_have_no_number_that_a_file_gets(void **state)
{
	unsigned before;

	begin();
	before = low_fds();
	th_open();
	assert_int_equal(low_fds(), before);
	th_close();
	fake_nvfs_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_driver_that_is_not_there_says_so),
		RIG_TEST(versions_below_2_12_are_too_old),
		RIG_TEST(storage_that_is_not_listed_is_never_used),
		RIG_TEST(every_kind_of_storage_has_its_answer),
		RIG_TEST(every_disk_of_a_raid_must_be_hooked),
		RIG_TEST(disks_that_check_their_data_are_left_alone),
		RIG_TEST(inodes_whose_data_lies_elsewhere_are_left_alone),
		RIG_TEST(attributes_of_any_file_system_are_looked_at),
		RIG_TEST(pieces_that_do_not_fit_say_why),
		RIG_TEST(a_buffered_file_is_left_to_the_page_cache),
		RIG_TEST(other_memory_is_left_alone),
		RIG_TEST(nobody_has_it_who_did_not_switch_it_on),
		RIG_TEST(a_user_may_switch_it_off),
		RIG_TEST(keys_of_distributed_file_systems_are_obeyed),
		RIG_TEST(properties_tell_what_is_hooked),
		RIG_TEST(sessions_leave_no_descriptor),
		RIG_TEST(nodes_have_no_number_that_a_file_gets),
	};

	th_start(250);
	return th_finish(
		cmocka_run_group_tests_name("nvfs_gate", tests, NULL, NULL));
}
