// SPDX-License-Identifier: Apache-2.0
/*
 * stream_copy FROM TO - copies a file through GPU memory with one stream
 * (IO pattern 7).
 *
 * Clear, read and write are queued at once, and the stream keeps their order:
 * this thread waits a single time. Parameters and results stay in place until
 * then, because the stream reads and writes them when it comes to them. The
 * caller compares the files (tests/examples does).
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "gpu.h"

/* All that an operation needs while it is on its way. */
struct transfer {
	size_t size;
	off_t file_offset;
	off_t buffer_offset;
	ssize_t bytes_read;
	ssize_t bytes_written;
};

static int open_or_exit(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd >= 0)
		return fd;
	perror(path);
	exit(1);
}

int main(int argc, char **argv)
{
	struct transfer t = { 0 };
	CUfileHandle_t from, to;
	struct stat st, copy;
	CUdeviceptr mem;
	CUstream stream;
	int in, out;

	if (argc != 3) {
		fprintf(stderr, "usage: stream_copy FROM TO\n");
		return 2;
	}
	in = open_or_exit(argv[1], O_RDONLY);
	if (fstat(in, &st) || st.st_size == 0) {
		fprintf(stderr, "%s: nothing to copy\n", argv[1]);
		return 1;
	}
	/* not O_TRUNC, for it may be the source */
	out = open_or_exit(argv[2], O_RDWR | O_CREAT);
	if (fstat(out, &copy) ||
	    (st.st_dev == copy.st_dev && st.st_ino == copy.st_ino) ||
	    ftruncate(out, 0)) {
		fprintf(stderr, "%s cannot be the copy\n", argv[2]);
		return 1;
	}
	t.size = (size_t)st.st_size;

	gpu_begin();
	CUFILE(cuFileDriverOpen());
	from = file_handle(in);
	to = file_handle(out);
	GPU(cuMemAlloc(&mem, t.size));
	GPU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

	/* A promise, and no need: nothing in t changes once it is queued. */
	CUFILE(cuFileStreamRegister(stream,
				    CU_FILE_STREAM_FIXED_BUF_OFFSET |
					    CU_FILE_STREAM_FIXED_FILE_OFFSET |
					    CU_FILE_STREAM_FIXED_FILE_SIZE));

	/* Three things in one order; none of the calls waits. */
	GPU(cuMemsetD8Async(mem, 0, t.size, stream));
	CUFILE(cuFileReadAsync(from, (void *)(uintptr_t)mem, &t.size,
			       &t.file_offset, &t.buffer_offset, &t.bytes_read,
			       stream));
	CUFILE(cuFileWriteAsync(to, (void *)(uintptr_t)mem, &t.size,
				&t.file_offset, &t.buffer_offset,
				&t.bytes_written, stream));
	GPU(cuStreamSynchronize(stream));

	/* The stream is well even where an operation failed: look at each. */
	printf("read %zd, wrote %zd of %zu bytes\n", t.bytes_read,
	       t.bytes_written, t.size);

	CUFILE(cuFileStreamDeregister(stream));
	GPU(cuStreamDestroy(stream));
	GPU(cuMemFree(mem));
	cuFileHandleDeregister(from);
	cuFileHandleDeregister(to);
	CUFILE(cuFileDriverClose());
	close(in);
	close(out);
	return t.bytes_read != (ssize_t)t.size ||
	       t.bytes_written != (ssize_t)t.size;
}
