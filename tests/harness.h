// SPDX-License-Identifier: Apache-2.0
/*
 * harness - what the data tests share: memory of every kind, files of every
 * kind, fresh random bytes, and the controls of the fake CUDA driver.
 *
 * The same programs run on the fake driver and on a real GPU. On a real driver
 * th_fake() is NULL; a test that needs the fake begins with th_need_fake(). A
 * th_ function that cannot do its work fails the running test, unless it says
 * otherwise.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>
#include <cmocka.h>
#include <cufile.h>
#include "cuda_client.h"

#define TH_KIB ((size_t)1 << 10)
#define TH_MIB ((size_t)1 << 20)
#define TH_GIB ((size_t)1 << 30)

/* Loops and sizes shrink where every access is instrumented. */
#if defined(__has_feature)
#define TH_FEATURE(name) __has_feature(name)
#else
#define TH_FEATURE(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || TH_FEATURE(thread_sanitizer)
#define TH_TSAN 1
#else
#define TH_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TH_FEATURE(address_sanitizer)
#define TH_ASAN 1
#else
#define TH_ASAN 0
#endif
#define TH_SANITIZED (TH_TSAN || TH_ASAN)
#define TH_SCALE(n) (TH_SANITIZED ? ((n) + 3) / 4 : (n))

/* ------------------------------------------------------- the whole run */

/*
 * First call of main: prints the seed (TEST_SEED=n repeats a run), points
 * configuration and log away from the machine's own, and sets OCF_HYBRID=off,
 * so that direct files are moved directly each time, and OCF_HELPERS_REST=0, so
 * that requests have parts on a busy machine, too, unless the environment has
 * these. A watchdog ends a program that hangs after 4 * watchdog_s seconds; on
 * an ordinary machine it is to be over several times in watchdog_s.
 */
void th_start(unsigned watchdog_s);

/*
 * Last call of main, with what cmocka answered: closes the driver and answers
 * the exit status. Complaints of the fake driver count as a failure, and so do
 * its objects that outlived the close, if no test has failed.
 */
int th_finish(int failed);

/*
 * With OCF_TEST_ALIAS in the environment th_start offers a provider of aliases,
 * the fake driver's back door. True if it is "all" (and the fake is there):
 * then th_mem_alloc registers the driver's memory.
 */
bool th_aliased(void);

/* An emulator runs the program (./dev arm64), and makes its system calls. */
bool th_emulated(void);

/* Skips the running test, and says why. */
#define th_skip(...) \
	do { \
		print_message("skipped: " __VA_ARGS__); \
		print_message("\n"); \
		skip(); \
	} while (0)

/* -------------------------------------------------------- random bytes */

/* The first three: any thread. */
uint64_t th_random(void);
size_t th_below(size_t n); /* 0 to n - 1 */
/* Random bytes; quick, for they are cut from a block made at the start. */
void th_fill(void *buf, size_t size);
/* Random bytes in memory of malloc; the caller frees them. */
unsigned char *th_bytes(size_t size);
/* Likewise, all bytes the same. */
unsigned char *th_same(int byte, size_t size);

/* Fails the test if bytes differ, and names the first; what: in the text. */
void th_equal(const char *what, const void *got, const void *want, size_t size);
/* Fails unless all bytes are this one. */
void th_all(const char *what, const void *got, int byte, size_t size);

/* ------------------------------------------------------------- the GPU */

/* Whether there is a GPU with a driver; why (may be NULL): a reason if not. */
bool th_gpu(const char **why);
/* Makes the primary context of GPU 0 current in this thread, or skips. */
void th_need_gpu(void);
/* The same in a thread that the test made; does nothing if there is no GPU. */
void th_thread_gpu(void);
CUcontext th_primary(void); /* of GPU 0; NULL before th_gpu */
/* One more context on GPU 0, made at the first call; never current here. */
CUcontext th_second_ctx(void);
/* Before th_second_ctx: that context is made on the last GPU instead. */
void th_second_elsewhere(void);

/* The fake driver's functions; see fakecuda.h for each. */
struct th_fake {
	int (*plan)(const char *text);
	void (*plan_clear)(void);
	unsigned long (*calls)(const char *name);
	void (*copy_delay_us)(unsigned us);
	void (*legacy_delay_us)(unsigned us);
	void (*stream_depth)(unsigned nr);
	unsigned long (*stream_full)(void);
	void (*channels)(unsigned nr);
	void (*idle_calls)(int on);
	void (*reuse_handles)(int on);
	void (*lose_context)(CUcontext ctx);
	long (*live)(const char *kind);
	long (*leaks)(FILE *f);
	long (*complaints)(FILE *f);
	void (*complaints_clear)(void);
	void (*reset)(void);
	int (*read)(CUdeviceptr ptr, void *buf, size_t size);
	int (*write)(CUdeviceptr ptr, const void *buf, size_t size);
	void *(*alias)(CUdeviceptr ptr, size_t size);
	void (*writes_ordering)(int order, int flush_options);
	int (*descriptors)(void);
	void (*restore)(void);
};
const struct th_fake *th_fake(void); /* NULL on a real driver */
/* Asynchronous copies to a GPU since the start; only where the fake is. */
unsigned long th_copies_in(void);
/* Makes GPU 0's context current, too; skips the test on a real driver. */
const struct th_fake *th_need_fake(void);

