// SPDX-License-Identifier: Apache-2.0
/*
 * handle - a registered file, named by a generation-checked value.
 *
 * The client's value is never a pointer: it is an index into a table and the
 * generation of the entry there, so a stale, foreign or garbage value is
 * refused instead of followed. Lookup takes no lock.
 *
 * Lifetime: get takes a reference, put drops it; deregister refuses new gets at
 * once and returns after the last put.
 */
#ifndef CF_CORE_HANDLE_H
#define CF_CORE_HANDLE_H

#include <cufile.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/denylist.h"
#include "core/nvfs.h"

/* What O_DIRECT wants where nobody tells. */
#define CF_BLOCK_DEFAULT 4096u

/* How a request's bytes travel between file and kernel. */
enum cf_via {
	CF_VIA_CACHE,  /* through the page cache */
	CF_VIA_DIRECT, /* with O_DIRECT, but unaligned edges not */
};

/*
 * The NICs of this machine that a user-space file system's server may use, by
 * address (IPv4, network order). nr -1: all of them.
 */
#define CF_MAX_HOSTS 8
struct cf_nic_hosts {
	int nr;
	uint32_t ip[CF_MAX_HOSTS];
};

struct cf_handle {
	/* generation, liveness and references in one word: handle_table.h */
	_Atomic uint64_t state;
	/* all from here on is written before it is published; then only
	 * atomics change */
	int fd;		/* the client's own, never closed by us */
	int open_flags; /* of fd */
	bool direct;	/* requests go O_DIRECT if they can */
	bool no_dio;	/* it takes O_DIRECT, in vain, as the kernel says */
	/* offset, size and memory; power of two. 1: any bytes, until a server
	 * refuses some; see cf_handle_block */
	_Atomic unsigned dio_align;
	/* a block, a page or a file system's block, the largest: boundaries
	 * where parts end, and the buffered edges of a write */
	unsigned page_align;
	bool bare;  /* a block device: its direct writes are whole pages */
	dev_t dev;  /* with ino: is it still the same file? */
	dev_t disk; /* a block device's own number, else dev */
	ino_t ino;
	long fs_magic;		     /* statfs f_type */
	enum cf_denied denied;	     /* the denylist that names the file */
	enum cf_nvfs_gate nvfs;	     /* PASS: nvidia-fs may move it */
	int nvfs_target;	     /* its CUfileDriverStatusFlags_t */
	const CUfileFSOps_t *fs_ops; /* user-space file system, or NULL */
	void *fs_handle;	     /* its argument */
	struct cf_nic_hosts hosts;   /* NICs that its server may use */
	_Atomic int twin;	     /* the second descriptor; -1: none */
	bool opening;		   /* it is being opened; core/twin.c's lock */
	_Atomic bool dio_refused;  /* the file system said no to O_DIRECT */
	_Atomic bool nvfs_refused; /* the storage said no to nvidia-fs */
	_Atomic bool rdma_refused; /* the file system wants host memory */
	_Atomic bool no_twin;	   /* the twin could not be opened */
	_Atomic bool wants_pages;  /* reads need memory that has pages */
	_Atomic int pace;	   /* of its last read; for core/cold.c */
	_Atomic off_t read_end;	   /* of its last read; for core/ahead.c */
	_Atomic uint64_t reread;   /* bytes; for core/windows_look.c */
	_Atomic unsigned drawn;	   /* last stream reads; engine/drawn.c */
	_Atomic bool lost;	   /* fd was closed; a twin has its number */
	CUfileFSOps_t fs_table;	   /* a copy, for the client's may be freed */
};

/* Bytes of a block, as O_DIRECT wants them. Relaxed: a request that began with
 * others is refused, and goes on with these. */
static inline size_t cf_handle_block(const struct cf_handle *handle)
{
	return atomic_load_explicit(&handle->dio_align, memory_order_relaxed);
}

struct cf_file_answer;

/*
 * Before a registration, and without the session's lock: retires the handle of
 * a file that was closed without a deregister, if descr's has its number now.
 * Waits for its requests, and for a server that is away.
 */
void cf_handle_replace(const CUfileDescr_t *descr,
		       const struct cf_file_answer *answer);

/*
 * Registers the file of descr; answer: cf_file_ask's. 0 and *value; or what
 * cf_file_facts answers, -5028 (fd is registered already) or -5043 (no memory),
 * as contract 3.6 has it. force_direct: as if fd had been opened with O_DIRECT.
 */
int cf_handle_register(const CUfileDescr_t *descr,
		       const struct cf_file_answer *answer, bool force_direct,
		       CUfileHandle_t *value);

/* Waits for the last put, then retires it. 0, or -5027: no live handle. */
int cf_handle_deregister(CUfileHandle_t value);

/* A reference, or NULL where the value names no live handle. Any thread. */
struct cf_handle *cf_handle_get(CUfileHandle_t value);
void cf_handle_put(struct cf_handle *handle);
/* Another reference, by a holder of one; also during a deregister. */
void cf_handle_get_more(struct cf_handle *handle);
/* Drops nr references of the caller's at once. */
void cf_handle_put_all(struct cf_handle *handle, unsigned nr);

/*
 * The library has just opened fd. So if a live handle has that number, the
 * client closed its file: the handle becomes lost. Takes table_lock.
 */
void cf_handle_took_fd(int fd);

/* A twin of the file with these flags that core/kept.h kept; -1: none. It is
 * the caller's. Takes table_lock. */
int cf_handle_kept(const struct cf_handle *handle, int flags);

/* A number for log lines; stable while the handle lives. */
unsigned cf_handle_number(const struct cf_handle *handle);
/*
 * A client's value as the log shows it: the number of a handle, live or not; or
 * for a value that never was a handle, an address's tag (core/log_tag.h).
 */
#define CF_HANDLE_TEXT 24
const char *cf_handle_text(CUfileHandle_t value, char text[CF_HANDLE_TEXT]);
#define cf_handle_words(value) \
	cf_handle_text(value, (char[CF_HANDLE_TEXT]){ 0 })

/* Deregisters all; waits for their requests. */
void cf_handles_close(void);

void cf_handles_fork_prepare(void);
void cf_handles_fork_parent(void);
/* The requests of the parent's other threads do not exist in the child. */
void cf_handles_fork_child(void);

#endif
