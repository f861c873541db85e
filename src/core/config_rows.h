// SPDX-License-Identifier: Apache-2.0
/*
 * config_rows - every knob of the library, one row each.
 *
 * Included twice, with the row macros defined by the includer: config.h makes
 * ids of the rows, config_table.c a table. The JSON reader, the environment,
 * the parameter calls, the dump and the tests all walk these rows and no
 * other list (contract 4.2, 4.3; parameter bounds from the reference record,
 * section a).
 *
 *   CF_BOOL (id, key, default, env, param, effect, help)
 *   CF_SIZE (id, key, default, min, max, multiple, flags, env, param, effect,
 *            help)
 *   CF_TEXT (id, key, default, choices, flags, env, param, effect, help)
 *   CF_SIZES(id, key, defaults, min, max, multiple, effect, help)
 *   CF_TEXTS(id, key, defaults, effect, help)
 *
 * choices are separated by '|', and NULL means any text; the defaults of a
 * list are separated by commas. A key without a dot names an environment
 * variable that has no JSON key. If the effect is not WORKS, the value is
 * accepted, kept and shown, but not used; the effect names the sentence in
 * config_table.c that says why.
 */
/* clang-format off */

/* logging */
CF_TEXT(LOGGING_LEVEL, "logging.level", "ERROR",
	"NOTICE|ERROR|WARN|INFO|DEBUG|TRACE", 0, "CUFILE_LOGGING_LEVEL",
	STRING(CUFILE_PARAM_LOGGING_LEVEL), WORKS, "least important level that is logged")
CF_TEXT(LOGGING_DIR, "logging.dir", "", NULL, 0, NULL,
	STRING(CUFILE_PARAM_LOG_DIR), WORKS, "directory of cufile.log; empty: the current one")
CF_SIZE(LOGGING_MAX_FILE_SIZE_MB, "logging.max_file_size_mb", 32, 1, 4096, 1,
	CF_CFG_NO_LIMIT, "CUFILE_LOGFILE_MAX_SIZE_MB", NO_PARAM, WORKS,
	"the log is truncated at this size; -1: never")
CF_TEXT(LOGFILE_PATH, "CUFILE_LOGFILE_PATH", "", NULL,
	CF_CFG_EMPTY_COUNTS, "CUFILE_LOGFILE_PATH",
	STRING(CUFILE_PARAM_ENV_LOGFILE_PATH), WORKS, "full path of the log file")

/* profile */
CF_BOOL(NVTX, "profile.nvtx", false, "CUFILE_NVTX", NO_PARAM, WORKS,
	"requests are ranges for a profiler (NVTX)")
CF_SIZE(STATS_LEVEL, "profile.cufile_stats", 0, 0, 3, 1, CF_CFG_NO_MINMAX, "OCF_STATS",
	SIZET(CUFILE_PARAM_PROFILE_STATS), WORKS, "statistics level")

/* execution */
CF_SIZE(MAX_IO_QUEUE_DEPTH, "execution.max_io_queue_depth", 128, 1, 256, 1, 0, NULL,
	SIZET(CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH), NO_QUEUE, "work items queued")
CF_SIZE(MAX_IO_THREADS, "execution.max_io_threads", 4, 0, 32, 1, 0, NULL,
	SIZET(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS), WORKS, "host threads; 0: none")
CF_BOOL(PARALLEL_IO, "execution.parallel_io", true, NULL,
	BOOL(CUFILE_PARAM_EXECUTION_PARALLEL_IO), WORKS, "a large request may be split over threads")
CF_SIZE(MIN_IO_THRESHOLD_SIZE_KB, "execution.min_io_threshold_size_kb", 8192,
	4, 4294967295, 1, 0, NULL, SIZET(CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB),
	WORKS, "requests from this size on are split")
CF_SIZE(MAX_REQUEST_PARALLELISM, "execution.max_request_parallelism", 4, 0, 8, 1, 0, NULL,
	SIZET(CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM), WORKS,
	"threads that work on one request at once")