/*
 * The fake driver cannot run PTX. From here on it runs C for the kernel of
 * core/volley_ptx.h. before (may be NULL) is called when a block begins, with
 * its number and that of its launch. False: the driver is a real one.
 */
bool th_volley_kernel(void (*before)(unsigned block, unsigned seq));
/* claimed: called when a block has claimed its row, before it moves any. */
void th_volley_claimed(void (*claimed)(unsigned block));
/* Launches whose blocks have all run; blocks that have moved their rows. */
unsigned long th_volley_launches(void);
unsigned long th_volley_moved(void);

/*
 * The same for core/ferry_ptx.h. th_start calls it, unless OCF_TEST_NO_FERRY is
 * set. The counts begin at the start of the program.
 */
bool th_ferry_kernel(void);
unsigned long th_ferry_launches(void);	   /* that have ended */
unsigned long th_ferry_near(void);	   /* of those, with an aperture */
unsigned long th_ferry_orders(void);	   /* that were carried out */
unsigned long th_ferry_device_bytes(void); /* out of device memory */
unsigned long th_ferry_drawn_bytes(void);  /* out of pages of the page cache */

/*
 * Another address in this process of the size bytes of shared memory at `at`;
 * `at` if there is none. The thread sanitizer takes the two for two memories.
 */
void *th_other_view(void *at, size_t size);

/*
 * The same for core/shuttle_ptx.h; th_start calls it. A trip is one run of that
 * kernel.
 */
bool th_shuttle_kernel(void);
unsigned long th_shuttle_trips(void);  /* that have ended */
unsigned long th_shuttle_orders(void); /* that were carried out */
/* A kernel that is launched does not begin ... */
void th_shuttle_keep(void);
/* ... until here, which returns when all such kernels have run and left. */
void th_shuttle_let(void);
/* true: a kernel that finds an order does not move its bytes until false. */
void th_shuttle_hold(bool orders_found);
/* true: a kernel that has begun looks for no orders until false. */
void th_shuttle_blind(bool is_here);
/* Whether a kernel has waited so since the last th_shuttle_blind. */
bool th_shuttle_blinded(void);
/* true: a kernel does not leave because its time is over, until false. */
void th_shuttle_stay(bool for_good);

/* How kernels in C copy: aligned words are each moved whole. */
void th_move_words(char *to, const char *from, size_t n);

/* -------------------------------------------------------------- memory */

enum th_mem_kind {
	TH_DEVICE, /* cuMemAlloc, primary context */
	TH_MANAGED,
	TH_PINNED, /* cuMemHostAlloc */
	TH_MALLOC,
	TH_MMAP,
	TH_POOL,   /* cuMemAllocAsync */
	TH_VMM,	   /* two mappings side by side, the seam in the middle */
	TH_SECOND, /* cuMemAlloc in a second context */
	TH_NR_MEM_KINDS
};

struct th_mem {
	enum th_mem_kind kind;
	void *ptr; /* give this to cuFile */
	size_t size;
	/* TH_VMM alone: where both mappings lie, and bytes of each */
	CUdeviceptr area;
	size_t half;
	CUmemGenericAllocationHandle handles[2];
};

const char *th_mem_name(enum th_mem_kind kind);
bool th_mem_is_device(enum th_mem_kind kind); /* the CPU must not touch it */
/* Skips the test where this machine has no such memory. */
void th_mem_need(enum th_mem_kind kind);
/* The bytes are not set. ptr is 4096 aligned unless the kind cannot. */
void th_mem_alloc(struct th_mem *mem, enum th_mem_kind kind, size_t size);
void th_mem_free(struct th_mem *mem);
/* Copy bytes in and out, of every kind, and wait for them. Any thread. */
void th_mem_put(const struct th_mem *mem, size_t at, const void *bytes,
		size_t size);
void th_mem_get(const struct th_mem *mem, size_t at, void *bytes, size_t size);
void th_mem_set(const struct th_mem *mem, int byte);

/* --------------------------------------------------------------- files */

enum th_file_kind {
	TH_BUFFERED,
	TH_ODIRECT,
	TH_FORCED, /* buffered; th_open_for opens with force_odirect */
	TH_TMPFS,
	TH_MEMFD,
	TH_UNLINKED, /* O_DIRECT, and its name is gone */
	TH_NR_FILE_KINDS
};

struct th_file {
	enum th_file_kind kind;
	int fd;		/* for cuFile */
	int plain;	/* buffered, of the same file: for checking */
	char path[256]; /* "" for a memfd */
};

const char *th_file_name(enum th_file_kind kind);

