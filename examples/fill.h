// SPDX-License-Identifier: Apache-2.0
/*
 * fill.h - what the examples that fill GPU memory from a file have in common:
 * a file, memory with room for it, and a look at what arrived. The one thing
 * that differs between them, how they read, is in each of them.
 */
#ifndef EXAMPLES_FILL_H
#define EXAMPLES_FILL_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "gpu.h"

#define STEP ((size_t)1 << 20) /* bytes of one request */

struct fill {
	int fd;
	CUfileHandle_t file;
	size_t size;	 /* of the file */
	CUdeviceptr mem; /* with a page more than that */
};

/* Opens the file that the program was given, and the driver. */
static inline struct fill fill_begin(int argc, char **argv)
{
	struct fill f = { .fd = -1 };
	struct stat st;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		exit(2);
	}
	f.fd = open(argv[1], O_RDONLY);
	if (f.fd < 0 || fstat(f.fd, &st)) {
		perror(argv[1]);
		exit(1);
	}
	f.size = (size_t)st.st_size;
	gpu_begin();
	GPU(cuMemAlloc(&f.mem, f.size + 4096));
	CUFILE(cuFileDriverOpen());
	f.file = file_handle(f.fd);
	return f;
}

/* What the calls take for an address. */
static inline void *fill_at(const struct fill *f, size_t offset)
{
	return (void *)(uintptr_t)(f->mem + offset);
}

/* How much the next request asks for. */
static inline size_t fill_step(const struct fill *f, size_t offset)
{
	return f->size - offset < STEP ? f->size - offset : STEP;
}

/* A read gives fewer bytes at the end of a file only, and -1 says errno. */
static inline void fill_expect(ssize_t nr, size_t size)
{
	if (nr == (ssize_t)size)
		return;
	if (nr < 0)
		fprintf(stderr, "read: %s\n", io_text(errno));
	else
		fprintf(stderr, "the file ended early\n");
	exit(1);
}

/* Tells what size bytes of memory, from offset on, hold; then ends. */
static inline int fill_end(struct fill *f, size_t offset, size_t size)
{
	unsigned char *host = malloc(size + 1);
	uint64_t sum = 0xcbf29ce484222325;

	if (!host)
		return 1;
	if (size)
		GPU(cuMemcpyDtoH(host, f->mem + offset, size));
	for (size_t i = 0; i < size; i++)
		sum = (sum ^ host[i]) * 0x100000001b3;
	printf("%zu bytes, checksum %016llx\n", size, (unsigned long long)sum);
	free(host);
	/* in this order: IO has ended, handle, memory, driver, descriptor */
	cuFileHandleDeregister(f->file);
	GPU(cuMemFree(f->mem));
	CUFILE(cuFileDriverClose());
	close(f->fd);
	return 0;
}

#endif
