// SPDX-License-Identifier: Apache-2.0
/*
 * configuration - what a program can ask about it (opencufile.h), and that
 * each row changes what it says it changes.
 */
#include "fresh.h"

#include <fcntl.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/config_table.h"
#include "core/gpu.h"
#include "seam/os.h"

#define BAD CU_FILE_INVALID_VALUE

/* The row of this key. */
static ocf_config_t row(const char *key)
{
	ocf_config_t config = { .struct_size = sizeof(config) };

	for (unsigned i = 0; !ocf_config_get(i, &config).err; i++)
		if (!strcmp(config.key, key))
			return config;
	fail_msg("there is no key %s", key);
	return config;
}

static void assert_value(const char *key, const char *value, const char *origin)
{
	ocf_config_t config = row(key);

	assert_string_equal(config.value, value);
	assert_string_equal(config.origin, origin);
}

static void every_value_is_told_with_its_origin(void **state)
{
	const char *file = fresh_text_file(
		"cufile.json", "{\n\"execution\": {\n\"max_io_threads\": 3},\n"
			       "\"fs\": {\"nfs\": {\"rdma_dev_addr_list\":"
			       " [\"10.0.0.1\", \"10.0.0.2\"]}},\n"
			       "\"properties\": {\"posix_pool_slab_size_kb\":"
			       " [4, 64], \"posix_pool_slab_count\": [1, 2]}}");
	char origin[512];

	setenv("CUFILE_ENV_PATH_JSON", file, 1);
	setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 1);
	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
					  77));
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverSetMaxDirectIOSize(1024));

	snprintf(origin, sizeof(origin), "%s:3", file);
	assert_value("execution.max_io_threads", "3", origin);
	snprintf(origin, sizeof(origin), "%s:4", file);
	assert_value("fs.nfs.rdma_dev_addr_list",
		     "[\"10.0.0.1\", \"10.0.0.2\"]", origin);
	snprintf(origin, sizeof(origin), "%s:5", file);
	assert_value("properties.posix_pool_slab_size_kb", "[4, 64]", origin);
	assert_value("properties.allow_compat_mode", "true",
		     "environment CUFILE_ALLOW_COMPAT_MODE");
	assert_value("properties.io_batchsize", "77", "API");
	assert_value("properties.max_direct_io_size_kb", "1024", "API");
	assert_value("execution.parallel_io", "true", "default");
	assert_value("logging.level", "\"ERROR\"", "default");
	assert_ok(cuFileDriverClose());
}

static void every_row_has_a_help_and_what_does_nothing_says_why(void **state)
{
	ocf_config_t config = { .struct_size = sizeof(config) };
	unsigned nr = 0, idle = 0;

	for (; !ocf_config_get(nr, &config).err; nr++) {
		assert_true(strlen(config.help) > 3);
		if (config.no_effect)
			assert_true(strlen(config.no_effect) > 10);
		idle += config.no_effect != NULL;
	}
	assert_true(nr > 100);
	assert_true(idle > 0 && idle < nr);
	assert_string_equal(row("fs.weka.rdma_write_support").no_effect,
			    "this library itself moves no byte by RDMA");
	assert_null(row("properties.allow_compat_mode").no_effect);
	assert_string_equal(row("properties.allow_compat_mode").env,
			    "CUFILE_ALLOW_COMPAT_MODE");
	assert_int_equal(ocf_config_get(nr, &config).err, BAD);
}

static void asking_opens_the_driver_and_is_no_use(void **state)
{
	assert_value("profile.nvtx", "false", "default");
	assert_int_equal(cuFileUseCount(), 0);
	assert_code(cuFileSetParameterSizeT(
			    CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 77),
		    CU_FILE_DRIVER_ALREADY_OPEN);
}

