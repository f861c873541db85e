// SPDX-License-Identifier: Apache-2.0
/*
 * batch - what the table "Batch" of the behaviour page says, and what clients
 * of batches rely on (contract 3.12, 3.18, 3.19): what is taken, what is
 * refused, and what is told.
 */
#include "batch_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --------------------------------------------------------------- set up */

static void set_up_takes_1_to_65536_entries(void **state)
{
	static const unsigned sizes[] = { 1, 128, 129, 257, 65536 };
	CUfileBatchHandle_t batch = (void *)0x77;

	assert_ok(cuFileDriverOpen());
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		cuFileBatchIODestroy(bw_batch_of(sizes[i]));
	assert_code(cuFileBatchIOSetUp(&batch, 0), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBatchIOSetUp(&batch, 65537), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBatchIOSetUp(NULL, 4), CU_FILE_INVALID_VALUE);
	assert_ptr_equal(batch, (void *)0x77);
	assert_ok(cuFileDriverClose_v2());
}

static void batches_need_an_open_driver(void **state)
{
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t event;
	unsigned nr = 1;

	assert_code(cuFileBatchIOSetUp(&batch, 4), CU_FILE_INVALID_VALUE);
	assert_code(cuFileBatchIOGetStatus(NULL, 0, &nr, &event, NULL),
		    CU_FILE_INVALID_VALUE);
	assert_ok(cuFileBatchIOCancel(NULL));
	cuFileBatchIODestroy(NULL);
	assert_int_equal(cuFileUseCount(), 0);
}

static void properties_say_that_there_are_batches(void **state)
{
	CUfileDrvProps_t props;

	assert_ok(cuFileDriverGetProperties(&props));
	assert_true(props.fflags & 1u << CU_FILE_BATCH_IO_SUPPORTED);
	assert_int_equal(props.max_batch_io_size, 128);
	assert_int_equal(props.max_batch_io_timeout_msecs, 5);
}

/* --------------------------------------------------------------- submit */

static void a_batch_reads_and_reports_each_entry_once(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bw_begin(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	/* the array is the caller's again */
	memset(b.params, 0xff, sizeof(b.params));
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, BW_NR);
	bw_check_events(b.events, BW_NR);
	bw_check_read(&b);
	/* everything was reported */
	b.nr = BW_NR;
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 0);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void flag_1_is_accepted(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bw_begin(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 1));
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	bw_check_events(b.events, b.nr);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void bad_submits_are_refused_whole(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bw_begin(&b);
	th_mem_set(&b.mem, 0x5c);
	batch = bw_batch_of(BW_NR - 1);
	assert_code(cuFileBatchIOSubmit(batch, 0, b.params, 0), 5040);
	assert_code(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0), 5040);
	assert_code(cuFileBatchIOSubmit(batch, 1, NULL, 0), 5040);
	assert_code(cuFileBatchIOSubmit(NULL, 1, b.params, 0), 5040);
	assert_code(cuFileBatchIOSubmit((void *)&b, 1, b.params, 0), 5040);
	assert_code(cuFileBatchIOSubmit(b.fh, 1, b.params, 0), 5040);
	bw_check_untouched(&b, batch);
	cuFileBatchIODestroy(batch);
	assert_code(cuFileBatchIOSubmit(batch, 1, b.params, 0), 5040);
	bw_end(&b);
}

enum spoil {
	NULL_HANDLE,
	STALE_HANDLE,
	NULL_BASE,
	BAD_OPCODE,
	BAD_MODE,
	NEGATIVE_FILE_OFFSET,
	NEGATIVE_BUFFER_OFFSET,
	HUGE_SIZE,
	NR_SPOILS
};

static CUfileIOParams_t spoiled(CUfileIOParams_t good, enum spoil how)
{
	switch (how) {
	case NULL_HANDLE:
		good.fh = NULL;
		break;
	case STALE_HANDLE:
		good.fh = (char *)good.fh + (1 << 24);
		break;
	case NULL_BASE:
		good.u.batch.devPtr_base = NULL;
		break;
	case BAD_OPCODE:
		good.opcode = (CUfileOpcode_t)7;
		break;
	case BAD_MODE:
		good.mode = (CUfileBatchMode_t)0;
		break;
	case NEGATIVE_FILE_OFFSET:
		good.u.batch.file_offset = -1;
		break;
	case NEGATIVE_BUFFER_OFFSET:
		good.u.batch.devPtr_offset = -4096;
		break;
	default:
		good.u.batch.size = SIZE_MAX / 2 + 1;
	}
	return good;
}

