// SPDX-License-Identifier: Apache-2.0
/* window - mmap, populate, pin or register, and all of it backwards. */
#include "core/window.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/context.h"
#include "core/gpu.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "core/pagemap.h"
#include "seam/os.h"

/* Linux 5.14; the value is stable kernel ABI. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* How the driver knows an address; type 0, and id 0: not at all. */
struct identity {
	int type;
	uint64_t id;
};

static int identify(const struct cf_cuda *cuda, const char *mem,
		    struct identity *who)
{
	int attributes[] = { CF_CU_POINTER_MEMORY_TYPE,
			     CF_CU_POINTER_BUFFER_ID };
	void *data[] = { &who->type, &who->id };

	*who = (struct identity){ 0 };
	return cf_cuda_code(cuda->pointer_get_attributes(
		2, attributes, data, (CUdeviceptr)(uintptr_t)mem));
}

static bool is_ours(const struct cf_window *w, const struct identity *who)
{
	return who->type == CF_CU_MEMORYTYPE_HOST && who->id == w->buffer_id;
}

size_t cf_window_unit(size_t chunk)
{
	return cf_pins_state() == CF_PINS_GOOD && chunk >= CF_PIN_GRANULE ?
		       CF_PIN_GRANULE :
		       (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * w->ctx is current. *held: it failed, and w->mem is still registered. To end
 * that here may be to wait for a stream that waits for this thread.
 */
static int register_here(const struct cf_cuda *cuda, struct cf_window *w,
			 bool *held)
{
	struct identity who;
	int err;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	err = cf_cuda_code(cuda->mem_host_register(
		w->mem, w->size,
		CF_CU_MEMHOSTREGISTER_PORTABLE |
			CF_CU_MEMHOSTREGISTER_READ_ONLY));
	if (err)
		return err;
	err = identify(cuda, w->mem, &who);
	w->buffer_id = err ? 0 : who.id;
	*held = err;
	return err;
}

static int pin(struct cf_window *w, int ordinal, bool *held, const char **step)
{
	struct cf_scope scope;
	int err;

	*held = false;
	err = cf_context_enter(w->ctx, &scope);
	if (err)
		return err;
	if (w->size % CF_PIN_GRANULE || cf_pins_state() != CF_PINS_GOOD) {
		*step = "cuMemHostRegister";
		err = register_here(cf_cuda_entered(), w, held);
	} else {
		*step = "pin";
		err = cf_pin_make(&w->pin, w->mem, w->size, ordinal);
		*held = w->pin.gpu && err;
	}
	cf_context_leave(&scope);
	return err;
}

/* DONTFORK: what the child of a fork does not have it cannot touch. */
static int map(const struct cf_window *w, int fd, off_t off, char **mem,
	       const char **step)
{
	void *at;
	int err;

	*step = "mmap";
	err = cf_os->map_file(fd, off, w->size, &at);
	if (err)
		return err;
	*step = "madvise DONTFORK";
	err = cf_os->madvise(at, w->size, MADV_DONTFORK);
	if (err)
		cf_os->unmap(at, w->size);
	else
		*mem = at;
	return err;
}

/* Gives the witness the pages that the file has now, and no others ever. */
static int fill_witness(const struct cf_window *w, const char **step)
{
	int err;

	*step = "madvise POPULATE_READ";
	err = cf_os->madvise(w->witness, w->size, MADV_POPULATE_READ);
	if (err)
		return err;
	*step = "mprotect";
	err = cf_os->forbid(w->witness, w->size);
	if (err)
		return err;
	*step = "pagemap";
	err = cf_pagemap_present(w->witness, w->size);
	return err < 0 ? err : err ? 0 : -EAGAIN;
}

/* The descriptor may have become another file's since the stamp. */
static int look_again(const struct cf_window *w, int fd)
{
	struct cf_stamp now;
	int err = cf_stamp_take(fd, &now);

	return err || !cf_stamp_equal(&now, &w->stamp) ? -EAGAIN : 0;
}

/* Pinned pages need no mapping; a registration is one of addresses. */
static int map_and_pin(struct cf_window *w, int fd, off_t off, int ordinal,
		       const char **step)
{
	bool held = false;
	int err = map(w, fd, off, &w->mem, step);

	if (err)
		return err;
	*step = "statx";
	err = look_again(w, fd);
	if (!err)
		err = pin(w, ordinal, &held, step);
	if (err ? !held : w->pin.gpu != 0) {
		cf_os->unmap(w->mem, w->size);
		w->mem = NULL;
	}
	return err;
}

int cf_window_open(struct cf_window *w, int fd, off_t off,
		   const struct cf_gpu *gpu, const char **step)
{
	int err = map(w, fd, off, &w->witness, step);

	if (err)
		return err;
	w->ctx = gpu->primary;
	err = fill_witness(w, step);
	if (!err)
		err = map_and_pin(w, fd, off, gpu->ordinal, step);
	if (err && !w->mem)
		cf_os->unmap(w->witness, w->size);
	return err;
}

bool cf_window_is_reached(const struct cf_window *w, int ordinal)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct identity who;

	if (w->pin.gpu)
		return cf_pin_is_reached(&w->pin, ordinal);
	return cuda && !identify(cuda, w->mem, &who) && is_ours(w, &who);
}

bool cf_window_is_current(const struct cf_window *w, size_t at, size_t size)
{
	return cf_pagemap_present(w->witness + at, size) == 1;
}

/* A pin has no context; one is entered to keep our calls out of a capture. */
static bool unpin(struct cf_window *w)
{
	struct cf_scope scope;
	bool entered = !cf_context_enter(w->ctx, &scope);
	bool gone = cf_pin_end(&w->pin);

	if (entered)
		cf_context_leave(&scope);
	return gone;
}

/* True if the driver let go of it, or had done so before. */
static bool unregister(const struct cf_window *w)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct cf_scope scope;
	struct identity who;
	CUresult res;

	if (!cuda)
		return false;
	if (w->buffer_id && !identify(cuda, w->mem, &who) && !is_ours(w, &who))
		return true;
	if (cf_context_enter(w->ctx, &scope))
		return false;
	res = cuda->mem_host_unregister(w->mem);
	cf_context_leave(&scope);
	return res == CF_CU_SUCCESS;
}

/* If that fails the window keeps its file open until it is closed. */
void cf_window_hide(struct cf_window *w)
{
	(void)cf_os->map_nothing(w->witness, w->size);
	if (w->mem)
		(void)cf_os->map_nothing(w->mem, w->size);
}

/*
 * What libcuda may still have registered stays mapped: other memory at these
 * addresses would be taken for it, and copied from the old pages.
 */
void cf_window_close(struct cf_window *w)
{
	bool gone = w->pin.gpu ? unpin(w) : unregister(w);

	if (!gone)
		cf_log(CF_LOG_WARN, "window " CF_TAG " size %zu: not unpinned",
		       cf_tag(w->witness), w->size);
	if (gone && w->mem)
		cf_os->unmap(w->mem, w->size);
	cf_os->unmap(w->witness, w->size);
}
