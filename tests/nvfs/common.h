// SPDX-License-Identifier: Apache-2.0
/* common - a file and a registered buffer of a GPU, on the fake machine. */
#ifndef TESTS_NVFS_COMMON_H
#define TESTS_NVFS_COMMON_H

#include <opencufile.h>
#include "fake_nvfs.h"
#include "harness.h"

struct rig {
	struct th_file file;
	struct th_mem mem;
	unsigned char *bytes; /* what the file holds */
	unsigned char *gpu;   /* what the GPU's memory holds */
	size_t size;	      /* of both */
	CUfileHandle_t fh;
};

/* The session is open, the buffer registered. accmode: of the file. */
void rig_begin(struct rig *r, size_t size);
void rig_end(struct rig *r);

/* Both must answer want; then all of file and memory is compared. */
void rig_read(struct rig *r, size_t size, off_t off, size_t at, ssize_t want);
void rig_write(struct rig *r, size_t size, off_t off, size_t at, ssize_t want);
/* Memory and file are what r says. */
void rig_check(struct rig *r, const char *what);

/* The reason that the path by nvidia-fs gives for a read; NULL: it is taken. */
const char *rig_why(struct rig *r, size_t size, off_t off, size_t at);

/* Every test's teardown. */
int rig_teardown(void **state);

#define RIG_TEST(test) cmocka_unit_test_teardown(test, rig_teardown)

#endif
