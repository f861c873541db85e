// SPDX-License-Identifier: Apache-2.0
/*
 * One body for each memory kind and file kind: every alignment and size is
 * read and written, and nothing but the bytes asked for may change, in memory
 * or in the file (contract 3.8; behaviour, "Reads and writes"). With
 * OCF_DOOR=stream in the environment all go through a stream.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "core/windows.h"
#include "harness.h"

#define PAD 4096 /* of neighbours that are checked on both sides */
#define START 8192
#define LARGEST (5 * TH_MIB)
#define ROOM (LARGEST + 2 * PAD + 2 * START)

static const size_t sizes[] = {
	1, 511, 4096, 4097, 65536 + 3, TH_MIB, TH_MIB + 1, 5 * TH_MIB - 7,
};
#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const struct alignment {
	const char *name;
	size_t file_off, buf_off, more;
} alignments[] = {
	{ "aligned", 0, 0, 0 },
	{ "odd file offset", 777, 0, 0 },
	{ "odd buffer offset", 0, 13, 0 },
	{ "odd size", 0, 0, 5 },
	{ "all odd", 1025, 511, 1 },
	{ "equally odd", 515, 515, 0 },
};
#define NR_ALIGNMENTS (sizeof(alignments) / sizeof(alignments[0]))
#define NR_MOVES (NR_SIZES * (TH_TSAN ? 1 : NR_ALIGNMENTS))

struct bench {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	bool streamed;
	CUstream stream;
	unsigned char *content; /* what the file should hold */
	unsigned char *want, *got;
};

/* One transfer, in its numbers. */
struct move {
	char name[96];
	size_t size, file_off, at; /* at: in the memory */
	bool by_offset;		   /* base and offset, or an interior pointer */
};

static void bench_init(struct bench *b, const struct th_cell *cell)
{
	const char *door = getenv("OCF_DOOR");

	th_mem_need(cell->mem_kind);
	b->streamed = door && !strcmp(door, "stream");
	if (b->streamed) {
		th_need_gpu();
		assert_int_equal(
			cuStreamCreate(&b->stream, CF_CU_STREAM_NON_BLOCKING),
			0);
	}
	th_open_for(cell->file_kind);
	b->content = th_bytes(ROOM);
	b->want = th_bytes(ROOM);
	b->got = malloc(ROOM);
	assert_non_null(b->got);
	th_file_make(&b->file, cell->file_kind, O_RDWR, b->content, ROOM);
	th_mem_alloc(&b->mem, cell->mem_kind, ROOM);
	b->fh = th_handle(b->file.fd);
}

/* With mapped.json: reads through the page cache have been mapped ones. */
static void check_mapped(const struct bench *b, const struct th_cell *cell)
{
	bool buffered = cell->file_kind == TH_BUFFERED ||
			cell->file_kind == TH_TMPFS ||
			cell->file_kind == TH_MEMFD;
	bool copied = th_mem_is_device(cell->mem_kind) ||
		      cell->mem_kind == TH_MANAGED;
	struct cf_windows_counts counts;

	cf_windows_count(&counts);
	if (!getenv("TEST_MAPPED"))
		return;
	if (buffered && copied && th_file_mappable(&b->file))
		assert_true(counts.used > NR_MOVES / 2);
	else
		assert_int_equal(counts.used, 0);
}

static void bench_fini(struct bench *b)
{
	if (b->streamed)
		assert_int_equal(cuStreamDestroy(b->stream), 0);
	cuFileHandleDeregister(b->fh);
	th_mem_free(&b->mem);
	th_file_end(&b->file);
	free(b->content);
	free(b->want);
	free(b->got);
	th_close();
}

static char *base_of(const struct bench *b, const struct move *m, off_t *off)
{
	*off = m->by_offset ? (off_t)m->at : 0;
	return (char *)b->mem.ptr + (m->by_offset ? 0 : m->at);
}

static ssize_t through_stream(struct bench *b, const struct move *m, char *base,
			      off_t buf_off, bool write)
{
	size_t size = m->size;
	off_t file_off = (off_t)m->file_off;
	ssize_t n = -1;
	CUfileError_t e;

	e = write ? cuFileWriteAsync(b->fh, base, &size, &file_off, &buf_off,
				     &n, b->stream) :
		    cuFileReadAsync(b->fh, base, &size, &file_off, &buf_off, &n,
				    b->stream);
	assert_int_equal(e.err, CU_FILE_SUCCESS);
	assert_int_equal(cuStreamSynchronize(b->stream), 0);
	return n;
}