static void what_the_file_has_wrong_is_told_line_by_line(void **state)
{
	const char *file = fresh_text_file(
		"cufile.json", "{\"profile\": {\"cufile_stats\": 1,\n"
			       "  \"cufile_stats\": 2},\n"
			       " \"nonsense\": 1,\n"
			       " \"execution\": {\"max_io_threads\": 99}}");
	char text[512], want[512];

	setenv("CUFILE_ENV_PATH_JSON", file, 1);
	snprintf(want, sizeof(want),
		 "%s:2:3: profile.cufile_stats: given twice, the last one "
		 "counts",
		 file);
	assert_ok(ocf_config_note(0, text, sizeof(text)));
	assert_string_equal(text, want);
	snprintf(want, sizeof(want), "%s:3:2: nonsense: unknown key, ignored",
		 file);
	assert_ok(ocf_config_note(1, text, sizeof(text)));
	assert_string_equal(text, want);
	assert_ok(ocf_config_note(2, text, sizeof(text)));
	assert_non_null(strstr(text, ":4:16: execution.max_io_threads: "
				     "99 ignored: expected an integer from 0"));
	assert_int_equal(ocf_config_note(3, text, sizeof(text)).err, BAD);
	assert_ok(ocf_config_note(0, text, 4));
	assert_int_equal(strlen(text), 3);
}

static void bad_arguments_are_refused(void **state)
{
	ocf_config_t config = {
		.struct_size = offsetof(ocf_config_t, in_force) - 1,
	};
	char text[8];

	assert_code(ocf_config_get(0, NULL), BAD);
	assert_code(ocf_config_get(0, &config), BAD);
	config.struct_size = sizeof(config);
	assert_code(ocf_config_get((unsigned)-1, &config), BAD);
	assert_code(ocf_config_note(0, NULL, 8), BAD);
	assert_code(ocf_config_note(0, text, 0), BAD);
	assert_code(ocf_config_note((unsigned)-1, text, sizeof(text)), BAD);
}

/* ------------------------------------------------- every row that works */

/* A program that was built before the struct grew, and one built after. */
static void the_struct_may_be_older_or_newer(void **state)
{
	struct {
		ocf_config_t config;
		char more[16];
	} room;

	memset(&room, 'x', sizeof(room));
	room.config.struct_size = offsetof(ocf_config_t, in_force);
	assert_ok(ocf_config_get(0, &room.config));
	assert_string_equal(room.config.key, "logging.level");
	assert_int_equal(room.config.in_force[0], 'x');
	room.config.struct_size = sizeof(room);
	assert_ok(ocf_config_get(0, &room.config));
	assert_string_equal(room.config.in_force, "");
	assert_int_equal(room.more[0], 0);
	assert_int_equal(room.more[15], 0);
}

#define REQUEST (64 * TH_MIB)
#define MANY "\"execution\": {\"max_io_threads\": 8}"

static CUfileHandle_t file_of(struct th_file *file)
{
	CUfileHandle_t fh;
	unsigned char *bytes = th_bytes(TH_MIB);

	th_file_make(file, TH_BUFFERED, O_RDWR, bytes, TH_MIB);
	free(bytes);
	assert_ok(fresh_register(file->fd, &fh));
	return fh;
}

static ocf_explain_t explain_size(ocf_memory_t memory, size_t size)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };
	struct th_file file;
	CUfileHandle_t fh = file_of(&file);

	assert_ok(ocf_explain_memory(fh, OCF_READ, memory, size, 0, 0, &e));
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	return e;
}

/* What a large read of the file would do. */
static ocf_explain_t explain(ocf_memory_t memory)
{
	return explain_size(memory, REQUEST);
}

static long carriers_of_host_memory(void)
{
	return (long)explain(OCF_MEMORY_HOST).carriers;
}

static long part_of_device_memory(void)
{
	return (long)explain(OCF_MEMORY_DEVICE).part_size;
}

static long bytes_around_the_page_cache(void)
{
	return (long)explain(OCF_MEMORY_HOST).direct_bytes;
}

static long code_for_host_memory(void)
{
	return explain(OCF_MEMORY_HOST).code;
}

static long code_for_device_memory(void)
{
	return explain(OCF_MEMORY_DEVICE).code;
}