/* properties: sizes */
CF_SIZE(MAX_DIRECT_IO_SIZE_KB, "properties.max_direct_io_size_kb", 16384, 64, 16384, 4, 0, NULL,
	SIZET(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB), WORKS, "largest single IO")
CF_SIZE(MAX_DEVICE_CACHE_SIZE_KB, "properties.max_device_cache_size_kb", 131072,
	0, 268435456, 4, 0, NULL, SIZET(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB),
	WORKS, "bounce memory of one GPU")
CF_SIZE(PER_BUFFER_CACHE_SIZE_KB, "properties.per_buffer_cache_size_kb", 1024, 64, 16384, 4, 0,
	NULL, SIZET(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB), WORKS, "one bounce slot")
CF_SIZE(MAX_DEVICE_PINNED_MEM_SIZE_KB, "properties.max_device_pinned_mem_size_kb", 33554432,
	64, 268435456, 4, CF_CFG_NO_LIMIT, NULL,
	SIZET(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB), WORKS,
	"device memory that may be pinned; -1: no limit")
CF_SIZES(POSIX_POOL_SLAB_SIZE_KB, "properties.posix_pool_slab_size_kb", "4,1024,16384",
	4, 268435456, 4, WORKS, "sizes of staging memory; the largest is a slot's")
CF_SIZES(POSIX_POOL_SLAB_COUNT, "properties.posix_pool_slab_count", "128,64,64",
	1, 4294967295, 1, WORKS, "how many of each size; all bound the memory")
CF_SIZES(GPU_BOUNCE_SLAB_SIZE_KB, "properties.gpu_bounce_buffer_slab_config.slab_size_kb", "",
	4, 268435456, 4, WORKS, "the same, before the cache keys; empty: those rule")
CF_SIZES(GPU_BOUNCE_SLAB_COUNT, "properties.gpu_bounce_buffer_slab_config.slab_count", "",
	1, 4294967295, 1, WORKS, "how many of each size")
CF_SIZE(IO_BATCHSIZE, "properties.io_batchsize", 128, 1, 256, 1, 0, NULL,
	SIZET(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), WORKS, "entries of a batch, as reported")
CF_SIZE(BATCH_IO_TIMEOUT_MS, "properties.max_batch_io_timeout_msecs", 5, 1, 1000, 1, 0, NULL,
	SIZET(CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS), NO_TIMEOUT,
	"batch timeout")

/* properties: modes */
CF_BOOL(USE_POLL_MODE, "properties.use_poll_mode", false, NULL,
	BOOL(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE), WORKS, "complete small IO by polling")
CF_SIZE(POLL_MODE_MAX_SIZE_KB, "properties.poll_mode_max_size_kb", 4,
	4, 18014398509481980, 4, 0, NULL, SIZET(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB), WORKS,
	"largest IO that is polled for")
CF_BOOL(USE_PCI_P2PDMA, "properties.use_pci_p2pdma", false, "CUFILE_USE_PCIP2PDMA",
	BOOL(CUFILE_PARAM_USE_PCIP2PDMA), NO_P2PDMA, "disk to GPU by the kernel's P2PDMA")
CF_BOOL(ALLOW_COMPAT_MODE, "properties.allow_compat_mode", true, "CUFILE_ALLOW_COMPAT_MODE",
	BOOL(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE), WORKS, "false: a fallback is an error")
CF_BOOL(FORCE_COMPAT_MODE, "properties.force_compat_mode", false, "CUFILE_FORCE_COMPAT_MODE",
	BOOL(CUFILE_PARAM_FORCE_COMPAT_MODE), WORKS, "only paths through host memory")
CF_BOOL(FORCE_ODIRECT_MODE, "properties.force_odirect_mode", false, NULL,
	BOOL(CUFILE_PARAM_FORCE_ODIRECT_MODE), WORKS, "treat every file as opened with O_DIRECT")
CF_BOOL(PREFER_IOURING, "properties.prefer_iouring", false, NULL,
	BOOL(CUFILE_PARAM_PREFER_IO_URING), ALL_IOURING, "io_uring as the engine of batches")
