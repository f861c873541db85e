// SPDX-License-Identifier: Apache-2.0
/*
 * The alias path where the kernel refuses it: what is taken for the pair of
 * disk and GPU and remembered, what for the file, and how single requests and
 * entries of batches get around it.
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "alias_world.h"
#include "core/alias.h"

/* ------------------------------------------------------ single requests */

/* What the kernel says of a pair of disk and GPU that does not go. */
static void a_refusal_is_remembered(int err, const char *text, bool write)
{
	const char *why;
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_string_equal(aw_path_of(&w, write, AW_SIZE, 0, 0, &why),
			    "alias");
	atomic_store(&aw_refusal, err);
	if (write)
		aw_write_is_right(&w, AW_SIZE - 200, 100, 100);
	else
		aw_read_is_right(&w, AW_SIZE - 200, 100, 100);
	assert_true(atomic_load(&aw_straight) > 0);
	assert_string_equal(aw_path_of(&w, !write, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, text));
	assert_int_equal(aw_both_ways(&w), 0);
	/* the file itself still goes direct */
	atomic_store(&aw_refusal, 0);
	aw_end(&w);
}

static void a_refusal_is_routed_around_and_remembered(void **state)
{
	static const struct {
		int err;
		const char *text;
	} cases[] = { { EREMOTEIO, "EREMOTEIO" },
		      { EFAULT, "EFAULT" },
		      { EINVAL, "EINVAL" } };

	for (int ring = 0; ring < 2; ring++) {
		setenv("OCF_IO_URING", ring ? "1" : "0", 1);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			for (int write = 0; write < 2; write++)
				a_refusal_is_remembered(cases[i].err,
							cases[i].text, write);
	}
	unsetenv("OCF_IO_URING");
}

/* A short count would be the end of the file. */
static void refused_behind_some_bytes_the_rest_goes_around(const char *rings)
{
	const char *why;
	struct aw_world w;

	setenv("OCF_IO_URING", rings, 1);
	for (int write = 0; write < 2; write++) {
		aw_begin(&w, AW_HONEST, TH_ODIRECT);
		atomic_store(&aw_before, 8192);
		atomic_store(&aw_refusal, EREMOTEIO);
		if (write)
			aw_write_is_right(&w, AW_SIZE - 200, 100, 100);
		else
			aw_read_is_right(&w, AW_SIZE - 200, 100, 100);
		assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why),
				    "staged");
		assert_non_null(strstr(why, "EREMOTEIO"));
		atomic_store(&aw_refusal, 0);
		aw_end(&w);
	}
	unsetenv("OCF_IO_URING");
}

static void a_refusal_behind_some_bytes_is_one_too(void **state)
{
	refused_behind_some_bytes_the_rest_goes_around("0");
	refused_behind_some_bytes_the_rest_goes_around("1");
}

static void other_errors_are_the_requests_own(void **state)
{
	size_t head = th_page() - 100;
	const char *why;
	struct aw_world w;

	setenv("OCF_IO_URING", "0", 1);
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	atomic_store(&aw_refusal, ENOSPC);
	errno = 0;
	assert_int_equal(cuFileWrite(w.fh, w.mem.ptr, AW_SIZE, 0, 0), -1);
	assert_int_equal(errno, ENOSPC);
	/* what lies before the first whole page has gone another way */
	assert_int_equal(cuFileWrite(w.fh, w.mem.ptr, TH_MIB, 100, 100), head);
	atomic_store(&aw_refusal, 0);
	th_mem_get(&w.mem, 100, w.content + 100, head);
	th_file_get(&w.file, 0, w.got, AW_SIZE);
	th_equal("the file", w.got, w.content, AW_SIZE);
	assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why), "alias");
	assert_true(aw_both_ways(&w) > 0);
	aw_end(&w);
	unsetenv("OCF_IO_URING");
}

/* ------------------------------------------------------- whose is EINVAL? */

static bool is_direct(int fd)
{
	return fcntl(fd, F_GETFL) & O_DIRECT;
}

static ssize_t ill_pread(int fd, void *buf, size_t size, off_t off)
{
	return is_direct(fd) ? -EINVAL : cf_os_real.pread(fd, buf, size, off);
}

static ssize_t ill_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	return is_direct(fd) ? -EINVAL : cf_os_real.pwrite(fd, buf, size, off);
}