/* A kind of memory with a kind of file. */
struct th_cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
};
#define TH_NR_CELLS (TH_NR_MEM_KINDS * TH_NR_FILE_KINDS)

/*
 * Fills in a test for each cell; the test's state is its struct th_cell. what:
 * the behaviour, for the test's name. Once in a program.
 */
void th_cells(struct CMUnitTest tests[TH_NR_CELLS], const char *what,
	      CMUnitTestFunction test, CMFixtureFunction teardown);

/* A test whose state is an enum th_mem_kind; th_teardown_close follows it. */
#define TH_OF(test, kind) \
	{ \
		.name = #test " (" #kind ")", .test_func = test, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(enum th_mem_kind) \
		{ \
			kind \
		} \
	}
/* Bytes of a page of the page cache; of 64 KiB in tests with path/pages.c. */
size_t th_page(void);
/* Whether windows may show it: the kernel has cachestat, and the file system is
 * one that core/windows_look.c trusts. */
bool th_file_mappable(const struct th_file *file);
/* A directory on disk (in TMPDIR, else /var/tmp) or in memory (/dev/shm), which
 * is removed at exit. */
const char *th_disk_dir(void);
const char *th_shm_dir(void);
/*
 * accmode: O_RDWR, O_RDONLY or O_WRONLY, for fd. bytes NULL: a hole of that
 * size. Skips the test if the file system has no O_DIRECT and the kind needs
 * it.
 */
void th_file_make(struct th_file *file, enum th_file_kind kind, int accmode,
		  const void *bytes, size_t size);
void th_file_end(struct th_file *file);
/* All of [at, at + size), through the plain descriptor. */
void th_file_get(const struct th_file *file, off_t at, void *bytes,
		 size_t size);
void th_file_put(const struct th_file *file, off_t at, const void *bytes,
		 size_t size);
off_t th_file_size(const struct th_file *file);

/* -------------------------------------------------------------- cuFile */

void th_open(void);
/* The next open makes slots of this size. */
void th_slots_of(size_t bytes);
/* Opens the driver for files of this kind; TH_FORCED: with force_odirect. */
void th_open_for(enum th_file_kind kind);
/* Closes the driver as often as it is open: also after a test that failed. */
void th_close(void);
CUfileHandle_t th_handle(int fd);
/* A file with a handle, and device memory that it may be read into. */
struct th_pair {
	size_t size;		    /* of the file */
	unsigned char *bytes, *got; /* the file's; room for the memory's */
	struct th_file file;
	struct th_mem mem; /* 0xa5 all over, `longer` bytes more than size */
	CUfileHandle_t fh;
};
/* th_pair_make opens the driver, th_pair_end closes it. */
void th_pair_make(struct th_pair *p, enum th_file_kind kind, size_t size,
		  size_t longer);
void th_pair_end(struct th_pair *p);
/* Setup of a cmocka test: th_open. Teardown: th_close, and the fake driver has
 * no plan, no delays and no limits any more. */
int th_setup_open(void **state);
int th_teardown_close(void **state);

/* ------------------------------------------------------------ the rest */

/* Runs fn(arg, 0 .. nr-1) on a thread each, with a GPU context; joins all. */
void th_threads(unsigned nr, void (*fn)(void *arg, unsigned i), void *arg);
/* Notes how many threads the process has: call it while none is ours. */
void th_threads_note(void);
/* Waits until there are so many more than noted; false: it is not to be. */
bool th_threads_become(int more);
/* In such a thread no assert may be used: note what is wrong, and check it when
 * the threads have been joined. Any thread. */
struct th_bad {
	_Atomic unsigned nr;
	char text[160]; /* of the first note */
};
void th_bad_note(struct th_bad *bad, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void th_bad_check(struct th_bad *bad);

/* A host function in a stream that holds it until the test sets open. */
struct th_gate {
	_Atomic bool open;
	_Atomic bool reached;
};
/* The gate must live until the stream has passed it. */
void th_gate_put(struct th_gate *gate, CUstream stream);
/* Waits until the stream has come to the gate. */
void th_gate_reach(const struct th_gate *gate);

/*
 * For cf_os: a CLOCK_MONOTONIC that nothing but the test moves, and each look
 * by th_clock_look_ns. It begins at 1000 s. Other clocks are the machine's.
 */
extern _Atomic int64_t th_clock_ns, th_clock_look_ns;
int th_clock(clockid_t clock, struct timespec *ts);

/* Whether a child has the page that mem lies in; an emulator's has all. */
bool th_child_has(const void *mem);

/* Open descriptors, without those that the fake driver has for pinned pages. */
int th_count_fds(void);
/* Prints a line for each, to find out what th_count_fds has counted. */
void th_print_fds(void);
uint64_t th_now_ns(void);
void th_sleep_ms(unsigned ms);
/*
 * fork beside threads that have just been made. With the address sanitizer it
 * waits a little first: if a thread is in its allocator at the fork, that stays
 * locked in the child. A child that hangs all the same ends after a minute.
 */
pid_t th_fork(void);

#endif
