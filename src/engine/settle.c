// SPDX-License-Identifier: Apache-2.0
/* settle - binds workers to processors. */
#include "engine/settle.h"

#include <string.h>
#include "core/log.h"
#include "core/topology.h"

/* So many calls to one node in a row are worth a move. */
#define SETTLE_AFTER 8

static _Thread_local struct cf_settler *self; /* NULL: no worker */

static void bind_to(const struct cf_cpus *cpus, int node)
{
	int err = cf_cpus_bind(cpus);

	cf_log(CF_LOG_DEBUG, "worker to %u processors, node %d: %s",
	       cf_cpus_count(cpus), node, strerror(-err));
}

static void move_to(int node)
{
	struct cf_cpus cpus;

	self->node = node;
	if (cf_node_cpus(node, &cpus))
		return;
	cf_cpus_keep(&cpus, &self->allowed);
	if (cf_cpus_count(&cpus))
		bind_to(&cpus, node);
}

/* GPUs of several nodes that take turns leave a worker where it is. */
void cf_settle(int node)
{
	if (node < 0 || !self)
		return;
	if (node != self->called) {
		self->called = node;
		self->calls = 0;
	}
	if (node != self->node && ++self->calls >= SETTLE_AFTER)
		move_to(node);
}

void cf_settle_begin(struct cf_settler *settler)
{
	*settler = (struct cf_settler){ .node = -1, .called = -1 };
	if (!cf_cpus_of_process(&settler->allowed))
		bind_to(&settler->allowed, -1);
	self = settler;
}
