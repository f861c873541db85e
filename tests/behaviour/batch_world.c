// SPDX-License-Identifier: Apache-2.0
/* batch_world - see batch_world.h. */
#include "batch_world.h"

#include <fcntl.h>
#include <stdlib.h>

CUfileIOParams_t bw_entry(CUfileHandle_t fh, CUfileOpcode_t opcode, void *base,
			  size_t at, size_t size, size_t cookie)
{
	CUfileIOParams_t params = { .mode = CUFILE_BATCH,
				    .fh = fh,
				    .opcode = opcode,
				    .cookie = (void *)cookie };

	params.u.batch.devPtr_base = base;
	params.u.batch.file_offset = (off_t)at;
	params.u.batch.devPtr_offset = (off_t)at;
	params.u.batch.size = size;
	return params;
}

void bw_begin_as(struct bench *b, enum th_mem_kind kind, CUfileOpcode_t opcode)
{
	assert_ok(cuFileDriverOpen());
	b->bytes = th_bytes(BW_NR * BW_SIZE);
	th_file_make(&b->file, TH_BUFFERED, O_RDWR, b->bytes, BW_NR * BW_SIZE);
	th_mem_alloc(&b->mem, kind, BW_NR * BW_SIZE);
	assert_ok(fresh_register(b->file.fd, &b->fh));
	for (size_t i = 0; i < BW_NR; i++)
		b->params[i] = bw_entry(b->fh, opcode, b->mem.ptr, i * BW_SIZE,
					BW_SIZE, 100 + i);
	b->nr = BW_NR;
}

void bw_begin(struct bench *b)
{
	bw_begin_as(b, TH_MALLOC, CUFILE_READ);
}

void bw_end(struct bench *b)
{
	cuFileHandleDeregister(b->fh);
	th_file_end(&b->file);
	th_mem_free(&b->mem);
	free(b->bytes);
	while (cuFileUseCount() > 0)
		assert_ok(cuFileDriverClose_v2());
}

CUfileBatchHandle_t bw_batch_of(unsigned nr)
{
	CUfileBatchHandle_t batch = NULL;

	assert_ok(cuFileBatchIOSetUp(&batch, nr));
	assert_non_null(batch);
	return batch;
}

void bw_check_events(const CUfileIOEvents_t *events, unsigned nr)
{
	bool seen[BW_NR] = { false };

	for (unsigned i = 0; i < nr; i++) {
		size_t k = (size_t)events[i].cookie - 100;

		assert_true(k < nr);
		assert_false(seen[k]);
		seen[k] = true;
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
		assert_int_equal(events[i].ret, BW_SIZE);
	}
}

void bw_check_read(const struct bench *b)
{
	unsigned char *got = malloc(BW_NR * BW_SIZE);

	th_mem_get(&b->mem, 0, got, BW_NR * BW_SIZE);
	th_equal("what the batch read", got, b->bytes, BW_NR * BW_SIZE);
	free(got);
}

void bw_check_untouched(struct bench *b, CUfileBatchHandle_t batch)
{
	unsigned char *got = malloc(BW_NR * BW_SIZE);

	b->nr = BW_NR;
	assert_ok(
		cuFileBatchIOGetStatus(batch, BW_NR, &b->nr, b->events, NULL));
	assert_int_equal(b->nr, 0);
	th_mem_get(&b->mem, 0, got, BW_NR * BW_SIZE);
	th_all("memory of refused entries", got, 0x5c, BW_NR * BW_SIZE);
	free(got);
}
