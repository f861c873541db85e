// SPDX-License-Identifier: Apache-2.0
/*
 * Sixty-four threads, the same few files and buffers: all register, read and
 * deregister them at once, all wait for each other to read larger parts, and
 * all write into the same blocks of a file that each has opened O_DIRECT for
 * itself. Readers beside writers of the same bytes see what the file had or
 * what was written, and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"

#define NR_THREADS 64
#define NR_FILES 6
#define OWN ((size_t)4096)
#define FILE_SIZE (NR_THREADS * OWN)

/* ------------------------------------------- the same files and buffers */

struct crowd {
	struct th_bad bad;
	struct th_file files[NR_FILES];
	unsigned char *bytes[NR_FILES];
	CUfileHandle_t fhs[NR_FILES]; /* of everybody */
	struct th_mem mem[2];	      /* device and host */
	unsigned rounds;
};

/* Many know this base: one registers it, the others are told so. */
static void register_or_deregister(struct crowd *c, const void *base)
{
	CUfileOpError err;

	if (th_below(2)) {
		err = cuFileBufRegister(base, FILE_SIZE, 0).err;
		if (err && err != CU_FILE_MEMORY_ALREADY_REGISTERED)
			th_bad_note(&c->bad, "register: %d", err);
	} else {
		err = cuFileBufDeregister(base).err;
		if (err && err != CU_FILE_MEMORY_NOT_REGISTERED)
			th_bad_note(&c->bad, "deregister: %d", err);
	}
}

static void read_own_part(struct crowd *c, CUfileHandle_t fh, unsigned file,
			  const struct th_mem *mem, size_t at)
{
	size_t from = th_below(OWN - 1), size = 1 + th_below(OWN - from);
	unsigned char got[OWN];
	ssize_t n = cuFileRead(fh, mem->ptr, size, (off_t)(at + from),
			       (off_t)(at + from));

	if (n != (ssize_t)size) {
		th_bad_note(&c->bad, "read: %zd of %zu, errno %d", n, size,
			    errno);
		return;
	}
	th_mem_get(mem, at + from, got, size);
	if (memcmp(got, c->bytes[file] + at + from, size))
		th_bad_note(&c->bad, "file %u at %zu: other bytes", file,
			    at + from);
}

/* A file of everybody's, by a descriptor of its own. */
static void come_read_and_go(struct crowd *c, unsigned i)
{
	unsigned file = (unsigned)th_below(NR_FILES);
	const struct th_mem *mem = &c->mem[th_below(2)];
	int fd = dup(c->files[file].fd);
	CUfileHandle_t fh;

	if (fd < 0) {
		th_bad_note(&c->bad, "dup: errno %d", errno);
		return;
	}
	fh = th_handle(fd);
	register_or_deregister(c, mem->ptr);
	read_own_part(c, fh, file, mem, i * OWN);
	read_own_part(c, c->fhs[file], file, mem, i * OWN);
	cuFileHandleDeregister(fh);
	close(fd);
}

static void be_one_of_them(void *arg, unsigned i)
{
	struct crowd *c = arg;

	for (unsigned r = 0; r < c->rounds; r++)
		come_read_and_go(c, i);
}

static void sixty_four_threads_share_files_and_buffers(void **state)
{
	static const enum th_file_kind kinds[] = { TH_ODIRECT, TH_BUFFERED,
						   TH_TMPFS };
	struct crowd c = { .rounds = TH_TSAN ? 12 : TH_SCALE(60) };

	(void)state;
	th_need_gpu();
	th_mem_alloc(&c.mem[0], TH_DEVICE, FILE_SIZE);
	th_mem_alloc(&c.mem[1], TH_MALLOC, FILE_SIZE);
	for (unsigned i = 0; i < NR_FILES; i++) {
		c.bytes[i] = th_bytes(FILE_SIZE);
		th_file_make(&c.files[i], kinds[i % 3], O_RDWR, c.bytes[i],
			     FILE_SIZE);
		c.fhs[i] = th_handle(c.files[i].fd);
	}
	th_threads(NR_THREADS, be_one_of_them, &c);
	th_bad_check(&c.bad);
	for (unsigned i = 0; i < NR_FILES; i++) {
		cuFileHandleDeregister(c.fhs[i]);
		th_file_end(&c.files[i]);
		free(c.bytes[i]);
	}
	th_mem_free(&c.mem[0]);
	th_mem_free(&c.mem[1]);
}

/* --------------------------------------------- more than there are turns */

#define LEAST (32 * TH_KIB) /* what needs one */
#define MOST (1100 * TH_KIB)
#define SHARED (4096 * TH_KIB)
#define GUARD ((size_t)64)
#define ITS_BYTE 0x5a

struct queue {
	struct th_bad bad;
	CUfileHandle_t fh;
	const unsigned char *bytes; /* of the file, SHARED of them */
	unsigned rounds;
};

