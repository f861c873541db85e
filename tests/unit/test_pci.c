// SPDX-License-Identifier: Apache-2.0
/*
 * test_pci - what is found in the PCI trees of recorded machines
 * (tests/unit/pci), how it is ranked, and the file that tells of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>
#include "core/p2p.h"
#include "core/pci.h"
#include "core/topology_file.h"
#include "harness.h"
#include "seam/os.h"

static const char *records; /* the folder of recorded machines */

/* ------------------------------------------------- a tree of a record */

static char root[64];

static void make_folders(const char *path)
{
	char part[512];

	for (const char *slash = path + strlen(root) + 1;
	     (slash = strchr(slash, '/')); slash++) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (mkdir(part, 0755) && errno != EEXIST)
			fail_msg("mkdir %s: %s", part, strerror(errno));
	}
}

static void put(const char *folder, const char *name, const char *text)
{
	char path[512];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	make_folders(path);
	out = fopen(path, "we");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void add_device(const char *line)
{
	char path[256], class[16], vendor[16], node[8], name[64], text[512];
	char folder[400], link[400], there[80];
	unsigned long mib;

	assert_int_equal(sscanf(line, "%255s %15s %15s %7s %lu %63s", path,
				class, vendor, node, &mib, name),
			 6);
	snprintf(folder, sizeof(folder), "%s/devices/%s", root, path);
	put(folder, "class", class);
	put(folder, "vendor", vendor);
	put(folder, "numa_node", node);
	snprintf(text, sizeof(text),
		 "0x0000000090000000 0x0000000090000fff 0x0000000000040200\n"
		 "0x0000201000000000 %#018lx 0x000000000014220c\n"
		 "0x0000000000000000 0x0000000000000000 0x0000000000000000\n",
		 mib ? 0x201000000000 + (mib << 20) - 1 : 0x201000000000);
	put(folder, "resource", text);
	snprintf(there, sizeof(there), "%s/there", name);
	if (name[0] != '-')
		put(folder, there, "");
	snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", root,
		 strrchr(path, '/') + 1);
	make_folders(link);
	snprintf(text, sizeof(text), "../../../devices/%s", path);
	assert_int_equal(symlink(text, link), 0);
}

static int open_in_tree(const char *path, int flags, mode_t mode)
{
	char there[512];

	if (strncmp(path, "/sys/", 5))
		return cf_os_real.open(path, flags, mode);
	snprintf(there, sizeof(there), "%s/%s", root, path + 5);
	return cf_os_real.open(there, flags, mode);
}

static ssize_t link_in_tree(const char *path, char *buf, size_t size)
{
	char there[512];

	snprintf(there, sizeof(there), "%s/%s", root, path + 5);
	return cf_os_real.read_link(there, buf, size);
}

static struct cf_os tree_os;

static void machine(const char *name)
{
	char path[512], line[512];
	FILE *in;

	snprintf(root, sizeof(root), "%s/pci-XXXXXX", th_shm_dir());
	assert_non_null(mkdtemp(root));
	tree_os = cf_os_real;
	tree_os.open = open_in_tree;
	tree_os.read_link = link_in_tree;
	cf_os = &tree_os;
	if (!name)
		return;
	snprintf(path, sizeof(path), "%s/%s.txt", records, name);
	in = fopen(path, "re");
	assert_non_null(in);
	while (fgets(line, sizeof(line), in))
		if (line[0] != '#')
			add_device(line);
	fclose(in);
}

