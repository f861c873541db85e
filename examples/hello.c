// SPDX-License-Identifier: Apache-2.0
/*
 * hello - the first program: writes GPU memory to a file.
 *
 *	TESTFILE=/path/of/a/file hello
 *
 * Sets 16 MiB and a page of GPU memory to the byte 0xab, and writes 16 MiB of
 * them, from the second page on, to the file from its third page on. All calls
 * that a program needs are here, in the order that it needs them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>
#include "gpu.h"

#define PAGE 4096
#define SIZE ((size_t)16 << 20)

int main(void)
{
	const char *path = getenv("TESTFILE");
	CUfileHandle_t file;
	CUdeviceptr mem;
	ssize_t nr;
	int fd;

	if (!path) {
		fprintf(stderr, "TESTFILE names no file\n");
		return 2;
	}
	/* O_DIRECT is allowed, not necessary */
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	if (fd < 0) {
		perror(path);
		return 1;
	}
	/* optional: the first call that needs the driver opens it too */
	CUFILE(cuFileDriverOpen());
	file = file_handle(fd);

	gpu_begin();
	GPU(cuMemAlloc(&mem, SIZE + PAGE));
	/* optional: pays where memory is used again */
	CUFILE(cuFileBufRegister((void *)(uintptr_t)mem, SIZE + PAGE, 0));
	/* need not be waited for: a write sees what came before it */
	GPU(cuMemsetD8(mem, 0xab, SIZE + PAGE));

	nr = cuFileWrite(file, (void *)(uintptr_t)mem, SIZE, 2 * PAGE, PAGE);
	if (nr < 0)
		fprintf(stderr, "cuFileWrite: %s\n", io_text(errno));
	else
		printf("%zd bytes written to %s\n", nr, path);

	/* the way back: buffer, memory, handle, descriptor, driver */
	CUFILE(cuFileBufDeregister((void *)(uintptr_t)mem));
	GPU(cuMemFree(mem));
	cuFileHandleDeregister(file);
	close(fd);
	CUFILE(cuFileDriverClose());
	return nr != (ssize_t)SIZE;
}
