// SPDX-License-Identifier: Apache-2.0
/* harness - see harness.h. */
#include "harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <opencufile.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "unseen.h"

/* random bytes to cut from; each word of them is dear where it is watched */
#define BLOCK_SIZE (TH_SANITIZED ? TH_MIB : 16 * TH_MIB)

static uint64_t seed;
static unsigned char *block;
static char disk_dir[128];
static char shm_dir[128];

/* ------------------------------------------------------------- the run */

static void remove_dir(const char *dir)
{
	DIR *d = *dir ? opendir(dir) : NULL;
	struct dirent *e;
	char path[400];

	if (!d)
		return;
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		unlink(path);
	}
	closedir(d);
	rmdir(dir);
}

/* A forked child must not take its parent's files away. */
static pid_t owner;

static void clean_up(void)
{
	if (getpid() != owner)
		return;
	remove_dir(disk_dir);
	remove_dir(shm_dir);
	free(block);
	block = NULL;
}

static void make_block(void)
{
	uint64_t *words;

	block = malloc(BLOCK_SIZE);
	if (!block)
		abort();
	words = (uint64_t *)block;
	for (size_t i = 0; i < BLOCK_SIZE / sizeof(*words); i++)
		words[i] = th_random();
}

static void point_away(void)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cufile.json", th_disk_dir());
	f = fopen(path, "w");
	if (!f || fputs("{}\n", f) < 0 || fclose(f))
		abort();
	setenv("CUFILE_ENV_PATH_JSON", path, 0);
	snprintf(path, sizeof(path), "%s/cufile.log", th_disk_dir());
	setenv("CUFILE_LOGFILE_PATH", path, 0);
	/* a test of direct files is to move bytes directly each time */
	setenv("OCF_HYBRID", "off", 0);
	/* and one of parts is to have them, also where the machine is busy */
	setenv("OCF_HELPERS_REST", "0", 0);
}

static void offer_aliases(void);

void th_start(unsigned watchdog_s)
{
	const char *given = getenv("TEST_SEED");

	owner = getpid();
	if (given)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		abort();
	print_message("TEST_SEED=0x%llx\n", (unsigned long long)seed);
	make_block();
	atexit(clean_up);
	point_away();
	if (getenv("OCF_TEST_ALIAS") && th_fake())
		offer_aliases();
	if (!getenv("OCF_TEST_NO_FERRY"))
		th_ferry_kernel();
	th_shuttle_kernel();
	alarm(watchdog_s * 4);
}

/* -------------------------------------------------------- random bytes */