static long stats_level(void)
{
	int level = -1;

	assert_ok(cuFileGetStatsLevel(&level));
	return level;
}

static long batch_size(void)
{
	CUfileDrvProps_t props;

	assert_ok(cuFileDriverGetProperties(&props));
	return props.max_batch_io_size;
}

static atomic_uint nr_preads, nr_stderr; /* helpers count too */

static ssize_t counting_pread(int fd, void *buf, size_t size, off_t off)
{
	nr_preads++;
	return cf_os_real.pread(fd, buf, size, off);
}

static ssize_t counting_write(int fd, const void *buf, size_t size)
{
	nr_stderr += fd == STDERR_FILENO;
	return fd == STDERR_FILENO ? (ssize_t)size :
				     cf_os_real.write(fd, buf, size);
}

/* For the rest of the process, before there are threads that look at cf_os. */
static void count_calls(void)
{
	static struct cf_os counting;

	counting = cf_os_real;
	counting.pread = counting_pread;
	counting.write = counting_write;
	cf_os = &counting;
}

static void read_host_memory(void)
{
	unsigned char *bytes = th_bytes(TH_MIB);
	struct th_file file;
	CUfileHandle_t fh = file_of(&file);

	nr_preads = nr_stderr = 0;
	assert_int_equal(cuFileRead(fh, bytes, TH_MIB, 0, 0), TH_MIB);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	free(bytes);
}

static long calls_of_one_read(void)
{
	read_host_memory();
	return nr_preads;
}

static long lines_on_stderr(void)
{
	read_host_memory();
	return nr_stderr;
}

/* Pinned for a read of device memory, in whole 64 KiB. */
static long staging_memory(void)
{
	unsigned char *bytes = th_bytes(8 * TH_MIB);
	size_t pinned, leased;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	th_need_gpu();
	th_mem_alloc(&mem, TH_DEVICE, 8 * TH_MIB);
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, 8 * TH_MIB);
	assert_ok(fresh_register(file.fd, &fh));
	assert_int_equal(cuFileRead(fh, mem.ptr, 8 * TH_MIB, 0, 0), 8 * TH_MIB);
	cf_pool_usage(cf_gpu_at(0)->pool, &pinned, &leased);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	th_mem_free(&mem);
	free(bytes);
	return (long)(pinned / (64 * TH_KIB));
}

/* Lines in the folder's cufile.log after a call that fails. */
static long lines_in_folder(void)
{
	char path[300], line[512];
	long lines = 0;
	FILE *f;

	assert_int_equal(cuFileRead((CUfileHandle_t)3, path, 1, 0, 0), -1);
	snprintf(path, sizeof(path), "%s/cufile.log", th_disk_dir());
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		lines++;
	if (f)
		fclose(f);
	unlink(path);
	return lines;
}

