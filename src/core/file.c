// SPDX-License-Identifier: Apache-2.0
/*
 * file - which descriptor moves which bytes, and what its answer means.
 *
 * A file system may refuse O_DIRECT for reasons of its own (EINVAL). That is
 * noticed once per handle, whose requests use the page cache from then on.
 */
#include "core/file.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/cached.h"
#include "core/file_around.h"
#include "core/log.h"
#include "core/probe.h"
#include "core/remote.h"
#include "core/twin.h"
#include "seam/frames.h"
#include "seam/nvtx.h"
#include "seam/os.h"

#define MUST_GO_AROUND 1 /* an answer that is no -errno */

/* relaxed: requests that are under way may keep the old bound */
static _Atomic size_t max_part = 16 << 20;

void cf_file_limit(size_t size)
{
	atomic_store_explicit(&max_part, size, memory_order_relaxed);
}

bool cf_file_is_direct(struct cf_handle *handle, enum cf_via via)
{
	return via == CF_VIA_DIRECT &&
	       !atomic_load_explicit(&handle->dio_refused,
				     memory_order_relaxed);
}

ssize_t cf_file_cached(struct cf_handle *handle, size_t size, off_t off)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t first = (size_t)off & ~(page - 1);
	size_t end = ((size_t)off + size + page - 1) & ~(page - 1);
	struct cf_cachestat stat;
	int err;

	if (!cf_cached_is_told(handle))
		return -ENOSYS;
	if (first == end)
		return 0;
	err = cf_os->cachestat(handle->fd, (off_t)first, end - first, &stat);
	return err ? err : (ssize_t)(stat.cached * page);
}

/* Not beyond the largest offset: whole blocks must not pass it. */
static size_t end_of(const struct cf_transfer *t)
{
	size_t end = (size_t)t->off + t->size;

	return end > LLONG_MAX ? LLONG_MAX : end;
}

/*
 * What a direct run is made of: blocks; but a write to a bare device, of pages.
 * There nothing keeps a direct write and another's edge in the same page apart:
 * the page is read before the one is on the disk, and written back after it.
 */
static size_t grain_of(const struct cf_transfer *t)
{
	return t->write && t->handle->bare ? t->handle->page_align :
					     cf_handle_block(t->handle);
}

/*
 * Where a direct run ends: with the last whole block; but if a write has an
 * edge after it, with the last whole page. If part of a page were written
 * directly and part through the page cache, the cached page would keep its old
 * bytes for the direct part.
 */
static size_t direct_end(const struct cf_transfer *t)
{
	size_t end = end_of(t);
	size_t mask = grain_of(t) - 1;

	if (t->write && end & mask)
		mask = t->handle->page_align - 1;
	return end & ~mask;
}

/* Bytes that go through the page cache before a direct run may begin. */
static size_t head_of(const struct cf_transfer *t, size_t pos)
{
	size_t align =
		t->write ? t->handle->page_align : cf_handle_block(t->handle);

	return align - (pos & (align - 1));
}

struct cf_file_way cf_file_way(const struct cf_transfer *t)
{
	size_t mask = cf_handle_block(t->handle) - 1;
	size_t begin = (size_t)t->off, end = direct_end(t);
	size_t direct;

	if (t->handle->fs_ops)
		return (struct cf_file_way){ .cached = CF_CACHED_USER_FS };
	if (!t->handle->direct && t->via == CF_VIA_CACHE)
		return (struct cf_file_way){ .cached = CF_CACHED_OPENED };
	if (!cf_file_is_direct(t->handle, CF_VIA_DIRECT))
		return (struct cf_file_way){ .cached = CF_CACHED_REFUSED };
	if (t->via == CF_VIA_CACHE)
		return (struct cf_file_way){ .cached = CF_CACHED_HELD };
	if (((uintptr_t)t->buf ^ begin) & mask)
		return (struct cf_file_way){ .cached = CF_CACHED_SKEWED };
	if (begin & (grain_of(t) - 1))
		begin += head_of(t, begin);
	direct = end > begin ? end - begin : 0;
	return (struct cf_file_way){
		.direct = direct,
		.cached = direct == t->size ? CF_CACHED_NONE : CF_CACHED_EDGES,
		.head = begin - (size_t)t->off,
	};
}

/*
 * The longest part from t->at that one descriptor can move: buffered up to a
 * boundary, then whole blocks directly, then the rest buffered.
 */