/* splitmix64 over one shared counter: any thread, no lock. */
uint64_t th_random(void)
{
	static _Atomic uint64_t counter;
	uint64_t z =
		seed + 0x9e3779b97f4a7c15ull *
			       (1 + atomic_fetch_add_explicit(
					    &counter, 1, memory_order_relaxed));

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

size_t th_below(size_t n)
{
	return th_random() % n;
}

void th_fill(void *buf, size_t size)
{
	unsigned char *to = buf;

	while (size) {
		size_t from = th_below(BLOCK_SIZE);
		size_t n = BLOCK_SIZE - from;

		if (n > size)
			n = size;
		copy_from_unseen(to, block + from, n); /* it never changes */
		to += n;
		size -= n;
	}
}

unsigned char *th_bytes(size_t size)
{
	unsigned char *bytes = malloc(size ? size : 1);

	assert_non_null(bytes);
	unseen_begin(); /* nobody knows of them yet */
	th_fill(bytes, size);
	unseen_end();
	return bytes;
}

unsigned char *th_same(int byte, size_t size)
{
	unsigned char *bytes = malloc(size ? size : 1);

	assert_non_null(bytes);
	memset(bytes, byte, size);
	return bytes;
}

void th_equal(const char *what, const void *got, const void *want, size_t size)
{
	const unsigned char *g = got, *w = want;
	size_t i = 0, wrong = 0, first;

	if (!memcmp(got, want, size))
		return;
	while (g[i] == w[i])
		i++;
	first = i;
	for (; i < size; i++)
		wrong += g[i] != w[i];
	fail_msg("%s: byte %zu of %zu is 0x%02x, not 0x%02x; %zu are wrong",
		 what, first, size, g[first], w[first], wrong);
}

void th_all(const char *what, const void *got, int byte, size_t size)
{
	const unsigned char *g = got;

	/* each is as its neighbour: quick where every access is watched */
	if (size && *g == (unsigned char)byte && !memcmp(g, g + 1, size - 1))
		return;
	for (size_t i = 0; i < size; i++)
		if (g[i] != (unsigned char)byte)
			fail_msg("%s: byte %zu of %zu is 0x%02x, not 0x%02x",
				 what, i, size, g[i], (unsigned)byte);
}

/* ------------------------------------------------------------- the GPU */

static pthread_once_t gpu_once = PTHREAD_ONCE_INIT;
static const char *no_gpu; /* the reason, or NULL */
static CUcontext primary, second;
static CUdevice second_gpu;

static void find_gpu(void)
{
	CUdevice dev;
	int nr = 0;

	if (cuInit(0) != CF_CU_SUCCESS)
		no_gpu = "the CUDA driver does not start";
	else if (cuDeviceGetCount(&nr) != CF_CU_SUCCESS || nr < 1)
		no_gpu = "there is no GPU";
	else if (cuDeviceGet(&dev, 0) != CF_CU_SUCCESS ||
		 cuDevicePrimaryCtxRetain(&primary, dev) != CF_CU_SUCCESS)
		no_gpu = "GPU 0 has no context to give";
}

bool th_gpu(const char **why)
{
	pthread_once(&gpu_once, find_gpu);
	if (why)
		*why = no_gpu;
	return !no_gpu;
}

CUcontext th_primary(void)
{
	return primary;
}

void th_thread_gpu(void)
{
	if (th_gpu(NULL))
		(void)cuCtxSetCurrent(primary);
}

void th_need_gpu(void)
{
	const char *why;

	if (!th_gpu(&why))
		th_skip("%s", why);
	assert_int_equal(cuCtxSetCurrent(primary), CF_CU_SUCCESS);
}

CUcontext th_second_ctx(void)
{
	CUcontext popped;

	if (second)
		return second;
	assert_int_equal(cuCtxCreate_v2(&second, 0, second_gpu), CF_CU_SUCCESS);
	assert_int_equal(cuCtxPopCurrent(&popped), CF_CU_SUCCESS);
	return second;
}

void th_second_elsewhere(void)
{
	CUcontext kept; /* or each session of ours would make it anew */
	int nr = 0;

	if (!th_gpu(NULL))
		return;
	assert_int_equal(cuDeviceGetCount(&nr), CF_CU_SUCCESS);
	second_gpu = nr - 1;
	assert_int_equal(cuDevicePrimaryCtxRetain(&kept, second_gpu), 0);
}

static struct th_fake fake;
static bool fake_there;

static void find_fake(void)
{
#define FIND(member, name) \
	do { \
		*(void **)&fake.member = dlsym(RTLD_DEFAULT, name); \
		fake_there = fake_there && fake.member; \
	} while (0)
	fake_there = true;
	FIND(plan, "fakecuda_plan");
	FIND(plan_clear, "fakecuda_plan_clear");
	FIND(calls, "fakecuda_calls");
	FIND(copy_delay_us, "fakecuda_copy_delay_us");
	FIND(legacy_delay_us, "fakecuda_legacy_delay_us");
	FIND(stream_depth, "fakecuda_stream_depth");
	FIND(stream_full, "fakecuda_stream_full");
	FIND(channels, "fakecuda_channels");
	FIND(idle_calls, "fakecuda_idle_calls");
	FIND(reuse_handles, "fakecuda_reuse_handles");
	FIND(lose_context, "fakecuda_lose_context");
	FIND(live, "fakecuda_live");
	FIND(leaks, "fakecuda_leaks");
	FIND(complaints, "fakecuda_complaints");
	FIND(complaints_clear, "fakecuda_complaints_clear");
	FIND(reset, "fakecuda_reset");
	FIND(read, "fakecuda_read");
	FIND(write, "fakecuda_write");
	FIND(alias, "fakecuda_alias");
	FIND(writes_ordering, "fakecuda_writes_ordering");
	FIND(descriptors, "fakecuda_descriptors");
	FIND(restore, "fakecuda_restore");
#undef FIND
}

const struct th_fake *th_fake(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_fake);
	return fake_there ? &fake : NULL;
}

