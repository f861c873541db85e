// SPDX-License-Identifier: Apache-2.0
/*
 * harness - what the data tests share: memory of every kind, files of every
 * kind, fresh random bytes, and the fake driver's controls where it is there.
 *
 * The same programs run on the fake driver and on a real GPU: nothing here
 * needs the fake. th_fake() is NULL on a real driver, and a test that cannot
 * do without says so with th_need_fake(). All th_ functions fail the running
 * test when the machine does not let them do their work.
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
 * configuration and log away from the machine's own, and arms a watchdog
 * that ends a hanging program after four times so many seconds, in which it
 * is to be over several times on an ordinary machine.
 */
void th_start(unsigned watchdog_s);

/*
 * Last call of main, with what cmocka answered: the exit status. Complaints
 * of the fake driver, and objects of ours that outlived the close, count as
 * failures.
 */
int th_finish(int failed);

/*
 * OCF_TEST_ALIAS in the environment: there is a provider of aliases, the fake
 * driver's back door. This is true where it is "all": th_mem_alloc registers.
 */
bool th_aliased(void);

/* An emulator of the processor (./dev arm64): system calls are not the
 * kernel's. */
bool th_emulated(void);

/* Skips the running test, and says why. */
#define th_skip(...) \
	do { \
		print_message("skipped: " __VA_ARGS__); \
		print_message("\n"); \
		skip(); \
	} while (0)

/* -------------------------------------------------------- random bytes */

uint64_t th_random(void); /* any thread */
size_t th_below(size_t n);
/* Fresh bytes; quick, by cutting from a block made at the start. */
void th_fill(void *buf, size_t size);
/* malloc and th_fill; free with free(). */
unsigned char *th_bytes(size_t size);
/* malloc, all bytes the same. */
unsigned char *th_same(int byte, size_t size);

/* Fails the test at the first byte that differs, naming what and where. */
void th_equal(const char *what, const void *got, const void *want, size_t size);
/* Fails unless all bytes are this one. */
void th_all(const char *what, const void *got, int byte, size_t size);

/* ------------------------------------------------------------- the GPU */

/* A GPU and its driver are there; why (may be NULL) gets the reason if not. */
bool th_gpu(const char **why);
/* Makes the primary context of GPU 0 current in this thread, or skips. */
void th_need_gpu(void);
/* For threads the test starts itself: current context, quietly, if any. */
void th_thread_gpu(void);
CUcontext th_primary(void);
/* One more context on GPU 0, made once a process; never current here. */
CUcontext th_second_ctx(void);
/* To be called before that is made: it is on the last GPU. */
void th_second_elsewhere(void);

/* The fake driver's functions, by the names of fakecuda.h. */
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
};
const struct th_fake *th_fake(void); /* NULL on a real driver */
/* Copies to a GPU that the fake driver was asked for, asynchronous ones. */
unsigned long th_copies_in(void);
const struct th_fake *th_need_fake(void); /* or skips; GPU current */

/*
 * Has the fake driver run core/volley_ptx.h, as C; nothing on a real one.
 * before: called as each block comes on, with its number and launch (may be
 * NULL). False: the fake is not there.
 */
bool th_volley_kernel(void (*before)(unsigned block, unsigned seq));
/* Called when a block has claimed its row, before it moves it, if it will. */
void th_volley_claimed(void (*claimed)(unsigned block));
/* Launches of it that had all their blocks come on, and blocks that moved. */
unsigned long th_volley_launches(void);
unsigned long th_volley_moved(void);

/*
 * Likewise core/ferry_ptx.h; th_start does it, unless OCF_TEST_NO_FERRY is set.
 * Launches that have ended, those of them that looked into an aperture, orders
 * that were carried out, and bytes that came out of device memory.
 */
bool th_ferry_kernel(void);
unsigned long th_ferry_launches(void);
unsigned long th_ferry_near(void);
unsigned long th_ferry_orders(void);
unsigned long th_ferry_device_bytes(void);
unsigned long th_ferry_drawn_bytes(void); /* out of pages of the page cache */

/*
 * Another address in this process of shared memory at `at`, `size` bytes of it,
 * or `at` itself. The thread sanitizer takes the two for two memories.
 */
void *th_other_view(void *at, size_t size);

/*
 * Likewise core/shuttle_ptx.h; th_start does it. Trips that have ended, and
 * orders that were carried out.
 */
bool th_shuttle_kernel(void);
unsigned long th_shuttle_trips(void);
unsigned long th_shuttle_orders(void);
/* From now on none comes; all that were launched have come and left then. */
void th_shuttle_keep(void);
void th_shuttle_let(void);
/* It finds an order, and moves nothing until it is let. */
void th_shuttle_hold(bool orders_found);
/* It has come, and does not look until it is let; whether one does so now. */
void th_shuttle_blind(bool is_here);
bool th_shuttle_blinded(void);
/* Time ends none that comes from now on; they leave when they are let. */
void th_shuttle_stay(bool for_good);

/* For such kernels: a copy of words moves each of them whole. */
void th_move_words(char *to, const char *from, size_t n);

/* -------------------------------------------------------------- memory */

enum th_mem_kind {
	TH_DEVICE, /* cuMemAlloc, primary context */
	TH_MANAGED,
	TH_PINNED, /* cuMemHostAlloc */
	TH_MALLOC,
	TH_MMAP,
	TH_POOL,   /* cuMemAllocAsync */
	TH_VMM,	   /* two handles side by side, the seam in the middle */
	TH_SECOND, /* cuMemAlloc in a second context */
	TH_NR_MEM_KINDS
};

