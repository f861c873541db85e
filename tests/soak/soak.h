// SPDX-License-Identifier: Apache-2.0
/*
 * soak - a worker, and what it may do.
 *
 * A worker has a file, memory and a copy of what the file must hold, and shares
 * none of them. Its thread does one op after the other, each while the driver
 * is kept open for it (soak.c). What is wrong goes into *bad, and the soak ends
 * at once.
 */
#ifndef TESTS_SOAK_H
#define TESTS_SOAK_H

#include "harness.h"

#define SOAK_SIZE ((size_t)1 << 20) /* of the file */
#define SOAK_MEM (2 * SOAK_SIZE)    /* of the memory */
#define SOAK_ENTRIES 16

struct soak_worker {
	struct th_bad *bad;
	struct th_file file;
	struct th_mem mem;
	unsigned char *shadow;	/* SOAK_SIZE bytes that the file must hold */
	unsigned char *scratch; /* SOAK_SIZE bytes, for comparing */
	CUfileHandle_t fh;
	CUstream stream;     /* NULL: no GPU */
	bool registered;     /* mem is, as a buffer */
	unsigned long bytes; /* moved so far */
};

struct soak_op {
	const char *name;
	void (*run)(struct soak_worker *w);
	unsigned weight; /* percent of the ops; see some_op in soak.c */
	bool needs_gpu;
};

extern const struct soak_op soak_ops[];
extern const unsigned soak_nr_ops;

void soak_worker_make(struct soak_worker *w, unsigned i, struct th_bad *bad);
void soak_worker_end(struct soak_worker *w);
/* After a close, which ends all registrations, and an open: a new handle. */
void soak_worker_renew(struct soak_worker *w);

/* Kinds of mappings of the process. */
enum soak_kind {
	SOAK_HEAP,
	SOAK_STACK, /* of threads, too */
	SOAK_ANON,
	SOAK_NVIDIA,
	SOAK_FILE,
	SOAK_NR_KINDS
};

struct soak_memory {
	bool seen;
	unsigned long sessions; /* until then */
	long malloced_kib;	/* soak_malloced_kib */
	struct {
		unsigned nr; /* mappings */
		long kib;    /* resident */
	} kinds[SOAK_NR_KINDS];
};

/* KiB that malloc has given out; 0: not known. */
long soak_malloced_kib(void);
void soak_memory_look(struct soak_memory *m);
void soak_memory_print(const struct soak_memory *m);

#endif