unsigned long th_copies_in(void)
{
	return th_fake()->calls("cuMemcpyHtoDAsync_v2") +
	       th_fake()->calls("cuMemcpy2DAsync_v2");
}

const struct th_fake *th_need_fake(void)
{
	if (!th_fake())
		th_skip("needs the fake CUDA driver");
	th_need_gpu();
	return th_fake();
}

static int count_leaks(void)
{
	static const char *const kinds[] = { "stream", "event", "host_register",
					     "module", "graph", "pool" };
	int failed = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!fake.live(kinds[i]))
			continue;
		print_error("%ld objects of kind %s outlived the close\n",
			    fake.live(kinds[i]), kinds[i]);
		failed++;
	}
	return failed;
}

int th_finish(int failed)
{
	th_close();
	if (!th_fake())
		return failed;
	if (fake.complaints(stderr)) {
		print_error("the driver was misused\n");
		failed++;
	}
	/* a test that failed has not cleaned up */
	return failed ? failed : count_leaks();
}

/* -------------------------------------------------------------- memory */

const char *th_mem_name(enum th_mem_kind kind)
{
	static const char *const names[] = {
		"device", "managed", "pinned", "malloc",
		"mmap",	  "pool",    "VMM",    "second context",
	};

	return names[kind];
}

bool th_mem_is_device(enum th_mem_kind kind)
{
	return kind == TH_DEVICE || kind == TH_POOL || kind == TH_VMM ||
	       kind == TH_SECOND;
}

static bool is_plain(enum th_mem_kind kind)
{
	return kind == TH_MALLOC || kind == TH_MMAP || kind == TH_PINNED;
}

void th_mem_need(enum th_mem_kind kind)
{
	CUdeviceptr ptr;

	if (kind == TH_MALLOC || kind == TH_MMAP) {
		th_thread_gpu();
		return;
	}
	th_need_gpu();
	if (kind == TH_POOL) {
		if (cuMemAllocAsync(&ptr, 4096, NULL) != CF_CU_SUCCESS)
			th_skip("this GPU has no memory pools");
		assert_int_equal(cuMemFreeAsync(ptr, NULL), CF_CU_SUCCESS);
	}
}

static void vmm_prop(CUmemAllocationProp *prop)
{
	memset(prop, 0, sizeof(*prop));
	prop->type = CF_CU_MEM_ALLOCATION_PINNED;
	prop->location.type = CF_CU_MEM_LOCATION_DEVICE;
}

static void vmm_alloc(struct th_mem *mem)
{
	CUmemAllocationProp prop;
	CUmemAccessDesc desc = {
		.location = { .type = CF_CU_MEM_LOCATION_DEVICE },
		.flags = CF_CU_MEM_ACCESS_READWRITE,
	};
	size_t unit = 0;

	vmm_prop(&prop);
	assert_int_equal(cuMemGetAllocationGranularity(&unit, &prop, 0), 0);
	mem->half = (mem->size / 2 / unit + 1) * unit;
	assert_int_equal(
		cuMemAddressReserve(&mem->area, 2 * mem->half, 0, 0, 0), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			cuMemCreate(&mem->handles[i], mem->half, &prop, 0), 0);
		assert_int_equal(cuMemMap(mem->area + i * mem->half, mem->half,
					  0, mem->handles[i], 0),
				 0);
	}
	assert_int_equal(cuMemSetAccess(mem->area, 2 * mem->half, &desc, 1), 0);
	/* the seam lies in the middle of what the test will use */
	mem->ptr = (void *)(uintptr_t)(mem->area + mem->half -
				       (mem->size / 2 & ~(size_t)4095));
}

static void vmm_free(struct th_mem *mem)
{
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			cuMemUnmap(mem->area + i * mem->half, mem->half), 0);
		assert_int_equal(cuMemRelease(mem->handles[i]), 0);
	}
	assert_int_equal(cuMemAddressFree(mem->area, 2 * mem->half), 0);
}

static void enter(const struct th_mem *mem)
{
	if (mem->kind == TH_SECOND)
		assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	else if (mem->kind != TH_MALLOC && mem->kind != TH_MMAP)
		assert_int_equal(cuCtxPushCurrent(primary), 0);
}