CF_BOOL(VANILLA_POSIX_IO_MODE, "properties.vanilla_posix_io_mode", false, NULL,
	BOOL(CUFILE_PARAM_PROPERTIES_POSIX_IO_MODE), ALL_POSIX, "plain POSIX IO")
CF_BOOL(GDS_FALLBACK_IO, "properties.gds_fallback_io", false, NULL,
	BOOL(CUFILE_PARAM_GDS_FALLBACK_IO), ALL_FALLBACK, "POSIX IO where direct IO fails")
CF_BOOL(ALLOW_SYSTEM_MEMORY, "properties.allow_system_memory", true, NULL,
	BOOL(CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY), WORKS, "host memory as a buffer")
CF_BOOL(GDS_RDMA_WRITE_SUPPORT, "properties.gds_rdma_write_support", true, NULL, NO_PARAM, WORKS,
	"writes by RDMA")
CF_TEXT(IO_PRIORITY, "properties.io_priority", "default", "default|low|med|high", 0, NULL,
	NO_PARAM, ALL_URGENT, "priority of our streams")
CF_BOOL(ODIRECT_READ_SPLIT, "properties.compat_odirect_unaligned_read_split", false, NULL,
	NO_PARAM, ALL_SPLIT, "split unaligned reads into aligned ones and edges")
CF_SIZE(ODIRECT_READ_SPLIT_MIN_SIZE_KB,
	"properties.compat_odirect_unaligned_read_split_min_size_kb", 128, 0, 4294967295, 1, 0, NULL,
	NO_PARAM, ALL_SPLIT, "smallest read that is split")

/* properties: RDMA */
CF_TEXTS(RDMA_DEV_ADDR_LIST, "properties.rdma_dev_addr_list", "", WORKS,
	"addresses of the client's NICs, for user-space file systems")
CF_TEXT(RDMA_PEER_TYPE, "properties.rdma_peer_type", "", "peer_mem|dmabuf|nvidia_peermem", 0, NULL,
	NO_PARAM, WORKS, "how a NIC reaches GPU memory")
CF_TEXT(RDMA_TRANSPORT_TYPE, "properties.rdma_transport_type", "", "DC_V1|EXT_RC_V1", 0, NULL,
	STRING(CUFILE_PARAM_RDMA_TRANSPORT), WORKS, "RDMA transport")
CF_TEXT(RDMA_LOAD_BALANCING_POLICY, "properties.rdma_load_balancing_policy", "RoundRobin",
	"FirstFit|MaxMinFit|RoundRobin|RoundRobinMaxMin|Randomized", 0, NULL, NO_PARAM, NO_RDMA,
	"how NICs are chosen")
CF_SIZE(RDMA_TOPN_RANKS, "properties.rdma_topN_ranks", 1, 0, 4294967295, 1, 0, NULL, NO_PARAM,
	NO_RDMA, "NICs considered")
CF_BOOL(RDMA_DYNAMIC_ROUTING, "properties.rdma_dynamic_routing", false, NULL, NO_PARAM, WORKS,
	"route around the PCI root complex")
CF_TEXTS(RDMA_DYNAMIC_ROUTING_ORDER, "properties.rdma_dynamic_routing_order",
	"GPU_MEM_NVLINKS,GPU_MEM,SYS_MEM,P2P", WORKS, "order in which routes are tried")
CF_TEXT(RDMA_DC_KEY, "properties.rdma_dc_key", "0xffeeddcc", NULL, CF_CFG_HEX, "CUFILE_RDMA_DC_KEY",
	NO_PARAM, WORKS, "DC transport key")
CF_TEXT(RDMA_ACCESS_MASK, "properties.rdma_access_mask", "0x1f", NULL, CF_CFG_HEX, NULL, NO_PARAM, WORKS,
	"access rights of RDMA memory")
CF_BOOL(ALLOW_RDMA_TOKEN_RESET, "properties.allow_rdma_token_reset", false, NULL, NO_PARAM, NO_RDMA,
	"renew RDMA tokens")
