// SPDX-License-Identifier: Apache-2.0
/*
 * fakecuda.h - what a test may ask of the fake CUDA driver.
 *
 * The fake is a libcuda.so.1 that keeps device memory where the CPU cannot
 * reach it, runs streams as real queues and remembers every misuse. A test
 * links it, or finds these functions with dlsym in the library that the code
 * under test has loaded. All may be called from any thread at any time, also
 * before cuInit and after the driver has "gone"; none counts as a driver call.
 *
 * Pages that were registered read-only and then left their file (truncated,
 * punched, written with O_DIRECT) read as the byte 0xdb.
 *
 * Environment, read once on the first call into the library:
 *   FAKECUDA_GPUS=n             number of GPUs, default 1; 0: no device
 *   FAKECUDA_MEM_MIB=n          memory of each GPU, default 16384
 *   FAKECUDA_PLAN=...           as fakecuda_plan()
 *   FAKECUDA_COPY_DELAY_US=n    as fakecuda_copy_delay_us()
 *   FAKECUDA_LEGACY_DELAY_US=n  as fakecuda_legacy_delay_us()
 *   FAKECUDA_CHANNELS=n         as fakecuda_channels()
 *   FAKECUDA_IDLE_CALLS=1       as fakecuda_idle_calls()
 *   CUDA_LAUNCH_BLOCKING=1      a launch waits for its kernel's end
 *   FAKECUDA_REUSE_HANDLES=1    as fakecuda_reuse_handles()
 *   FAKECUDA_DMABUF=0           dma-buf export answers NOT_SUPPORTED
 *   FAKECUDA_VERSION=n          what cuDriverGetVersion says, default 13000
 *   FAKECUDA_COMPUTE=n          compute capability, 10 times; default 90
 *   FAKECUDA_COHERENT=1         the CPU reaches managed memory on the device
 *   FAKECUDA_MEMORY=path        device memory is what mmap of that file gives,
 *                               anew with each call (memory of a PCI device)
 *   FAKECUDA_DEINIT_AT_EXIT=1   an atexit handler calls fakecuda_deinit()
 *   FAKECUDA_REPORT=1           leaks and complaints to stderr at exit
 *   FAKECUDA_STRICT=1           exit status 99 if there are complaints
 *   FAKECUDA_ABORT=1            abort() at the first complaint, for a debugger
 */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include <stdio.h>

#include "seam/cuda_abi.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- failure by plan */

/*
 * Adds rules "NAME:WHEN=WHAT", separated by commas. NAME is the exported name
 * of an entry point, or * for any call. WHEN is n (the n-th call after this
 * plan was made), n+ (that one and all later) or * (each). WHAT is a CUresult
 * that the call answers without doing anything, or @us: the call succeeds and
 * the work that it queues starts that much later.
 *   "cuMemcpyHtoDAsync_v2:3=719,cuMemHostRegister_v2:*=2,cuStreamCreate:2+=2"
 * Returns 0, or -1 where the text is no plan (then nothing was added).
 */
int fakecuda_plan(const char *text);
void fakecuda_plan_clear(void);

/* Calls of this entry point since start or reset; NULL: of all together. */
unsigned long fakecuda_calls(const char *name);

/* Each copy and memset starts this much late (us). */
void fakecuda_copy_delay_us(unsigned int us);
/* Work of the legacy default streams starts this much late, in addition. */
void fakecuda_legacy_delay_us(unsigned int us);

/*
 * A stream holds nr operations at most, each of a batch of memory operations
 * counted; a call that adds one more waits. 0 (default): any number.
 */
void fakecuda_stream_depth(unsigned int nr);
/* Operations that had to wait for room since start or reset. */
unsigned long fakecuda_stream_full(void);

/*
 * What devices answer about writes to their memory from outside: their order (0
 * none, 100 for the owner, 200 for all), and how they can be flushed (1 by a
 * call, 2 in a stream). 100 and 1 at first.
 */
void fakecuda_writes_ordering(int order, int flush_options);

/*
 * The streams of a context, default ones too, share nr hardware queues, which
 * are dealt out in the order in which streams are made. A stream that has come
 * to a wait (for a value, or for another stream) holds up whatever any stream
 * of its queue was given after that wait, until it is over. Host functions and
 * kernels hold up no other stream. On an H200 (driver 580) 8 streams that wait
 * stop all others of the context. 0 (default): each stream has a queue of its
 * own.
 */
void fakecuda_channels(unsigned int nr);

/*
 * 1: as on an H200 (driver 580), cuMemFree, cuMemFreeHost, cuMemHostUnregister
 * and cuModuleLoadData(Ex) wait until no stream of the context has anything
 * left, and meanwhile let no other call into the context but cuStreamQuery,
 * cuStreamGetCtx, cuCtxGetId, cuCtxPush/Pop/Set/GetCurrent, cuDeviceGet... and
 * what needs no cuInit. Calls that are inside already go on. cuModuleUnload
 * waits, too, but keeps no call out. 0 (default): frees wait for the work that
 * the context has when they begin, loads for nothing, and no call is kept out.
 */
void fakecuda_idle_calls(int on);