static const struct effect {
	const char *key;
	const char *before, *after; /* members of the file's object */
	long (*measure)(void);
	long want_before, want_after;
	const char *elsewhere; /* the test that has it, where this cannot */
} effects[] = {
	{ "logging.level", "\"logging\": {\"dir\": \"DIR\"}",
	  "\"logging\": {\"dir\": \"DIR\", \"level\": \"NOTICE\"}",
	  lines_in_folder, 1, 0, NULL },
	{ "logging.dir", "", "\"logging\": {\"dir\": \"DIR\"}", lines_in_folder,
	  0, 1, NULL },
	{ .key = "logging.max_file_size_mb", .elsewhere = "unit/test_log" },
	{ .key = "CUFILE_LOGFILE_PATH", .elsewhere = "unit/test_log" },
	{ "profile.cufile_stats", "", "\"profile\": {\"cufile_stats\": 2}",
	  stats_level, 0, 2, NULL },
	{ .key = "profile.nvtx", .elsewhere = "nvtx/test_nvtx" },
	{ "execution.max_io_threads", "\"execution\": {\"max_io_threads\": 2}",
	  "\"execution\": {\"max_io_threads\": 0}", carriers_of_host_memory, 3,
	  1, NULL },
	{ "execution.parallel_io", MANY,
	  "\"execution\": {\"max_io_threads\": 8, \"parallel_io\": false}",
	  carriers_of_host_memory, 9, 1, NULL },
	{ "execution.min_io_threshold_size_kb", MANY,
	  "\"execution\": {\"max_io_threads\": 8, "
	  "\"min_io_threshold_size_kb\": 65537}",
	  carriers_of_host_memory, 9, 1, NULL },
	{ "execution.max_request_parallelism", MANY,
	  "\"execution\": {\"max_io_threads\": 8, "
	  "\"max_request_parallelism\": 3}",
	  carriers_of_host_memory, 9, 3, NULL },
	{ "properties.max_direct_io_size_kb",
	  "\"execution\": {\"parallel_io\": false}",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"max_direct_io_size_kb\": 64}",
	  calls_of_one_read, 1, 16, NULL },
	{ "properties.max_device_cache_size_kb",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"per_buffer_cache_size_kb\": 64}",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"per_buffer_cache_size_kb\": 64, "
	  "\"max_device_cache_size_kb\": 64}",
	  staging_memory, 4, 1, NULL },
	{ "properties.per_buffer_cache_size_kb",
	  "\"execution\": {\"parallel_io\": false}",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"per_buffer_cache_size_kb\": 64}",
	  part_of_device_memory, TH_MIB, 64 * TH_KIB, NULL },
	{ "properties.posix_pool_slab_size_kb",
	  "\"execution\": {\"parallel_io\": false}",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"posix_pool_slab_size_kb\": [4, 128], "
	  "\"posix_pool_slab_count\": [8, 8]}",
	  part_of_device_memory, TH_MIB, 128 * TH_KIB, NULL },
	{ "properties.posix_pool_slab_count",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"posix_pool_slab_size_kb\": [64], "
	  "\"posix_pool_slab_count\": [64]}",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"posix_pool_slab_size_kb\": [64], "
	  "\"posix_pool_slab_count\": [1]}",
	  staging_memory, 4, 1, NULL },
	{ "properties.gpu_bounce_buffer_slab_config.slab_size_kb",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"per_buffer_cache_size_kb\": 64}",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"per_buffer_cache_size_kb\": 64, "
	  "\"gpu_bounce_buffer_slab_config\": {\"slab_size_kb\": [256, 512], "
	  "\"slab_count\": [4, 4]}}",
	  part_of_device_memory, 64 * TH_KIB, 512 * TH_KIB, NULL },
	{ "properties.gpu_bounce_buffer_slab_config.slab_count",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"gpu_bounce_buffer_slab_config\": "
	  "{\"slab_size_kb\": [64], \"slab_count\": [64]}}",
	  "\"execution\": {\"parallel_io\": false}, "
	  "\"properties\": {\"gpu_bounce_buffer_slab_config\": "
	  "{\"slab_size_kb\": [64], \"slab_count\": [1]}}",
	  staging_memory, 4, 1, NULL },
	{ "properties.io_batchsize", "",
	  "\"properties\": {\"io_batchsize\": 99}", batch_size, 128, 99, NULL },
	{ "properties.allow_compat_mode", "",
	  "\"properties\": {\"allow_compat_mode\": false}",
	  code_for_device_memory, 0, CU_FILE_IO_NOT_SUPPORTED, NULL },
	{ "properties.force_compat_mode",
	  "\"opencufile\": {\"path\": \"null\"}",
	  "\"opencufile\": {\"path\": \"null\"}, "
	  "\"properties\": {\"force_compat_mode\": true}",
	  code_for_device_memory, 0, CU_FILE_IO_NOT_SUPPORTED, NULL },
	{ "properties.force_odirect_mode", "",
	  "\"properties\": {\"force_odirect_mode\": true}",
	  bytes_around_the_page_cache, 0, REQUEST, NULL },
	{ "properties.allow_system_memory", "",
	  "\"properties\": {\"allow_system_memory\": false}",
	  code_for_host_memory, 0, CU_FILE_IO_NOT_SUPPORTED, NULL },
	{ "denylist.mounts", "\"opencufile\": {\"path\": \"null\"}",
	  "\"opencufile\": {\"path\": \"null\"}, "
	  "\"denylist\": {\"mounts\": [\"/x\", \"MOUNT\"]}",
	  code_for_host_memory, 0, CU_FILE_IO_NOT_SUPPORTED, NULL },
	{ "denylist.filesystems", "\"opencufile\": {\"path\": \"null\"}",
	  "\"opencufile\": {\"path\": \"null\"}, "
	  "\"denylist\": {\"filesystems\": [\"TYPE\"]}",
	  code_for_host_memory, 0, CU_FILE_IO_NOT_SUPPORTED, NULL },
	{ .key = "denylist.devices", .elsewhere = "unit/test_denylist" },
	{ .key = "denylist.drivers", .elsewhere = "unit/test_denylist" },
	{ .key = "miscellaneous.api_check_aggressive",
	  .elsewhere = "unit/test_config_notes" },
	{ .key = "miscellaneous.skip_topology_detection",
	  .elsewhere = "unit/test_topology" },
	{ .key = "miscellaneous.stream_memops_bypass",
	  .elsewhere = "behaviour/test_streams" },
	{ "opencufile.path", "", "\"opencufile\": {\"path\": \"staged\"}",
	  code_for_host_memory, 0, CU_FILE_IO_NOT_SUPPORTED, NULL },
	{ "opencufile.explain", "", "\"opencufile\": {\"explain\": true}",
	  lines_on_stderr, 0, 1, NULL },
	{ .key = "opencufile.alias", .elsewhere = "path/test_alias" },
	{ .key = "opencufile.stats_layout",
	  .elsewhere = "behaviour/test_stats_119" },
	{ .key = "opencufile.mapped", .elsewhere = "path/mapped_world" },
	{ .key = "opencufile.mapped_cache_kb",
	  .elsewhere = "path/mapped_world" },
	{ .key = "opencufile.mapped_chunk_kb",
	  .elsewhere = "path/mapped_world" },
	{ .key = "opencufile.mapped_min_kb", .elsewhere = "path/mapped_world" },
	{ .key = "opencufile.mapped_use_kb", .elsewhere = "path/mapped_world" },
	{ .key = "opencufile.mapped_settle_ms",
	  .elsewhere = "path/mapped_world" },
	{ .key = "opencufile.mapped_idle_ms",
	  .elsewhere = "path/mapped_world" },
	{ .key = "opencufile.stream_ferry",
	  .elsewhere = "path/test_stream_held" },
	{ .key = "opencufile.stream_ahead",
	  .elsewhere = "path/test_stream_ahead" },
	{ .key = "opencufile.stream_bells",
	  .elsewhere = "behaviour/test_stream_depth" },
	{ .key = "opencufile.batch_kernel", .elsewhere = "path_batch_copies" },
	{ .key = "opencufile.combine", .elsewhere = "path_order_apart" },
	{ .key = "opencufile.aperture", .elsewhere = "unit/test_aperture" },
	{ .key = "opencufile.helpers_rest", .elsewhere = "unit/test_worth" },
	{ .key = "opencufile.hybrid", .elsewhere = "path/test_via" },
	{ .key = "opencufile.io_uring", .elsewhere = "path/test_direct" },
	{ .key = "opencufile.order_writes", .elsewhere = "path/test_order" },
	{ .key = "properties.max_device_pinned_mem_size_kb",
	  .elsewhere = "nvfs/test_nvfs" },
	{ .key = "properties.rdma_dev_addr_list",
	  .elsewhere = "rdma/test_rdma_nics" },
	{ .key = "properties.rdma_peer_type",
	  .elsewhere = "rdma/test_rdma_nics" },
	{ .key = "properties.rdma_transport_type",
	  .elsewhere = "rdma/test_rdma_nics" },
	{ .key = "properties.rdma_dc_key", .elsewhere = "rdma/test_rdma_nics" },
	{ .key = "properties.rdma_access_mask",
	  .elsewhere = "rdma/test_rdma_nics" },
	{ .key = "CUFILE_CQ_DEPTH", .elsewhere = "rdma/test_rdma_nics" },
	{ .key = "CUFILE_MIN_RNR_TIMER", .elsewhere = "rdma/test_rdma_nics" },
	{ .key = "CUFILE_RDMA_HOP_LIMIT", .elsewhere = "rdma/test_rdma_nics" },
	{ .key = "CUFILE_RDMA_PKEY_INDEX", .elsewhere = "rdma/test_rdma_nics" },
	{ .key = "properties.use_poll_mode", .elsewhere = "nvfs/test_nvfs" },
	{ .key = "properties.poll_mode_max_size_kb",
	  .elsewhere = "nvfs/test_nvfs" },
	{ .key = "properties.gds_rdma_write_support",
	  .elsewhere = "nvfs/test_nvfs_gate" },
	{ .key = "properties.rdma_dynamic_routing",
	  .elsewhere = "nvfs/test_nvfs_gate" },
	{ .key = "properties.rdma_dynamic_routing_order",
	  .elsewhere = "nvfs/test_nvfs_gate" },
	{ .key = "fs.lustre.posix_gds_min_kb",
	  .elsewhere = "nvfs/test_nvfs_gate" },
	{ .key = "fs.beegfs.posix_gds_min_kb",
	  .elsewhere = "nvfs/test_nvfs_gate" },
	{ .key = "fs.scatefs.posix_gds_min_kb",
	  .elsewhere = "nvfs/test_nvfs_gate" },
	{ .key = "fs.gpfs.gds_write_support",
	  .elsewhere = "nvfs/test_nvfs_gate" },
	{ .key = "opencufile.nvfs", .elsewhere = "nvfs/test_nvfs_gate" },
};
#define NR_EFFECTS (sizeof(effects) / sizeof(effects[0]))