CF_BOOL(RDMA_MULTIPATH_ENABLED, "properties.rdma_multipath_enabled", false, NULL, NO_PARAM, NO_RDMA,
	"RDMA fail-over")
CF_SIZE(RDMA_MAX_BACKUP_DEVICES, "properties.rdma_max_backup_devices", 0, 0, 4294967295, 1, 0,
	NULL, NO_PARAM, NO_RDMA, "NICs in reserve")
CF_SIZE(RDMA_IO_RETRY_COUNT, "properties.rdma_io_retry_count", 0, 0, 4294967295, 1, 0, NULL,
	NO_PARAM, NO_RDMA, "RDMA retries")
CF_SIZE(RDMA_IO_RETRY_DELAY_MS, "properties.rdma_io_retry_delay_ms", 0, 0, 4294967295, 1, 0, NULL,
	NO_PARAM, NO_RDMA, "time between RDMA retries")
CF_BOOL(RDMA_FAILBACK_ENABLED, "properties.rdma_failback_enabled", false, NULL, NO_PARAM, NO_RDMA,
	"return to a NIC that has recovered")
CF_SIZE(RDMA_FAILBACK_DELAY_MS, "properties.rdma_failback_delay_ms", 0, 0, 4294967295, 1, 0, NULL,
	NO_PARAM, NO_RDMA, "time before the return")
CF_SIZE(RDMA_HEALTH_CHECK_INTERVAL_MS, "properties.rdma_health_check_interval_ms", 0,
	0, 4294967295, 1, 0, NULL, NO_PARAM, NO_RDMA, "time between checks of a NIC")
CF_BOOL(RDMA_ASYNC_EVENT_MONITORING, "properties.rdma_async_event_monitoring", false, NULL,
	NO_PARAM, NO_RDMA, "watch NIC events")
CF_SIZE(RDMA_UNHEALTHY_THRESHOLD, "properties.rdma_unhealthy_threshold", 0, 0, 4294967295, 1, 0,
	NULL, NO_PARAM, NO_RDMA, "failures until a NIC is given up")

/* sparse */
CF_SIZE(SPARSE_MIN_P2PDMA_THRESHOLD_KB, "sparse.min_p2pdma_threshold_kb", 8, 0, 4294967295, 1, 0,
	NULL, NO_PARAM, NO_P2PDMA, "smallest extent of a sparse file read by P2PDMA")
CF_BOOL(SPARSE_P2P_COMPAT_ENABLE, "sparse.p2p_compat_enable", true, NULL, NO_PARAM, NO_P2PDMA,
	"sparse files through host memory")

/* fs */
CF_BOOL(POSIX_UNALIGNED_WRITES, "fs.generic.posix_unaligned_writes", false, NULL, NO_PARAM, ALL_CACHED_EDGES,
	"unaligned writes through the page cache")
CF_SIZE(LUSTRE_POSIX_GDS_MIN_KB, "fs.lustre.posix_gds_min_kb", 0, 0, 4294967292, 4, 0, NULL,
	NO_PARAM, WORKS, "smaller IO goes through host memory")
CF_TEXTS(LUSTRE_RDMA_DEV_ADDR_LIST, "fs.lustre.rdma_dev_addr_list", "", NO_RDMA, "NICs of Lustre")
CF_BOOL(LUSTRE_USE_PCI_P2PDMA, "fs.lustre.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA on Lustre")
CF_SIZE(BEEGFS_POSIX_GDS_MIN_KB, "fs.beegfs.posix_gds_min_kb", 0, 0, 4294967292, 4, 0, NULL,
	NO_PARAM, WORKS, "smaller IO goes through host memory")
CF_TEXTS(BEEGFS_RDMA_DEV_ADDR_LIST, "fs.beegfs.rdma_dev_addr_list", "", NO_RDMA, "NICs of BeeGFS")
CF_BOOL(BEEGFS_USE_PCI_P2PDMA, "fs.beegfs.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA on BeeGFS")
CF_SIZE(SCATEFS_POSIX_GDS_MIN_KB, "fs.scatefs.posix_gds_min_kb", 0, 0, 4294967292, 4, 0, NULL,
	NO_PARAM, WORKS, "smaller IO goes through host memory")