/* The path that another file of the same disk would take. */
static const char *path_of_another(struct aw_world *w)
{
	CUfileHandle_t fh = w->fh;
	struct th_file file;
	const char *path, *why;

	th_file_make(&file, TH_ODIRECT, O_RDWR, w->content, AW_SIZE);
	w->fh = th_handle(file.fd);
	path = aw_path_of(w, false, AW_SIZE, 0, 0, &why);
	cuFileHandleDeregister(w->fh);
	w->fh = fh;
	th_file_end(&file);
	return path;
}

static void a_file_that_refuses_its_blocks_is_not_the_pairs_fault(void **state)
{
	const char *why;
	struct aw_world w;

	setenv("OCF_IO_URING", "0", 1);
	for (int write = 0; write < 2; write++) {
		aw_begin(&w, AW_HONEST, TH_ODIRECT);
		aw_os.pread = ill_pread;
		aw_os.pwrite = ill_pwrite;
		if (write)
			aw_write_is_right(&w, AW_SIZE - 200, 100, 100);
		else
			aw_read_is_right(&w, AW_SIZE - 200, 100, 100);
		assert_string_equal(aw_path_of(&w, write, AW_SIZE, 0, 0, &why),
				    "staged");
		assert_non_null(strstr(why, "page cache"));
		aw_os.pread = cf_os_real.pread;
		aw_os.pwrite = cf_os_real.pwrite;
		assert_string_equal(path_of_another(&w), "alias");
		aw_end(&w);
	}
	unsetenv("OCF_IO_URING");
}

/* There is no block to try: what went another way tells. */
static void a_pair_is_learnt_from_a_file_that_cannot_be_read(void **state)
{
	CUfileHandle_t fh;
	const char *why;
	struct aw_world w;
	int fd;

	setenv("OCF_IO_URING", "0", 1);
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	fd = open(w.file.path, O_WRONLY | O_DIRECT);
	assert_true(fd >= 0);
	fh = w.fh;
	w.fh = th_handle(fd);
	atomic_store(&aw_refusal, EINVAL);
	aw_write_is_right(&w, AW_SIZE, 0, 0);
	assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, "EINVAL"));
	assert_string_equal(path_of_another(&w), "staged");
	cuFileHandleDeregister(w.fh);
	close(fd);
	w.fh = fh;
	aw_end(&w);
	unsetenv("OCF_IO_URING");
}

static void a_pair_is_learnt_from_a_file_that_grows(void **state)
{
	const char *why;
	struct aw_world w;

	setenv("OCF_IO_URING", "0", 1);
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_int_equal(ftruncate(w.file.plain, 0), 0);
	atomic_store(&aw_refusal, EINVAL);
	aw_write_is_right(&w, AW_SIZE, 0, 0);
	assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, "EINVAL"));
	assert_int_equal(aw_both_ways(&w), 0);
	aw_end(&w);
	unsetenv("OCF_IO_URING");
}

/* ------------------------------------------------- user-space file systems */

/* Its clients are not told of addresses that are a bus away. */
static ssize_t read_to_host(const void *handle, char *buf, size_t size,
			    off_t off, const cufileRDMAInfo_t *info)
{
	const struct aw_world *w = handle;

	(void)info;
	assert_false(aw_is_alias(buf));
	memcpy(buf, w->content + off, size);
	return (ssize_t)size;
}

static ssize_t write_nothing(const void *handle, const char *buf, size_t size,
			     off_t off, const cufileRDMAInfo_t *info)
{
	return -EIO;
}

static void a_user_space_file_system_reads_to_the_host(void **state)
{
	static const CUfileFSOps_t ops = { .read = read_to_host,
					   .write = write_nothing };
	struct aw_world w;
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.handle.handle = &w,
				.fs_ops = &ops };
	CUfileHandle_t fh;
	const char *why;

	setenv("OCF_ALIAS", "on", 1);
	aw_begin(&w, AW_HONEST, TH_BUFFERED);
	fh = w.fh;
	assert_int_equal(cuFileHandleRegister(&w.fh, &descr).err, 0);
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, "user-space file system"));
	aw_read_is_right(&w, AW_SIZE, 0, 0);
	cuFileHandleDeregister(w.fh);
	w.fh = fh;
	aw_end(&w);
}

/* ---------------------------------------------------------------- batches */

#define NR 96
#define EACH (64 * TH_KIB)