static ssize_t do_read(struct bench *b, const struct move *m)
{
	off_t off;
	char *base = base_of(b, m, &off);

	if (b->streamed)
		return through_stream(b, m, base, off, false);
	return cuFileRead(b->fh, base, m->size, (off_t)m->file_off, off);
}

static ssize_t do_write(struct bench *b, const struct move *m)
{
	off_t off;
	char *base = base_of(b, m, &off);

	if (b->streamed)
		return through_stream(b, m, base, off, true);
	return cuFileWrite(b->fh, base, m->size, (off_t)m->file_off, off);
}

static void read_one(struct bench *b, const struct move *m)
{
	size_t from = m->at - PAD, len = m->size + 2 * PAD;

	th_fill(b->want, len);
	th_mem_put(&b->mem, from, b->want, len);
	assert_int_equal(do_read(b, m), (ssize_t)m->size);
	memcpy(b->want + PAD, b->content + m->file_off, m->size);
	th_mem_get(&b->mem, from, b->got, len);
	th_equal(m->name, b->got, b->want, len);
}

static void write_one(struct bench *b, const struct move *m)
{
	size_t from = m->file_off - PAD, len = m->size + 2 * PAD;

	th_fill(b->content + m->file_off, m->size);
	th_mem_put(&b->mem, m->at, b->content + m->file_off, m->size);
	assert_int_equal(do_write(b, m), (ssize_t)m->size);
	th_file_get(&b->file, (off_t)from, b->got, len);
	th_equal(m->name, b->got, b->content + from, len);
}

static bool too_slow_here(const struct th_cell *cell, size_t size)
{
	return TH_SANITIZED && size > TH_MIB && cell->mem_kind != TH_DEVICE &&
	       cell->file_kind != TH_ODIRECT;
}

/*
 * A race is in the code that runs, not in the numbers: where the thread
 * sanitizer looks, each size has one alignment, another one in the next cell.
 */
static bool is_left_to_others(const struct th_cell *cell, size_t i)
{
	return TH_TSAN &&
	       i % NR_ALIGNMENTS !=
		       (i / NR_ALIGNMENTS + cell->mem_kind + cell->file_kind) %
			       NR_ALIGNMENTS;
}

static void each_move(struct bench *b, const struct th_cell *cell,
		      const char *verb,
		      void (*one)(struct bench *b, const struct move *m))
{
	struct move m;
	unsigned nr = 0;

	if (getenv("TEST_MAPPED"))
		th_sleep_ms(25); /* a file is not mapped before it rests */

	for (size_t i = 0; i < NR_SIZES * NR_ALIGNMENTS; i++) {
		const struct alignment *a = &alignments[i % NR_ALIGNMENTS];

		m.size = sizes[i / NR_ALIGNMENTS] + a->more;
		m.file_off = START + a->file_off;
		m.at = START + a->buf_off;
		m.by_offset = nr++ & 1;
		if (too_slow_here(cell, m.size) || is_left_to_others(cell, i))
			continue;
		snprintf(m.name, sizeof(m.name), "%s of %zu bytes, %s", verb,
			 m.size, a->name);
		one(b, &m);
	}
}

static void moves_exactly_its_bytes(void **state)
{
	const struct th_cell *cell = *state;
	struct bench b = { 0 };
	CUfileError_t e;

	bench_init(&b, cell);
	each_move(&b, cell, "unregistered read", read_one);
	each_move(&b, cell, "unregistered write", write_one);
	e = cuFileBufRegister(b.mem.ptr, b.mem.size, 0);
	assert_int_equal(e.err, CU_FILE_SUCCESS);
	each_move(&b, cell, "registered read", read_one);
	each_move(&b, cell, "registered write", write_one);
	assert_int_equal(th_file_size(&b.file), ROOM);
	e = cuFileBufDeregister(b.mem.ptr);
	assert_int_equal(e.err, CU_FILE_SUCCESS);
	check_mapped(&b, cell);
	bench_fini(&b);
}

int main(void)
{
	static struct CMUnitTest tests[TH_NR_CELLS];

	th_start(290);
	th_cells(tests,
		 "reads and writes of every size and alignment move "
		 "exactly their bytes",
		 moves_exactly_its_bytes, th_teardown_close);
	return th_finish(
		cmocka_run_group_tests_name("matrix", tests, NULL, NULL));
}
