// SPDX-License-Identifier: Apache-2.0
/*
 * opencufile.h - what this library adds to the calls of cufile.h.
 *
 * By family: explain (which way bytes would travel, and why), configuration
 * (every value, and where it came from), statistics (for which those of
 * cufile.h have no room), alias (how the CPU reaches memory of a GPU), streams
 * (batches in stream order, and offsets by value). The rules of cufile.h hold:
 * any thread, but not from device code; cu_err is 0 unless err is 5011.
 *
 * A program that must also run on another libcufile should look these calls up
 * with dlsym(3). Structs only grow at their end: the caller stores the size it
 * was compiled with in struct_size, and the library fills no more than that.
 */
#ifndef OPENCUFILE_H
#define OPENCUFILE_H

#include <cufile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------ explain */

typedef enum ocf_op {
	OCF_READ = 0, /* file to memory */
	OCF_WRITE = 1 /* memory to file */
} ocf_op_t;

typedef enum ocf_memory {
	OCF_MEMORY_HOST = 0,   /* the CPU can address it, pinned or not */
	OCF_MEMORY_DEVICE = 1, /* a GPU's own memory */
	OCF_MEMORY_MANAGED = 2 /* migrates between the two */
} ocf_memory_t;

/* A number that is not known. */
#define OCF_UNKNOWN UINT64_MAX

/* A path that would not be taken. */
typedef struct ocf_refusal {
	const char *path;
	const char *reason; /* a sentence for people */
	const char *remedy; /* what would change it; NULL: nothing would */
} ocf_refusal_t;

#define OCF_MAX_REFUSALS 16

/*
 * How a request would be carried if it were made now, and ran alone. All texts
 * belong to the library and stay valid. Byte counts do not consider where the
 * file ends.
 */
typedef struct ocf_explain {
	size_t struct_size; /* in: sizeof(ocf_explain_t) as compiled */
	/* 0; or the errno with which the call would fail, moving no byte */
	int code;
	ocf_op_t op;
	ocf_memory_t memory;
	int gpu;	     /* the memory's; -1: none */
	unsigned handle;     /* the file's number in the log */
	unsigned block;	     /* bytes: the alignment that O_DIRECT needs */
	const char *path;    /* "host", "staged", ...; NULL: no path can */
	const char *problem; /* what is wrong with the call; NULL: nothing */
	/* why bytes go through the page cache; NULL: none do */
	const char *page_cache;
	const char *page_cache_remedy; /* what would change that; or NULL */
	/* memory, file offset and size are all multiples of block */
	unsigned aligned;
	unsigned registered;	 /* a registered buffer has all of the range */
	uint64_t size;		 /* bytes asked for */
	uint64_t direct_bytes;	 /* that go O_DIRECT */
	uint64_t buffered_bytes; /* that go through the page cache */
	uint64_t cached_bytes;	 /* in the page cache now; or OCF_UNKNOWN */
	unsigned carriers; /* threads that carry it, the caller among them */
	unsigned nr_refusals;
	uint64_t parts; /* into which it is cut */
	uint64_t part_size;
	ocf_refusal_t refusals[OCF_MAX_REFUSALS]; /* in order of preference */
} ocf_explain_t;

#pragma GCC visibility push(default)

/**
 * ocf_explain_read - which way a cuFileRead would go, and why not another.
 * @fh, @bufPtr_base, @size, @file_offset, @bufPtr_offset: as for cuFileRead.
 * @explain: the caller's, with struct_size set; the rest is filled.
 *
 * Decides as the call would, and moves no byte: the file is not read, the
 * memory not touched. It may open the file once more, as the call would. That a
 * call would fail is an answer too, in code and problem of @explain. What only
 * IO can find out (an address where nothing is mapped, a full disk) is not
 * foreseen.
 *
 * Errors: 5022 (@explain NULL, or struct_size too small).
 */
CUfileError_t ocf_explain_read(CUfileHandle_t fh, const void *bufPtr_base,
			       size_t size, off_t file_offset,
			       off_t bufPtr_offset, ocf_explain_t *explain);

/**
 * ocf_explain_write - which way a cuFileWrite would go, and why not another.
 * @fh, @bufPtr_base, @size, @file_offset, @bufPtr_offset: as for cuFileWrite.
 * @explain: the caller's, with struct_size set; the rest is filled.
 *
 * Errors: 5022 (@explain NULL, or struct_size too small).
 */
CUfileError_t ocf_explain_write(CUfileHandle_t fh, const void *bufPtr_base,
				size_t size, off_t file_offset,
				off_t bufPtr_offset, ocf_explain_t *explain);

