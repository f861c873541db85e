// SPDX-License-Identifier: Apache-2.0
/*
 * alike - a request that is made after the one before it is what its own
 * checks would have made of it: the same calls are made both ways.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "core/buffer.h"
#include "engine/entry.h"
#include "engine/request.h"
#include "engine/via.h"
#include "harness.h"

#define SIZE (64 * TH_KIB)
#define FILE_SIZE (256 * TH_KIB)
#define TURNS 400

enum registration { NONE, WHOLE, HALF, NESTED, NR_REGISTRATIONS };

static void register_memory(const struct th_mem *mem, enum registration how)
{
	if (how == WHOLE || how == NESTED)
		assert_int_equal(cuFileBufRegister(mem->ptr, SIZE, 0).err, 0);
	if (how == HALF)
		assert_int_equal(cuFileBufRegister(mem->ptr, SIZE / 2, 0).err,
				 0);
	if (how == NESTED)
		assert_int_equal(
			cuFileBufRegister((char *)mem->ptr + 4096, 8192, 0).err,
			0);
}

static void deregister_memory(const struct th_mem *mem, enum registration how)
{
	if (how != NONE)
		assert_int_equal(cuFileBufDeregister(mem->ptr).err, 0);
	if (how == NESTED)
		assert_int_equal(
			cuFileBufDeregister((char *)mem->ptr + 4096).err, 0);
}

/* Sizes, places and mistakes; most are well. */
static void draw(struct cf_call *call)
{
	static const size_t sizes[] = { 0, 1, 512, 4096, 4096, 8192, SIZE };

	call->size = sizes[th_below(7)];
	call->buf_off = (off_t)(th_below(20) * 4096);
	call->file_off = (off_t)th_below(FILE_SIZE);
	if (!th_below(40))
		call->buf_off = -4096;
	if (!th_below(40))
		call->file_off = -1;
	if (!th_below(40))
		call->size = SIZE_MAX / 2 + 1;
}

static void assert_same(const struct cf_request *a, const struct cf_request *b)
{
	const struct cf_piece *x = &a->piece, *y = &b->piece;

	assert_ptr_equal(x->handle, y->handle);
	assert_int_equal(x->op, y->op);
	assert_int_equal(x->via, y->via);
	assert_int_equal(x->ordered, y->ordered);
	assert_int_equal(x->combine, y->combine);
	assert_int_equal(x->registered, y->registered);
	assert_int_equal(x->through_alias, y->through_alias);
	assert_ptr_equal(x->ferry, y->ferry);
	assert_ptr_equal(x->alias, y->alias);
	assert_int_equal(x->alias_state, y->alias_state);
	assert_ptr_equal(x->remote, y->remote);
	assert_int_equal(x->size, y->size);
	assert_int_equal(x->file_off, y->file_off);
	assert_int_equal(x->view.sight, y->view.sight);
	assert_int_equal(x->view.stamped, y->view.stamped);
	assert_int_equal(x->mem.kind, y->mem.kind);
	assert_int_equal(x->mem.addr, y->mem.addr);
	assert_ptr_equal(x->mem.ctx, y->mem.ctx);
	assert_int_equal(x->mem.ordinal, y->mem.ordinal);
	assert_int_equal(x->mem.buffer_id, y->mem.buffer_id);
	assert_int_equal(x->mem.end, y->mem.end);
	assert_int_equal(a->behind, b->behind);
	assert_ptr_equal(a->route.path, b->route.path);
	assert_int_equal(a->route.nr_asked, b->route.nr_asked);
	for (unsigned i = 0; i < a->route.nr_asked; i++)
		assert_int_equal(a->route.why[i], b->route.why[i]);
}

/* How many of them were made so. */
static unsigned make_both_ways(struct cf_call *call)
{
	struct cf_facts last = { .known.base = NULL };
	struct cf_request before, own, like;
	unsigned nr = 0;

	call->size = 4096;
	call->buf_off = call->file_off = 0;
	assert_int_equal(cf_request_init_next(&before, call, &last), 0);
	for (int i = 0; i < TURNS; i++) {
		struct cf_facts facts = { .known.base = NULL };
		bool made;
		int err;

		draw(call);
		made = cf_request_init_like(&like, call, &before, &last);
		err = cf_request_init_next(&own, call, &facts);
		if (made) {
			assert_int_equal(err, 0);
			assert_same(&like, &own);
			cf_request_fini(&before);
			before = like;
			nr++;
		}
		if (!err)
			cf_request_fini(&own);
	}
	cf_request_fini(&before);
	return nr;
}

static void try_file(enum th_file_kind file_kind, enum th_mem_kind mem_kind)
{
	unsigned char *bytes = th_bytes(FILE_SIZE);
	struct cf_call call = { .op = CF_READ };
	struct th_file file;
	struct th_mem mem;

	th_file_make(&file, file_kind, O_RDWR, bytes, FILE_SIZE);
	th_mem_alloc(&mem, mem_kind, SIZE);
	call.handle = th_handle(file.fd);
	call.base = mem.ptr;
	for (int how = 0; how < NR_REGISTRATIONS; how++) {
		unsigned nr;

		register_memory(&mem, (enum registration)how);
		call.op = how % 2 ? CF_WRITE : CF_READ;
		nr = make_both_ways(&call);
		deregister_memory(&mem, (enum registration)how);
		/* half of those drawn are well */
		if (file_kind == TH_ODIRECT)
			assert_int_equal(nr, 0);
		else
			assert_true(nr > TURNS / 8);
	}
	cuFileHandleDeregister(call.handle);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
}

