// SPDX-License-Identifier: Apache-2.0
/*
 * spread_world - a file on tmpfs that is written; calls that map its pages,
 * copy to them and write are counted, and fail where asked.
 */
#ifndef TESTS_PATH_SPREAD_WORLD_H
#define TESTS_PATH_SPREAD_WORLD_H

#include "harness.h"

#define SIZE (24 * TH_MIB) /* of the file */
#define LARGE (9 * TH_MIB)

extern _Atomic unsigned mapped, copied, written;
extern int cut; /* a descriptor of a file to be cut, once, or -1 */
extern size_t most_copied;
extern int map_err, copy_err, write_err;

struct world {
	unsigned char *model, *got;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
};

int setup(void **state);
int teardown(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Opens the driver; 7 workers. */
void world_make(struct world *w, enum th_mem_kind mem);
void world_of(struct world *w, enum th_mem_kind mem, size_t workers);
void world_end(struct world *w);

/* New bytes into the model, from there to `at` in memory, and to the file. */
ssize_t write_new(struct world *w, size_t off, size_t size, size_t at);
void check_file(const struct world *w);

#endif