/* DIR, MOUNT and TYPE stand for those of the test's own folder. */
static void write_settings(const char *members)
{
	static char text[4096];
	struct cf_mount mount;
	size_t n = 0;

	if (!fresh_mount(&mount))
		mount = (struct cf_mount){ .type = "?", .point = "?" };
	text[n++] = '{';
	while (*members && n < sizeof(text) - 1100) {
		const char *word = NULL, *is = NULL;

		if (!strncmp(members, word = "DIR", 3))
			is = th_disk_dir();
		else if (!strncmp(members, word = "MOUNT", 5))
			is = mount.point;
		else if (!strncmp(members, word = "TYPE", 4))
			is = mount.type;
		if (is)
			n += (size_t)snprintf(text + n, 1024, "%s", is);
		else
			text[n++] = *members;
		members += is ? strlen(word) : 1;
	}
	text[n++] = '}';
	text[n] = '\0';
	setenv("CUFILE_ENV_PATH_JSON", fresh_text_file("cufile.json", text), 1);
}

static void check_effect(const struct effect *effect, const char *members,
			 long want)
{
	char note[256];
	long got;

	write_settings(members);
	assert_ok(cuFileDriverOpen());
	assert_int_equal(ocf_config_note(0, note, sizeof(note)).err, BAD);
	got = effect->measure();
	assert_ok(cuFileDriverClose());
	while (!cuFileDriverClose().err)
		continue;
	if (got != want)
		fail_msg("%s, {%s}: %s is %ld, not %ld", effect->key, members,
			 "what is measured", got, want);
}

