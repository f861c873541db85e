// SPDX-License-Identifier: Apache-2.0
/*
 * stats_file - makes the file, names its numbers, and ends it.
 *
 * The descriptor is moved up, away from the numbers that files get, as the
 * log's is. It is closed only while it still names the file: a client may have
 * closed all descriptors that it found, and got the number for its own.
 */
#include "core/stats_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include "core/buffer.h"
#include "core/gpu.h"
#include "core/log.h"
#include "core/stats_shard.h"
#include "seam/os.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif

#define NO_FILE (-1)
#define OWNER_ONLY 0600

_Static_assert(sizeof(struct cf_stats_area) < UINT32_MAX, "head.size");

static struct {
	int fd;
	dev_t dev;
	ino_t ino;
} file = { .fd = NO_FILE };

/* ------------------------------------------------------------- the rows */

#define AT(field) ((uint32_t)offsetof(struct cf_stats_counts, field))
#define ONE(text, field) \
	{ \
		.name = text, .at = AT(field), .count = 1 \
	}
#define HISTOGRAM(text, field) \
	{ \
		.name = text, .at = AT(field), .count = CF_STATS_NR_BINS, \
		.stride = sizeof(uint64_t) \
	}
#define OF_GPUS(text, field) \
	{ \
		.name = text, .at = AT(gpu[0].field), \
		.count = CF_STATS_MAX_GPUS, \
		.stride = sizeof(struct cf_stats_gpu) \
	}
#define CALL(text, op) \
	ONE(text ".ok", call[op][1]), ONE(text ".err", call[op][0])
#define FLOW(text, flow) \
	ONE(text ".ok", flow.ok), ONE(text ".err", flow.err), \
		ONE(text ".bytes", flow.bytes), ONE(text ".ns", flow.ns)
#define GPU_FLOW(text, op) \
	OF_GPUS(text ".ok", flow[op].ok), OF_GPUS(text ".err", flow[op].err), \
		OF_GPUS(text ".bytes", flow[op].bytes), \
		OF_GPUS(text ".ns", flow[op].ns), \
		OF_GPUS(text ".unaligned", unaligned[op]), \
		OF_GPUS(text ".alias", p2p[op]), \
		OF_GPUS(text ".nvfs", nvfs[op])

static const struct ocf_stats_row rows[] = {
	FLOW("read", flow[CF_READ]),
	FLOW("write", flow[CF_WRITE]),
	ONE("read.vectored", vectored[CF_READ]),
	ONE("write.vectored", vectored[CF_WRITE]),
	FLOW("readv", vector[CF_READ]),
	FLOW("writev", vector[CF_WRITE]),
	CALL("handle_register", CF_STATS_HDL_REGISTER),
	CALL("handle_deregister", CF_STATS_HDL_DEREGISTER),
	CALL("buffer_register", CF_STATS_BUF_REGISTER),
	CALL("buffer_deregister", CF_STATS_BUF_DEREGISTER),
	CALL("batch_setup", CF_STATS_BATCH_SETUP),
	CALL("batch_submit", CF_STATS_BATCH_SUBMIT),
	ONE("batch_submit.ns", submit_ns),
	CALL("batch_cancel", CF_STATS_BATCH_CANCEL),
	CALL("batch_destroy", CF_STATS_BATCH_DESTROY),
	ONE("batch_enqueued.ok", batch_begun),
	FLOW("batch_read", batch[CF_READ]),
	FLOW("batch_write", batch[CF_WRITE]),
	ONE("batch_read.alias", batch_p2p[CF_READ]),
	ONE("batch_write.alias", batch_p2p[CF_WRITE]),
	ONE("batch_read.nvfs", batch_nvfs[CF_READ]),
	ONE("batch_write.nvfs", batch_nvfs[CF_WRITE]),
	HISTOGRAM("read.sizes", bin[CF_READ]),
	HISTOGRAM("write.sizes", bin[CF_WRITE]),
	GPU_FLOW("gpu.read", CF_READ),
	GPU_FLOW("gpu.write", CF_WRITE),
	OF_GPUS("gpu.register.ok", map_ok),
	OF_GPUS("gpu.register.err", map_err),
	OF_GPUS("gpu.deregister.ok", unmap),
};
#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

_Static_assert(NR_ROWS <= CF_STATS_MAX_ROWS, "rows of the file");

