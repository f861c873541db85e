// SPDX-License-Identifier: Apache-2.0
/* refusals - a short list of file systems, and one pause for all. */
#include "core/refusals.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "core/clock.h"
#include "core/log.h"
#include "core/piece.h"
#include "seam/cuda.h"
#include "seam/os.h"

#define MAX_REFUSED 32
#define PAUSE_NS 1000000000ll

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dev_t refused[MAX_REFUSED]; /* lock */
static size_t nr_refused;	   /* lock; the last MAX_REFUSED are there */
static int64_t paused_until;	   /* lock */

/* lock held */
static bool is_refused_locked(dev_t dev)
{
	for (size_t i = 0; i < nr_refused && i < MAX_REFUSED; i++)
		if (refused[i] == dev)
			return true;
	return false;
}

/* A file that was truncated meanwhile fails as one that is refused. */
static bool file_changed(const struct cf_piece *piece)
{
	struct cf_stamp stamp;

	return cf_stamp_take(piece->handle->fd, &stamp) ||
	       !cf_stamp_equal(&stamp, &piece->view.stamp);
}

static bool is_passing(int err)
{
	return cf_os_is_short(err) || err == CF_ECUDA(CF_CU_OUT_OF_MEMORY);
}

static const char *text_of(int err)
{
	return cf_is_cuda_error(err) ? cf_cuda_name_in(err) : strerror(-err);
}

void cf_refusal_note(const struct cf_piece *piece, const char *step,
		     size_t size, int err)
{
	dev_t dev = piece->handle->dev;
	bool is_new = false;

	/* -EAGAIN: a page left meanwhile; -EBUSY: another thread is at it */
	if (err == -EAGAIN || err == -EBUSY || file_changed(piece))
		return;
	pthread_mutex_lock(&lock);
	if (is_passing(err)) {
		is_new = cf_clock_ns() >= paused_until;
		paused_until = cf_clock_ns() + PAUSE_NS;
	} else if (!is_refused_locked(dev)) {
		is_new = true;
		refused[nr_refused++ % MAX_REFUSED] = dev;
	}
	pthread_mutex_unlock(&lock);
	if (is_new)
		cf_log(CF_LOG_WARN,
		       "handle %u: no mapped reads: %s of %zu bytes: %s",
		       cf_handle_number(piece->handle), step, size,
		       text_of(err));
}

bool cf_refusal_holds(dev_t dev)
{
	bool holds;

	pthread_mutex_lock(&lock);
	holds = is_refused_locked(dev) ||
		(paused_until && cf_clock_ns() < paused_until);
	pthread_mutex_unlock(&lock);
	return holds;
}

void cf_refusals_forget(void)
{
	pthread_mutex_lock(&lock);
	nr_refused = 0;
	paused_until = 0;
	pthread_mutex_unlock(&lock);
}

void cf_refusals_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void cf_refusals_fork_release(void)
{
	pthread_mutex_unlock(&lock);
}