/* In a bare chroot that of the test's folder is outside the root. */
static bool needs_a_mount_that_is_not_seen(const struct effect *effect)
{
	struct cf_mount mount;

	return (strstr(effect->after, "MOUNT") ||
		strstr(effect->after, "TYPE")) &&
	       !fresh_mount(&mount);
}

static void a_row_that_works_changes_what_it_says(void **state)
{
	count_calls();
	/* the file is to be heard, not what the harness has set */
	unsetenv("CUFILE_LOGFILE_PATH");
	unsetenv("CUFILE_LOGGING_LEVEL");
	for (size_t i = 0; i < NR_EFFECTS; i++) {
		const struct effect *effect = &effects[i];

		if (effect->elsewhere ||
		    (effect->measure == staging_memory && !th_gpu(NULL)) ||
		    needs_a_mount_that_is_not_seen(effect))
			continue;
		check_effect(effect, effect->before, effect->want_before);
		check_effect(effect, effect->after, effect->want_after);
	}
}

/* What requests, properties and statistics are like, in all. */
struct looks {
	ocf_explain_t host, device;
	CUfileDrvProps_t props;
	long level, preads, stderr_lines;
};

static void look(struct looks *looks)
{
	memset(looks, 0, sizeof(*looks));
	looks->host = explain(OCF_MEMORY_HOST);
	looks->device = explain(OCF_MEMORY_DEVICE);
	looks->host.handle = looks->device.handle = 0;
	assert_ok(cuFileDriverGetProperties(&looks->props));
	/* what it was set to, and no more (see its no_effect) */
	looks->props.max_batch_io_timeout_msecs = 0;
	looks->level = stats_level();
	looks->preads = calls_of_one_read();
	looks->stderr_lines = nr_stderr;
}