static void a_request_like_the_one_before_is_as_checked(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_DEVICE, TH_MANAGED,
						  TH_MALLOC, TH_VMM };

	th_need_gpu();
	th_open();
	for (unsigned i = 0; i < 4; i++) {
		try_file(TH_BUFFERED, kinds[i]);
		try_file(TH_ODIRECT, kinds[i]);
	}
	th_close();
}

/* A reference of its own: the one before may end first. */
static void it_keeps_its_file_by_itself(void **state)
{
	unsigned char *bytes = th_bytes(FILE_SIZE);
	struct cf_facts last = { .known.base = NULL };
	struct cf_call call = { .op = CF_READ, .size = 4096 };
	struct cf_request before, like;
	struct th_file file;
	struct th_mem mem;

	th_open();
	th_file_make(&file, TH_BUFFERED, O_RDONLY, bytes, FILE_SIZE);
	th_mem_alloc(&mem, TH_MALLOC, SIZE);
	call.handle = th_handle(file.fd);
	call.base = mem.ptr;
	assert_int_equal(cf_request_init_next(&before, &call, &last), 0);
	call.file_off = 8192;
	assert_true(cf_request_init_like(&like, &call, &before, &last));
	cf_request_fini(&before);
	assert_int_equal(cf_request_run(&like), 4096);
	th_equal("the bytes", mem.ptr, bytes + 8192, 4096);
	cf_request_fini(&like);
	cuFileHandleDeregister(call.handle);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
	th_close();
}

/* Of those that large the page cache may have nothing. */
static void one_that_has_a_choice_is_checked_by_itself(void **state)
{
	unsigned char *bytes = th_bytes(FILE_SIZE);
	struct cf_facts last = { .known.base = NULL };
	struct cf_call call = { .op = CF_READ, .size = 4096 };
	struct cf_request before, like;
	struct th_file file;
	struct th_mem mem;

	setenv("OCF_MAPPED", "off", 1); /* whose sizes matter, too */
	th_open();
	unsetenv("OCF_MAPPED");
	th_file_make(&file, TH_BUFFERED, O_RDONLY, bytes, FILE_SIZE);
	th_mem_alloc(&mem, TH_MALLOC, CF_VIA_DIRECT_FROM);
	call.handle = th_handle(file.fd);
	call.base = mem.ptr;
	assert_int_equal(cf_request_init_next(&before, &call, &last), 0);
	call.size = CF_VIA_DIRECT_FROM;
	assert_false(cf_request_init_like(&like, &call, &before, &last));
	call.size--;
	assert_true(cf_request_init_like(&like, &call, &before, &last));
	cf_request_fini(&like);
	cf_request_fini(&before);
	cuFileHandleDeregister(call.handle);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
	th_close();
}

/* Others are read soon: a window for it pays sooner. */
static void an_entry_is_looked_at_as_one_of_many(void **state)
{
	unsigned char *bytes = th_bytes(FILE_SIZE);
	struct cf_facts last = { .known.base = NULL };
	CUfileIOParams_t params = { .mode = CUFILE_BATCH,
				    .opcode = CUFILE_READ };
	struct cf_entry entry;
	struct cf_request alone;
	struct cf_call call = { .op = CF_READ, .size = FILE_SIZE };
	struct th_file file;
	struct th_mem mem;
	const char *why;
	bool looked;

	th_need_gpu();
	setenv("OCF_MAPPED", "always", 1);
	th_open();
	unsetenv("OCF_MAPPED");
	th_file_make(&file, TH_BUFFERED, O_RDONLY, bytes, FILE_SIZE);
	th_mem_alloc(&mem, TH_DEVICE, FILE_SIZE);
	call.handle = params.fh = th_handle(file.fd);
	call.base = params.u.batch.devPtr_base = mem.ptr;
	params.u.batch.size = FILE_SIZE;
	assert_int_equal(cf_request_init(&alone, &call), 0);
	looked = alone.piece.view.stamped; /* not on every file system */
	if (looked)
		assert_int_equal(alone.piece.view.among, CF_AMONG_NONE);
	assert_int_equal(
		cf_entry_init(&entry, &params, &last, NULL, NULL, &why), 0);
	if (looked)
		assert_int_equal(entry.req.piece.view.among, CF_AMONG_BATCH);
	cf_request_fini(&alone);
	cf_request_fini(&entry.req);
	cuFileHandleDeregister(call.handle);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
	th_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_like_the_one_before_is_as_checked),
		cmocka_unit_test(one_that_has_a_choice_is_checked_by_itself),
		cmocka_unit_test(an_entry_is_looked_at_as_one_of_many),
		cmocka_unit_test(it_keeps_its_file_by_itself),
	};

	th_start(60);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}