static void leave(const struct th_mem *mem)
{
	CUcontext popped;

	if (mem->kind != TH_MALLOC && mem->kind != TH_MMAP)
		assert_int_equal(cuCtxPopCurrent(&popped), 0);
}

static void alloc(struct th_mem *mem)
{
	CUdeviceptr ptr = 0;

	switch (mem->kind) {
	case TH_DEVICE:
	case TH_SECOND:
		assert_int_equal(cuMemAlloc(&ptr, mem->size), 0);
		break;
	case TH_MANAGED:
		assert_int_equal(cuMemAllocManaged(&ptr, mem->size,
						   CF_CU_MEM_ATTACH_GLOBAL),
				 0);
		break;
	case TH_POOL:
		assert_int_equal(cuMemAllocAsync(&ptr, mem->size, NULL), 0);
		assert_int_equal(cuStreamSynchronize(NULL), 0);
		break;
	case TH_VMM:
		vmm_alloc(mem);
		return;
	case TH_PINNED:
		assert_int_equal(cuMemHostAlloc(&mem->ptr, mem->size,
						CF_CU_MEMHOSTALLOC_PORTABLE),
				 0);
		return;
	case TH_MALLOC:
		assert_int_equal(posix_memalign(&mem->ptr, 4096, mem->size), 0);
		return;
	default:
		mem->ptr = mmap(NULL, mem->size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(mem->ptr, MAP_FAILED);
		return;
	}
	mem->ptr = (void *)(uintptr_t)ptr;
}

/* ------------------------------------------------------------- aliases */

static int alias_map(void *arg, int gpu, const void *device, size_t size,
		     void **cpu)
{
	*cpu = th_fake()->alias((CUdeviceptr)(uintptr_t)device, size);
	return *cpu ? 0 : -ENOTSUP;
}

static void alias_unmap(void *arg, void *cpu, size_t size)
{
}

static void offer_aliases(void)
{
	const ocf_alias_provider_t by = { .struct_size = sizeof(by),
					  .map = alias_map,
					  .unmap = alias_unmap };

	assert_int_equal(ocf_alias_set_provider(&by).err, CU_FILE_SUCCESS);
}

bool th_aliased(void)
{
	const char *asked = getenv("OCF_TEST_ALIAS");

	return asked && !strcmp(asked, "all") && th_fake();
}

bool th_emulated(void)
{
	return getenv("OCF_EMULATED");
}

void th_mem_alloc(struct th_mem *mem, enum th_mem_kind kind, size_t size)
{
	*mem = (struct th_mem){ .kind = kind, .size = size };
	enter(mem);
	alloc(mem);
	leave(mem);
	if (th_aliased() && !is_plain(kind))
		assert_int_equal(cuFileBufRegister(mem->ptr, size, 0).err,
				 CU_FILE_SUCCESS);
}

void th_mem_free(struct th_mem *mem)
{
	CUdeviceptr ptr = (uintptr_t)mem->ptr;

	/* a close may have been first */
	if (th_aliased() && !is_plain(mem->kind))
		(void)cuFileBufDeregister(mem->ptr);
	enter(mem);
	switch (mem->kind) {
	case TH_DEVICE:
	case TH_SECOND:
	case TH_MANAGED:
		assert_int_equal(cuMemFree(ptr), 0);
		break;
	case TH_POOL:
		assert_int_equal(cuMemFreeAsync(ptr, NULL), 0);
		assert_int_equal(cuStreamSynchronize(NULL), 0);
		break;
	case TH_VMM:
		vmm_free(mem);
		break;
	case TH_PINNED:
		assert_int_equal(cuMemFreeHost(mem->ptr), 0);
		break;
	case TH_MALLOC:
		free(mem->ptr);
		break;
	default:
		munmap(mem->ptr, mem->size);
	}
	leave(mem);
	mem->ptr = NULL;
}

void th_mem_put(const struct th_mem *mem, size_t at, const void *bytes,
		size_t size)
{
	if (!size)
		return;
	if (is_plain(mem->kind)) {
		memcpy((char *)mem->ptr + at, bytes, size);
		return;
	}
	enter(mem);
	assert_int_equal(cuMemcpyHtoD((uintptr_t)mem->ptr + at, bytes, size),
			 0);
	assert_int_equal(cuCtxSynchronize(), 0);
	leave(mem);
}

void th_mem_get(const struct th_mem *mem, size_t at, void *bytes, size_t size)
{
	if (!size)
		return;
	if (is_plain(mem->kind)) {
		memcpy(bytes, (char *)mem->ptr + at, size);
		return;
	}
	enter(mem);
	assert_int_equal(cuMemcpyDtoH(bytes, (uintptr_t)mem->ptr + at, size),
			 0);
	leave(mem);
}

void th_mem_set(const struct th_mem *mem, int byte)
{
	if (is_plain(mem->kind)) {
		memset(mem->ptr, byte, mem->size);
		return;
	}
	enter(mem);
	assert_int_equal(
		cuMemsetD8((uintptr_t)mem->ptr, (unsigned char)byte, mem->size),
		0);
	assert_int_equal(cuCtxSynchronize(), 0);
	leave(mem);
}

/* --------------------------------------------------------------- files */

bool th_file_mappable(const struct th_file *file)
{
	unsigned long range[2] = { 0 }, stat[5];
	struct statfs fs;

	return !syscall(451 /* cachestat */, file->plain, range, stat, 0) &&
	       !fstatfs(file->plain, &fs) &&
	       (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == TMPFS_MAGIC ||
		fs.f_type == 0x58465342 || fs.f_type == BTRFS_SUPER_MAGIC);
}

const char *th_file_name(enum th_file_kind kind)
{
	static const char *const names[] = {
		"buffered", "O_DIRECT", "forced O_DIRECT",
		"tmpfs",    "memfd",	"unlinked O_DIRECT",
	};

	return names[kind];
}

void th_cells(struct CMUnitTest tests[TH_NR_CELLS], const char *what,
	      CMUnitTestFunction test, CMFixtureFunction teardown)
{
	static struct {
		struct th_cell cell;
		char name[160];
	} all[TH_NR_CELLS];

	for (unsigned i = 0; i < TH_NR_CELLS; i++) {
		struct th_cell *cell = &all[i].cell;

		cell->mem_kind = i / TH_NR_FILE_KINDS;
		cell->file_kind = i % TH_NR_FILE_KINDS;
		snprintf(all[i].name, sizeof(all[i].name),
			 "%s memory and a %s file: %s",
			 th_mem_name(cell->mem_kind),
			 th_file_name(cell->file_kind), what);
		tests[i] = (struct CMUnitTest){
			.name = all[i].name,
			.test_func = test,
			.teardown_func = teardown,
			.initial_state = cell,
		};
	}
}

static const char *temp_dir(char *dir, size_t size, const char *above)
{
	if (*dir)
		return dir;
	snprintf(dir, size, "%s/opencufile-XXXXXX", above);
	if (!mkdtemp(dir)) {
		fprintf(stderr, "%s: %s\n", dir, strerror(errno));
		abort();
	}
	return dir;
}

const char *th_disk_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	return temp_dir(disk_dir, sizeof(disk_dir),
			tmp && *tmp ? tmp : "/var/tmp");
}