static int leave_machine(void **state)
{
	char command[128];

	cf_os = &cf_os_real;
	th_close();
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* ---------------------------------------------------------------- lists */

static const struct cf_pci *find(const struct cf_pci *list, unsigned nr,
				 const char *name)
{
	for (unsigned i = 0; i < nr; i++)
		if (!strcmp(list[i].name, name) ||
		    strstr(list[i].address, name))
			return &list[i];
	fail_msg("no %s", name);
	return NULL;
}

static void the_list_has_gpus_disks_and_networks(void **state)
{
	const struct cf_pci *gpu;
	struct cf_pci *list;
	unsigned nr;

	machine("workstation");
	assert_int_equal(cf_pci_list(&list, &nr), 0);
	/* neither its sound nor the display of another maker */
	assert_int_equal(nr, 4);
	gpu = find(list, nr, "01:00.0");
	assert_int_equal(gpu->kind, CF_PCI_GPU);
	assert_int_equal(gpu->bar_kib, 16 << 20);
	assert_int_equal(gpu->node, -1);
	assert_int_equal(find(list, nr, "nvme0")->kind, CF_PCI_NVME);
	assert_int_equal(find(list, nr, "eno1")->kind, CF_PCI_NETWORK);
	assert_int_equal(find(list, nr, "17.0")->kind, CF_PCI_STORAGE);
	assert_string_equal(find(list, nr, "17.0")->name, "");
	free(list);
}

static void a_machine_without_pci_has_nothing(void **state)
{
	struct cf_pci *list = (struct cf_pci *)1;
	unsigned nr = 7;

	machine(NULL);
	assert_int_equal(cf_pci_list(&list, &nr), 0);
	assert_null(list);
	assert_int_equal(nr, 0);
}

static void check_rank(const struct cf_pci *gpu, const struct cf_pci *peer,
		       unsigned order, const char *distance)
{
	assert_int_equal(cf_pci_order(gpu, peer), order);
	assert_int_equal(cf_pci_order(peer, gpu), order);
	assert_string_equal(cf_pci_distance(gpu, peer), distance);
}

static void what_is_nearer_has_the_smaller_number(void **state)
{
	const struct cf_pci *gpu;
	struct cf_pci *list;
	unsigned nr;

	machine("two-sockets");
	assert_int_equal(cf_pci_list(&list, &nr), 0);
	assert_int_equal(nr, 9);
	gpu = find(list, nr, "1b:00.0");
	check_rank(gpu, find(list, nr, "nvme0"), 4, "PIX");
	check_rank(gpu, find(list, nr, "mlx5_0"), 4, "PIX");
	check_rank(gpu, find(list, nr, "nvme1"), 0x1006, "PHB");
	check_rank(gpu, find(list, nr, "nvme2"), 0x200a, "NODE");
	check_rank(gpu, find(list, nr, "nvme3"), 0x400a, "SYS");
	gpu = find(list, nr, "9a:00.0");
	check_rank(gpu, find(list, nr, "nvme3"), 4, "PIX");
	check_rank(gpu, find(list, nr, "nvme4"), 0x200a, "NODE");
	check_rank(gpu, gpu, 1, "PIX");
	free(list);
}

static void a_node_that_nobody_knows_is_no_common_one(void **state)
{
	const struct cf_pci a = { .path = "pci0000:00/0000:00:01.0",
				  .node = -1 };
	const struct cf_pci b = { .path = "pci0000:80/0000:80:01.0",
				  .node = -1 };

	machine(NULL);
	check_rank(&a, &b, 0x4004, "SYS");
}

static void names_that_begin_alike_are_not_the_same(void **state)
{
	const struct cf_pci a = { .path = "pci0000:00/0000:00:01.0/x" };
	const struct cf_pci b = { .path = "pci0000:00/0000:00:01.1/x" };

	machine(NULL);
	check_rank(&a, &b, 0x1004, "PHB");
}

/* ----------------------------------------------------------------- file */

static char file[128];

static yyjson_doc *export_file(void)
{
	static char text[65536];
	yyjson_doc *doc;
	FILE *in;
	size_t n;

	snprintf(file, sizeof(file), "%s/topology.json", root);
	assert_int_equal(cuFileExportPCIeTopology(file).err, 0);
	in = fopen(file, "re");
	assert_non_null(in);
	n = fread(text, 1, sizeof(text) - 1, in);
	text[n] = '\0';
	fclose(in);
	assert_memory_equal(text, "// ", 3);
	assert_non_null(strstr(text, "cuFile"));
	doc = yyjson_read(strchr(text, '\n') + 1, n - strcspn(text, "\n") - 1,
			  0);
	assert_non_null(doc);
	return doc;
}

static const char *text_at(yyjson_val *item, const char *key)
{
	return yyjson_get_str(yyjson_obj_get(item, key));
}

static void the_file_tells_each_gpu_its_peers_nearest_first(void **state)
{
	static const char *const names[] = { "mlx5_0", "nvme0", "nvme1",
					     "nvme2",  "nvme3", "nvme4" };
	yyjson_val *gpus, *peers;
	yyjson_doc *doc;

	machine("two-sockets");
	doc = export_file();
	gpus = yyjson_obj_get(yyjson_doc_get_root(doc), "gpus");
	assert_int_equal(yyjson_arr_size(gpus), 3);
	assert_string_equal(text_at(yyjson_arr_get(gpus, 0), "pci"),
			    "0000:1b:00.0");
	assert_int_equal(yyjson_get_int(yyjson_obj_get(yyjson_arr_get(gpus, 0),
						       "bar_kib")),
			 128 << 20);
	peers = yyjson_obj_get(yyjson_arr_get(gpus, 0), "peers");
	assert_int_equal(yyjson_arr_size(peers), 6);
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(text_at(yyjson_arr_get(peers, i), "name"),
				    names[i]);
	assert_string_equal(text_at(yyjson_arr_get(peers, 0), "order"), "0x4");
	assert_string_equal(text_at(yyjson_arr_get(peers, 2), "distance"),
			    "PHB");
	assert_string_equal(text_at(yyjson_arr_get(peers, 1), "kind"), "nvme");
	yyjson_doc_free(doc);
}

static void the_file_of_a_machine_without_gpus_is_null(void **state)
{
	yyjson_doc *doc;

	machine(NULL);
	doc = export_file();
	assert_true(yyjson_is_null(yyjson_doc_get_root(doc)));
	yyjson_doc_free(doc);
}

static void a_longer_file_is_replaced_whole(void **state)
{
	yyjson_doc *doc;
	struct stat st;

	machine("workstation");
	yyjson_doc_free(export_file());
	assert_int_equal(truncate(file, 100000), 0);
	doc = export_file();
	assert_int_equal(stat(file, &st), 0);
	assert_true(st.st_size < 4000);
	yyjson_doc_free(doc);
}

static void names_that_cannot_be_written_are_refused(void **state)
{
	machine("workstation");
	assert_int_equal(cuFileExportPCIeTopology(NULL).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileExportPCIeTopology("").err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileExportPCIeTopology("/no/such/folder/t").err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileExportPCIeTopology(root).err,
			 CU_FILE_INVALID_VALUE);
	/* a pipe nobody reads */
	snprintf(file, sizeof(file), "%s/pipe", root);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_int_equal(cuFileExportPCIeTopology(file).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(unlink(file), 0);
}

/* --------------------------------------------------------------- faults */

static int broken; /* the errno of the call that is made to fail */
static int countdown;

static bool breaks(void)
{
	return countdown && !--countdown;
}

static int broken_open(const char *path, int flags, mode_t mode)
{
	return breaks() ? -broken : open_in_tree(path, flags, mode);
}

static ssize_t broken_read(int fd, void *buf, size_t size)
{
	return breaks() ? -broken : cf_os_real.read(fd, buf, size);
}

static ssize_t broken_link(const char *path, char *buf, size_t size)
{
	return breaks() ? -broken : link_in_tree(path, buf, size);
}

static ssize_t broken_dents(int fd, void *buf, size_t size)
{
	return breaks() ? -broken : cf_os_real.get_dents(fd, buf, size);
}

/* In small portions, as a pipe might; one is interrupted. */
static ssize_t broken_write(int fd, const void *buf, size_t size)
{
	static int nr;

	if (breaks())
		return -broken;
	if (nr++ % 7 == 3)
		return -EINTR;
	return cf_os_real.write(fd, buf, size < 100 ? size : 100);
}

static int broken_close(int fd)
{
	int err = cf_os_real.close(fd);

	return breaks() ? -broken : err;
}

/* Whatever fails: an honest answer, nothing left open, and it works again. */
static void any_call_of_the_export_may_fail(void **state)
{
	int fds, failures = 0;

	machine("workstation");
	tree_os.open = broken_open;
	tree_os.read = broken_read;
	tree_os.read_link = broken_link;
	tree_os.get_dents = broken_dents;
	tree_os.write = broken_write;
	tree_os.close = broken_close;
	broken = EIO;
	yyjson_doc_free(export_file());
	fds = th_count_fds();
	for (int nth = 1;; nth++) {
		int err;

		countdown = nth;
		err = cf_topology_write(file);
		if (countdown)
			break;
		if (err != 0 && err != -EIO && err != -CU_FILE_INVALID_VALUE)
			fail_msg("call %d fails: %d", nth, err);
		failures += err != 0;
		assert_int_equal(th_count_fds(), fds);
	}
	countdown = 0;
	assert_true(failures > 5);
	yyjson_doc_free(export_file());
}

#define TEST(test) cmocka_unit_test_teardown(test, leave_machine)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_list_has_gpus_disks_and_networks),
		TEST(a_machine_without_pci_has_nothing),
		TEST(what_is_nearer_has_the_smaller_number),
		TEST(a_node_that_nobody_knows_is_no_common_one),
		TEST(names_that_begin_alike_are_not_the_same),
		TEST(the_file_tells_each_gpu_its_peers_nearest_first),
		TEST(the_file_of_a_machine_without_gpus_is_null),
		TEST(a_longer_file_is_replaced_whole),
		TEST(names_that_cannot_be_written_are_refused),
		TEST(any_call_of_the_export_may_fail),
	};

	records = argc > 1 ? argv[1] : ".";
	th_start(100);
	return th_finish(cmocka_run_group_tests_name("pci", tests, NULL, NULL));
}
