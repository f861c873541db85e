// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "stream_world.h"

void world_init(struct world *w, size_t file_size, size_t mem_size,
		unsigned flags)
{
	*w = (struct world){ .file_size = file_size };
	th_mem_need(TH_DEVICE);
	th_open();
	w->bytes = th_bytes(file_size);
	w->want = th_same(0x5a, mem_size);
	w->got = malloc(mem_size);
	th_file_make(&w->file, th_aliased() ? TH_ODIRECT : TH_BUFFERED, O_RDWR,
		     w->bytes, file_size);
	th_mem_alloc(&w->mem, TH_DEVICE, mem_size);
	th_mem_set(&w->mem, 0x5a);
	w->fh = th_handle(w->file.fd);
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	if (flags)
		assert_int_equal(cuFileStreamRegister(w->stream, flags).err, 0);
}

/* The driver tells of a graph's end on a thread of its own, a bit later. */
static void await_graphs(void)
{
	while (th_fake() && th_fake()->live("user_object"))
		th_sleep_ms(1);
}

void world_fini(struct world *w)
{
	await_graphs();
	(void)cuFileStreamDeregister(w->stream);
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	cuFileHandleDeregister(w->fh);
	th_mem_free(&w->mem);
	world_forget(w);
	th_close();
}

void world_forget(struct world *w)
{
	th_file_end(&w->file);
	free(w->bytes);
	free(w->want);
	free(w->got);
}

void world_blank(struct world *w)
{
	memset(w->want, 0x5a, w->mem.size);
	th_mem_set(&w->mem, 0x5a);
}

void read_async(struct world *w, struct io *io)
{
	assert_int_equal(cuFileReadAsync(w->fh, w->mem.ptr, &io->size,
					 &io->file_off, &io->buf_off, &io->n,
					 w->stream)
				 .err,
			 0);
}

void synchronise(struct world *w)
{
	assert_int_equal(cuStreamSynchronize(w->stream), 0);
}

void expect(struct world *w, const struct io *io)
{
	size_t left = w->file_size - (size_t)io->file_off;
	size_t n = io->size < left ? io->size : left;

	memcpy(w->want + io->buf_off, w->bytes + io->file_off, n);
	assert_int_equal(io->n, n);
}

void check(struct world *w)
{
	th_mem_get(&w->mem, 0, w->got, w->mem.size);
	th_equal("memory", w->got, w->want, w->mem.size);
}
