// SPDX-License-Identifier: Apache-2.0
/*
 * spread_world - a file on tmpfs that is written. The system calls that map its
 * pages, copy to them and write it are counted, and fail where asked.
 */
#ifndef TESTS_PATH_SPREAD_WORLD_H
#define TESTS_PATH_SPREAD_WORLD_H

#include "harness.h"

#define SIZE (24 * TH_MIB) /* of the file */
#define LARGE (9 * TH_MIB)

extern _Atomic unsigned mapped, copied, written; /* calls since the setup */
extern int cut;		   /* a file that the next copy cuts, or -1 */
extern size_t most_copied; /* most bytes of a copy */
extern int map_err, copy_err, write_err; /* -errno that they answer, or 0 */

struct world {
	unsigned char *model, *got; /* what the file must hold; for comparing */
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
};

int setup(void **state);
int teardown(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Both open the driver; world_make with 7 workers. */
void world_make(struct world *w, enum th_mem_kind mem);
void world_of(struct world *w, enum th_mem_kind mem, size_t workers);
void world_end(struct world *w);

/* Puts new bytes into the model and at `at` in memory, and writes them. */
ssize_t write_new(struct world *w, size_t off, size_t size, size_t at);
void check_file(const struct world *w);

#endif
