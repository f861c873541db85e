// SPDX-License-Identifier: Apache-2.0
/* streams_world - see streams_world.h. */
#include "streams_world.h"

#include <fcntl.h>
#include <stdlib.h>

struct io sw_io(size_t size, off_t file_off, off_t buf_off)
{
	return (struct io){ size, file_off, buf_off, SW_UNTOUCHED };
}

void sw_make_as(struct world *w, int accmode)
{
	th_mem_need(TH_DEVICE);
	w->bytes = th_bytes(SW_SIZE);
	th_file_make(&w->file, TH_BUFFERED, accmode, w->bytes, SW_SIZE);
	th_mem_alloc(&w->mem, TH_DEVICE, SW_SIZE);
	assert_ok(cuFileDriverOpen());
	w->fh = th_handle(w->file.fd);
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
}

void sw_make(struct world *w)
{
	sw_make_as(w, O_RDWR);
}

void sw_end(struct world *w)
{
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	while (cuFileUseCount())
		assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->bytes);
}

CUfileError_t sw_read(struct world *w, struct io *io, CUstream stream)
{
	return cuFileReadAsync(w->fh, w->mem.ptr, &io->size, &io->file_off,
			       &io->buf_off, &io->bytes, stream);
}

CUfileError_t sw_write(struct world *w, struct io *io, CUstream stream)
{
	return cuFileWriteAsync(w->fh, w->mem.ptr, &io->size, &io->file_off,
				&io->buf_off, &io->bytes, stream);
}

void sw_settle(CUstream stream)
{
	assert_int_equal(cuStreamSynchronize(stream), 0);
}

void sw_assert_arrived(struct world *w, const struct io *io)
{
	unsigned char *got = malloc(io->size);

	assert_int_equal(io->bytes, io->size);
	th_mem_get(&w->mem, (size_t)io->buf_off, got, io->size);
	th_equal("memory", got, w->bytes + io->file_off, io->size);
	free(got);
}
