// SPDX-License-Identifier: Apache-2.0
/*
 * double_buffer FILE - works through a file in batches, loading the next one
 * while the present one is computed with.
 *
 * Two buffers of GPU memory, a stream that loads and a stream that computes.
 * An event says when a buffer is full, another when it is free again; the
 * streams wait for each other and this thread for neither. Here "computing"
 * is a copy back to the host, of which this thread then makes a checksum.
 */
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>
#include "gpu.h"

#define BATCH ((size_t)256 << 10)
#define BUFFERS 2

struct buffer {
	CUdeviceptr mem;
	unsigned char *host; /* what the computation answers */
	CUevent full, free;
	/* of the load that is on its way */
	size_t size;
	off_t file_offset, buffer_offset;
	ssize_t bytes_read;
};

static void buffer_make(struct buffer *b)
{
	GPU(cuMemAlloc(&b->mem, BATCH));
	GPU(cuMemHostAlloc((void **)&b->host, BATCH, 0));
	GPU(cuEventCreate(&b->full, CU_EVENT_DISABLE_TIMING));
	GPU(cuEventCreate(&b->free, CU_EVENT_DISABLE_TIMING));
}

static void buffer_end(struct buffer *b)
{
	GPU(cuEventDestroy(b->full));
	GPU(cuEventDestroy(b->free));
	GPU(cuMemFreeHost(b->host));
	GPU(cuMemFree(b->mem));
}

/* Queues the load of one batch; it begins when the buffer is free. */
static void load(struct buffer *b, CUfileHandle_t file, off_t at, CUstream io)
{
	b->size = BATCH;
	b->file_offset = at;
	b->buffer_offset = 0;
	b->bytes_read = 0;
	GPU(cuStreamWaitEvent(io, b->free, 0));
	CUFILE(cuFileReadAsync(file, (void *)(uintptr_t)b->mem, &b->size,
			       &b->file_offset, &b->buffer_offset,
			       &b->bytes_read, io));
	GPU(cuEventRecord(b->full, io));
}

/* Queues the computation with a batch; it begins when the buffer is full. */
static void compute(struct buffer *b, CUstream work)
{
	GPU(cuStreamWaitEvent(work, b->full, 0));
	GPU(cuMemcpyDtoHAsync(b->host, b->mem, BATCH, work));
	GPU(cuEventRecord(b->free, work));
}

static uint64_t checksum(uint64_t sum, const unsigned char *bytes, ssize_t nr)
{
	for (ssize_t i = 0; i < nr; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	return sum;
}

int main(int argc, char **argv)
{
	struct buffer buffers[BUFFERS];
	uint64_t sum = 0xcbf29ce484222325;
	long long total = 0;
	CUfileHandle_t file;
	CUstream io, work;
	int fd, failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: double_buffer FILE\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY);
	if (fd < 0) {
		perror(argv[1]);
		return 1;
	}
	gpu_begin();
	CUFILE(cuFileDriverOpen());
	file = file_handle(fd);
	GPU(cuStreamCreate(&io, CU_STREAM_NON_BLOCKING));
	GPU(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < BUFFERS; i++)
		buffer_make(&buffers[i]);

	load(&buffers[0], file, 0, io);
	for (off_t step = 0;; step++) {
		struct buffer *now = &buffers[step % BUFFERS];
		struct buffer *next = &buffers[(step + 1) % BUFFERS];

		/* the next batch is on its way while this one is at work */
		load(next, file, (step + 1) * (off_t)BATCH, io);
		compute(now, work);
		GPU(cuEventSynchronize(now->free));
		if (now->bytes_read < 0) {
			fprintf(stderr, "read: %s\n",
				io_text(-(long)now->bytes_read));
			failed = 1;
		}
		if (now->bytes_read <= 0)
			break;
		sum = checksum(sum, now->host, now->bytes_read);
		total += now->bytes_read;
	}
	GPU(cuStreamSynchronize(io)); /* the load that nobody needs */
	printf("%lld bytes, checksum %016llx\n", total,
	       (unsigned long long)sum);

	for (int i = 0; i < BUFFERS; i++)
		buffer_end(&buffers[i]);
	GPU(cuStreamDestroy(io));
	GPU(cuStreamDestroy(work));
	cuFileHandleDeregister(file);
	CUFILE(cuFileDriverClose());
	close(fd);
	return failed;
}
