// SPDX-License-Identifier: Apache-2.0
/*
 * batch_read FILE - fills GPU memory from a file with batches of small reads
 * (IO pattern 6).
 *
 * One call starts all reads of a batch, and one waits for them. For many small
 * pieces that lie apart, from one file or from many. batch_copy.c shows how to
 * keep a batch full while its entries end.
 */
#include "fill.h"

#define ENTRIES 64
#define PIECE ((size_t)16 << 10)

/* Submits what is next of the file; answers how many entries that were. */
static unsigned submit(struct fill *f, CUfileBatchHandle_t batch, size_t *at)
{
	CUfileIOParams_t params[ENTRIES];
	unsigned nr = 0;

	for (; nr < ENTRIES && *at < f->size; nr++) {
		CUfileIOParams_t *p = &params[nr];
		size_t left = f->size - *at;

		memset(p, 0, sizeof(*p));
		p->mode = CUFILE_BATCH;
		p->opcode = CUFILE_READ;
		p->fh = f->file;
		p->u.batch.devPtr_base = fill_at(f, 0);
		p->u.batch.devPtr_offset = (off_t)*at;
		p->u.batch.file_offset = (off_t)*at;
		p->u.batch.size = left < PIECE ? left : PIECE;
		/* comes back with the event: what was asked for */
		p->cookie = (void *)(uintptr_t)p->u.batch.size;
		*at += p->u.batch.size;
	}
	if (nr)
		CUFILE(cuFileBatchIOSubmit(batch, nr, params, 0));
	return nr;
}

/* Waits for so many entries; they end in any order. */
static void wait_for(CUfileBatchHandle_t batch, unsigned left)
{
	CUfileIOEvents_t events[ENTRIES];

	while (left) {
		unsigned nr = left; /* in: room; out: events */

		CUFILE(cuFileBatchIOGetStatus(batch, left, &nr, events, NULL));
		for (unsigned i = 0; i < nr; i++) {
			if (events[i].status == CUFILE_COMPLETE &&
			    events[i].ret == (uintptr_t)events[i].cookie)
				continue;
			fprintf(stderr, "an entry ended with status %d: %s\n",
				(int)events[i].status,
				io_text(-(long)events[i].ret));
			exit(1);
		}
		left -= nr;
	}
}

int main(int argc, char **argv)
{
	struct fill f = fill_begin(argc, argv);
	CUfileBatchHandle_t batch;
	unsigned nr;
	size_t at = 0;

	CUFILE(cuFileBufRegister(fill_at(&f, 0), f.size + 4096, 0));
	CUFILE(cuFileBatchIOSetUp(&batch, ENTRIES));
	while ((nr = submit(&f, batch, &at)) > 0)
		wait_for(batch, nr);
	cuFileBatchIODestroy(batch);
	CUFILE(cuFileBufDeregister(fill_at(&f, 0)));
	return fill_end(&f, 0, f.size);
}
