// SPDX-License-Identifier: Apache-2.0
/*
 * kernel - launches, which run the C code registered under the name.
 */
#include <string.h>
#include <stdlib.h>

#include "internal.h"

static struct fc_kernel_call *call_new(const struct fc_function *f)
{
	struct fc_kernel_call *k = fc_zalloc(sizeof(*k));
	size_t at = 0;

	for (unsigned int i = 0; i < f->params.nr_params; i++)
		at = (at + 15) / 8 * 8 + f->params.sizes[i];
	memcpy(k->name, f->name, sizeof(k->name));
	k->fn = f->fn;
	k->launch.nr_params = f->params.nr_params;
	k->args_size = at;
	k->args = fc_zalloc(at);
	k->params = fc_zalloc(f->params.nr_params * sizeof(void *));
	at = 0;
	for (unsigned int i = 0; i < f->params.nr_params; i++) {
		at = (at + 7) / 8 * 8;
		k->params[i] = k->args + at;
		at += f->params.sizes[i];
	}
	return k;
}

struct fc_kernel_call *fc_kernel_clone(const struct fc_kernel_call *k)
{
	struct fc_kernel_call *c = fc_zalloc(sizeof(*c));
	unsigned int nr = k->launch.nr_params;

	*c = *k;
	c->args = fc_zalloc(k->args_size);
	memcpy(c->args, k->args, k->args_size);
	c->params = fc_zalloc(nr * sizeof(void *));
	for (unsigned int i = 0; i < nr; i++)
		c->params[i] =
			c->args + ((unsigned char *)k->params[i] - k->args);
	return c;
}

void fc_kernel_free(struct fc_kernel_call *k)
{
	free(k->args);
	free(k->params);
	free(k);
}

/* The arguments' bytes, from pointers to them or from one packed buffer. */
static int take_args(const struct fc_function *f, struct fc_kernel_call *k,
		     void **params, void **extra)
{
	const unsigned char *packed = NULL;
	size_t at = 0;

	for (; !params && extra && *extra; extra += 2)
		if (*extra == (void *)1) /* CU_LAUNCH_PARAM_BUFFER_POINTER */
			packed = extra[1];
	if (!params && !packed && f->params.nr_params)
		return CF_CU_INVALID_VALUE;
	for (unsigned int i = 0; i < f->params.nr_params; i++) {
		size_t n = f->params.sizes[i];
		size_t align = n >= 8 ? 8 : n & (n - 1) ? 1 : n;

		at = (at + align - 1) / align * align;
		memcpy(k->params[i], params ? params[i] : packed + at, n);
		at += n;
	}
	return 0;
}

static bool shape_ok(const struct fakecuda_launch *l)
{
	uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];

	return l->grid[0] && l->grid[0] <= 0x7fffffff && l->grid[1] &&
	       l->grid[1] <= 65535 && l->grid[2] && l->grid[2] <= 65535 &&
	       threads && threads <= 1024 && l->shared_bytes <= 227 << 10;
}

static int launch(CUfunction fh, CUstream sh, const struct fakecuda_launch *l,
		  bool programmatic, void **params, void **extra)
{
	struct fc_function *f = fc_handle_find(fh, FC_FUNCTION);
	struct fc_stream *s;
	struct fc_op *op;
	int r;

	if (!f)
		return CF_CU_INVALID_HANDLE;
	r = fc_stream_get(sh, STREAM_OF_CURRENT, &s);
	if (r)
		return r;
	if (f->ctx != s->ctx) {
		fc_complain("%s launched in another context", f->name);
		return CF_CU_INVALID_HANDLE;
	}
	if (!f->sized) {
		fc_complain("%s: parameter sizes unknown", f->name);
		return CF_CU_INVALID_VALUE;
	}
	if (!shape_ok(l))
		return CF_CU_INVALID_VALUE;
	op = fc_op_new(OP_KERNEL);
	op->kernel = call_new(f);
	memcpy(op->kernel->launch.grid, l->grid, sizeof(l->grid));
	memcpy(op->kernel->launch.block, l->block, sizeof(l->block));
	op->kernel->launch.shared_bytes = l->shared_bytes;
	op->kernel->ahead = programmatic ? f->ahead : NULL;
	r = take_args(f, op->kernel, params, extra);
	if (r) {
		fc_op_free(op);
		return r;
	}
	r = fc_submit(s, op, NULL);
	return r || s->cap || !fc.launches_wait ? r : fc_wait_all_of(s);
}

CUresult cuLaunchKernel(CUfunction fn, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x,
			unsigned int block_y, unsigned int block_z,
			unsigned int shared_bytes, CUstream stream,
			void **params, void **extra)
{
	struct fakecuda_launch l = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.shared_bytes = shared_bytes,
	};

	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(launch(fn, stream, &l, false, params, extra));
}