CF_BOOL(SCATEFS_USE_PCI_P2PDMA, "fs.scatefs.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA on ScateFS")
CF_TEXTS(NFS_RDMA_DEV_ADDR_LIST, "fs.nfs.rdma_dev_addr_list", "", NO_RDMA, "NICs of NFS")
CF_BOOL(NFS_USE_PCI_P2PDMA, "fs.nfs.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA on NFS")
CF_TEXTS(GPFS_RDMA_DEV_ADDR_LIST, "fs.gpfs.rdma_dev_addr_list", "", NO_RDMA, "NICs of GPFS")
CF_BOOL(GPFS_GDS_WRITE_SUPPORT, "fs.gpfs.gds_write_support", false, NULL, NO_PARAM, WORKS,
	"direct writes on GPFS")
CF_BOOL(GPFS_GDS_ASYNC_SUPPORT, "fs.gpfs.gds_async_support", true, NULL, NO_PARAM, ALL_ASYNC,
	"asynchronous IO on GPFS")
CF_BOOL(GPFS_USE_PCI_P2PDMA, "fs.gpfs.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA on GPFS")
CF_TEXTS(WEKA_RDMA_DEV_ADDR_LIST, "fs.weka.rdma_dev_addr_list", "", NO_RDMA, "NICs of WekaFS")
CF_BOOL(WEKA_RDMA_WRITE_SUPPORT, "fs.weka.rdma_write_support", false, NULL, NO_PARAM, NO_RDMA,
	"RDMA writes on WekaFS")
CF_BOOL(VIRTIOFS_USE_PCI_P2PDMA, "fs.virtiofs.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA on virtiofs")

/* block */
CF_BOOL(NVME_USE_PCI_P2PDMA, "block.nvme.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA from local NVMe disks")
CF_BOOL(NVMEOF_USE_PCI_P2PDMA, "block.nvmeof.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA from NVMe over fabrics")
CF_BOOL(RAID_USE_PCI_P2PDMA, "block.raid.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA from md RAID")
CF_BOOL(RAID1_USE_PCI_P2PDMA, "block.raid1.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA from md RAID 1")
CF_BOOL(RAID10_USE_PCI_P2PDMA, "block.raid10.use_pci_p2pdma", false, NULL, NO_PARAM, NO_P2PDMA,
	"P2PDMA from md RAID 10")

/* denylist */
CF_TEXTS(DENYLIST_DRIVERS, "denylist.drivers", "", WORKS, "block drivers kept off direct paths")
CF_TEXTS(DENYLIST_DEVICES, "denylist.devices", "", WORKS, "disks kept off direct paths")
CF_TEXTS(DENYLIST_MOUNTS, "denylist.mounts", "", WORKS, "mount points kept off direct paths")
CF_TEXTS(DENYLIST_FILESYSTEMS, "denylist.filesystems", "", WORKS,
	"file systems kept off direct paths")

/* miscellaneous */
CF_BOOL(API_CHECK_AGGRESSIVE, "miscellaneous.api_check_aggressive", false, NULL,
	BOOL(CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE), WORKS,
	"a broken configuration file fails the open")
CF_BOOL(SKIP_TOPOLOGY_DETECTION, "miscellaneous.skip_topology_detection", false,
	"CUFILE_SKIP_TOPOLOGY_DETECTION", BOOL(CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION), WORKS,
	"slots and threads keep to no NUMA node")
CF_BOOL(STREAM_MEMOPS_BYPASS, "miscellaneous.stream_memops_bypass", false, NULL,
	BOOL(CUFILE_PARAM_STREAM_MEMOPS_BYPASS), WORKS, "streams wait in host functions")
CF_BOOL(ENABLE_STATIC_ROUTING, "miscellaneous.enable_static_routing", false, NULL, NO_PARAM, NO_TOPOLOGY,
	"routes from a file")