const char *th_shm_dir(void)
{
	return temp_dir(shm_dir, sizeof(shm_dir), "/dev/shm");
}

size_t th_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void make_memfd(struct th_file *file, int accmode)
{
	char path[64];

	file->plain = memfd_create("opencufile-test",
				   MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(file->plain >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->plain);
	file->fd = open(path, accmode | O_CLOEXEC);
}

static void make_named(struct th_file *file, int accmode)
{
	static _Atomic unsigned nr;
	bool direct = file->kind == TH_ODIRECT || file->kind == TH_UNLINKED;

	snprintf(file->path, sizeof(file->path), "%s/file-%u",
		 file->kind == TH_TMPFS ? th_shm_dir() : th_disk_dir(),
		 atomic_fetch_add(&nr, 1));
	file->plain =
		open(file->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(file->plain >= 0);
	file->fd =
		open(file->path, accmode | (direct ? O_DIRECT : 0) | O_CLOEXEC);
	if (file->fd < 0 && errno == EINVAL && direct) {
		th_file_end(file);
		th_skip("the file system has no O_DIRECT");
	}
	if (file->kind == TH_UNLINKED)
		unlink(file->path);
}

void th_file_make(struct th_file *file, enum th_file_kind kind, int accmode,
		  const void *bytes, size_t size)
{
	*file = (struct th_file){ .kind = kind, .fd = -1, .plain = -1 };
	if (kind == TH_MEMFD)
		make_memfd(file, accmode);
	else
		make_named(file, accmode);
	assert_true(file->fd >= 0);
	if (bytes)
		th_file_put(file, 0, bytes, size);
	else
		assert_int_equal(ftruncate(file->plain, (off_t)size), 0);
}

void th_file_end(struct th_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->plain >= 0)
		close(file->plain);
	if (*file->path)
		unlink(file->path);
	file->fd = -1;
	file->plain = -1;
}

void th_file_get(const struct th_file *file, off_t at, void *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(file->plain, (char *)bytes + done,
				  size - done, at + (off_t)done);

		if (n <= 0)
			fail_msg("the file ends at %lld, %zu bytes from %lld "
				 "were expected",
				 (long long)th_file_size(file), size,
				 (long long)at);
		done += (size_t)n;
	}
}