/* Whole blocks, and every third with edges; nothing behind the last block. */
static void fill_batch(struct aw_world *w, CUfileIOParams_t *params,
		       CUfileOpcode_t opcode)
{
	for (unsigned i = 0; i < NR; i++) {
		CUfileIOParams_t *p = &params[i];
		off_t at = (off_t)(i * EACH) + (i % 3 ? 0 : 100);

		*p = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
					 .fh = w->fh,
					 .opcode = opcode };
		p->u.batch.devPtr_base = w->mem.ptr;
		p->u.batch.devPtr_offset = at;
		p->u.batch.file_offset = at;
		p->u.batch.size = i % 3 ? EACH - AW_BLOCK : EACH - 777;
	}
}

static void run_batch(struct aw_world *w, CUfileIOParams_t *params)
{
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t batch;
	unsigned nr = NR;

	assert_int_equal(cuFileBatchIOSetUp(&batch, NR).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, NR, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, NR, &nr, events, NULL).err, 0);
	assert_int_equal(nr, NR);
	for (unsigned i = 0; i < NR; i++) {
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
		assert_true(events[i].ret == EACH - AW_BLOCK ||
			    events[i].ret == EACH - 777);
	}
	cuFileBatchIODestroy(batch);
}

/* What is between the entries stays as it was. */
static void batch_is_right(struct aw_world *w, CUfileOpcode_t opcode)
{
	unsigned char *want = th_bytes(AW_SIZE), *mem = th_bytes(AW_SIZE);
	CUfileIOParams_t params[NR];

	fill_batch(w, params, opcode);
	th_mem_put(&w->mem, 0, mem, AW_SIZE);
	memcpy(want, opcode == CUFILE_READ ? mem : w->content, AW_SIZE);
	for (unsigned i = 0; i < NR; i++) {
		size_t at = (size_t)params[i].u.batch.file_offset;

		memcpy(want + at,
		       (opcode == CUFILE_READ ? w->content : mem) + at,
		       params[i].u.batch.size);
	}
	run_batch(w, params);
	if (opcode == CUFILE_READ) {
		th_mem_get(&w->mem, 0, w->got, AW_SIZE);
		th_equal("memory", w->got, want, AW_SIZE);
	} else {
		memcpy(w->content, want, AW_SIZE);
	}
	th_file_get(&w->file, 0, w->got, AW_SIZE);
	th_equal("file", w->got, w->content, AW_SIZE);
	free(want);
	free(mem);
}

static void a_batch_of_whole_blocks_goes_straight(void **state)
{
	/* of a write with edges whole pages go, and it may have none */
	unsigned writes = th_page() < EACH ? NR : NR - NR / 3;
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	batch_is_right(&w, CUFILE_READ);
	assert_true(atomic_load(&aw_straight) >= NR);
	atomic_store(&aw_straight, 0);
	batch_is_right(&w, CUFILE_WRITE);
	assert_true(atomic_load(&aw_straight) >= writes);
	/* the CPU would fetch edges over the bus */
	assert_int_equal(atomic_load(&aw_edges), 0);
	aw_end(&w);
}

static void a_batch_that_is_refused_gets_around_it(void **state)
{
	static const int errors[] = { EREMOTEIO, EFAULT, EINVAL };
	const char *why;
	struct aw_world w;

	for (unsigned i = 0; i < 4 * 3; i++) {
		aw_begin(&w, AW_HONEST, TH_ODIRECT);
		atomic_store(&aw_before, i & 2 ? 8192 : 0);
		atomic_store(&aw_refusal, errors[i / 4]);
		batch_is_right(&w, i & 1 ? CUFILE_WRITE : CUFILE_READ);
		assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why),
				    "staged");
		assert_true(atomic_load(&aw_straight) > 0);
		/* remembered: nobody tries again */
		atomic_store(&aw_straight, 0);
		batch_is_right(&w, i & 1 ? CUFILE_READ : CUFILE_WRITE);
		assert_int_equal(atomic_load(&aw_straight), 0);
		atomic_store(&aw_refusal, 0);
		aw_end(&w);
	}
}

/* As where a file lies on two disks, one of which does not reach the GPU. */
static void begin_with_a_bad_end(struct aw_world *w, size_t bad_from)
{
	CUfileError_t err = cuFileSetParameterSizeT(
		CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 64);

	assert_int_equal(err.err, 0);
	aw_begin(w, AW_HONEST, TH_ODIRECT);
	atomic_store(&aw_from, (long long)bad_from);
	atomic_store(&aw_refusal, EREMOTEIO);
}

