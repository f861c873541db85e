// SPDX-License-Identifier: Apache-2.0
/* sops - counts threads inside and runs under way, and waits for their end. */
#include "engine/sops.h"

#include <cufile.h>
#include <pthread.h>
#include <stdatomic.h>
#include "engine/depth.h"
#include "engine/dock.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
	unsigned inside;	/* threads between enter and leave */
	_Atomic unsigned begun; /* runs; lock to write */
	unsigned waiting;	/* threads in a wait for changed */
} sops = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

void cf_sops_lock(void)
{
	pthread_mutex_lock(&sops.lock);
}

void cf_sops_unlock(void)
{
	pthread_mutex_unlock(&sops.lock);
}

void cf_sops_wait(void)
{
	sops.waiting++;
	pthread_cond_wait(&sops.changed, &sops.lock);
	sops.waiting--;
}

bool cf_sops_wait_beside(const struct cf_dock *dock)
{
	bool alive;

	sops.waiting++;
	alive = cf_dock_wait(dock, &sops.changed, &sops.lock);
	sops.waiting--;
	return alive;
}

void cf_sops_tell(void)
{
	if (sops.waiting)
		pthread_cond_broadcast(&sops.changed);
}

/* ------------------------------------------------------------ the counts */

int cf_sops_enter(void)
{
	bool open;

	cf_sops_lock();
	open = sops.open;
	sops.inside += open;
	cf_sops_unlock();
	return open ? 0 : -CU_FILE_DRIVER_NOT_INITIALIZED;
}

void cf_sops_leave(void)
{
	cf_sops_lock();
	sops.inside--;
	cf_sops_tell();
	cf_sops_unlock();
}

bool cf_sops_are_open(void)
{
	return sops.open;
}

void cf_sops_begin(void)
{
	sops.begun++;
}

unsigned cf_sops_begun(void)
{
	return atomic_load_explicit(&sops.begun, memory_order_relaxed);
}

void cf_sops_end(void)
{
	sops.begun--;
	cf_sops_tell();
}

/* ------------------------------------------------------- open and close */

void cf_sops_open(void)
{
	cf_depths_open();
	cf_sops_lock();
	sops.open = true;
	cf_sops_unlock();
}

/* A thread that waits for room in a stream is inside, and must come out. */
void cf_sops_shut(void)
{
	cf_sops_lock();
	sops.open = false;
	cf_sops_tell();
	cf_depths_close();
	while (sops.inside)
		cf_sops_wait();
	cf_sops_unlock();
}

void cf_sops_drain(void)
{
	cf_sops_lock();
	while (sops.begun)
		cf_sops_wait();
	cf_sops_unlock();
}

void cf_sops_fork_prepare(void)
{
	cf_sops_lock();
}

void cf_sops_fork_parent(void)
{
	cf_sops_unlock();
}

/* Begins anew: no run and no wait of the parent is the child's. */
void cf_sops_fork_child(void)
{
	sops.inside = 0;
	sops.begun = 0;
	sops.waiting = 0;
	pthread_cond_init(&sops.changed, NULL);
	cf_sops_unlock();
}
