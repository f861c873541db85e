// SPDX-License-Identifier: Apache-2.0
/* batch_field - see batch_field.h. */
#include "batch_field.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "engine/plan_batch.h"
#include "path/bundle.h"

void bf_init(struct field *f, enum th_mem_kind mem_kind,
	     enum th_file_kind file_kind, size_t size)
{
	f->size = size;
	f->in_file = th_bytes(size);
	f->in_mem = th_bytes(size);
	th_mem_alloc(&f->mem, mem_kind, size);
	th_mem_put(&f->mem, 0, f->in_mem, size);
	th_file_make(&f->file, file_kind, O_RDWR, f->in_file, size);
	f->fh = th_handle(f->file.fd);
}

void bf_check(struct field *f)
{
	unsigned char *got = malloc(f->size);

	th_mem_get(&f->mem, 0, got, f->size);
	th_equal(th_mem_name(f->mem.kind), got, f->in_mem, f->size);
	th_file_get(&f->file, 0, got, f->size);
	th_equal(th_file_name(f->file.kind), got, f->in_file, f->size);
	assert_int_equal(th_file_size(&f->file), f->size);
	free(got);
}

void bf_fini(struct field *f)
{
	cuFileHandleDeregister(f->fh);
	th_file_end(&f->file);
	th_mem_free(&f->mem);
	free(f->in_mem);
	free(f->in_file);
}

CUfileIOParams_t bf_move(struct field *f, CUfileOpcode_t opcode, size_t mem_at,
			 size_t file_at, size_t size, size_t cookie)
{
	CUfileIOParams_t p = { .mode = CUFILE_BATCH,
			       .fh = f->fh,
			       .opcode = opcode,
			       .cookie = (void *)cookie };
	/* by base and offset, or by an interior pointer */
	size_t inside = cookie & 1 ? mem_at : 0;

	p.u.batch.devPtr_base = (char *)f->mem.ptr + inside;
	p.u.batch.devPtr_offset = (off_t)(mem_at - inside);
	p.u.batch.file_offset = (off_t)file_at;
	p.u.batch.size = size;
	if (opcode == CUFILE_READ)
		memcpy(f->in_mem + mem_at, f->in_file + file_at, size);
	else
		memcpy(f->in_file + file_at, f->in_mem + mem_at, size);
	return p;
}

CUfileBatchHandle_t bf_batch_of(unsigned nr)
{
	CUfileBatchHandle_t batch;

	assert_int_equal(cuFileBatchIOSetUp(&batch, nr).err, 0);
	return batch;
}

void bf_run(CUfileBatchHandle_t batch, CUfileIOParams_t *params, unsigned nr)
{
	static bool seen[BF_MAX_NR];
	static CUfileIOEvents_t events[BF_MAX_NR];
	unsigned done = 0;

	memset(seen, 0, sizeof(seen));
	assert_int_equal(cuFileBatchIOSubmit(batch, nr, params, 0).err, 0);
	while (done < nr) {
		unsigned n = nr;
		unsigned least = 1 + (unsigned)th_below(nr - done);

		assert_int_equal(
			cuFileBatchIOGetStatus(batch, least, &n, events, NULL)
				.err,
			0);
		assert_in_range(n, least, nr - done);
		for (unsigned i = 0; i < n; i++) {
			size_t k = (size_t)events[i].cookie;

			assert_true(k < nr && !seen[k]);
			seen[k] = true;
			assert_int_equal(events[i].status, CUFILE_COMPLETE);
			assert_int_equal(events[i].ret, params[k].u.batch.size);
		}
		done += n;
	}
}

void bf_set_size(CUFileSizeTConfigParameter_t param, size_t value)
{
	assert_int_equal(cuFileSetParameterSizeT(param, value).err, 0);
}

unsigned bf_crews_of(CUfileHandle_t fh, unsigned nr, size_t each)
{
	struct cf_piece piece = { .op = CF_READ, .size = each };
	struct cf_crew_plan plan;

	piece.handle = cf_handle_get(fh);
	assert_non_null(piece.handle);
	plan = cf_plan_crews(nr,
			     (unsigned long long)nr * cf_plan_cost_ns(&piece),
			     (unsigned long long)nr * cf_bundle_need(&piece));
	cf_handle_put(piece.handle);
	return plan.bundles;
}
