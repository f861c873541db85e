// SPDX-License-Identifier: Apache-2.0
/* windows - batches between windows of memory and of a file. */
#include "windows.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

void windows_slots(unsigned nr, unsigned kib)
{
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, kib)
			.err,
		0);
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
			(size_t)nr * kib)
			.err,
		0);
}

void windows_init(struct windows *w, enum th_mem_kind mem,
		  enum th_file_kind file, unsigned nr, size_t window)
{
	th_mem_need(mem);
	th_open_for(file);
	w->nr = nr;
	w->window = window;
	w->size = nr * window;
	w->in_file = th_bytes(w->size);
	w->in_mem = th_bytes(w->size);
	th_file_make(&w->file, file, O_RDWR, w->in_file, w->size);
	th_mem_alloc(&w->mem, mem, w->size);
	th_mem_put(&w->mem, 0, w->in_mem, w->size);
	w->fh = th_handle(w->file.fd);
	assert_int_equal(cuFileBatchIOSetUp(&w->batch, nr).err, 0);
}

void windows_fini(struct windows *w)
{
	cuFileBatchIODestroy(w->batch);
	cuFileHandleDeregister(w->fh);
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->in_file);
	free(w->in_mem);
	th_close();
}

void windows_set(struct windows *w, unsigned i, CUfileOpcode_t opcode,
		 unsigned file_window, size_t at, size_t size)
{
	CUfileIOParams_t *p = &w->params[i];
	size_t mem_at = i * w->window + at;
	size_t file_at = file_window * w->window + at;

	*p = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
				 .fh = w->fh,
				 .opcode = opcode,
				 .cookie = (void *)(uintptr_t)i };
	p->u.batch.devPtr_base = w->mem.ptr;
	p->u.batch.devPtr_offset = (off_t)mem_at;
	p->u.batch.file_offset = (off_t)file_at;
	p->u.batch.size = size;
	if (opcode == CUFILE_READ)
		memcpy(w->in_mem + mem_at, w->in_file + file_at, size);
	else
		memcpy(w->in_file + file_at, w->in_mem + mem_at, size);
}

void windows_run(struct windows *w, unsigned nr)
{
	CUfileIOEvents_t events[WINDOWS_MAX];
	bool seen[WINDOWS_MAX] = { false };
	unsigned done = 0;

	assert_int_equal(cuFileBatchIOSubmit(w->batch, nr, w->params, 0).err,
			 0);
	while (done < nr) {
		unsigned some = nr;

		assert_int_equal(
			cuFileBatchIOGetStatus(w->batch, 1, &some, events, NULL)
				.err,
			0);
		for (unsigned i = 0; i < some; i++) {
			size_t k = (size_t)events[i].cookie;

			assert_true(k < nr && !seen[k]);
			seen[k] = true;
			assert_int_equal(events[i].status, CUFILE_COMPLETE);
			assert_int_equal(events[i].ret,
					 w->params[k].u.batch.size);
		}
		done += some;
	}
}

void windows_check(struct windows *w)
{
	unsigned char *got = malloc(w->size);

	assert_non_null(got);
	th_mem_get(&w->mem, 0, got, w->size);
	th_equal("memory", got, w->in_mem, w->size);
	th_file_get(&w->file, 0, got, w->size);
	th_equal("file", got, w->in_file, w->size);
	assert_int_equal(th_file_size(&w->file), w->size);
	free(got);
}