/* Some value that is allowed and is not the default, as JSON has it. */
static const char *other_value(const struct cf_config_row *row)
{
	static char text[64];
	uint64_t step = row->multiple ? row->multiple : 1;
	uint64_t low = (row->min + step - 1) / step * step;

	switch (row->type) {
	case CF_CFG_BOOL:
		return row->number ? "false" : "true";
	case CF_CFG_SIZE:
		snprintf(text, sizeof(text), "%llu",
			 (unsigned long long)(low == row->number ? low + step :
								   low));
		return text;
	case CF_CFG_STRING:
		if (!row->choices)
			return row->flags & CF_CFG_HEX ? "\"0x12345\"" :
							 "\"/something\"";
		snprintf(text, sizeof(text), "\"%s\"",
			 strrchr(row->choices, '|') + 1);
		return text;
	default:
		return "[\"10.9.8.7\"]";
	}
}

/* "a.b" set to value, as the members of the file's object. */
static const char *nested(const char *key, const char *value)
{
	static char text[512];
	size_t n = 0, depth = 0;

	for (; *key; depth++) {
		size_t len = strcspn(key, ".");

		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%s\"%.*s\": ", depth ? "{" : "",
				      (int)len, key);
		key += len + (key[len] == '.');
	}
	n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", value);
	while (--depth)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "}");
	return text;
}

static void close_all(void)
{
	while (!cuFileDriverClose().err)
		continue;
}

/* The row, with its other value, changes nothing but what is told of it. */
static void check_idle(const struct cf_config_row *idle,
		       const struct looks *before)
{
	const char *value = other_value(idle);
	bool has_key = cf_row_has_json_key(idle);
	struct looks after;

	if (!has_key)
		setenv(idle->env, value, 1);
	write_settings(has_key ? nested(idle->key, value) : "");
	assert_ok(cuFileDriverOpen());
	assert_string_equal(row(idle->key).no_effect, idle->idle);
	assert_string_equal(row(idle->key).value, value);
	assert_string_not_equal(row(idle->key).origin, "default");
	look(&after);
	close_all();
	if (!has_key)
		unsetenv(idle->env);
	if (memcmp(&after, before, sizeof(after)) != 0)
		fail_msg("%s: %s changes something", idle->key, value);
}

static void a_row_without_an_effect_changes_nothing(void **state)
{
	struct looks before, again;
	unsigned nr = 0;

	count_calls();
	write_settings("");
	look(&before);
	close_all();
	/* what could change by itself would hide a change */
	look(&again);
	close_all();
	assert_memory_equal(&before, &again, sizeof(before));
	for (int id = 0; id < CF_CFG_NR; id++) {
		if (!cf_config_rows[id].idle)
			continue;
		check_idle(&cf_config_rows[id], &before);
		nr++;
	}
	assert_true(nr > 40);
	/* and the comparison can fail */
	write_settings("\"properties\": {\"force_odirect_mode\": true}");
	look(&again);
	close_all();
	assert_memory_not_equal(&before, &again, sizeof(before));
}

