// SPDX-License-Identifier: Apache-2.0
/* uncalled - a list, and the walk over its docks. */
#include "engine/uncalled.h"

#include <cufile.h>
#include <stdint.h>
#include "core/log.h"
#include "engine/dock.h"
#include "engine/parcel.h"
#include "engine/sop.h"
#include "engine/sops.h"

_Atomic unsigned cf_uncalled_nr;
static struct cf_sop *first; /* lock of sops.h */

void cf_uncalled_put_locked(struct cf_sop *sop)
{
	sop->uncalled = first;
	sop->uncalled_link = &first;
	if (first)
		first->uncalled_link = &sop->uncalled;
	first = sop;
	atomic_fetch_add(&cf_uncalled_nr, 1);
}

void cf_uncalled_off_locked(struct cf_sop *sop)
{
	if (!sop->uncalled_link)
		return;
	*sop->uncalled_link = sop->uncalled;
	if (sop->uncalled)
		sop->uncalled->uncalled_link = sop->uncalled_link;
	sop->uncalled_link = NULL;
	atomic_fetch_sub(&cf_uncalled_nr, 1);
}

/* The next of the docks of all, in the order of their addresses; or NULL. */
static struct cf_dock *dock_after(const struct cf_dock *last)
{
	struct cf_dock *next = NULL;

	cf_sops_lock();
	for (struct cf_sop *sop = first; sop; sop = sop->uncalled)
		if ((uintptr_t)sop->dock > (uintptr_t)last &&
		    (!next || (uintptr_t)sop->dock < (uintptr_t)next))
			next = sop->dock;
	cf_sops_unlock();
	return next;
}

/* The parcel of one of the dock's, which is lost from now on; or NULL. */
static struct cf_parcel *claim(const struct cf_dock *dock)
{
	struct cf_parcel *parcel = NULL;
	struct cf_sop *sop;

	cf_sops_lock();
	sop = first;
	while (sop && sop->dock != dock)
		sop = sop->uncalled;
	if (sop) {
		cf_uncalled_off_locked(sop);
		sop->lost = true;
		parcel = sop->parcel;
	}
	cf_sops_unlock();
	return parcel;
}

void cf_uncalled_lose(void)
{
	struct cf_dock *dock = NULL;
	struct cf_parcel *parcel;

	while (cf_uncalled_any() && (dock = dock_after(dock))) {
		if (cf_dock_alive(dock))
			continue;
		while ((parcel = claim(dock))) {
			cf_log(CF_LOG_ERROR,
			       "batch in stream: its context died before its "
			       "stream came to it");
			cf_parcel_fail(parcel, -CU_FILE_CUDA_DRIVER_ERROR);
		}
	}
}

void cf_uncalled_close(void)
{
	cf_sops_lock();
	while (first)
		cf_uncalled_off_locked(first);
	cf_sops_unlock();
}

void cf_uncalled_fork_child(void)
{
	first = NULL;
	atomic_store(&cf_uncalled_nr, 0);
}