/*
 * 1: a new context, stream, event, ... gets the handle value of the last
 * destroyed one, as a real driver's allocator likes to do. 0 (default): handle
 * values are never used again, so that every use of a dead one is recognised.
 * With 1 the addresses of freed memory may be used again soon, too.
 */
void fakecuda_reuse_handles(int on);

/* From now on every call in this context answers 719; NULL: all contexts. */
void fakecuda_lose_context(CUcontext ctx);

/* The driver is gone: every call answers 4. fakecuda_late_calls counts them. */
void fakecuda_deinit(void);
unsigned long fakecuda_late_calls(void);

/* --- accounting */

/*
 * Objects alive of one kind: "ctx" (created ones), "primary_retain", "stream",
 * "event", "mem" (cuMemAlloc), "pool_mem", "managed", "host_alloc",
 * "host_register", "module", "graph", "graph_exec", "pool", "vmm_handle",
 * "vmm_map", "vmm_reserve", "user_object". -1 for an unknown kind.
 */
long fakecuda_live(const char *kind);
/* The sum of all kinds; lists what is alive into f unless f is NULL. */
long fakecuda_leaks(FILE *f);
/* Number of misuses seen; lists them into f unless f is NULL. */
long fakecuda_complaints(FILE *f);
/* The text of complaint n, counted from 0; NULL where there is none. */
const char *fakecuda_complaint(long n);
void fakecuda_complaints_clear(void);

/*
 * A fresh driver: all contexts die, all memory goes, all counters, plans and
 * delays return to their start values, the calling thread's context stack is
 * emptied, a gone driver is back. Nobody else may be inside a call.
 */
void fakecuda_reset(void);

/* --- back doors into device memory: at once, without any stream order */
int fakecuda_read(CUdeviceptr ptr, void *buf, size_t size);
int fakecuda_write(CUdeviceptr ptr, const void *buf, size_t size);

/*
 * The CPU's address of [ptr, ptr + size), valid until the memory is freed: what
 * a provider of aliases offers. NULL: not live memory of a device, or not of
 * one allocation.
 */
void *fakecuda_alias(CUdeviceptr ptr, size_t size);

/* --- kernels by name */

/*
 * One launch, as a kernel sees it. params[i] points to the i-th argument's
 * bytes. A kernel runs on the CPU in stream order and returns 0 or a CUresult
 * that breaks the context, as a fault on a real GPU does.
 */
struct fakecuda_launch {
	const char *name;
	void *const *params;
	unsigned int nr_params;
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int shared_bytes;
	int came_ahead; /* its function for ahead has been called */
};
typedef int (*fakecuda_kernel)(const struct fakecuda_launch *launch);

/*
 * The function of this name runs as fn. Sizes of its parameters are read from
 * the PTX text of the module; fakecuda_register_kernel_sized gives them for
 * modules that are not text. "fakecuda_fill" (u64 ptr, u64 size, u8 byte) is
 * always there, in any module. Returns 0, or -1 where there is no room.
 */
int fakecuda_register_kernel(const char *name, fakecuda_kernel fn);
int fakecuda_register_kernel_sized(const char *name, fakecuda_kernel fn,
				   const size_t *param_sizes,
				   unsigned int nr_params);

/*
 * fn is the part of a registered kernel that runs before the kernel waits for
 * what is before it in its stream (programmatic dependent launch). It is called
 * only if that is a kernel that calls fakecuda_let_next; else a launch with
 * programmatic stream serialization begins like any other.
 */
int fakecuda_register_kernel_ahead(const char *name, fakecuda_kernel fn);
/*
 * In a kernel: if the next operation of the stream is a kernel that may come
 * ahead, calls its function for that, once, on this thread. May be called
 * again.
 */
void fakecuda_let_next(void);

/*
 * In a kernel: where the bytes of [ptr, ptr + size) are for the CPU, valid
 * until the kernel returns. NULL where that is not device-accessible memory
 * (the launch then breaks the context with 700).
 */
void *fakecuda_map(CUdeviceptr ptr, size_t size);

/*
 * As after a checkpoint and its restore: memory of cuMemCreate is other memory,
 * at the same addresses and with the same bytes. Where the CPU has mapped what
 * was exported, it has the memory of before. Nothing uses any of it meanwhile.
 */
void fakecuda_restore(void);

/* Descriptors of the process that the fake has open to keep pinned pages. */
int fakecuda_descriptors(void);

/*
 * In a kernel: copies bytes of pinned pages that were imported, even if they
 * have left the addresses where they were pinned. Answers how many there were,
 * up to the end of the pages; 0: ptr is not in such pages. Holds no memory
 * afterwards.
 */
int fakecuda_load_pinned(CUdeviceptr ptr, void *to, size_t size);

/*
 * In a kernel, on its own thread: 1 if its context is lost or destroyed, or the
 * driver is gone; the kernel should return then. It may run as long as it
 * likes, and poll what it has mapped, but a call that destroys its context (or
 * resets the driver) waits until it returns. Elsewhere: 1 if the driver is
 * gone.
 */
int fakecuda_over(void);

/*
 * In a kernel that tells its end by a word in memory, before it writes that
 * word: the fake no longer counts the kernel's memory as in use. A thread that
 * sees the word may unregister or free the memory at once; on a real driver it
 * would wait for the kernel's last step.
 */
void fakecuda_leave(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