/**
 * ocf_explain_memory - the same, for memory that need not exist.
 * @fh: a registered handle.
 * @op: read or write.
 * @memory: the kind of memory; GPU memory is assumed to be plain memory of GPU
 *	0, not registered. The machine need not have a GPU.
 * @size, @file_offset: as for cuFileRead.
 * @bufPtr_offset: from an address that is aligned to every block size.
 * @explain: the caller's, with struct_size set; the rest is filled.
 *
 * Errors: 5022 (@explain NULL, struct_size too small, no such @op or
 * @memory).
 */
CUfileError_t ocf_explain_memory(CUfileHandle_t fh, ocf_op_t op,
				 ocf_memory_t memory, size_t size,
				 off_t file_offset, off_t bufPtr_offset,
				 ocf_explain_t *explain);

/**
 * ocf_explain_text - the answer as the one line that the log would have.
 * @explain: filled by one of the calls above.
 * @text: receives the line, cut to fit and ended with NUL; may be NULL when
 *	@len is 0.
 * @len: bytes of @text.
 *
 * Returns the length of the whole line, as snprintf(3) does; 0 for NULL or a
 * struct_size that is too small.
 */
size_t ocf_explain_text(const ocf_explain_t *explain, char *text, size_t len);

#pragma GCC visibility pop

/* ------------------------------------------------------ configuration */

/* A configuration key with its value. The pointers belong to the library. */
typedef struct ocf_config {
	size_t struct_size; /* in: sizeof(ocf_config_t) as compiled */
	const char *key;    /* as in the file, with dots; or a variable */
	const char *help;
	const char *env; /* the variable that sets it, or NULL */
	/* why nothing acts on it; NULL: something does */
	const char *no_effect;
	char value[1024]; /* as the file would have it, cut to fit */
	/* "default", "FILE:LINE", "environment NAME", "API" */
	char origin[1024];
	/* the number that the library uses instead of the value, because a
	 * value equal to the default leaves the choice to it; empty: the value
	 */
	char in_force[64];
} ocf_config_t;

#pragma GCC visibility push(default)

/**
 * ocf_config_get - one value of the configuration, and where it came from.
 * @index: from 0 on, in the order of the table.
 * @config: the caller's, with struct_size set; the rest is filled.
 *
 * Opens the driver if it is closed, without counting a use.
 *
 * Errors: those of cuFileDriverOpen; 5022 (past the last, @config NULL, or
 * struct_size too small).
 */
CUfileError_t ocf_config_get(unsigned index, ocf_config_t *config);

/**
 * ocf_config_note - a mistake that was found in the configuration.
 * @index: from 0 on.
 * @text: receives one line, cut to fit and ended with NUL.
 * @len: bytes of @text.
 *
 * Unknown keys, keys given twice, values that do not fit, with file, line and
 * column. Opens the driver if it is closed, without counting a use.
 *
 * Errors: those of cuFileDriverOpen; 5022 (past the last, NULL, or no @len).
 */
CUfileError_t ocf_config_note(unsigned index, char *text, size_t len);

#pragma GCC visibility pop

/* --------------------------------------------------------- statistics */

/* Calls or entries of one kind. Bytes and time are of those that succeeded. */
typedef struct ocf_flow {
	uint64_t ok, err;
	uint64_t bytes;
	uint64_t ns; /* sum of the times from begin to end */
} ocf_flow_t;

/*
 * Numbers for which cuFileGetStatsL1 has no room. Its read_ops and write_ops
 * count each element of a vectored call, but no entries of batches.
 */
typedef struct ocf_stats {
	size_t struct_size; /* in: sizeof(ocf_stats_t) as compiled */
	uint64_t level;	    /* of what is counted, 1 to 3 */
	uint64_t period_ns; /* the time of counting, in all */
	ocf_flow_t readv;   /* vectored calls, each counted as one */
	ocf_flow_t writev;
	uint64_t readv_elements; /* that were begun */
	uint64_t writev_elements;
	uint64_t batch_entries; /* that a submit has accepted */
	ocf_flow_t batch_read;	/* those that ended, from submit to end */
	ocf_flow_t batch_write;
} ocf_stats_t;

#pragma GCC visibility push(default)

/**
 * ocf_stats_get - counts of vectored calls and of batch entries.
 * @stats: the caller's, with struct_size set; the rest is filled.
 *
 * The numbers up to now, or up to the last stop, as with cuFileGetStatsL1.
 *
 * Errors: 5001 (closed); 5022 (@stats NULL, struct_size too small, level 0).
 */
CUfileError_t ocf_stats_get(ocf_stats_t *stats);

#pragma GCC visibility pop

/* -------------------------------------------------------------- alias */