static void describe(void)
{
	struct cf_stats_area *area = &cf_stats_area;
	struct ocf_stats_head *head = &area->head;

	memcpy(area->rows, rows, sizeof(rows));
	head->version = OCF_STATS_VERSION;
	head->size = sizeof(*area);
	head->rows_at = offsetof(struct cf_stats_area, rows);
	head->row_size = sizeof(area->rows[0]);
	head->nr_rows = NR_ROWS;
	head->shards_at = offsetof(struct cf_stats_area, shards);
	head->shard_size = sizeof(area->shards[0]);
	cf_stats_shards_show();
	__atomic_store_n(&head->magic, OCF_STATS_MAGIC, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------- the file */

static int make_fd(void)
{
	int fd = cf_os->memfd(OCF_STATS_FILE);

	return fd < 0 ? fd : cf_os_move_up(fd);
}

/* Notes the file's identity, and lets only the owner open it. */
static int own(int fd)
{
	struct stat st;
	int err = cf_os->set_mode(fd, OWNER_ONLY);

	if (!err)
		err = cf_os->fstat(fd, &st);
	if (err)
		return err;
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	return 0;
}

/* Linux before 5.1 has no seal that keeps others from writing. */
static int seal(int fd)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int err = cf_os->seal(fd, seals | F_SEAL_FUTURE_WRITE);

	return err == -EINVAL ? cf_os->seal(fd, seals) : err;
}

/* If the mapping fails, the old pages may be gone: maps zeros instead. */
static int fill(int fd)
{
	int err = own(fd);

	if (!err)
		err = cf_os->resize(fd, sizeof(cf_stats_area));
	if (err)
		return err;
	err = cf_os->map_file_at(&cf_stats_area, sizeof(cf_stats_area), fd);
	if (!err) {
		describe();
		err = seal(fd);
	}
	if (err)
		(void)cf_os->map_anon_at(&cf_stats_area, sizeof(cf_stats_area));
	return err;
}

void cf_stats_file_begin(void)
{
	int fd, err;

	if (file.fd != NO_FILE)
		return;
	fd = make_fd();
	err = fd < 0 ? fd : fill(fd);
	if (!err) {
		file.fd = fd;
		return;
	}
	if (fd >= 0)
		cf_os->close(fd);
	cf_log(CF_LOG_WARN,
	       "stats: no file for tools (size %zu): error %d, counting "
	       "without one",
	       sizeof(cf_stats_area), err);
}

static void close_if_ours(void)
{
	if (!cf_os_is_lost(file.fd, file.dev, file.ino))
		cf_os->close(file.fd);
	file.fd = NO_FILE;
}

/* If replacing the mapping fails, it stays; no other process can open it. */
void cf_stats_file_end(void)
{
	if (file.fd == NO_FILE)
		return;
	(void)cf_os->map_anon_at(&cf_stats_area, sizeof(cf_stats_area));
	close_if_ours();
}

bool cf_stats_file_fork_child(void)
{
	if (file.fd == NO_FILE)
		return true;
	close_if_ours();
	return !cf_os->map_anon_at(&cf_stats_area, sizeof(cf_stats_area));
}

/* ------------------------------------------------------------- the head */

void cf_stats_file_say(int level, bool counting, uint64_t since_ns,
		       uint64_t period_ns)
{
	struct ocf_stats_head *head = &cf_stats_area.head;

	__atomic_store_n(&head->level, (uint64_t)level, __ATOMIC_RELAXED);
	__atomic_store_n(&head->since_ns, since_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&head->period_ns, period_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&head->counting, counting, __ATOMIC_RELAXED);
}

void cf_stats_file_buffers(int ordinal)
{
	if (ordinal < 0 || ordinal >= OCF_STATS_MAX_GPUS)
		return;
	__atomic_store_n(&cf_stats_area.head.gpu[ordinal].registered_bytes,
			 cf_buffer_bytes(ordinal), __ATOMIC_RELAXED);
}

void cf_stats_file_gpu(int ordinal)
{
	const struct cf_gpu *gpu = cf_gpu_find(ordinal);
	struct ocf_stats_gpu *to;
	uint64_t uuid[2];

	if (!gpu || ordinal >= OCF_STATS_MAX_GPUS)
		return;
	to = &cf_stats_area.head.gpu[ordinal];
	memcpy(uuid, gpu->uuid, sizeof(uuid));
	for (int i = 0; i < 2; i++)
		__atomic_store_n(&to->uuid[i], uuid[i], __ATOMIC_RELAXED);
	cf_stats_file_buffers(ordinal);
	cf_pool_show(gpu->pool, &to->pool[0]);
	if (gpu->small != gpu->pool)
		cf_pool_show(gpu->small, &to->pool[1]);
	__atomic_store_n(&to->known, 1, __ATOMIC_RELEASE);
}