/* Last, so that what went before it would have been carried. */
static void a_bad_entry_refuses_all_and_is_named_in_the_log(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	CUfileIOParams_t good;

	bw_begin(&b);
	th_mem_set(&b.mem, 0x5c);
	batch = bw_batch_of(BW_NR);
	good = b.params[BW_NR - 1];
	for (int how = 0; how < NR_SPOILS; how++) {
		b.params[BW_NR - 1] = spoiled(good, (enum spoil)how);
		assert_code(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0),
			    5040);
		bw_check_untouched(&b, batch);
	}
	assert_non_null(strstr(fresh_log(), "entry 7 of 8"));
	/* nothing of it clings to the batch or to the handle */
	b.params[BW_NR - 1] = good;
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	b.nr = BW_NR;
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	bw_check_events(b.events, b.nr);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void a_write_to_a_read_only_file_is_refused(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	int fd;

	bw_begin(&b);
	batch = bw_batch_of(BW_NR);
	fd = open(b.file.path, O_RDONLY);
	assert_true(fd >= 0);
	assert_ok(fresh_register(fd, &b.params[0].fh));
	b.params[0].opcode = CUFILE_WRITE;
	assert_code(cuFileBatchIOSubmit(batch, 1, b.params, 0), 5040);
	cuFileHandleDeregister(b.params[0].fh);
	close(fd);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void strict_mode_refuses_entries_that_need_a_fallback(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	th_need_gpu();
	assert_ok(cuFileSetParameterBool(
		CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false));
	bw_begin_as(&b, TH_DEVICE, CUFILE_READ);
	th_mem_set(&b.mem, 0x5c);
	batch = bw_batch_of(BW_NR);
	assert_code(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0),
		    CU_FILE_BATCH_NOCOMPAT_ERROR);
	bw_check_untouched(&b, batch);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void ends_of_files_and_nothing_at_all_complete(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bw_begin(&b);
	batch = bw_batch_of(3);
	b.params[0] = bw_entry(b.fh, CUFILE_READ, b.mem.ptr, 0, 0, 0);
	b.params[1] = bw_entry(b.fh, CUFILE_READ, b.mem.ptr, 0, BW_SIZE, 1);
	b.params[1].u.batch.file_offset = BW_NR * BW_SIZE;
	b.params[2] = bw_entry(b.fh, CUFILE_READ, b.mem.ptr, 0, BW_SIZE, 2);
	b.params[2].u.batch.file_offset = BW_NR * BW_SIZE - 17;
	assert_ok(cuFileBatchIOSubmit(batch, 3, b.params, 0));
	b.nr = 3;
	assert_ok(cuFileBatchIOGetStatus(batch, 3, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(b.events[i].status, CUFILE_COMPLETE);
		assert_int_equal(b.events[i].ret,
				 b.events[i].cookie == (void *)2 ? 17 : 0);
	}
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void an_entry_that_fails_has_its_event_too(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;

	bw_begin(&b);
	batch = bw_batch_of(2);
	/* an address that nobody has mapped is found out on the way */
	b.params[1].u.batch.devPtr_base = (void *)0x10000;
	b.params[1].u.batch.devPtr_offset = 0;
	assert_ok(cuFileBatchIOSubmit(batch, 2, b.params, 0));
	b.nr = 2;
	assert_ok(cuFileBatchIOGetStatus(batch, 2, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, 2);
	for (int i = 0; i < 2; i++) {
		bool bad = b.events[i].cookie == (void *)101;

		assert_int_equal(b.events[i].status,
				 bad ? CUFILE_FAILED : CUFILE_COMPLETE);
		assert_int_equal((ssize_t)b.events[i].ret,
				 bad ? -EFAULT : BW_SIZE);
	}
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static void entries_are_counted_among_those_of_batches(void **state)
{
	CUfileStatsLevel1_t stats;
	struct bench b;
	CUfileBatchHandle_t batch;

	assert_ok(cuFileSetStatsLevel(1));
	bw_begin(&b);
	assert_ok(cuFileStatsStart());
	batch = bw_batch_of(BW_NR);
	b.params[0].u.batch.devPtr_base = (void *)0x10000;
	b.params[0].u.batch.devPtr_offset = 0;
	assert_code(cuFileBatchIOSetUp(NULL, BW_NR), CU_FILE_INVALID_VALUE);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_code(cuFileBatchIOSubmit(batch, 0, b.params, 0), 5040);
	assert_ok(cuFileBatchIOCancel(batch));
	cuFileBatchIODestroy(batch);
	/* nothing is destroyed or cancelled, nor counted */
	cuFileBatchIODestroy(batch);
	assert_ok(cuFileBatchIOCancel(batch));
	assert_ok(cuFileGetStatsL1(&stats));
	assert_int_equal(stats.batch_setup_ops.ok, 1);
	assert_int_equal(stats.batch_setup_ops.err, 1);
	assert_int_equal(stats.batch_submit_ops.ok, 1);
	assert_int_equal(stats.batch_submit_ops.err, 1);
	assert_int_equal(stats.batch_cancel_ops.ok, 1);
	assert_int_equal(stats.batch_destroy_ops.ok, 1);
	assert_int_equal(stats.batch_enqueued_ops.ok, BW_NR);
	assert_int_equal(stats.batch_processed_ops.ok, BW_NR - 1);
	assert_int_equal(stats.batch_processed_ops.err, 1);
	assert_int_equal(stats.batch_read_bytes, (BW_NR - 1) * BW_SIZE);
	assert_int_equal(stats.batch_write_bytes, 0);
	assert_int_equal(stats.read_ops.ok, 0);
	bw_end(&b);
}

/* --------------------------------------------------------------- status */

static void bad_status_arguments_are_refused(void **state)
{
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t events[2];
	unsigned nr = 2;

	assert_ok(cuFileDriverOpen());
	batch = bw_batch_of(2);
	assert_code(cuFileBatchIOGetStatus(batch, 3, &nr, events, NULL), 5022);
	assert_code(cuFileBatchIOGetStatus(batch, 0, NULL, events, NULL), 5022);
	assert_code(cuFileBatchIOGetStatus(batch, 0, &nr, NULL, NULL), 5022);
	assert_code(cuFileBatchIOGetStatus(NULL, 0, &nr, events, NULL), 5041);
	cuFileBatchIODestroy(batch);
	assert_code(cuFileBatchIOGetStatus(batch, 0, &nr, events, NULL), 5041);
	assert_int_equal(nr, 2);
	assert_ok(cuFileDriverClose_v2());
}

static void an_idle_batch_has_nothing_to_tell_at_once(void **state)
{
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t events[4];
	unsigned nr = 4;

	assert_ok(cuFileDriverOpen());
	batch = bw_batch_of(4);
	assert_ok(cuFileBatchIOGetStatus(batch, 4, &nr, events, NULL));
	assert_int_equal(nr, 0);
	cuFileBatchIODestroy(batch);
	assert_ok(cuFileDriverClose_v2());
}

static void more_room_than_the_batch_has_is_well(void **state)
{
	struct bench b;
	CUfileIOEvents_t events[4 * BW_NR];
	CUfileBatchHandle_t batch;
	unsigned nr = 4 * BW_NR;

	bw_begin(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	/* more than will ever come: what is there, when all is there */
	assert_ok(cuFileBatchIOGetStatus(batch, 4 * BW_NR, &nr, events, NULL));
	assert_int_equal(nr, BW_NR);
	bw_check_events(events, BW_NR);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

/* -------------------------------------------------------------- clients */

/* Contract 3.19, batch_io_basic: writes, then reads, on one handle. */
static void one_handle_is_used_for_writes_and_then_reads(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	unsigned char *got = malloc(BW_NR * BW_SIZE);

	th_need_gpu();
	bw_begin_as(&b, TH_DEVICE, CUFILE_WRITE);
	th_mem_get(&b.mem, 0, b.bytes, BW_NR * BW_SIZE);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, BW_NR);
	bw_check_events(b.events, BW_NR);
	th_file_get(&b.file, 0, got, BW_NR * BW_SIZE);
	th_equal("the file", got, b.bytes, BW_NR * BW_SIZE);
	th_mem_set(&b.mem, 0);
	for (int i = 0; i < BW_NR; i++)
		b.params[i].opcode = CUFILE_READ;
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, BW_NR, &b.nr, b.events, NULL));
	assert_int_equal(b.nr, BW_NR);
	bw_check_events(b.events, BW_NR);
	bw_check_read(&b);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
	free(got);
}

/* Sample 022: nothing wanted, no timeout, until all have come. */
static void asking_for_nothing_in_a_loop_gets_everything(void **state)
{
	struct bench b;
	CUfileBatchHandle_t batch;
	unsigned done = 0;

	bw_begin(&b);
	batch = bw_batch_of(BW_NR);
	assert_ok(cuFileBatchIOSubmit(batch, BW_NR, b.params, 0));
	while (done < BW_NR) {
		b.nr = 3;
		assert_ok(cuFileBatchIOGetStatus(batch, 0, &b.nr,
						 b.events + done, NULL));
		assert_true(b.nr <= 3 && b.nr <= BW_NR - done);
		done += b.nr;
	}
	bw_check_events(b.events, BW_NR);
	cuFileBatchIODestroy(batch);
	bw_end(&b);
}

static const struct fresh_test tests[] = {
	FRESH(set_up_takes_1_to_65536_entries),
	FRESH(batches_need_an_open_driver),
	FRESH(properties_say_that_there_are_batches),
	FRESH(a_batch_reads_and_reports_each_entry_once),
	FRESH(flag_1_is_accepted),
	FRESH(bad_submits_are_refused_whole),
	FRESH(a_bad_entry_refuses_all_and_is_named_in_the_log),
	FRESH(a_write_to_a_read_only_file_is_refused),
	FRESH(strict_mode_refuses_entries_that_need_a_fallback),
	FRESH(ends_of_files_and_nothing_at_all_complete),
	FRESH(an_entry_that_fails_has_its_event_too),
	FRESH(entries_are_counted_among_those_of_batches),
	FRESH(bad_status_arguments_are_refused),
	FRESH(an_idle_batch_has_nothing_to_tell_at_once),
	FRESH(more_room_than_the_batch_has_is_well),
	FRESH(one_handle_is_used_for_writes_and_then_reads),
	FRESH(asking_for_nothing_in_a_loop_gets_everything),
};

FRESH_MAIN(tests, 60)
