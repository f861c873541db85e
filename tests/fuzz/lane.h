// SPDX-License-Identifier: Apache-2.0
/*
 * lane - what one thread of the call fuzzer owns: files, memory, a batch and
 * a stream, and beside them a model: plain bytes that say what must be there.
 *
 * The model is simple on purpose. It foretells each call's answer from the
 * documents (man 3, behaviour page) and copies the bytes itself. Whole files
 * and memories are compared, so a byte that strays is seen wherever it went.
 * What a batch or a stream has under way enters the model only when it is
 * settled; until then no other call touches what it uses.
 */
#ifndef TESTS_FUZZ_LANE_H
#define TESTS_FUZZ_LANE_H

#include "harness.h"
#include "target.h"

/*
 * FUZZ_HOT (the program fuzz_hot): files and memory are so large that the
 * kernel driver may pin a file's pages; files are written to more seldom, and
 * left alone for a while now and then.
 */
#ifdef FUZZ_HOT
#define IS_HOT true
#define SCALE 48
#define SPREAD (3 * SCALE - 1) /* times 16 random bits: any alignment */
#define IS_WRITE(bits) (((bits)&0xc1) == 0xc1)
#define MIN_SIZE (FILE_MAX / 2) /* of a file that is new */
#define NR_FILES 2
#define NR_MEMS 2
#define FILE_KINDS \
	{ \
		TH_BUFFERED, TH_ODIRECT \
	}
#define MEM_KINDS \
	{ \
		TH_DEVICE, TH_MANAGED \
	}
#else
#define IS_HOT false
#define SCALE 1
#define SPREAD 3
#define IS_WRITE(bits) ((bits)&1)
#define MIN_SIZE 0
#define NR_FILES 3
#define NR_MEMS 5
#define FILE_KINDS \
	{ \
		TH_ODIRECT, TH_BUFFERED, TH_TMPFS \
	}
#define MEM_KINDS \
	{ \
		TH_DEVICE, TH_POOL, TH_MANAGED, TH_VMM, TH_MALLOC \
	}
#endif

#define BLOCK ((size_t)4096)
#define NR_RANGES 2
#define MEM_SIZE (96 * SCALE * TH_KIB)
#define FILE_MAX (160 * SCALE * TH_KIB)
#define NR_WINDOWS 12
#define MAX_WINDOW ((size_t)8192 * SCALE)
#define NR_SOPS 8

struct model_file {
	struct th_file file;
	bool read_only;
	CUfileHandle_t fh;    /* NULL: not registered */
	CUfileHandle_t stale; /* a former value of it, or NULL */
	size_t size;
	unsigned char *bytes; /* FILE_MAX, zeros behind size */
};

struct model_mem {
	struct th_mem mem;
	bool ends;	      /* the driver knows where it ends */
	unsigned char *bytes; /* MEM_SIZE */
	struct model_range {
		size_t at, size; /* size 0: none */
	} ranges[NR_RANGES];	 /* registered; at differs */
};

/* The arguments of a read or write. */
struct io {
	bool write;
	struct model_file *file;
	struct model_mem *mem;
	CUfileHandle_t fh; /* the file's, or one that must be refused */
	size_t base;	   /* the pointer, as an offset in mem */
	size_t size;
	off_t file_off, buf_off;
};

/* Of a batch. */
struct entry {
	bool out; /* submitted, its event not taken */
	struct io io;
};

/* An operation in the stream; the library reads and writes what follows io. */
struct sop {
	struct io io;
	size_t size;
	off_t file_off, buf_off;
	ssize_t n;
};

struct lane {
	unsigned nr;
	struct input in;
	uint64_t random;
	struct model_file files[NR_FILES];
	struct model_mem mems[NR_MEMS];
	CUfileBatchHandle_t batch; /* NULL: none */
	CUfileBatchHandle_t old_batch;
	unsigned room; /* entries that the batch has place for */
	size_t window; /* bytes of file and memory that are an entry's own */
	struct entry entries[NR_WINDOWS]; /* by window, which is the cookie */
	CUstream stream;
	bool stream_registered;
	struct sop sops[NR_SOPS];
	unsigned nr_sops;
	unsigned char *got;   /* FILE_MAX, for comparing */
	unsigned char *block; /* BLOCK, on a boundary of BLOCK */
};

/* Once: makes files, memory and a stream. */
void lane_make(struct lane *lane, unsigned nr);
/* For each input: fresh bytes, and nothing is registered. */
void lane_fill(struct lane *lane, struct input in);
/* Registers files and stream, so that more calls succeed. */
void lane_register(struct lane *lane);
uint64_t lane_random(struct lane *lane);
void lane_random_bytes(struct lane *lane, unsigned char *bytes, size_t size);

/* Waits for batch and stream; what they did is in the model then. */
void lane_settle(struct lane *lane);
/* Compares all bytes with the model. The lane is settled. */
void lane_check(struct lane *lane);
/* The driver was closed: nothing is registered now. The lane is settled. */
void lane_forget(struct lane *lane);
/* Settles, checks, and deregisters everything. */
void lane_finish(struct lane *lane);

/* What the call must answer: bytes, -errno, or a negative cuFile code. */
ssize_t io_expect(const struct io *io);
/* Moves its first n bytes in the model. */
void io_apply(const struct io *io, size_t n);
/*
 * A direct read into host memory that comes to the end of the file may leave
 * zeros behind its bytes: the kernel does. So the model learns what is there;
 * or such a read is avoided, its size being set to 0.
 */
void io_learn_tail(const struct io *io, size_t n);
void io_avoid_tail(struct io *io);
void *io_pointer(const struct io *io);
/* Arguments out of the input: mostly sensible, never deadly. */
void io_pick(struct lane *lane, struct io *io);
/* Shortens a call that would succeed to memory and file that are the lane's. */
void io_clamp(struct io *io);

/* The calls: each takes its arguments out of the lane's input. */
void call_register(struct lane *lane);
void call_deregister(struct lane *lane);
void call_buf_register(struct lane *lane);
void call_buf_deregister(struct lane *lane);
void call_move(struct lane *lane);
void call_vector(struct lane *lane);
void call_truncate(struct lane *lane);
/* Writes a block past the library, leaves files alone for a while, or both. */
void call_outside(struct lane *lane);

void call_batch_setup(struct lane *lane);
void call_batch_submit(struct lane *lane);
void call_batch_status(struct lane *lane);
void call_batch_cancel(struct lane *lane, bool destroy);
void batch_settle(struct lane *lane);

void call_stream_move(struct lane *lane);
void call_stream_register(struct lane *lane);
void stream_settle(struct lane *lane);

#endif