static int next_part(struct cf_transfer *t)
{
	size_t pos = (size_t)t->off + t->at, end = direct_end(t);
	size_t mask = cf_handle_block(t->handle) - 1;
	size_t inside = pos & (grain_of(t) - 1);
	size_t most = end_of(t) - pos;

	t->direct = false;
	if (cf_file_is_direct(t->handle, t->via) &&
	    !(((uintptr_t)(t->buf + t->at) ^ pos) & mask)) {
		t->direct = !inside && pos < end;
		if (t->direct)
			most = end - pos;
		else if (inside && pos + head_of(t, pos) < end)
			most = head_of(t, pos);
	}
	t->part = atomic_load_explicit(&max_part, memory_order_relaxed);
	if (t->part > most)
		t->part = most;
	if (!t->direct && !t->write && !t->alias &&
	    cf_file_must_go_around(t->handle))
		return MUST_GO_AROUND;
	t->fd = cf_twin_fd(t->handle, t->direct ? CF_VIA_DIRECT : CF_VIA_CACHE,
			   t->write || t->part >= CF_TWIN_LOOK_FROM);
	return t->fd < 0 ? t->fd : 0;
}

/* A write of 0 bytes is an error: else the caller would try for ever. */
static void end(struct cf_transfer *t, ssize_t n)
{
	t->over = true;
	t->result = t->at ? (ssize_t)t->at : n;
	if (t->write && !t->result && t->size)
		t->result = n = -EIO;
	t->code = n < 0 ? (int)n : 0;
}

/*
 * For this transfer alone, if there is just no descriptor to be had, or its
 * memory has no pages that a disk could be told of: secret memory, a device's.
 */
static void refuse_direct(struct cf_transfer *t, ssize_t n)
{
	if (n == -EFAULT || cf_os_is_short((int)n)) {
		t->via = CF_VIA_CACHE;
		return;
	}
	if (!atomic_exchange(&t->handle->dio_refused, true))
		cf_log(CF_LOG_WARN,
		       "handle %u off %lld len %zu: O_DIRECT refused "
		       "(%s), using the page cache",
		       cf_handle_number(t->handle),
		       (long long)t->off + (long long)t->at, t->size - t->at,
		       n == -EINVAL ? "EINVAL" : "no descriptor for it");
}

/* By file system or memory; or no O_DIRECT descriptor can be had. */
static bool refuses_direct(const struct cf_transfer *t, ssize_t n)
{
	return t->direct && !t->alias &&
	       (n == -EINVAL || n == -EFAULT || (t->fd < 0 && n != -EBADF));
}

/*
 * A server that was thought to take any bytes wants blocks. This call had none,
 * and is made again; so is one of a thread that has not heard of it.
 */
static CF_APART bool learns_of_blocks(const struct cf_transfer *t)
{
	size_t pos = (size_t)t->off + t->at;
	unsigned any = 1;

	if (atomic_compare_exchange_strong(&t->handle->dio_align, &any,
					   CF_BLOCK_DEFAULT))
		cf_log(CF_LOG_INFO, "handle %u: O_DIRECT in blocks of %u bytes",
		       cf_handle_number(t->handle), CF_BLOCK_DEFAULT);
	return ((uintptr_t)(t->buf + t->at) | pos | t->part) &
	       (cf_handle_block(t->handle) - 1);
}

/*
 * XFS answers EIO to a direct read that meets blocks behind the end of the file
 * that it has set aside for a write through the page cache, an edge of ours for
 * one. Such a read is made again up to the block with which the file ends.
 */
static CF_APART bool ends_with_file(struct cf_transfer *t)
{
	size_t mask = cf_handle_block(t->handle) - 1, end;
	struct stat st;

	if (cf_os->fstat(t->fd, &st) || !S_ISREG(st.st_mode))
		return false;
	end = ((size_t)st.st_size + mask) & ~mask;
	if (end >= (size_t)t->off + t->at + t->part)
		return false;
	t->size = end > (size_t)t->off ? end - (size_t)t->off : 0;
	return true;
}

/* Answers of descriptors that are no files: fd may be lost. */
static bool wrong_kind(ssize_t n)
{
	return n == -EINVAL || n == -ESPIPE || n == -EISDIR;
}

/* Once: the client closed all descriptors that it found, the twin too. */
static CF_APART bool renews_twin(struct cf_transfer *t)
{
	enum cf_via via = t->direct ? CF_VIA_DIRECT : CF_VIA_CACHE;

	if (t->renewed || t->fd < 0 || t->fd == t->handle->fd)
		return false;
	t->renewed = true;
	return cf_twin_fd(t->handle, via, true) >= 0;
}

