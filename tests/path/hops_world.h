// SPDX-License-Identifier: Apache-2.0
/*
 * hops_world - a file, memory, time that stands still, and a driver that has
 * an aperture; what reads into the aperture is seen and can be refused.
 */
#ifndef TESTS_PATH_HOPS_WORLD_H
#define TESTS_PATH_HOPS_WORLD_H

#include <stdatomic.h>
#include "harness.h"
#include "seam/os.h"

#define HW_SPAN ((size_t)3 << 19) /* of each thread, in file and in memory */
#define HW_THREADS 16
#define HW_STEP (16 * TH_KIB) /* of a part */
#define HW_CANARY 0xa5

struct hops_world {
	struct th_file file;
	struct th_mem mem;
	unsigned char *bytes; /* the file's */
	CUfileHandle_t fh;
	unsigned threads;
};
extern struct hops_world hw;
extern struct cf_os hw_os;	   /* the table; its rows may be replaced */
extern atomic_int hw_refusal;	   /* what a read into the aperture answers */
extern atomic_uint hw_near_reads;  /* so many there were */
extern _Atomic int64_t hw_look_ns; /* time goes on by each look at it, */
extern atomic_uint hw_nap_ms;	   /* which takes so long */

/* First of main: the driver is one that has an aperture. */
void hw_start(unsigned watchdog_s);

void hw_begin(unsigned threads, enum th_file_kind kind,
	      enum th_mem_kind mem_kind);
void hw_end(void);

/* What rests has rested then; reads do not come fast any more. */
void hw_pass_time(void);
void hw_pass_us(unsigned us);
/* Whether mem lies in an aperture. */
bool hw_is_near(const void *mem);

/*
 * One read of a thread between canaries, of fresh bytes; past the end of the
 * file it ends there. Answers whether all was well.
 */
void hw_read(struct th_bad *bad, unsigned thread, size_t size, size_t file_off,
	     size_t mem_off);
/* Reads after which they come fast, and a kernel pays. */
void hw_warm_up(void);
/* How many parts a read has. */
unsigned long hw_parts(size_t size, size_t file_off);
/* So many of a read's parts went by the shuttle. */
unsigned long hw_orders(size_t size, size_t file_off, size_t mem_off);
/* All of its parts go by the shuttle; warms up if it must. */
void hw_read_near(size_t size, size_t file_off, size_t mem_off);
/* None of them does. */
void hw_read_far(size_t size, size_t file_off, size_t mem_off);

#endif
