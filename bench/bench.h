// SPDX-License-Identifier: Apache-2.0
/*
 * bench - measures libcufiles against each other and against a loop written
 * by hand, side by side in one run.
 *
 * Each library lives in a process of its own, because two of them cannot
 * share one. The parent walks the grid and asks them in turns, so that a
 * machine that drifts drifts for all.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <cufile.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_NAME 32

enum memory { MEMORY_DEVICE, MEMORY_HOST };

/* One place in the grid. Travels through a pipe as it is. */
struct cell {
	char file[256]; /* holds the pattern, see pattern.c */
	size_t file_size;
	bool write, direct, registered;
	enum memory memory;
	size_t size;
	unsigned threads;
	double seconds;
};

struct result {
	char error[160]; /* empty: the numbers stand, and the data was right */
	bool stale;	 /* a write right after a plain copy took old bytes */
	double bytes_per_s, ops_per_s, p50_us, p99_us, cpu_s_per_gb;
};

/* What a mover can do; library.c and byhand.c fill one each. */
struct mover {
	CUfileError_t (*open)(void);
	CUfileError_t (*handle_register)(CUfileHandle_t *fh,
					 CUfileDescr_t *descr);
	void (*handle_deregister)(CUfileHandle_t fh);
	CUfileError_t (*buf_register)(const void *base, size_t size, int flags);
	CUfileError_t (*buf_deregister)(const void *base);
	ssize_t (*read)(CUfileHandle_t fh, void *base, size_t size,
			off_t file_off, off_t buf_off);
	ssize_t (*write)(CUfileHandle_t fh, const void *base, size_t size,
			 off_t file_off, off_t buf_off);
};

/* "byhand", or the path of a libcufile. NULL, or what went wrong. */
const char *mover_load(const char *name, struct mover *mover);
const char *byhand_load(struct mover *mover);

/* Runs one cell in this process; result->error tells of a failure. */
void cell_run(const struct mover *mover, const struct cell *cell,
	      struct result *result);

/* gpu.c: the few driver calls needed here. NULL, or what went wrong. */
const char *gpu_open(void);
const char *gpu_use(void); /* this thread may allocate and copy */
void *gpu_alloc(size_t size);
void gpu_free(void *mem);
void *gpu_alloc_pinned(size_t size);
void gpu_free_pinned(void *mem);
void gpu_synchronize(void);
bool gpu_to_host(void *dst, const void *src, size_t size);
bool gpu_from_host(void *dst, const void *src, size_t size);

/* pattern.c: the byte that belongs at each place, for a seed. */
void pattern_fill(void *mem, size_t size, uint64_t off, uint64_t seed);
bool pattern_check(const void *mem, size_t size, uint64_t off, uint64_t seed);

double now_s(void);

#endif
