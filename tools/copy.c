// SPDX-License-Identifier: Apache-2.0
/*
 * copy - one file into another by cuFileRead and cuFileWrite, and the proof.
 *
 * This is the shortest complete use of the synchronous calls: open the
 * driver, register a buffer and two files, read and write chunk by chunk,
 * put everything back in reverse.
 */
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "checksum.h"
#include "report.h"

static bool is_copyable(const char *name, mode_t mode)
{
	if (S_ISREG(mode) || S_ISBLK(mode))
		return true;
	return fail("%s is neither a regular file nor a block device", name);
}

/* Looks before it opens: opening a pipe would wait for its other end. */
static bool open_file(struct file *file, int flags)
{
	if (stat(file->name, &file->st) == 0 &&
	    !is_copyable(file->name, file->st.st_mode))
		return false;
	file->fd = open(file->name, flags | O_CLOEXEC | O_NOCTTY, 0666);
	if (file->fd < 0)
		return fail_errno("open", file->name);
	if (fstat(file->fd, &file->st))
		return fail_errno("fstat", file->name);
	return is_copyable(file->name, file->st.st_mode);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode))
		return a->st_rdev == b->st_rdev;
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool copy_open(struct copy *copy)
{
	if (!open_file(&copy->src, O_RDONLY))
		return false;
	/* O_RDWR: the same descriptor is read for the check */
	if (!open_file(&copy->dst, O_RDWR | O_CREAT))
		return false;
	if (is_same_file(&copy->src.st, &copy->dst.st))
		return fail("%s and %s are the same file", copy->src.name,
			    copy->dst.name);
	copy->size = lseek(copy->src.fd, 0, SEEK_END);
	if (copy->size < 0)
		copy->size = 0; /* files of procfs have no end to seek to */
	if (S_ISREG(copy->dst.st.st_mode) && ftruncate(copy->dst.fd, 0))
		return fail_errno("ftruncate", copy->dst.name);
	return true;
}

static void close_file(struct file *file)
{
	if (file->fd >= 0)
		close(file->fd);
}

static bool register_file(struct file *file)
{
	CUfileDescr_t descr = {
		.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
		.handle.fd = file->fd,
	};

	return check(cuFileHandleRegister(&file->handle, &descr),
		     "cuFileHandleRegister", file->name);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

double copy_rate(off_t bytes, double seconds)
{
	return seconds > 0 ? (double)bytes / seconds / 1e9 : 0;
}

/* On a terminal only, ten times a second at most. */
static void show_progress(struct copy *copy)
{
	double at = now();
	int percent = 0;

	if (!copy->show || at - copy->shown < 0.1)
		return;
	copy->shown = at;
	if (copy->size > 0)
		percent = (int)(copy->done * 100.0 / (double)copy->size);
	if (percent > 100)
		percent = 100;
	fprintf(stderr, "\r%3d %% [%-40.*s] %.2f GB/s ", percent,
		percent * 40 / 100, "########################################",
		copy_rate(copy->done, at - copy->start));
}

static void clear_progress(struct copy *copy)
{
	if (copy->show && copy->shown > copy->start)
		fputs(CLEAR_LINE, stderr);
}

static bool write_chunk(struct copy *copy, size_t size)
{
	double start = now();
	size_t at = 0;

	while (at < size) {
		off_t off = copy->done + (off_t)at;
		ssize_t n = cuFileWrite(copy->dst.handle, copy->chunk.base,
					size - at, off, (off_t)at);

		if (n < 0)
			return fail_io("cuFileWrite", copy->dst.name, off,
				       size - at);
		if (n == 0)
			return fail("cuFileWrite %s at offset %lld: no room",
				    copy->dst.name, (long long)off);
		at += (size_t)n;
	}
	copy->dst.seconds += now() - start;
	return true;
}

/* How much to ask for next; 0 at the end of a file whose size is known. */
static size_t next_size(const struct copy *copy)
{
	off_t left = copy->size - copy->done;

	if (!copy->size || left > (off_t)copy->chunk.size)
		return copy->chunk.size;
	return (size_t)left;
}

/* Ends at a read of no bytes: a short one may stand before an error. */
static bool copy_chunks(struct copy *copy)
{
	size_t size;

	while ((size = next_size(copy)) > 0) {
		double start = now();
		ssize_t n = cuFileRead(copy->src.handle, copy->chunk.base, size,
				       copy->done, 0);

		copy->src.seconds += now() - start;
		if (n < 0)
			return fail_io("cuFileRead", copy->src.name, copy->done,
				       size);
		if (n == 0)
			break;
		if (!write_chunk(copy, (size_t)n))
			return false;
		copy->done += n;
		show_progress(copy);
	}
	return true;
}

static bool flush(struct copy *copy)
{
	double start = now();

	if (fsync(copy->dst.fd))
		return fail_errno("fsync", copy->dst.name);
	copy->sync_seconds = now() - start;
	return true;
}

static bool copy_and_flush(struct copy *copy)
{
	bool ok;

	copy->start = copy->shown = now();
	copy->show = isatty(STDERR_FILENO);
	ok = copy_chunks(copy) && flush(copy);
	clear_progress(copy);
	return ok;
}

/* With the buffer and both files registered, in that order. */
static bool copy_registered(struct copy *copy)
{
	bool ok;

	if (!check(cuFileBufRegister(copy->chunk.base, copy->chunk.size, 0),
		   "cuFileBufRegister", "chunk"))
		return false;
	ok = register_file(&copy->src) && register_file(&copy->dst) &&
	     copy_and_flush(copy);
	cuFileHandleDeregister(copy->dst.handle);
	cuFileHandleDeregister(copy->src.handle);
	return check(cuFileBufDeregister(copy->chunk.base),
		     "cuFileBufDeregister", "chunk") &&
	       ok;
}

bool copy_run(struct copy *copy)
{
	bool ok;

	if (!check(cuFileDriverOpen(), "cuFileDriverOpen", "driver"))
		return false;
	ok = copy_registered(copy);
	return check(cuFileDriverClose(), "cuFileDriverClose", "driver") && ok;
}

/* Sums what was copied and makes sure that there is no more and no less. */
static bool sum_file(struct file *file, off_t size)
{
	off_t n = checksum_file(file->fd, size, &file->sum);
	char next;
	ssize_t more = 0;

	if (n >= 0 && !S_ISBLK(file->st.st_mode))
		more = pread(file->fd, &next, 1, size);
	if (n < 0 || more < 0)
		return fail_errno("pread", file->name);
	if (n < size)
		return fail("%s: %lld bytes were copied and %lld are there",
			    file->name, (long long)size, (long long)n);
	if (more)
		return fail("%s: %lld bytes were copied and there are more",
			    file->name, (long long)size);
	return true;
}

bool copy_verify(struct copy *copy)
{
	if (copy->done < copy->size)
		return fail("%s ended at %lld, its size was %lld",
			    copy->src.name, (long long)copy->done,
			    (long long)copy->size);
	if (!sum_file(&copy->src, copy->done) ||
	    !sum_file(&copy->dst, copy->done))
		return false;
	if (copy->src.sum != copy->dst.sum)
		return fail("%s and %s differ", copy->src.name, copy->dst.name);
	return true;
}

void copy_close(struct copy *copy)
{
	close_file(&copy->dst);
	close_file(&copy->src);
}