void cf_transfer_took(struct cf_transfer *t, ssize_t n)
{
	if (n > 0) {
		t->at += (size_t)n;
		return;
	}
	if (n == -EINTR)
		return;
	if (wrong_kind(n) && t->fd >= 0 && !cf_twin_is(t->handle, t->fd))
		n = -EBADF;
	if (n == -EBADF && renews_twin(t))
		return;
	if (n == -EIO && t->direct && !t->write && ends_with_file(t))
		return;
	if (!refuses_direct(t, n))
		end(t, n);
	else if (n != -EINVAL || !learns_of_blocks(t))
		refuse_direct(t, n);
}

bool cf_transfer_next(struct cf_transfer *t)
{
	while (!t->over && t->at < t->size) {
		ssize_t err;

		t->fd = -1;
		t->part = t->size - t->at;
		if (t->remote && t->part > CF_REMOTE_MAX_SIZE)
			t->part = CF_REMOTE_MAX_SIZE;
		if (t->handle->fs_ops)
			return true;
		err = next_part(t);
		if (!err)
			return true;
		if (err == MUST_GO_AROUND)
			err = cf_file_read_around(t->handle, t->buf + t->at,
						  t->part,
						  t->off + (off_t)t->at);
		cf_transfer_took(t, err);
	}
	if (!t->over)
		end(t, 0);
	return false;
}

static CF_APART ssize_t user_fs_io(const struct cf_transfer *t, char *buf,
				   off_t off)
{
	const CUfileFSOps_t *ops = t->handle->fs_ops;
	void *fs = t->handle->fs_handle;
	const cufileRDMAInfo_t *info = NULL;
	struct cf_remote_info remote;
	ssize_t n = -ENOSYS;

	if (t->remote) {
		if (!cf_remote_describe(t->remote, t->handle, (uintptr_t)buf,
					t->part, off, &remote))
			return -ENOTSUP;
		info = &remote.info;
	}
	if (t->write && ops->write)
		n = ops->write(fs, buf, t->part, off, info);
	else if (!t->write && ops->read)
		n = ops->read(fs, buf, t->part, off, info);
	/* a callback must answer -errno or a count up to the part */
	return n < -4095 || n > (ssize_t)t->part ? -EIO : n;
}

ssize_t cf_transfer_call(const struct cf_transfer *t)
{
	char *buf = t->buf + t->at;
	off_t off = t->off + (off_t)t->at;

	if (t->handle->fs_ops)
		return user_fs_io(t, buf, off);
	return t->write ? cf_os->pwrite(t->fd, buf, t->part, off) :
			  cf_os->pread(t->fd, buf, t->part, off);
}

/*
 * The first call of a plain transfer, which in nearly all cases is the only
 * one: all of it, by the buffered descriptor. For large reads the descriptor
 * was checked when the via was chosen (engine/via.c). What this call leaves is
 * done by cf_transfer_next.
 */
static CF_WITHIN void begin_plain(struct cf_transfer *t)
{
	t->part = t->size;
	t->fd = cf_twin_fd(t->handle, CF_VIA_CACHE, t->write);
	cf_transfer_took(
		t, t->fd < 0 ? t->fd :
		   t->write  ? cf_os->pwrite(t->fd, t->buf, t->size, t->off) :
			       cf_os->pread(t->fd, t->buf, t->size, t->off));
}

static bool is_plain(const struct cf_transfer *t)
{
	return t->via == CF_VIA_CACHE && !t->handle->fs_ops && t->size &&
	       t->size <= atomic_load_explicit(&max_part, memory_order_relaxed);
}

static CF_WITHIN ssize_t move(struct cf_transfer *t)
{
	bool range =
		cf_nvtx_begin("file", t->write ? "write" : "read", t->size);

	cf_probe_file_begin(t->handle, (int)t->write, t->size, t->off);
	if (is_plain(t))
		begin_plain(t);
	while (cf_transfer_next(t))
		cf_transfer_took(t, cf_transfer_call(t));
	cf_probe_file_end(t->handle, t->result);
	cf_nvtx_end(range);
	return t->result;
}

ssize_t cf_file_move(struct cf_transfer *t)
{
	return move(t);
}

ssize_t cf_file_read(struct cf_handle *handle, enum cf_via via, void *buf,
		     size_t size, off_t off)
{
	struct cf_transfer t = { .handle = handle,
				 .via = via,
				 .buf = buf,
				 .size = size,
				 .off = off };

	return move(&t);
}

ssize_t cf_file_write(struct cf_handle *handle, enum cf_via via,
		      const void *buf, size_t size, off_t off)
{
	struct cf_transfer t = { .handle = handle,
				 .write = true,
				 .via = via,
				 .buf = (char *)(uintptr_t)buf,
				 .size = size,
				 .off = off };

	return move(&t);
}
