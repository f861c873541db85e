// SPDX-License-Identifier: Apache-2.0
/*
 * stats_119 - statistics for programs that were built for cuFile 1.19, whose
 * structs have numbers of vectored calls at byte 512 (contract 2.3).
 */
#include "fresh.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define L1_SIZE 624
#define L2_SIZE 1136
#define GPUS_AT 1144
#define GPU_SIZE 248
#define UNTOUCHED 0xa5

static unsigned char room[GPUS_AT + 16 * GPU_SIZE];

static uint64_t at(size_t offset)
{
	uint64_t value;

	memcpy(&value, room + offset, sizeof(value));
	return value;
}

static void blank(void)
{
	memset(room, UNTOUCHED, sizeof(room));
}

static void check_end(size_t size)
{
	th_all("behind the struct", room + size, UNTOUCHED,
	       sizeof(room) - size);
}

struct world {
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
};

/* Reads of 4096, 8192 and 8192 bytes, two of them by one call, and a write. */
static void work(struct world *w, enum th_mem_kind kind, int level)
{
	CUfileIOVec_t iov[2];

	setenv("OCF_STATS_LAYOUT", "1.19", 1);
	th_mem_alloc(&w->mem, kind, 65536);
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, NULL, 65536);
	assert_ok(cuFileDriverOpen());
	w->fh = th_handle(w->file.fd);
	assert_ok(cuFileSetStatsLevel(level));
	assert_ok(cuFileStatsStart());
	for (int i = 0; i < 2; i++)
		iov[i] = (CUfileIOVec_t){ (char *)w->mem.ptr + i * 8192, 8192 };
	assert_int_equal(cuFileReadv(w->fh, iov, 2, 0, 0), 2 * 8192);
	assert_int_equal(cuFileReadv(w->fh, iov, 2, -1, 0), -1);
	assert_int_equal(cuFileRead(w->fh, w->mem.ptr, 4096, 0, 0), 4096);
	assert_int_equal(cuFileWritev(w->fh, iov, 1, 0, 0), 8192);
	blank();
}

static void end(struct world *w)
{
	cuFileHandleDeregister(w->fh);
	assert_ok(cuFileDriverClose_v2());
	th_file_end(&w->file);
	th_mem_free(&w->mem);
}

static void check_totals(void)
{
	assert_int_equal(at(0), 3);		   /* read_ops.ok */
	assert_int_equal(at(16), 1);		   /* write_ops.ok */
	assert_int_equal(at(96), 4096 + 2 * 8192); /* read_bytes */
	assert_int_equal(at(504), 0);		   /* last_batch_write_bytes */
	assert_int_equal(at(512), 1);		   /* readv_ops.ok */
	assert_int_equal(at(520), 1);		   /* readv_ops.err */
	assert_int_equal(at(528), 1);		   /* writev_ops.ok */
	assert_int_equal(at(536), 0);		   /* writev_ops.err */
	assert_int_equal(at(544), 2 * 8192);	   /* readv_bytes */
	assert_int_equal(at(552), 8192);	   /* writev_bytes */
	assert_true(at(560) > at(544));		   /* readv_bw_bytes_per_sec */
	assert_true(at(568) > at(552));		   /* writev_bw_bytes_per_sec */
	assert_in_range(at(576), 0, 1000000);	   /* readv_lat_avg_us */
	assert_in_range(at(584), 0, 1000000);	   /* writev_lat_avg_us */
	assert_in_range(at(592), 1, 1000000);	   /* readv_ops_per_sec */
	assert_in_range(at(600), 1, 1000000);	   /* writev_ops_per_sec */
	assert_in_range(at(608), at(576), 1000000); /* readv_lat_sum_us */
	assert_in_range(at(616), at(584), 1000000); /* writev_lat_sum_us */
}

static void level_1_has_vectored_calls_at_its_end(void **state)
{
	struct world w;

	work(&w, TH_MALLOC, 1);
	assert_ok(cuFileGetStatsL1((CUfileStatsLevel1_t *)room));
	check_totals();
	check_end(L1_SIZE);
	assert_code(cuFileGetStatsL2((CUfileStatsLevel2_t *)room),
		    CU_FILE_INVALID_VALUE);
	end(&w);
}

/* Bin 1 is of 4 KiB, bin 2 of 8. */
static void level_2_has_sizes_behind_them(void **state)
{
	struct world w;

	work(&w, TH_MALLOC, 2);
	assert_ok(cuFileGetStatsL2((CUfileStatsLevel2_t *)room));
	check_totals();
	assert_int_equal(at(L1_SIZE + 1 * 8), 1);
	assert_int_equal(at(L1_SIZE + 2 * 8), 2);
	assert_int_equal(at(880 + 2 * 8), 1);
	check_end(L2_SIZE);
	end(&w);
}

static void level_3_has_gpus_behind_those(void **state)
{
	struct world w;

	th_need_gpu();
	work(&w, TH_DEVICE, 3);
	assert_ok(cuFileGetStatsL3((CUfileStatsLevel3_t *)room));
	check_totals();
	assert_int_equal(at(L1_SIZE + 2 * 8), 2);
	assert_int_equal((uint32_t)at(L2_SIZE), 1);	     /* num_gpus */
	assert_int_equal(at(GPUS_AT + 16), 4096 + 2 * 8192); /* read_bytes */
	assert_int_equal(at(GPUS_AT + 48), 3);		     /* n_total_reads */
	assert_int_equal(at(GPUS_AT + 152), 1); /* n_total_writes */
	check_end(GPUS_AT + GPU_SIZE);
	end(&w);
}

static void after_a_stop_they_stay(void **state)
{
	unsigned char before[L1_SIZE];
	struct world w;

	work(&w, TH_MALLOC, 1);
	assert_ok(cuFileStatsStop());
	assert_ok(cuFileGetStatsL1((CUfileStatsLevel1_t *)room));
	check_totals();
	memcpy(before, room, sizeof(before));
	assert_int_equal(cuFileRead(w.fh, w.mem.ptr, 4096, 0, 0), 4096);
	blank();
	assert_ok(cuFileGetStatsL1((CUfileStatsLevel1_t *)room));
	th_equal("numbers", room, before, sizeof(before));
	end(&w);
}

static const struct fresh_test tests[] = {
	FRESH(level_1_has_vectored_calls_at_its_end),
	FRESH(level_2_has_sizes_behind_them),
	FRESH(level_3_has_gpus_behind_those),
	FRESH(after_a_stop_they_stay),
};

FRESH_MAIN(tests, 30)
