// SPDX-License-Identifier: Apache-2.0
/* gpu - the few driver calls needed here, with libcuda opened at run time. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the first GPU. Texts: NULL, or what went wrong. */
const char *gpu_open(void);
/* From now on this thread may allocate and copy. */
const char *gpu_use(void);
/* The same on GPU nr, also for each gpu_use() of this thread after it. */
const char *gpu_use_other(unsigned nr);
bool gpu_is_open(void);
const char *gpu_name(void);
int gpu_driver_version(void);
double gpu_used_mb(void); /* MiB of the card in use, by anybody */

void *gpu_alloc(size_t size);
void *gpu_alloc_managed(size_t size);
void gpu_free(void *mem);
void *gpu_alloc_pinned(size_t size);
void gpu_free_pinned(void *mem);
void gpu_synchronize(void);
bool gpu_to_host(void *dst, const void *src, size_t size);
bool gpu_from_host(void *dst, const void *src, size_t size);

/* Streams are cuFile's CUstream; calls return false when the driver does. */
void *gpu_stream_new(void);
void gpu_stream_free(void *stream);
bool gpu_stream_wait(void *stream);
bool gpu_to_host_async(void *dst, const void *src, size_t size, void *stream);
bool gpu_from_host_async(void *dst, const void *src, size_t size, void *stream);
bool gpu_call_async(void *stream, void (*call)(void *), void *arg);

#endif