/* Attributes that a launch may have here, and their values. */
static bool attrs_ok(const CUlaunchConfig *config, bool *programmatic)
{
	*programmatic = false;
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttributeValue *v = &config->attrs[i].value;
		int number;

		switch (config->attrs[i].id) {
		case 0: /* ignore */
			continue;
		case CF_CU_LAUNCH_PROGRAMMATIC_SERIALIZATION:
			number = v->programmaticStreamSerializationAllowed;
			if (number != 0 && number != 1)
				return false;
			*programmatic = number;
			continue;
		case CF_CU_LAUNCH_PRIORITY:
			number = v->priority;
			if (number < -5 || number > 0)
				return false;
			continue;
		default:
			return false;
		}
	}
	return true;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction fn,
			  void **params, void **extra)
{
	struct fakecuda_launch l = { .shared_bytes = 0 };
	bool programmatic;

	FC_ENTER(FC_NORMAL);
	if (!config || (config->numAttrs && !config->attrs) ||
	    !attrs_ok(config, &programmatic))
		return (int)CF_CU_INVALID_VALUE;
	l = (struct fakecuda_launch){
		.grid = { config->gridDimX, config->gridDimY,
			  config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY,
			   config->blockDimZ },
		.shared_bytes = config->sharedMemBytes,
	};
	return FC_LOCKED(
		launch(fn, config->hStream, &l, programmatic, params, extra));
}

int fc_kernel_run(struct fc_op *op)
{
	struct fc_kernel_call *k = op->kernel;
	int r;

	k->launch.name = k->name;
	k->launch.params = k->params;
	fc_self.kernel_op = op;
	fc_self.bad_map = false;
	r = k->fn(&k->launch);
	fc_self.kernel_op = NULL;
	return fc_self.bad_map ? CF_CU_ILLEGAL_ADDRESS : r;
}

/* Right behind it, with nothing else to wait for. */
static struct fc_op *next_to_come(struct fc_op *op)
{
	struct fc_op *next = op->next;

	if (!next || next->code != OP_KERNEL || !next->kernel->ahead ||
	    next->kernel->launch.came_ahead || next->delay_us ||
	    fc_op_unmet(next))
		return NULL;
	next->kernel->launch.came_ahead = true;
	return next;
}

void fakecuda_let_next(void)
{
	struct fc_op *op = fc_self.kernel_op, *next = NULL;

	if (!op)
		return;
	fc_lock();
	next = next_to_come(op);
	fc_unlock();
	if (!next)
		return;
	next->kernel->launch.name = next->kernel->name;
	next->kernel->launch.params = next->kernel->params;
	fc_self.kernel_op = next;
	(void)next->kernel->ahead(&next->kernel->launch);
	fc_self.kernel_op = op;
}

static int map_for(struct fc_op *op, uint64_t ptr, size_t size, char **out)
{
	struct fc_range *r;

	if (fc_op_cover(op, ptr, size, true, false))
		return -1;
	r = fc_range_at(ptr);
	if (size > r->size - (ptr - r->base))
		return -1; /* in two mappings, and we have no one address */
	*out = r->data + (ptr - r->base);
	return 0;
}

static int let_go(struct fc_op *op)
{
	while (op->nr_held)
		fc_range_release(op->held[--op->nr_held]);
	return 0;
}

void fakecuda_leave(void)
{
	if (fc_self.kernel_op)
		FC_LOCKED(let_go(fc_self.kernel_op));
}

int fakecuda_over(void)
{
	const struct fc_op *op = fc_self.kernel_op;

	return atomic_load(&fc.gone) || (op && fc_ctx_state(op->ctx));
}

/* NULL: no pages of another's. Held, as long as they are read. */
static struct fc_range *hold_pinned(uint64_t ptr)
{
	struct fc_range *r = fc_range_at(ptr);

	if (!r || !fc_is_pinned(r))
		return NULL;
	if (r->dead || r->freeing || !r->accessible) {
		fc_self.bad_map = true;
		fc_complain("a kernel read 0x%llx, which is gone",
			    (unsigned long long)ptr);
		return NULL;
	}
	fc_range_hold(r);
	return r;
}

static int release(struct fc_range *r)
{
	fc_range_release(r);
	return 0;
}

int fakecuda_load_pinned(CUdeviceptr ptr, void *to, size_t size)
{
	struct fc_range *r = NULL;
	size_t off;

	fc_lock();
	r = hold_pinned(ptr);
	fc_unlock();
	if (!r)
		return 0;
	off = ptr - r->base;
	if (size > r->size - off)
		size = r->size - off;
	fc_pages_copy(r->phys->pages, to, r->data + off, size);
	FC_LOCKED(release(r));
	return (int)size;
}

void *fakecuda_map(CUdeviceptr ptr, size_t size)
{
	char *at = NULL;

	if (!fc_self.kernel_op ||
	    FC_LOCKED(map_for(fc_self.kernel_op, ptr, size, &at))) {
		fc_self.bad_map = true;
		fc_complain("a kernel used 0x%llx, %zu bytes", ptr, size);
		return NULL;
	}
	return at;
}
