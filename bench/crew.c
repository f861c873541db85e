// SPDX-License-Identifier: Apache-2.0
/*
 * crew - see crew.h. Lock: lock guards all fields; the jobs do not change while
 * they are run. No IO is done under it.
 */
#include "crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_HELPERS 32
#define LARGE_PAGE (2 * CREW_PART)

static _Thread_local struct crew {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	pthread_t helpers[MAX_HELPERS];
	unsigned nr_helpers;
	const struct crew_job *jobs;
	unsigned nr, next, finished;
	int error;
	bool ending;
	char *mem; /* the caller's */
} * mine;

static char *new_memory(void)
{
	char *mem = aligned_alloc(LARGE_PAGE, LARGE_PAGE);

	if (!mem)
		return NULL;
	/* if there are any: a disk makes more of them */
	(void)madvise(mem, LARGE_PAGE, MADV_HUGEPAGE);
	memset(mem, 1, LARGE_PAGE);
	return mem;
}

static int run_job(const struct crew_job *j, char *mem)
{
	ssize_t n;

	if (!mem)
		return ENOMEM;
	n = j->write ? pwrite(j->fd, mem, j->size, j->off) :
		       pread(j->fd, mem, j->size, j->off);
	return n == (ssize_t)j->size ? 0 : n < 0 ? errno : EIO;
}

/* Takes jobs until there are none; lock is held on entry and return. */
static void work_locked(struct crew *c, char *mem)
{
	while (c->next < c->nr) {
		const struct crew_job *job = &c->jobs[c->next++];
		int error;

		pthread_mutex_unlock(&c->lock);
		error = run_job(job, mem);
		pthread_mutex_lock(&c->lock);
		if (error)
			c->error = error;
		if (++c->finished == c->nr)
			pthread_cond_signal(&c->done);
	}
}

static void *help(void *arg)
{
	struct crew *c = arg;
	char *mem = new_memory();

	pthread_mutex_lock(&c->lock);
	while (!c->ending) {
		work_locked(c, mem);
		if (!c->ending)
			pthread_cond_wait(&c->work, &c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	free(mem);
	return NULL;
}

void crew_begin(unsigned helpers)
{
	struct crew *c = calloc(1, sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_cond_init(&c->done, NULL);
	c->mem = new_memory();
	mine = c;
	while (c->nr_helpers < helpers && c->nr_helpers < MAX_HELPERS &&
	       !pthread_create(&c->helpers[c->nr_helpers], NULL, help, c))
		c->nr_helpers++;
}

int crew_run(const struct crew_job *jobs, unsigned nr)
{
	struct crew *c = mine;
	int error;

	pthread_mutex_lock(&c->lock);
	c->jobs = jobs;
	c->nr = nr;
	c->next = c->finished = 0;
	c->error = 0;
	if (nr > 1)
		pthread_cond_broadcast(&c->work);
	work_locked(c, c->mem);
	while (c->finished < nr)
		pthread_cond_wait(&c->done, &c->lock);
	error = c->error;
	pthread_mutex_unlock(&c->lock);
	return error;
}

void crew_end(void)
{
	struct crew *c = mine;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_broadcast(&c->work);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->nr_helpers; i++)
		pthread_join(c->helpers[i], NULL);
	free(c->mem);
	free(c);
	mine = NULL;
}
