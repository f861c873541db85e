// SPDX-License-Identifier: Apache-2.0
/*
 * life_traces - does, and does wrongly, all that a log may have a line for,
 * on a file whose bytes would be recognised; then tells where its memory is.
 */
#include "life.h"

#include <opencufile.h>
#include <unistd.h>

static char host[DATA_SIZE];

/* A provider of aliases that is wrong: the memory is another one's. */
static int map_host(void *arg, int gpu_index, const void *memory, size_t size,
		    void **cpu)
{
	*cpu = host;
	return 0;
}

static void unmap_host(void *arg, void *cpu, size_t size)
{
}

static void do_all(CUfileHandle_t fh, char *mem)
{
	const ocf_alias_provider_t provider = { .struct_size = sizeof(provider),
						.map = map_host,
						.unmap = unmap_host };
	CUfileIOParams_t io = { .mode = CUFILE_BATCH, .opcode = CUFILE_READ };
	CUfileIOVec_t iov = { host, 4096 };
	CUfileIOEvents_t event;
	CUfileBatchHandle_t batch;
	unsigned nr = 1;

	OK(ocf_alias_set_provider(&provider));
	OK(cuFileBufRegister(host, DATA_SIZE, 0));
	OK(cuFileBufRegister(mem, DATA_SIZE, 0));
	for (size_t off = 0; off < 5000; off += 777) {
		CHECK(cuFileRead(fh, host, 4096, 0, (off_t)off) == 4096);
		CHECK(cuFileRead(fh, mem, 4096, 0, (off_t)off) == 4096);
		CHECK(cuFileWrite(fh, mem, 4096, 0, (off_t)off) == 4096);
	}
	CHECK(cuFileReadv(fh, &iov, 1, 0, 0) == 4096);
	io.fh = fh;
	io.u.batch.devPtr_base = mem;
	io.u.batch.size = 4096;
	OK(cuFileBatchIOSetUp(&batch, 1));
	OK(cuFileBatchIOSubmit(batch, 1, &io, 0));
	OK(cuFileBatchIOGetStatus(batch, 1, &nr, &event, NULL));
	io.u.batch.size = (size_t)1 << 40;
	CHECK(cuFileBatchIOSubmit(batch, 1, &io, 0).err);
	CHECK(cuFileBatchIOSubmit(batch, 7, &io, 0).err);
	cuFileBatchIODestroy(batch);
}

static void do_wrongly(CUfileHandle_t fh, char *mem)
{
	static size_t size = 64;
	static off_t off = -1;
	static ssize_t done;
	static const ocf_alias_provider_t no_provider;
	CUfileIOVec_t iov = { host, 4096 };
	void *stream;

	CHECK(cuFileRead(fh, host, 1, -1, 0) < 0);
	CHECK(cuFileRead(fh, mem, DATA_SIZE, 0, 4096) < 0);
	CHECK(cuFileRead(host, host, 1, 0, 0) < 0);
	CHECK(cuFileRead(NULL, host, 1, 0, 0) < 0);
	CHECK(cuFileWrite(fh, NULL, 1, 0, 0) < 0);
	CHECK(cuFileReadv(fh, &iov, 1, -5, 0) < 0);
	CHECK(cuFileBufRegister(mem, DATA_SIZE, 0).err);
	CHECK(cuFileBufRegister(mem, DATA_SIZE * 100, 0).err);
	CHECK(cuFileBufDeregister(host + 1).err);
	CHECK(ocf_alias_set_provider(&no_provider).err);
	CHECK(!gpu.stream_create(&stream, 1));
	(void)cuFileReadAsync(fh, mem, &size, &off, &off, &done,
			      (CUstream)stream);
	(void)gpu.stream_synchronize(stream);
	CHECK(cuFileReadAsync(fh, mem, NULL, &off, &off, &done,
			      (CUstream)stream)
		      .err);
	(void)cuFileStreamRegister((CUstream)host, 0);
	cuFileHandleDeregister(host);
}

static void tell_where_memory_is(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		printf("map %s", line);
	fclose(f);
	printf("mem %p %p\n", (void *)host, (void *)stdout);
}

void leave_traces(void)
{
	CUfileHandle_t fh;
	char *mem;
	int fd = make_file();

	/* bytes of its own, which the test looks for */
	memcpy(host, "a secret of the file that nobody may tell", 42);
	CHECK(pwrite(fd, host, 42, 0) == 42);
	gpu_open();
	mem = gpu_alloc();
	OK(cuFileDriverOpen());
	fh = make_handle(fd);
	do_all(fh, mem);
	do_wrongly(fh, mem);
	tell_where_memory_is();
	printf("gpu %p\n", (void *)mem);
	cuFileHandleDeregister(fh);
	OK(cuFileDriverClose_v2());
	CHECK(cuFileRead(fh, mem, 1, 0, 0) < 0); /* of the session before */
	OK(cuFileDriverOpen());
	CHECK(cuFileRead(fh, mem, 1, 0, 0) < 0);
	make_handle(make_file());
	CHECK(cuFileRead(fh, mem, 1, 0, 0) < 0);
	OK(cuFileDriverClose_v2());
	say_done();
}