static void check_all(struct queue *q, const unsigned char *got, size_t from,
		      size_t size)
{
	if (memcmp(got + GUARD, q->bytes + from, size))
		th_bad_note(&q->bad, "%zu at %zu: other bytes", size, from);
	for (size_t i = 0; i < GUARD; i++)
		if (got[i] != ITS_BYTE || got[GUARD + size + i] != ITS_BYTE)
			th_bad_note(&q->bad, "%zu at %zu: beside it", size,
				    from);
}

static void wait_and_read(void *arg, unsigned i)
{
	struct queue *q = arg;
	unsigned char *got = malloc(MOST + 2 * GUARD);
	struct th_mem mem;

	(void)i;
	th_mem_alloc(&mem, TH_DEVICE, MOST + 2 * GUARD);
	for (unsigned r = 0; r < q->rounds; r++) {
		size_t size = LEAST + th_below(MOST - LEAST);
		size_t from = th_below(SHARED - size);
		ssize_t n;

		th_mem_set(&mem, ITS_BYTE);
		n = cuFileRead(q->fh, mem.ptr, size, (off_t)from, GUARD);
		if (n != (ssize_t)size)
			th_bad_note(&q->bad, "read: %zd of %zu, errno %d", n,
				    size, errno);
		th_mem_get(&mem, 0, got, size + 2 * GUARD);
		check_all(q, got, from, size);
	}
	th_mem_free(&mem);
	free(got);
}

static void sixty_four_readers_take_turns(void **state)
{
	struct queue q = { .rounds = TH_TSAN ? 4 : TH_SCALE(20) };
	unsigned char *bytes = th_bytes(SHARED);
	struct th_file file;

	(void)state;
	th_need_gpu();
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, SHARED);
	q.bytes = bytes;
	q.fh = th_handle(file.fd);
	th_threads(NR_THREADS, wait_and_read, &q);
	th_bad_check(&q.bad);
	cuFileHandleDeregister(q.fh);
	th_file_end(&file);
	free(bytes);
}

/* ------------------------------------------------------ the same blocks */

#define STRIPE ((size_t)37) /* no sector, no page, no cache line */
#define NR_STRIPES ((size_t)512)
#define WOVEN (STRIPE * NR_STRIPES * 4)

struct loom {
	struct th_bad bad;
	struct th_file file;
	struct th_mem mem;
	unsigned rounds;
};

/* Stripes i, i + 64, ...: each block of the file is written by all. */
static void weave_stripes(struct loom *l, CUfileHandle_t fh, unsigned i)
{
	for (size_t at = i * STRIPE; at < WOVEN; at += NR_THREADS * STRIPE) {
		size_t n = WOVEN - at < STRIPE ? WOVEN - at : STRIPE;
		ssize_t done =
			cuFileWrite(fh, l->mem.ptr, n, (off_t)at, (off_t)at);

		if (done != (ssize_t)n)
			th_bad_note(&l->bad, "write: %zd of %zu, errno %d",
				    done, n, errno);
	}
}

static void weave_by_own_descriptor(void *arg, unsigned i)
{
	struct loom *l = arg;
	int fd = open(l->file.path, O_RDWR | O_DIRECT | O_CLOEXEC);
	CUfileHandle_t fh;

	if (fd < 0) {
		th_bad_note(&l->bad, "open: errno %d", errno);
		return;
	}
	fh = th_handle(fd);
	weave_stripes(l, fh, i);
	cuFileHandleDeregister(fh);
	close(fd);
}

static void sixty_four_writers_share_blocks_and_lose_no_byte(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;
	struct loom l = { .rounds = TH_SCALE(8) };
	unsigned char *got = th_bytes(WOVEN);

	th_mem_need(kind);
	th_mem_alloc(&l.mem, kind, WOVEN);
	th_file_make(&l.file, TH_ODIRECT, O_RDWR, NULL, 0);
	for (unsigned r = 0; r < l.rounds; r++) {
		unsigned char *bytes = th_bytes(WOVEN);

		th_mem_put(&l.mem, 0, bytes, WOVEN);
		th_threads(NR_THREADS, weave_by_own_descriptor, &l);
		th_bad_check(&l.bad);
		assert_int_equal(th_file_size(&l.file), WOVEN);
		th_file_get(&l.file, 0, got, WOVEN);
		th_equal("woven by 64", got, bytes, WOVEN);
		free(bytes);
	}
	th_file_end(&l.file);
	th_mem_free(&l.mem);
	free(got);
}

/* ------------------------------------------------- readers beside writers */

#define NR_WRITERS 2u
#define NR_READERS 3u
#define SCENE ((size_t)192 * 1024 + 333)
#define SCENE_AT ((size_t)300) /* no block's beginning */
#define SCENE_FILE (SCENE_AT + SCENE + 4096)

struct scene {
	struct th_bad bad;
	struct th_file file;
	CUfileHandle_t fh;
	struct th_mem mem[NR_WRITERS + NR_READERS];
	atomic_uint at_work; /* writers */
	unsigned rounds;
};