void th_file_put(const struct th_file *file, off_t at, const void *bytes,
		 size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pwrite(file->plain, (const char *)bytes + done,
				   size - done, at + (off_t)done);

		if (n <= 0)
			fail_msg("cannot write the test's file: %s",
				 strerror(errno));
		done += (size_t)n;
	}
}

off_t th_file_size(const struct th_file *file)
{
	struct stat st;

	assert_int_equal(fstat(file->plain, &st), 0);
	return st.st_size;
}

/* -------------------------------------------------------------- cuFile */

void th_open_for(enum th_file_kind kind)
{
	CUfileError_t e;

	if (kind == TH_FORCED) {
		e = cuFileSetParameterBool(CUFILE_PARAM_FORCE_ODIRECT_MODE,
					   true);
		assert_int_equal(e.err, CU_FILE_SUCCESS);
	}
	e = cuFileDriverOpen();
	assert_int_equal(e.err, CU_FILE_SUCCESS);
}

void th_slots_of(size_t bytes)
{
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
			bytes / TH_KIB)
			.err,
		0);
}

void th_open(void)
{
	th_open_for(TH_BUFFERED);
}

void th_close(void)
{
	while (cuFileUseCount() > 0)
		if (cuFileDriverClose_v2().err != CU_FILE_SUCCESS)
			break;
}

CUfileHandle_t th_handle(int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };
	CUfileHandle_t fh = NULL;
	CUfileError_t e = cuFileHandleRegister(&fh, &descr);

	assert_int_equal(e.err, CU_FILE_SUCCESS);
	assert_non_null(fh);
	return fh;
}

void th_pair_make(struct th_pair *p, enum th_file_kind kind, size_t size,
		  size_t longer)
{
	th_open();
	*p = (struct th_pair){ .size = size,
			       .bytes = th_bytes(size),
			       .got = malloc(size + longer) };
	assert_non_null(p->got);
	th_file_make(&p->file, kind, O_RDWR, p->bytes, size);
	th_mem_alloc(&p->mem, TH_DEVICE, size + longer);
	th_mem_set(&p->mem, 0xa5);
	p->fh = th_handle(p->file.fd);
}

void th_pair_end(struct th_pair *p)
{
	cuFileHandleDeregister(p->fh);
	th_mem_free(&p->mem);
	th_file_end(&p->file);
	free(p->bytes);
	free(p->got);
	th_close();
}

int th_setup_open(void **state)
{
	(void)state;
	th_thread_gpu();
	th_open();
	return 0;
}

int th_teardown_close(void **state)
{
	(void)state;
	if (th_fake()) {
		th_fake()->plan_clear();
		th_fake()->copy_delay_us(0);
		th_fake()->legacy_delay_us(0);
		th_fake()->stream_depth(0);
		th_fake()->channels(0);
		th_fake()->idle_calls(0);
	}
	th_close();
	return 0;
}

/* ------------------------------------------------------------ the rest */

struct thread {
	void (*fn)(void *arg, unsigned i);
	void *arg;
	unsigned i;
	pthread_t id;
};

