// SPDX-License-Identifier: Apache-2.0
/*
 * hops_world - a bundle of pieces, a file that can be bad in the middle, a
 * clock that the test turns, and crews. Before it is included a test defines NR
 * (of pieces) and FILE_SIZE (bytes).
 */
#ifndef TESTS_UNIT_HOPS_WORLD_H
#define TESTS_UNIT_HOPS_WORLD_H

#include "path/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"

#define MEM (4 * TH_MIB)
#define CANARY 0xa5
#define UNTOUCHED 12345

/* ---------------------------------------------------------------- crews */

struct lent {
	void (*help)(void *arg);
	void *arg;
};

static void *help_thread(void *lent)
{
	struct lent *l = lent;

	l->help(l->arg);
	return NULL;
}

/* As the engine's crew: returns when all helpers have come back. */
static void together(struct cf_crew *crew, void (*lead)(void *arg),
		     void (*help)(void *arg), void *arg)
{
	struct lent lent = { help, arg };
	pthread_t threads[16];

	for (unsigned i = 0; i < crew->helpers; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, help_thread, &lent),
			0);
	lead(arg);
	for (unsigned i = 0; i < crew->helpers; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* ---------------------------------------------------------------- world */

static struct cf_os os;
static off_t bad_from, bad_to; /* where reads fail; 0, 0: nowhere */

/* 10 s: each rest (core/rest.h) is over then. */
static void pass_time(void)
{
	atomic_fetch_add(&th_clock_ns, 10 * (int64_t)1000000000);
}

static ssize_t pread_but(int fd, void *buf, size_t size, off_t off)
{
	if (off >= bad_from && off < bad_to)
		return -EIO;
	if (off < bad_from && off + (off_t)size > bad_from)
		size = (size_t)(bad_from - off);
	return cf_os_real.pread(fd, buf, size, off);
}

static struct th_file file;
static struct th_mem mem;
static unsigned char *bytes;
static CUfileHandle_t fh;
static struct cf_piece piece[NR];
static const struct cf_piece *pieces[NR];
static ssize_t results[NR];

static int begin(void **state)
{
	(void)state;
	th_need_fake();
	th_slots_of(4 * TH_MIB);
	th_open();
	bytes = th_bytes(FILE_SIZE);
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, FILE_SIZE);
	th_mem_alloc(&mem, TH_DEVICE, MEM);
	fh = th_handle(file.fd);
	os = cf_os_real;
	os.clock_gettime = th_clock;
	os.pread = pread_but;
	bad_from = bad_to = 0;
	atomic_store(&th_clock_look_ns, 0); /* reads come fast */
	cf_os = &os;
	return 0;
}

static int end(void **state)
{
	(void)state;
	th_shuttle_stay(false);
	cf_os = &cf_os_real;
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	th_mem_free(&mem);
	free(bytes);
	th_close();
	return 0;
}

/* From anywhere in the file, at and behind its end too; apart in memory. */
static void make_pieces(size_t least, size_t most)
{
	size_t at = 512;

	for (unsigned i = 0; i < NR; i++) {
		piece[i] = (struct cf_piece){
			.op = CF_READ,
			.combine = true,
			.size = least + th_below(most - least + 1),
			.file_off = (off_t)th_below(FILE_SIZE + 4096),
			.handle = cf_handle_get(fh),
		};
		cf_handle_put(piece[i].handle); /* it stays registered */
		at += th_below(40);
		cf_memory_facts((uintptr_t)mem.ptr + at, &piece[i].mem);
		at += piece[i].size;
		assert_true(at < MEM);
		pieces[i] = &piece[i];
		results[i] = UNTOUCHED;
	}
}

static void bad_somewhere(void)
{
	bad_from = (off_t)(1 + th_below(FILE_SIZE / 2));
	bad_to = bad_from + (off_t)(1 + th_below(FILE_SIZE / 3));
}

/* What one read of the piece would answer. */
static ssize_t wanted(const struct cf_piece *p)
{
	off_t from = p->file_off, to = (off_t)FILE_SIZE;

	if (from >= bad_from && from < bad_to)
		return -EIO;
	if (from < bad_from)
		to = bad_from;
	if (from >= to)
		return 0;
	return to - from < (off_t)p->size ? to - from : (ssize_t)p->size;
}

static void check(void)
{
	unsigned char *want = th_same(CANARY, MEM), *got = malloc(MEM);

	for (unsigned i = 0; i < NR; i++) {
		size_t at = piece[i].mem.addr - (uintptr_t)mem.ptr;

		assert_int_equal(results[i], wanted(&piece[i]));
		if (results[i] > 0)
			memcpy(want + at, bytes + piece[i].file_off,
			       (size_t)results[i]);
	}
	th_mem_get(&mem, 0, got, MEM);
	th_equal("memory", got, want, MEM);
	free(want);
	free(got);
}

#endif