static const unsigned char marks[] = { 0x00, 0x5b, 0xa7, 0xfc };

/* A byte tells where it belongs; what was written there, by its mark. */
static unsigned char byte_of(size_t at, unsigned mark)
{
	return (unsigned char)(at * 167 + (at >> 8) * 31) ^ marks[mark & 3];
}

static void write_again_and_again(struct scene *s, unsigned i)
{
	unsigned char *bytes = malloc(SCENE);
	ssize_t n;

	for (unsigned r = 0; r < s->rounds; r++) {
		for (size_t at = 0; at < SCENE; at++)
			bytes[at] = byte_of(SCENE_AT + at, r + i);
		th_mem_put(&s->mem[i], 0, bytes, SCENE);
		n = cuFileWrite(s->fh, s->mem[i].ptr, SCENE, SCENE_AT, 0);
		if (n != (ssize_t)SCENE)
			th_bad_note(&s->bad, "write: %zd, errno %d", n, errno);
	}
	free(bytes);
	atomic_fetch_sub(&s->at_work, 1);
}

static void look_at(struct scene *s, const unsigned char *got, ssize_t n)
{
	if (n != (ssize_t)SCENE_FILE)
		th_bad_note(&s->bad, "read: %zd, errno %d", n, errno);
	for (ssize_t at = 0; at < n; at++) {
		unsigned char mark = got[at] ^ byte_of((size_t)at, 0);

		if (!memchr(marks, mark, sizeof(marks))) {
			th_bad_note(&s->bad, "byte %zd is nobody's: 0x%02x", at,
				    got[at]);
			return;
		}
	}
}

/* The last reader is one that knows nothing of the library. */
static void read_again_and_again(struct scene *s, unsigned i)
{
	unsigned char *got = malloc(SCENE_FILE);
	ssize_t n;

	while (atomic_load(&s->at_work)) {
		if (i + 1 == NR_WRITERS + NR_READERS) {
			n = pread(s->file.plain, got, SCENE_FILE, 0);
		} else {
			n = cuFileRead(s->fh, s->mem[i].ptr, SCENE_FILE, 0, 0);
			th_mem_get(&s->mem[i], 0, got, SCENE_FILE);
		}
		look_at(s, got, n);
	}
	free(got);
}

static void play(void *arg, unsigned i)
{
	if (i < NR_WRITERS)
		write_again_and_again(arg, i);
	else
		read_again_and_again(arg, i);
}

/* Never what neither file nor writer had: a slot's old bytes, or zeros. */
static void readers_see_the_files_bytes_or_a_writers(void **state)
{
	enum th_file_kind kind = *(enum th_file_kind *)*state;
	struct scene s = { .rounds = TH_TSAN ? 8 : TH_SCALE(60),
			   .at_work = NR_WRITERS };
	unsigned char *bytes = malloc(SCENE_FILE);

	th_need_gpu();
	for (size_t at = 0; at < SCENE_FILE; at++)
		bytes[at] = byte_of(at, 0);
	th_file_make(&s.file, kind, O_RDWR, bytes, SCENE_FILE);
	s.fh = th_handle(s.file.fd);
	/* GPU and host memory by turns */
	for (unsigned i = 0; i < NR_WRITERS + NR_READERS; i++)
		th_mem_alloc(&s.mem[i], i & 1 ? TH_MALLOC : TH_DEVICE,
			     SCENE_FILE);
	th_threads(NR_WRITERS + NR_READERS, play, &s);
	th_bad_check(&s.bad);
	for (unsigned i = 0; i < NR_WRITERS + NR_READERS; i++)
		th_mem_free(&s.mem[i]);
	cuFileHandleDeregister(s.fh);
	th_file_end(&s.file);
	free(bytes);
}

#define BESIDE(which) \
	{ \
		.name = "readers_see_the_files_bytes_or_a_writers (" #which \
			")", \
		.test_func = readers_see_the_files_bytes_or_a_writers, \
		.setup_func = th_setup_open, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(enum th_file_kind) \
		{ \
			which \
		} \
	}

#define EACH(test, which) \
	{ \
		.name = #test " (" #which ")", .test_func = test, \
		.setup_func = th_setup_open, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(enum th_mem_kind) \
		{ \
			which \
		} \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			sixty_four_threads_share_files_and_buffers,
			th_setup_open, th_teardown_close),
		cmocka_unit_test_setup_teardown(sixty_four_readers_take_turns,
						th_setup_open,
						th_teardown_close),
		EACH(sixty_four_writers_share_blocks_and_lose_no_byte,
		     TH_DEVICE),
		EACH(sixty_four_writers_share_blocks_and_lose_no_byte,
		     TH_MALLOC),
		BESIDE(TH_ODIRECT),
		BESIDE(TH_BUFFERED),
		BESIDE(TH_TMPFS),
	};

	th_start(110);
	return th_finish(
		cmocka_run_group_tests_name("crowd", tests, NULL, NULL));
}
