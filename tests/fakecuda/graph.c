// SPDX-License-Identifier: Apache-2.0
/*
 * graph - captured operations, instantiated and replayed.
 *
 * Addresses are checked anew at every launch, so that a replay over freed
 * memory is recognised. Launches of one exec run one after the other.
 */
#include <stdlib.h>

#include "internal.h"

struct exec {
	struct fc_handle *h;
	struct fc_op *head;
	struct fc_op **tail;
	struct fc_stream
		*last; /* where it was launched last, and up to where */
	uint64_t last_seq;
	struct fc_users users;
};

static struct fc_op *clone_list(const struct fc_op *op)
{
	struct fc_op *head = NULL, **tail = &head;

	for (; op; op = op->next) {
		*tail = fc_op_clone(op);
		tail = &(*tail)->next;
	}
	return head;
}

static void free_list(struct fc_op *op)
{
	while (op) {
		struct fc_op *next = op->next;

		fc_op_free(op);
		op = next;
	}
}

static int get_nodes(CUgraph h, struct CUgraphNode_st **nodes, size_t *nr)
{
	struct fc_graph *g = fc_handle_find(h, FC_GRAPH);

	if (!g || !nr || nodes) /* nodes themselves are not modelled */
		return CF_CU_INVALID_VALUE;
	*nr = g->nr;
	return 0;
}

CUresult cuGraphGetNodes(CUgraph graph, struct CUgraphNode_st **nodes,
			 size_t *nr)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(get_nodes(graph, nodes, nr));
}

static void graph_free(void *obj, void *arg)
{
	struct fc_graph *g = obj;

	(void)arg;
	free_list(g->head);
	fc_users_drop(&g->users);
	fc_handle_kill(g->h);
	atomic_fetch_sub(&fc.live[LIVE_GRAPH], 1);
	free(g);
}

static int destroy(CUgraph h)
{
	struct fc_graph *g = fc_handle_find(h, FC_GRAPH);

	if (!g)
		return CF_CU_INVALID_VALUE;
	graph_free(g, NULL);
	return 0;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(destroy(graph));
}

static int instantiate(CUgraphExec *out, CUgraph h)
{
	struct fc_graph *g = fc_handle_find(h, FC_GRAPH);
	struct exec *x;

	if (!g || !out)
		return CF_CU_INVALID_VALUE;
	x = fc_zalloc(sizeof(*x));
	x->head = clone_list(g->head);
	x->users = fc_users_copy(&g->users);
	x->h = fc_handle_new(FC_EXEC, x);
	atomic_fetch_add(&fc.live[LIVE_EXEC], 1);
	*out = (CUgraphExec)x->h;
	return 0;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
				     unsigned long long flags)
{
	FC_ENTER(FC_NORMAL);
	if (flags & ~0xfull)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(instantiate(exec, graph));
}

static void exec_free(void *obj, void *arg)
{
	struct exec *x = obj;

	(void)arg;
	free_list(x->head);
	fc_users_drop(&x->users);
	if (x->last)
		fc_stream_put(x->last);
	fc_handle_kill(x->h);
	atomic_fetch_sub(&fc.live[LIVE_EXEC], 1);
	free(x);
}

static int exec_destroy(CUgraphExec h)
{
	struct exec *x = fc_handle_find(h, FC_EXEC);

	if (!x)
		return CF_CU_INVALID_VALUE;
	exec_free(x, NULL);
	return 0;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(exec_destroy(exec));
}

static int check_all(struct fc_op *op)
{
	int r = 0;

	for (; op && !r; op = op->next)
		r = fc_op_resolve(op);
	return r;
}

/* A child graph of the capture: the operations become part of it. */
static int append_all(struct fc_stream *s, struct fc_op *op)
{
	int r = 0;

	while (op) {
		struct fc_op *next = op->next;

		op->next = NULL;
		if (r)
			fc_op_free(op);
		else
			r = fc_capture_append(s, op);
		op = next;
	}
	return r;
}

static int enqueue_all(struct fc_stream *s, struct fc_op *op)
{
	int r = 0;

	while (op) {
		struct fc_op *next = op->next;

		op->next = NULL;
		if (r)
			fc_op_free(op);
		else
			r = fc_enqueue(s, op);
		op = next;
	}
	return r;
}

static int launch(CUgraphExec xh, CUstream sh)
{
	struct fc_stream *s;
	struct exec *x;
	struct fc_op *ops, *first, *last;
	int r = fc_stream_get(sh, STREAM_ANY, &s);

	if (r)
		return r;
	x = fc_handle_find(xh, FC_EXEC);
	if (!x)
		return CF_CU_INVALID_VALUE;
	ops = clone_list(x->head);
	if (s->cap) {
		struct fc_users users = fc_users_copy(&x->users);

		for (unsigned int i = 0; i < users.nr; i++)
			fc_users_add(&s->cap->graph->users, users.objs[i]);
		free(users.objs);
		return append_all(s, ops);
	}
	r = check_all(ops);
	if (r) {
		free_list(ops);
		return r;
	}
	first = fc_op_new(OP_MARK);
	first->next = ops;
	first->delay_us = fc_self.op_delay_us;
	if (x->last) {
		fc_op_depend(first, x->last, x->last_seq);
		fc_stream_put(x->last);
	}
	r = enqueue_all(s, first);
	/* a graph that is destroyed while it runs keeps what it uses */
	last = fc_op_new(OP_MARK);
	last->users = fc_users_copy(&x->users);
	r = r ? (fc_op_free(last), r) : fc_enqueue(s, last);
	s->refs++;
	x->last = s;
	x->last_seq = s->submitted;
	return r;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(launch(exec, stream));
}

static int upload(CUgraphExec xh, CUstream sh)
{
	struct fc_stream *s;
	int r = fc_stream_get(sh, STREAM_ANY, &s);

	if (r)
		return r;
	return fc_handle_find(xh, FC_EXEC) ? 0 : CF_CU_INVALID_VALUE;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(upload(exec, stream));
}

void fc_graph_reset(void)
{
	fc_handle_each(FC_EXEC, exec_free, NULL);
	fc_handle_each(FC_GRAPH, graph_free, NULL);
}
