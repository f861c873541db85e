// SPDX-License-Identifier: Apache-2.0
/*
 * store - a user-space file system in memory, whose server moves bytes by
 * RDMA where it is told how to, and a configuration that names NICs.
 */
#ifndef TESTS_RDMA_STORE_H
#define TESTS_RDMA_STORE_H

#include <netinet/in.h>
#include "fake_verbs.h"
#include "harness.h"

struct store {
	unsigned char *bytes;
	size_t size;
	size_t portion; /* most bytes a call moves */
	ssize_t fail;	/* what calls answer, if it is not 0 */
	bool host_only; /* it answers ENOTSUP to a description */
	/* what it says of NICs */
	const char *hosts[4];
	int nr_hosts;	   /* what it answers if negative: -errno */
	int priorities[4]; /* of 10.0.0.1 and on; 0: none of its own */
	void (*meanwhile)(struct store *s);
	/* what it saw */
	_Atomic unsigned by_rdma, by_host, hosts_asked, priorities_asked;
	_Atomic unsigned bad; /* moves that no NIC would have done */
	struct fake_desc last;
	_Atomic unsigned used[4]; /* moves by mlx5_0 and on */
	struct sockaddr_in list[4];
};

/* size fresh bytes; store_end frees them. */
void store_begin(struct store *s, size_t size);
void store_end(struct store *s);
CUfileHandle_t store_handle(struct store *s);
/* The same, and what the registration answers. */
int store_register(struct store *s, CUfileHandle_t *fh);

/* Opens the driver with these NICs, and more properties ("" or ", ..."). */
void store_open(const char *nics, const char *more);
/* Closes it; the configuration is the test's own again. */
void store_close(void);
/* As setup and teardown of a cmocka test: fake NICs, and none; store_close. */
int store_setup(void **state);
int store_teardown(void **state);

/* Device memory of this size, registered, random. */
void store_mem(struct th_mem *mem, size_t size, int flags);

/* A store, a file of it, and registered memory that is 4096 bytes longer. */
struct rig {
	struct store s;
	struct th_mem mem;
	CUfileHandle_t fh;
};
/* After store_begin; opens the driver as store_open does. */
void rig_begin(struct rig *r, const char *nics, const char *more);
/* Ends all, the driver included: nothing is left at the NICs. */
void rig_end(struct rig *r);

/* By which path a read goes, and why not by rdma. Both last until the next. */
const char *store_path(CUfileHandle_t fh, const void *buf, size_t size,
		       const char **why_not);

/* Reads or writes, and looks at all bytes of memory and store. */
void store_check_read(struct store *s, CUfileHandle_t fh,
		      const struct th_mem *mem, size_t size, off_t off,
		      size_t at, ssize_t want);
void store_check_write(struct store *s, CUfileHandle_t fh,
		       const struct th_mem *mem, size_t size, off_t off,
		       size_t at, ssize_t want);

#endif
