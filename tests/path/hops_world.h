// SPDX-License-Identifier: Apache-2.0
/*
 * hops_world - a file, memory, time that stands still, and a driver that has an
 * aperture; reads into the aperture are counted and can be refused.
 *
 * Each of up to HW_THREADS threads has HW_SPAN bytes of the file and of the
 * memory for itself.
 */
#ifndef TESTS_PATH_HOPS_WORLD_H
#define TESTS_PATH_HOPS_WORLD_H

#include <stdatomic.h>
#include "harness.h"
#include "seam/os.h"

#define HW_SPAN ((size_t)3 << 19)
#define HW_THREADS 16
#define HW_STEP (16 * TH_KIB) /* bytes of a part */
#define HW_CANARY 0xa5

struct hops_world {
	struct th_file file;
	struct th_mem mem;
	unsigned char *bytes; /* the file's */
	CUfileHandle_t fh;
	unsigned threads;
};
extern struct hops_world hw;
extern struct cf_os hw_os;	  /* the table; its rows may be replaced */
extern atomic_int hw_refusal;	  /* errno of reads into the aperture, or 0 */
extern atomic_uint hw_near_reads; /* reads into the aperture since hw_begin */
extern atomic_uint hw_nap_ms;	  /* real time that a look at th_clock takes */

/* First of main: the driver is one that has an aperture. */
void hw_start(unsigned watchdog_s);

void hw_begin(unsigned threads, enum th_file_kind kind,
	      enum th_mem_kind mem_kind);
void hw_end(void);

/* 10 s pass: each rest (core/rest.h) is over, reads do not come fast now. */
void hw_pass_time(void);
void hw_pass_us(unsigned us);
/* Whether mem lies in an aperture. */
bool hw_is_near(const void *mem);

/*
 * One read of fresh bytes in a thread's part of file and memory, between
 * canaries. A read past the end of the file must end there. What is wrong is
 * noted in *bad.
 */
void hw_read(struct th_bad *bad, unsigned thread, size_t size, size_t file_off,
	     size_t mem_off);
/* Many small reads: then reads count as coming fast, so that a kernel pays. */
void hw_warm_up(void);
/* How many parts a read has. */
unsigned long hw_parts(size_t size, size_t file_off);
/* Reads; how many parts went by the shuttle. */
unsigned long hw_orders(size_t size, size_t file_off, size_t mem_off);
/* Reads; all parts must go by the shuttle. Warms up if they do not at first. */
void hw_read_near(size_t size, size_t file_off, size_t mem_off);
/* Reads; no part may go by the shuttle. */
void hw_read_far(size_t size, size_t file_off, size_t mem_off);

#endif
