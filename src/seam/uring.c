// SPDX-License-Identifier: Apache-2.0
/* uring - the real table, over liburing. */
#include "seam/uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include "seam/os.h"
#include "seam/os_limit.h"

/* Of Linux 5.19; liburing before 2.2 does not know it. */
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#endif

struct cf_kring {
	struct io_uring ring;
	dev_t dev; /* with ino: the file that its descriptor names */
	ino_t ino; /* 0: not known */
};

/* Plain reads and writes came with Linux 5.6, rings before them. */
static bool moves_bytes(struct io_uring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool yes = probe && io_uring_opcode_supported(probe, IORING_OP_READ) &&
		   io_uring_opcode_supported(probe, IORING_OP_WRITE);

	io_uring_free_probe(probe);
	return yes;
}

/* COOP_TASKRUN, if the kernel has it: a result interrupts no thread. */
static int init(unsigned depth, struct io_uring *ring)
{
	struct io_uring_params params = { .flags = IORING_SETUP_COOP_TASKRUN };
	int err = io_uring_queue_init_params(depth, ring, &params);

	if (err != -EINVAL)
		return err;
	params = (struct io_uring_params){ 0 };
	return io_uring_queue_init_params(depth, ring, &params);
}

/*
 * The headers of liburing before 2.2 have the number once. A library built with
 * them may meet a later one, which has it twice: there it stays.
 */
static void move_up(struct cf_kring *ring)
{
	struct stat st = { 0 };

#ifndef CF_RING_STAYS
	ring->ring.ring_fd = cf_os_move_up(ring->ring.ring_fd);
	ring->ring.enter_ring_fd = ring->ring.ring_fd;
#endif
	(void)cf_os->fstat(ring->ring.ring_fd, &st);
	ring->dev = st.st_dev;
	ring->ino = st.st_ino;
}

/* Before Linux 5.12 all rings and eventfds share one inode: not noticed. */
static bool is_lost(const struct cf_kring *ring)
{
	return ring->ino &&
	       cf_os_is_lost(ring->ring.ring_fd, ring->dev, ring->ino);
}

static int uring_make(unsigned depth, struct cf_kring **out)
{
	struct cf_kring *ring = calloc(1, sizeof(*ring));
	int err = ring ? init(depth, &ring->ring) : -ENOMEM;

	if (err) {
		free(ring);
		return err;
	}
	if (!moves_bytes(&ring->ring)) {
		io_uring_queue_exit(&ring->ring);
		free(ring);
		return -ENOSYS;
	}
	move_up(ring);
	*out = ring;
	return 0;
}

static void uring_end(struct cf_kring *ring)
{
	if (is_lost(ring))
		ring->ring.ring_fd = -1;
	io_uring_queue_exit(&ring->ring);
	free(ring);
}

static bool uring_queue(struct cf_kring *ring, bool write, int fd, void *mem,
			size_t size, off_t off, uint64_t cookie)
{
	struct io_uring_sqe *sqe;

	/* the plain call that follows says why */
	if (write && cf_limit_stops_pwrite(fd, size, off))
		return false;
	sqe = io_uring_get_sqe(&ring->ring);
	if (!sqe)
		return false;
	if (write)
		io_uring_prep_write(sqe, fd, mem, (unsigned)size,
				    (uint64_t)off);
	else
		io_uring_prep_read(sqe, fd, mem, (unsigned)size, (uint64_t)off);
	sqe->user_data = cookie;
	return true;
}

static int uring_submit(struct cf_kring *ring, bool wait)
{
	return wait ? io_uring_submit_and_wait(&ring->ring, 1) :
		      io_uring_submit(&ring->ring);
}

static int uring_wait(struct cf_kring *ring)
{
	struct io_uring_cqe *cqe;

	return io_uring_wait_cqe(&ring->ring, &cqe);
}

static bool uring_reap(struct cf_kring *ring, struct cf_uring_done *done)
{
	struct io_uring_cqe *cqe;

	if (io_uring_peek_cqe(&ring->ring, &cqe))
		return false;
	done->cookie = cqe->user_data;
	done->result = cqe->res;
	io_uring_cqe_seen(&ring->ring, cqe);
	return true;
}

const struct cf_uring cf_uring_real = {
	.make = uring_make,
	.end = uring_end,
	.queue = uring_queue,
	.submit = uring_submit,
	.wait = uring_wait,
	.reap = uring_reap,
};

const struct cf_uring *cf_uring = &cf_uring_real;