static void a_request_is_refused_in_its_middle(size_t size)
{
	struct aw_world w;

	begin_with_a_bad_end(&w, size / 2 + AW_BLOCK);
	aw_read_is_right(&w, size, 0, 0);
	aw_end(&w);
	begin_with_a_bad_end(&w, size / 2 + AW_BLOCK);
	aw_write_is_right(&w, size, 0, 0);
	aw_end(&w);
}

static void what_is_refused_in_its_middle_gets_around_it(void **state)
{
	a_request_is_refused_in_its_middle(TH_MIB);
	a_request_is_refused_in_its_middle(AW_SIZE);
	setenv("OCF_IO_URING", "0", 1);
	a_request_is_refused_in_its_middle(AW_SIZE);
	unsetenv("OCF_IO_URING");
}

#define LARGE TH_MIB

/* Two large entries, as far as they went. */
static void move_two(struct aw_world *w, CUfileOpcode_t opcode, size_t *moved)
{
	CUfileIOParams_t params[2];
	CUfileIOEvents_t events[2];
	CUfileBatchHandle_t batch;
	unsigned nr = 2;

	for (unsigned i = 0; i < nr; i++) {
		CUfileIOParams_t *p = &params[i];

		*p = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
					 .fh = w->fh,
					 .opcode = opcode };
		p->u.batch.devPtr_base = w->mem.ptr;
		p->u.batch.devPtr_offset = (off_t)(i * LARGE);
		p->u.batch.file_offset = (off_t)(i * LARGE);
		p->u.batch.size = LARGE;
	}
	assert_int_equal(cuFileBatchIOSetUp(&batch, nr).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, nr, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, nr, &nr, events, NULL).err, 0);
	assert_int_equal(nr, 2);
	*moved = events[0].ret + events[1].ret;
	cuFileBatchIODestroy(batch);
}

static void an_entry_that_is_refused_in_its_middle_gets_around_it(void **state)
{
	struct aw_world w;
	size_t moved;

	begin_with_a_bad_end(&w, LARGE + LARGE / 2);
	th_mem_set(&w.mem, 0xa5);
	move_two(&w, CUFILE_READ, &moved);
	assert_int_equal(moved, 2 * LARGE);
	th_mem_get(&w.mem, 0, w.got, moved);
	th_equal("memory", w.got, w.content, moved);
	aw_end(&w);
	begin_with_a_bad_end(&w, LARGE + LARGE / 2);
	th_fill(w.content, 2 * LARGE);
	th_mem_put(&w.mem, 0, w.content, 2 * LARGE);
	move_two(&w, CUFILE_WRITE, &moved);
	assert_int_equal(moved, 2 * LARGE);
	th_file_get(&w.file, 0, w.got, AW_SIZE);
	th_equal("file", w.got, w.content, AW_SIZE);
	aw_end(&w);
}

static void a_pair_is_remembered_with_its_reason(void **state)
{
	assert_int_equal(cf_alias_refused(7, 0), 0);
	cf_alias_refuse(7, 0, -EREMOTEIO);
	cf_alias_refuse(7, 1, -EFAULT);
	cf_alias_refuse(7, 1, -EINVAL); /* the first reason stays */
	assert_int_equal(cf_alias_refused(7, 0), -EREMOTEIO);
	assert_int_equal(cf_alias_refused(7, 1), -EFAULT);
	assert_int_equal(cf_alias_refused(8, 0), 0);
	for (dev_t dev = 100; dev < 1000; dev++)
		cf_alias_refuse(dev, 0, -EFAULT); /* more than there is room */
	assert_int_equal(cf_alias_refused(7, 0), -EREMOTEIO);
	cf_alias_refused_close();
	assert_int_equal(cf_alias_refused(7, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, aw_setup, aw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_refusal_is_routed_around_and_remembered),
		TEST(a_refusal_behind_some_bytes_is_one_too),
		TEST(other_errors_are_the_requests_own),
		TEST(a_file_that_refuses_its_blocks_is_not_the_pairs_fault),
		TEST(a_pair_is_learnt_from_a_file_that_cannot_be_read),
		TEST(a_pair_is_learnt_from_a_file_that_grows),
		TEST(a_user_space_file_system_reads_to_the_host),
		TEST(a_batch_of_whole_blocks_goes_straight),
		TEST(a_batch_that_is_refused_gets_around_it),
		TEST(what_is_refused_in_its_middle_gets_around_it),
		TEST(an_entry_that_is_refused_in_its_middle_gets_around_it),
		TEST(a_pair_is_remembered_with_its_reason),
	};

	th_start(120);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}