struct th_mem {
	enum th_mem_kind kind;
	void *ptr; /* give this to cuFile */
	size_t size;
	CUdeviceptr area; /* VMM: of both mappings */
	size_t half;	  /* VMM: each of them */
	CUmemGenericAllocationHandle handles[2];
};

const char *th_mem_name(enum th_mem_kind kind);
bool th_mem_is_device(enum th_mem_kind kind); /* the CPU must not touch it */
/* Skips the test where this machine has no such memory. */
void th_mem_need(enum th_mem_kind kind);
/* A random filling; ptr is 4096 aligned unless the kind cannot. */
void th_mem_alloc(struct th_mem *mem, enum th_mem_kind kind, size_t size);
void th_mem_free(struct th_mem *mem);
/* Both wait until the bytes are there, whatever the kind. Any thread. */
void th_mem_put(const struct th_mem *mem, size_t at, const void *bytes,
		size_t size);
void th_mem_get(const struct th_mem *mem, size_t at, void *bytes, size_t size);
void th_mem_set(const struct th_mem *mem, int byte);

/* --------------------------------------------------------------- files */

enum th_file_kind {
	TH_BUFFERED,
	TH_ODIRECT,
	TH_FORCED, /* buffered; the driver is opened with force_odirect */
	TH_TMPFS,
	TH_MEMFD,
	TH_UNLINKED, /* O_DIRECT, and its name is gone */
	TH_NR_FILE_KINDS
};

struct th_file {
	enum th_file_kind kind;
	int fd;	   /* for cuFile */
	int plain; /* buffered, of the same file: for checking */
	char path[256];
};

const char *th_file_name(enum th_file_kind kind);

/* A kind of memory with a kind of file. */
struct th_cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
};
#define TH_NR_CELLS (TH_NR_MEM_KINDS * TH_NR_FILE_KINDS)

/*
 * Fills in a test for each cell, which is its state. what: what it shows, for
 * its name. Once in a program.
 */
void th_cells(struct CMUnitTest tests[TH_NR_CELLS], const char *what,
	      CMUnitTestFunction test, CMFixtureFunction teardown);

/* A test whose state is a kind of memory, and that th_close follows. */
#define TH_OF(test, kind) \
	{ \
		.name = #test " (" #kind ")", .test_func = test, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(enum th_mem_kind) \
		{ \
			kind \
		} \
	}
/* Whether its pages can be mapped for a GPU: the kernel tells which are cached,
 * and the file system is one that is known. */
bool th_file_mappable(const struct th_file *file);
/* A directory of ours on disk (TMPDIR, else /var/tmp) or in memory. */
const char *th_disk_dir(void);
const char *th_shm_dir(void);
/* accmode: O_RDWR, O_RDONLY or O_WRONLY for fd. bytes NULL: a hole. */
void th_file_make(struct th_file *file, enum th_file_kind kind, int accmode,
		  const void *bytes, size_t size);
void th_file_end(struct th_file *file);
/* All of [at, at + size) through the plain descriptor. */
void th_file_get(const struct th_file *file, off_t at, void *bytes,
		 size_t size);
void th_file_put(const struct th_file *file, off_t at, const void *bytes,
		 size_t size);
off_t th_file_size(const struct th_file *file);

/* -------------------------------------------------------------- cuFile */

/* Opens the driver (staging force_odirect first if asked), or fails. */
void th_open(void);
/* Of slots at the next open. */
void th_slots_of(size_t bytes);
void th_open_for(enum th_file_kind kind);
/* Closes all uses, so that a failed test does not spoil the next. */
void th_close(void);
CUfileHandle_t th_handle(int fd);
/* A file with a handle, and memory of the GPU that it may go to. */
struct th_pair {
	size_t size;
	unsigned char *bytes, *got; /* the file's; room for the memory's */
	struct th_file file;
	struct th_mem mem; /* 0xa5, and longer than the file if asked for */
	CUfileHandle_t fh;
};
/* Opens the driver, too; the end closes it. */
void th_pair_make(struct th_pair *p, enum th_file_kind kind, size_t size,
		  size_t longer);
void th_pair_end(struct th_pair *p);
/* As setup and teardown of a cmocka test: th_open, th_close. */
int th_setup_open(void **state);
int th_teardown_close(void **state);

/* ------------------------------------------------------------ the rest */

/* Runs fn(arg, 0 .. nr-1) on a thread each, with a GPU context; joins all. */
void th_threads(unsigned nr, void (*fn)(void *arg, unsigned i), void *arg);
/* In such a thread an assert cannot unwind: count, then assert once joined. */
struct th_bad {
	_Atomic unsigned nr;
	char text[160]; /* of the first */
};
void th_bad_note(struct th_bad *bad, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void th_bad_check(struct th_bad *bad);

/* Holds a stream, where it was put into it, until it is opened. */
struct th_gate {
	_Atomic bool open;
	_Atomic bool reached;
};
void th_gate_put(struct th_gate *gate, CUstream stream);
/* Waits until the stream has come to it. */
void th_gate_reach(const struct th_gate *gate);

int th_count_fds(void); /* but for those of the fake driver's pages */
/* Lists them, for whom that number surprises. */
void th_print_fds(void);
uint64_t th_now_ns(void);
void th_sleep_ms(unsigned ms);
/*
 * Beside threads that have just been made. Where one of them is in the address
 * sanitizer's allocator at the fork, that stays locked in the child. A child
 * that hangs all the same ends after a minute.
 */
pid_t th_fork(void);

#endif