/*
 * How the CPU reaches memory of a GPU, for drivers that have their own way. If
 * the CPU can address that memory, so can the kernel, and IO goes straight into
 * it; with O_DIRECT no byte goes through host memory.
 */
typedef struct ocf_alias_provider {
	size_t struct_size; /* in: sizeof(ocf_alias_provider_t) as compiled */
	void *arg;	    /* passed to both functions */
	/*
	 * Stores in *cpu an address by which the CPU reads and writes [device,
	 * device + size), with the same offset in a 4096-byte page as device,
	 * and returns 0; or returns a negative errno. gpu is the ordinal of the
	 * GPU. Called by cuFileBufRegister, one call at a time, and also for
	 * memory of the library's own with which it tests the provider.
	 */
	int (*map)(void *arg, int gpu, const void *device, size_t size,
		   void **cpu);
	/*
	 * Called once for each address that map gave, when no request uses it
	 * any more: at the latest at the last close, on any thread, perhaps
	 * after the GPU memory was freed. A forked child does not call it for
	 * the mappings of its parent.
	 */
	void (*unmap)(void *arg, void *cpu, size_t size);
} ocf_alias_provider_t;

#pragma GCC visibility push(default)

/**
 * ocf_alias_set_provider - sets whom to ask first for a CPU address of memory.
 * @provider: copied; NULL: removes the provider.
 *
 * Holds for buffers registered from now on, also after the driver was closed
 * and opened again. Earlier mappings stay with the provider that made them. An
 * address is tested before it is used: one that is wrong, or faults, costs
 * nothing but the path. Neither function may call this library.
 *
 * Errors: 5022 (struct_size too small, a function missing).
 */
CUfileError_t ocf_alias_set_provider(const ocf_alias_provider_t *provider);

#pragma GCC visibility pop

/* ------------------------------------------------------------ streams */

#pragma GCC visibility push(default)

/**
 * ocf_batch_submit_stream - submit entries of a batch in stream order.
 * @batch: from cuFileBatchIOSetUp.
 * @nr, @params: as for cuFileBatchIOSubmit; copied, and the caller's again
 *	when the call returns.
 * @flags: 0.
 * @stream: a stream of any context, or NULL for the legacy default stream.
 *
 * The entries begin when all earlier work of the stream has ended, and later
 * work of the stream begins when all of them have ended. The call does not
 * wait. cuFileBatchIOGetStatus returns their events, and waits for them from
 * now on; they are there before the stream goes on. After a cancel, a destroy
 * or a close of the driver, the stream goes on without the entries that had
 * not begun. Files and memory are looked up again when the stream comes to
 * them: an entry whose file was deregistered meanwhile ends with an event
 * whose status is CUFILE_FAILED.
 *
 * Errors, and nothing was submitted: those of cuFileBatchIOSubmit (5040,
 * 5037, 5049, 5043); 5022 (@flags); 5001 (driver not open); 5038 (no stream
 * IO here); 5011 (CUDA, for instance 900 for a stream that is being captured: a
 * replay would find no room in the batch).
 */
CUfileError_t ocf_batch_submit_stream(CUfileBatchHandle_t batch, unsigned nr,
				      const CUfileIOParams_t *params,
				      unsigned flags, CUstream stream);

/**
 * ocf_read_async - cuFileReadAsync with offsets by value.
 * @fh, @bufPtr_base, @stream: as for cuFileReadAsync.
 * @size_p: read when the stream comes to the operation; at most 0x7ffff000
 *	bytes are moved, as read(2) does.
 * @file_offset, @bufPtr_offset: fixed by the call.
 * @bytes_read_p: receives the bytes read, -1 for an IO error, or a negative
 *	cuFile code.
 *
 * The form that the API reference of 2022 announced; cufile_legacy.h has the
 * names of that reference. Errors: those of cuFileReadAsync.
 */
CUfileError_t ocf_read_async(CUfileHandle_t fh, void *bufPtr_base,
			     size_t *size_p, off_t file_offset,
			     off_t bufPtr_offset, int *bytes_read_p,
			     CUstream stream);

/**
 * ocf_write_async - cuFileWriteAsync with offsets by value.
 * @fh, @bufPtr_base, @stream: as for cuFileWriteAsync.
 * @size_p, @file_offset, @bufPtr_offset, @bytes_written_p: as for
 *	ocf_read_async.
 *
 * Errors: those of cuFileWriteAsync.
 */
CUfileError_t ocf_write_async(CUfileHandle_t fh, void *bufPtr_base,
			      size_t *size_p, off_t file_offset,
			      off_t bufPtr_offset, int *bytes_written_p,
			      CUstream stream);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