CF_TEXT(STATIC_ROUTING_FILEPATH, "miscellaneous.static_routing_filepath", "/etc/topology.json",
	NULL, 0, NULL, NO_PARAM, NO_TOPOLOGY, "the file of routes")
CF_SIZE(RDMA_TOKEN_RESET_TIMEOUT_SECS, "miscellaneous.rdma_token_reset_timeout_secs", 30,
	0, 4294967295, 1, 0, NULL, NO_PARAM, NO_RDMA, "wait for a new RDMA token")

/* opencufile: ours */
CF_TEXT(PATH, "opencufile.path", "", "null|host|rdma|nvfs|alias|staged", 0, "OCF_PATH", NO_PARAM, WORKS,
	"the only path to travel; empty: the best one for each request")
CF_BOOL(EXPLAIN, "opencufile.explain", false, "CUFILE_EXPLAIN", NO_PARAM, WORKS,
	"tell each new kind of route on stderr")
CF_TEXT(STATS_LAYOUT, "opencufile.stats_layout", "1.15", "1.15|1.19", 0, "OCF_STATS_LAYOUT", NO_PARAM, WORKS,
	"the version of cuFile whose structs cuFileGetStatsL1 to L3 fill")
CF_TEXT(MAPPED, "opencufile.mapped", "auto", "off|auto|kept|always", 0, "OCF_MAPPED", NO_PARAM, WORKS,
	"cached reads straight from the page cache: not, where hot, read again, or wherever possible")
CF_SIZE(MAPPED_CACHE_KB, "opencufile.mapped_cache_kb", 131072, 0, 268435456, 4, 0,
	"OCF_MAPPED_CACHE_KB", NO_PARAM, WORKS, "page cache that is kept pinned for them")
CF_SIZE(MAPPED_CHUNK_KB, "opencufile.mapped_chunk_kb", 16384, 64, 1048576, 4, 0,
	"OCF_MAPPED_CHUNK_KB", NO_PARAM, WORKS, "pinned at once; rounded to a power of two")
CF_SIZE(MAPPED_MIN_KB, "opencufile.mapped_min_kb", 256, 0, 268435456, 4, 0,
	"OCF_MAPPED_MIN_KB", NO_PARAM, WORKS, "smallest read that pins pages")
CF_SIZE(MAPPED_USE_KB, "opencufile.mapped_use_kb", 256, 0, 268435456, 4, 0,
	"OCF_MAPPED_USE_KB", NO_PARAM, WORKS, "smallest read that uses pinned pages")
CF_SIZE(MAPPED_SETTLE_MS, "opencufile.mapped_settle_ms", 100, 20, 60000, 1, 0,
	"OCF_MAPPED_SETTLE_MS", NO_PARAM, WORKS,
	"a file that changed so lately is not mapped")
CF_SIZE(MAPPED_IDLE_MS, "opencufile.mapped_idle_ms", 1000, 0, 3600000, 1, 0,
	"OCF_MAPPED_IDLE_MS", NO_PARAM, WORKS,
	"pinned pages go when none was read for so long; 0: they do not")
CF_BOOL(COMBINE, "opencufile.combine", true, "OCF_COMBINE", NO_PARAM, WORKS,
	"small reads that come fast are moved by a kernel that stays on the GPU for a moment")
CF_BOOL(APERTURE, "opencufile.aperture", true, "OCF_APERTURE", NO_PARAM, WORKS,
	"they are read into the GPU's memory itself, where the CPU can be given an address of it")
CF_BOOL(HELPERS_REST, "opencufile.helpers_rest", true, "OCF_HELPERS_REST", NO_PARAM, WORKS,
	"reads of up to 4 MiB go without helpers for a while where these made them slower")
CF_BOOL(BATCH_KERNEL, "opencufile.batch_kernel", true, "OCF_BATCH_KERNEL", NO_PARAM, WORKS,
	"small entries of batches share a kernel launch")
CF_BOOL(STREAM_FERRY, "opencufile.stream_ferry", true, "OCF_STREAM_FERRY", NO_PARAM, WORKS,
	"a kernel in the stream itself moves what stream operations read and write")