static void *thread_main(void *p)
{
	struct thread *t = p;

	th_thread_gpu();
	t->fn(t->arg, t->i);
	return NULL;
}

void th_threads(unsigned nr, void (*fn)(void *arg, unsigned i), void *arg)
{
	struct thread *threads = calloc(nr, sizeof(*threads));

	assert_non_null(threads);
	for (unsigned i = 0; i < nr; i++) {
		threads[i] = (struct thread){ .fn = fn, .arg = arg, .i = i };
		assert_int_equal(pthread_create(&threads[i].id, NULL,
						thread_main, &threads[i]),
				 0);
	}
	for (unsigned i = 0; i < nr; i++)
		pthread_join(threads[i].id, NULL);
	free(threads);
}

/* A directory of them misses some while others end. */
static int threads_now(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	int nr = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) &&
	       sscanf(line, "Threads: %d", &nr) != 1)
		continue;
	fclose(f);
	return nr;
}

static int threads_noted;

static void *tell_tid(void *tid)
{
	*(pid_t *)tid = gettid();
	return NULL;
}

/* A sanitizer starts a thread of its own beside the first of ours. */
void th_threads_note(void)
{
	char path[64];
	pthread_t first;
	pid_t tid;

	pthread_create(&first, NULL, tell_tid, &tid);
	pthread_join(first, NULL);
	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)tid);
	while (!access(path, F_OK))
		th_sleep_ms(1);
	threads_noted = threads_now();
}

/* One that was joined may be seen for a while yet. */
bool th_threads_become(int more)
{
	int nr = threads_now();

	for (int i = 0; i < 20000 && nr != threads_noted + more; i++) {
		th_sleep_ms(1);
		nr = threads_now();
	}
	return nr == threads_noted + more;
}

void th_bad_note(struct th_bad *bad, const char *fmt, ...)
{
	va_list args;

	if (atomic_fetch_add(&bad->nr, 1))
		return;
	va_start(args, fmt);
	vsnprintf(bad->text, sizeof(bad->text), fmt, args);
	va_end(args);
}

void th_bad_check(struct th_bad *bad)
{
	if (atomic_load(&bad->nr))
		fail_msg("%u times wrong in threads; first: %s",
			 atomic_load(&bad->nr), bad->text);
}

bool th_child_has(const void *mem)
{
	void *page = (void *)((uintptr_t)mem & -th_page());
	unsigned char resident;
	int status = -1;
	pid_t pid = th_fork();

	if (!pid)
		_exit(mincore(page, 1, &resident) == 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

int th_count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int nr = -3; /* ".", ".." and the directory's own */

	assert_non_null(d);
	while (readdir(d))
		nr++;
	closedir(d);
	return th_fake() ? nr - th_fake()->descriptors() : nr;
}

void th_print_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	char path[300], target[300];
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && atoi(e->d_name) != dirfd(d))
			print_message("descriptor %s: %.*s\n", e->d_name,
				      (int)n, target);
	}
	closedir(d);
}

_Atomic int64_t th_clock_ns = 1000 * (int64_t)1000000000;
_Atomic int64_t th_clock_look_ns;

int th_clock(clockid_t clock, struct timespec *ts)
{
	int64_t look = atomic_load(&th_clock_look_ns);
	int64_t ns;

	if (clock != CLOCK_MONOTONIC)
		return clock_gettime(clock, ts) ? -errno : 0;
	ns = atomic_fetch_add(&th_clock_ns, look) + look;
	*ts = (struct timespec){ ns / 1000000000, ns % 1000000000 };
	return 0;
}

uint64_t th_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void th_sleep_ms(unsigned ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

pid_t th_fork(void)
{
	pid_t pid;

	if (TH_ASAN)
		th_sleep_ms(100);
	pid = fork();
	if (!pid)
		alarm(60);
	return pid;
}

static void hold(void *arg)
{
	struct th_gate *gate = arg;

	gate->reached = true;
	while (!gate->open)
		th_sleep_ms(1);
}

void th_gate_put(struct th_gate *gate, CUstream stream)
{
	assert_int_equal(cuLaunchHostFunc(stream, hold, gate), 0);
}

void th_gate_reach(const struct th_gate *gate)
{
	while (!gate->reached)
		th_sleep_ms(1);
}
