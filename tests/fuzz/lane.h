// SPDX-License-Identifier: Apache-2.0
/*
 * lane - what one thread of the call fuzzer owns: files, memory, a batch and
 * a stream, and beside them a model: plain bytes that say what must be there.
 *
 * The model is simple on purpose. Each call's answer is foretold from the
 * documents (man 3, behaviour page), the bytes are copied in the model, and
 * whole files and memories are compared, so a byte that strays is seen
 * wherever it went. What is under way (batch, stream) is in the model only
 * when it is settled; until then nothing else touches what it uses.
 */
#ifndef TESTS_FUZZ_LANE_H
#define TESTS_FUZZ_LANE_H

#include "harness.h"
#include "target.h"

/*
 * FUZZ_HOT: all is so large that the kernel driver may pin a file's pages, it
 * is written to more seldom, and left alone for a while now and then.
 */
#ifdef FUZZ_HOT
#define IS_HOT true
#define SCALE 48
#define SPREAD (3 * SCALE - 1) /* for any alignment */
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
	bool ends; /* the driver knows where it ends */
	unsigned char *bytes;
	struct model_range {
		size_t at, size; /* size 0: none */
	} ranges[NR_RANGES];	 /* registered; at differs */
};

/* One call's arguments. */
struct io {
	bool write;
	struct model_file *file;
	struct model_mem *mem;
	CUfileHandle_t fh; /* the file's, or one that is none */
	size_t base;	   /* of the pointer, in mem */
	size_t size;
	off_t file_off, buf_off;
};

struct entry {
	bool out; /* submitted, its event not taken */
	struct io io;
};

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
	unsigned room;			  /* of the batch */
	size_t window;			  /* bytes of one */
	struct entry entries[NR_WINDOWS]; /* by window; the cookie too */
	CUstream stream;
	bool stream_registered;
	struct sop sops[NR_SOPS];
	unsigned nr_sops;
	unsigned char *got;   /* FILE_MAX, for comparing */
	unsigned char *block; /* BLOCK, on a boundary of BLOCK */
};

/* Once: files, memory, stream. Then for each input: fresh bytes, all open. */
void lane_make(struct lane *lane, unsigned nr);
void lane_fill(struct lane *lane, struct input in);
/* So that more calls are of use: files and stream are registered. */
void lane_register(struct lane *lane);
uint64_t lane_random(struct lane *lane);
void lane_random_bytes(struct lane *lane, unsigned char *bytes, size_t size);

/* Everything under way has ended and is in the model. */
void lane_settle(struct lane *lane);
/* All bytes are those of the model; settled. */
void lane_check(struct lane *lane);
/* The library was closed: it knows nothing of us any more; settled. */
void lane_forget(struct lane *lane);
/* Gives back all that the library knows of us. */
void lane_finish(struct lane *lane);

/* What the call must answer: bytes, or a negative errno or cuFile code. */
ssize_t io_expect(const struct io *io);
/* The model after n bytes of it. */
void io_apply(const struct io *io, size_t n);
/*
 * A direct read of host memory that ends at the end of the file may leave
 * zeros behind its bytes, as the kernel does it. What is there is learnt, or
 * such a read is made one of nothing.
 */
void io_learn_tail(const struct io *io, size_t n);
void io_avoid_tail(struct io *io);
void *io_pointer(const struct io *io);
/* Arguments out of the input: mostly sensible, never deadly. */
void io_pick(struct lane *lane, struct io *io);
/* Takes what would touch memory that is not ours away from the range. */
void io_clamp(struct io *io);

/* The calls: each takes its arguments out of the lane's input. */
void call_register(struct lane *lane);
void call_deregister(struct lane *lane);
void call_buf_register(struct lane *lane);
void call_buf_deregister(struct lane *lane);
void call_move(struct lane *lane);
void call_vector(struct lane *lane);
void call_truncate(struct lane *lane);
/* Writes blocks past the library, and leaves files alone; or one of these. */
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
