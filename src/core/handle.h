// SPDX-License-Identifier: Apache-2.0
/*
 * handle - a registered file, named by a generation-checked value.
 *
 * The value a client holds is never a pointer: it is a place in a table and
 * the generation that lives there, so that a stale, foreign or garbage value
 * is refused instead of followed. Lookup takes no lock.
 *
 * Lifetime: get counts, put uncounts; deregister refuses new gets at once and
 * returns when the last put is done.
 */
#ifndef CF_CORE_HANDLE_H
#define CF_CORE_HANDLE_H

#include <cufile.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/denylist.h"
#include "core/nvfs.h"

/* How a request's bytes travel between file and kernel. */
enum cf_via {
	CF_VIA_CACHE,  /* through the page cache */
	CF_VIA_DIRECT, /* with O_DIRECT, what can; its edges not */
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
	/* generation, liveness and references in one word; see handle.c */
	_Atomic uint64_t state;
	/* the rest, but twin and its like, is written before it is published */
	int fd;		    /* the client's own, never closed by us */
	int open_flags;	    /* of fd */
	bool direct;	    /* requests that can go O_DIRECT do */
	unsigned dio_align; /* offset, size and memory; power of two */
	/* also of a page: no part, and no edge of a write, ends inside one */
	unsigned page_align;
	dev_t dev;  /* with ino: is it still the same file? */
	dev_t disk; /* a block device's own number, else dev */
	ino_t ino;
	long fs_magic;		     /* statfs f_type */
	enum cf_denied denied;	     /* a list that names the file */
	enum cf_nvfs_gate nvfs;	     /* may nvidia-fs carry it? */
	int nvfs_target;	     /* its CUfileDriverStatusFlags_t */
	const CUfileFSOps_t *fs_ops; /* user-space file system, or NULL */
	void *fs_handle;	     /* its argument */
	struct cf_nic_hosts hosts;   /* that it may use */
	_Atomic int twin;	     /* -1, or a second descriptor */
	_Atomic bool dio_refused;    /* the file system said no to O_DIRECT */
	_Atomic bool nvfs_refused;   /* the storage said no to nvidia-fs */
	_Atomic bool rdma_refused;   /* the file system wants host memory */
	_Atomic bool no_twin;	     /* a second one could not be opened */
	_Atomic bool wants_pages;    /* of what it is read into */
	_Atomic int pace;	     /* of its last read, core/cold.c's */
	_Atomic off_t read_end;	     /* of its last one, core/ahead.c's */
	_Atomic uint64_t reread;     /* bytes again, core/windows_look.c's */
	_Atomic unsigned drawn;	     /* or might be, in streams: path/draws.h */
	_Atomic bool lost;	     /* fd was closed, and is another's twin */
	CUfileFSOps_t fs_table;	     /* fs_ops: the client's may be gone */
};

/*
 * Registers a file as descr says. 0 and *value, or the code of contract 3.6:
 * EINVAL-like 5022, 5008, 5018, 5019, 5028. force_direct: treat any fd as if
 * it had been opened with O_DIRECT.
 */
int cf_handle_register(const CUfileDescr_t *descr, bool force_direct,
		       CUfileHandle_t *value);

/* Waits for the last reference, then frees. -5027 if there is none such. */
int cf_handle_deregister(CUfileHandle_t value);

/* A reference, or NULL where the value names no live handle. Any thread. */
struct cf_handle *cf_handle_get(CUfileHandle_t value);
void cf_handle_put(struct cf_handle *handle);
/* One more, by who has one; also while it is being deregistered. */
void cf_handle_get_more(struct cf_handle *handle);
/* So many references of one caller's, at once. */
void cf_handle_put_all(struct cf_handle *handle, unsigned nr);

/*
 * fd is a descriptor that the library has just got: a live handle of that
 * number has lost its own. Takes the table's lock.
 */
void cf_handle_took_fd(int fd);

/* A number for log lines; stable while the handle lives. */
unsigned cf_handle_number(const struct cf_handle *handle);
/*
 * A client's value as the log shows it: the number of a handle, live or not,
 * and for what never was one, as the address it may be (core/log_tag.h).
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