CF_BOOL(STREAM_AHEAD, "opencufile.stream_ahead", true, "OCF_STREAM_AHEAD", NO_PARAM, WORKS,
	"a stream operation whose numbers are fixed reads its file before the one before it is over")
CF_BOOL(STREAM_BELLS, "opencufile.stream_bells", true, "OCF_STREAM_BELLS", NO_PARAM, WORKS,
	"streams announce their operations by memory operations instead of host functions")
CF_TEXT(HYBRID, "opencufile.hybrid", "cached", "off|cached|both", 0, "OCF_HYBRID", NO_PARAM, WORKS,
	"reads may leave O_DIRECT for what is cached, or also the page cache for what is not")
CF_TEXT(ALIAS, "opencufile.alias", "direct", "off|direct|on", 0, "OCF_ALIAS", NO_PARAM, WORKS,
	"IO straight into GPU memory that the CPU can address: O_DIRECT alone, or cached reads too")
CF_BOOL(IO_URING, "opencufile.io_uring", true, "OCF_IO_URING", NO_PARAM, WORKS,
	"large O_DIRECT requests go through io_uring where the kernel lets us")
CF_BOOL(NVFS, "opencufile.nvfs", false, "OCF_NVFS", NO_PARAM, WORKS,
	"registered GPU memory by the nvidia-fs driver, where it is loaded and has the storage hooked")
CF_BOOL(ORDER_WRITES, "opencufile.order_writes", true, "OCF_ORDER_WRITES", NO_PARAM, WORKS,
	"a write sees what the default streams did before it")

/* environment only; those that work have no more bits than verbs take */
CF_BOOL(EXPERIMENTAL_FS, "CUFILE_ENV_EXPERIMENTAL_FS", false, "CUFILE_ENV_EXPERIMENTAL_FS",
	NO_PARAM, ALL_FS, "file systems on trial (all are allowed here)")
CF_SIZE(CQ_DEPTH, "CUFILE_CQ_DEPTH", 0, 0, 2147483647, 1, 0, "CUFILE_CQ_DEPTH",
	NO_PARAM, WORKS, "RDMA completion queue")
CF_SIZE(ETH_SL, "CUFILE_ETH_SL", 0, 0, 4294967295, 1, 0, "CUFILE_ETH_SL", NO_PARAM,
	NO_RDMA, "Ethernet service level")
CF_SIZE(IB_SL, "CUFILE_IB_SL", 0, 0, 4294967295, 1, 0, "CUFILE_IB_SL", NO_PARAM,
	NO_RDMA, "InfiniBand service level")
CF_SIZE(MIN_RNR_TIMER, "CUFILE_MIN_RNR_TIMER", 16, 0, 31, 1, 0,
	"CUFILE_MIN_RNR_TIMER", NO_PARAM, WORKS, "RDMA receiver-not-ready timer")
CF_SIZE(RDMA_HOP_LIMIT, "CUFILE_RDMA_HOP_LIMIT", 64, 0, 255, 1, 0,
	"CUFILE_RDMA_HOP_LIMIT", NO_PARAM, WORKS, "RDMA hop limit")
CF_SIZE(RDMA_PKEY_INDEX, "CUFILE_RDMA_PKEY_INDEX", 0, 0, 65535, 1, 0,
	"CUFILE_RDMA_PKEY_INDEX", NO_PARAM, WORKS, "RDMA partition key")
CF_SIZE(RDMA_SR_MAX_WR, "CUFILE_RDMA_SR_MAX_WR", 0, 0, 4294967295, 1, 0,
	"CUFILE_RDMA_SR_MAX_WR", NO_PARAM, NO_RDMA, "RDMA work requests")
CF_SIZE(RDMA_SR_MAX_SGE, "CUFILE_RDMA_SR_MAX_SGE", 0, 0, 4294967295, 1, 0,
	"CUFILE_RDMA_SR_MAX_SGE", NO_PARAM, NO_RDMA, "RDMA scatter elements")