static void assert_in_force(const char *key, const char *number)
{
	assert_string_equal(row(key).in_force, number);
}

static void a_value_that_leaves_the_choice_tells_what_was_chosen(void **state)
{
	const char *key = "execution.min_io_threshold_size_kb";
	size_t split;

	assert_ok(cuFileDriverOpen());
	assert_in_force("execution.parallel_io", "");
	assert_in_force("properties.per_buffer_cache_size_kb", "4096");
	assert_in_force("properties.max_device_cache_size_kb", "");
	setenv("CUFILE_ENV_PATH_JSON",
	       fresh_text_file("cufile.json", "{" MANY "}"), 1);
	close_all();
	assert_in_force("execution.max_io_threads", "");
	assert_in_force("execution.max_request_parallelism", "9");
	/* it is what acts */
	split = strtoul(row(key).in_force, NULL, 10) << 10;
	assert_true(split > 0 && split < 8192ul << 10);
	assert_in_range(explain_size(OCF_MEMORY_HOST, split).carriers, 2, 9);
	assert_int_equal(explain_size(OCF_MEMORY_HOST, split - 4096).carriers,
			 1);
}

static void a_value_that_was_asked_for_acts(void **state)
{
	const char *file = fresh_text_file(
		"cufile.json",
		"{\"execution\": {\"max_io_threads\": 3,"
		" \"max_request_parallelism\": 2,"
		" \"min_io_threshold_size_kb\": 4096}, \"properties\": {"
		"\"per_buffer_cache_size_kb\": 2048}}");
	ocf_config_t config = { .struct_size = sizeof(config) };

	setenv("CUFILE_ENV_PATH_JSON", file, 1);
	assert_ok(cuFileDriverOpen());
	for (unsigned nr = 0; !ocf_config_get(nr, &config).err; nr++)
		assert_string_equal(config.in_force, "");
	close_all();
	file = fresh_text_file("cufile.json",
			       "{\"properties\": {"
			       "\"posix_pool_slab_size_kb\": [64, 512],"
			       " \"posix_pool_slab_count\": [16, 2]}}");
	setenv("CUFILE_ENV_PATH_JSON", file, 1);
	assert_in_force("properties.per_buffer_cache_size_kb", "512");
	assert_in_force("properties.max_device_cache_size_kb", "2048");
}

/* A new row that works has its line above, or this fails. */
static void every_row_that_works_has_a_test_and_no_other_has(void **state)
{
	ocf_config_t config = { .struct_size = sizeof(config) };

	for (unsigned nr = 0; !ocf_config_get(nr, &config).err; nr++) {
		bool tested = false;

		for (size_t i = 0; i < NR_EFFECTS; i++)
			tested |= !strcmp(effects[i].key, config.key);
		if (tested == (config.no_effect != NULL))
			fail_msg("%s: %s", config.key,
				 tested ? "tested, but said to do nothing" :
					  "works, but no test says what");
	}
}

static const struct fresh_test tests[] = {
	FRESH(every_value_is_told_with_its_origin),
	FRESH(every_row_has_a_help_and_what_does_nothing_says_why),
	FRESH(asking_opens_the_driver_and_is_no_use),
	FRESH(what_the_file_has_wrong_is_told_line_by_line),
	FRESH(bad_arguments_are_refused),
	FRESH(the_struct_may_be_older_or_newer),
	FRESH(a_value_that_leaves_the_choice_tells_what_was_chosen),
	FRESH(a_value_that_was_asked_for_acts),
	FRESH(a_row_that_works_changes_what_it_says),
	FRESH(a_row_without_an_effect_changes_nothing),
	FRESH(every_row_that_works_has_a_test_and_no_other_has),
};

FRESH_MAIN(tests, 60)
