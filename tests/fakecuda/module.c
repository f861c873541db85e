// SPDX-License-Identifier: Apache-2.0
/*
 * module - modules, and functions by name.
 *
 * A function exists if the module's PTX has it (or the module is not text) and
 * a C function was registered under its name.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { MAX_KERNELS = 64 };

struct registered {
	char name[128];
	fakecuda_kernel fn, ahead;
	bool sized;
	struct fc_ptx_entry params;
};

struct module {
	struct fc_handle *h;
	struct fc_ctx *ctx;
	char *ptx; /* NULL where the image is not text */
	struct fc_function *functions;
	struct module *next; /* of all */
};

/* One of a lost context is nobody's, and no leak. */
static struct module *modules;

static int fill_kernel(const struct fakecuda_launch *l)
{
	uint64_t ptr, size;
	void *at;

	memcpy(&ptr, l->params[0], sizeof(ptr));
	memcpy(&size, l->params[1], sizeof(size));
	at = fakecuda_map(ptr, size);
	if (!at)
		return CF_CU_ILLEGAL_ADDRESS;
	memset(at, *(unsigned char *)l->params[2], size);
	return 0;
}

static struct registered kernels[MAX_KERNELS] = {
	{ "fakecuda_fill", fill_kernel, NULL, true, { { 8, 8, 1 }, 3 } },
};
static unsigned int nr_kernels = 1;

static struct registered *registered_find(const char *name)
{
	for (unsigned int i = 0; i < nr_kernels; i++)
		if (!strcmp(kernels[i].name, name))
			return &kernels[i];
	return NULL;
}

static int do_register(const char *name, fakecuda_kernel fn,
		       const size_t *sizes, unsigned int nr)
{
	struct registered *k = registered_find(name);

	if (strlen(name) >= sizeof(k->name) || nr > FC_PTX_PARAMS)
		return -1;
	if (!k) {
		if (nr_kernels == MAX_KERNELS)
			return -1;
		k = &kernels[nr_kernels++];
	}
	memset(k, 0, sizeof(*k));
	snprintf(k->name, sizeof(k->name), "%s", name);
	k->fn = fn;
	k->sized = sizes != NULL;
	k->params.nr_params = nr;
	if (nr)
		memcpy(k->params.sizes, sizes, nr * sizeof(*sizes));
	return 0;
}

int fakecuda_register_kernel(const char *name, fakecuda_kernel fn)
{
	return FC_LOCKED(do_register(name, fn, NULL, 0));
}

int fakecuda_register_kernel_sized(const char *name, fakecuda_kernel fn,
				   const size_t *sizes, unsigned int nr)
{
	return FC_LOCKED(do_register(name, fn, sizes, nr));
}

static int do_register_ahead(const char *name, fakecuda_kernel fn)
{
	struct registered *k = registered_find(name);

	if (!k)
		return -1;
	k->ahead = fn;
	return 0;
}

int fakecuda_register_kernel_ahead(const char *name, fakecuda_kernel fn)
{
	return FC_LOCKED(do_register_ahead(name, fn));
}

/* --- modules */

enum image { IMAGE_BAD, IMAGE_PTX, IMAGE_BINARY };

static enum image image_kind(const unsigned char *p)
{
	static const unsigned char fat[] = { 0x50, 0xed, 0x55, 0xba };
	static const unsigned char fat_text[] = { 0x43, 0xb1, 0x62, 0x46 };

	if (*p == 0x7f)
		return memcmp(p, "\177ELF", 4) ? IMAGE_BAD : IMAGE_BINARY;
	if (*p == fat[0] || *p == fat_text[0])
		return memcmp(p, fat, 4) && memcmp(p, fat_text, 4) ?
			       IMAGE_BAD :
			       IMAGE_BINARY;
	return strstr((const char *)p, ".version") ? IMAGE_PTX : IMAGE_BAD;
}

/* There is code for that processor and later ones. */
static bool is_for_us(const char *ptx)
{
	const char *target = strstr(ptx, ".target sm_");

	return !target || atoi(target + strlen(".target sm_")) <= fc.compute;
}

static int load(CUmodule *out, const void *image)
{
	struct fc_ctx *c;
	struct module *m;
	enum image kind;
	int r = fc_current(&c);

	if (!r)
		r = fc_capture_unsafe("cuModuleLoadData");
	if (r)
		return r;
	if (!out || !image)
		return CF_CU_INVALID_VALUE;
	kind = image_kind(image);
	if (kind == IMAGE_BAD)
		return CF_CU_INVALID_IMAGE;
	if (kind == IMAGE_PTX && !is_for_us(image))
		return CF_CU_NO_BINARY_FOR_GPU;
	if (atomic_load(&fc.idle_calls)) {
		fc_idle_await(c, true);
		r = fc_ctx_state(c);
	}
	if (r)
		return r;
	m = fc_zalloc(sizeof(*m));
	m->ctx = c;
	if (kind == IMAGE_PTX) {
		m->ptx = strdup(image);
		if (!m->ptx)
			abort();
	}
	m->h = fc_handle_new(FC_MODULE, m);
	m->next = modules;
	modules = m;
	atomic_fetch_add(&fc.live[LIVE_MODULE], 1);
	*out = (CUmodule)m->h;
	return 0;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(load(module, image));
}

/* The compiler options have nothing to act on. */
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
			    unsigned int nr, int *options, void **values)
{
	FC_ENTER(FC_NORMAL);
	if (nr && (!options || !values))
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(load(module, image));
}

static void module_free(struct module *m)
{
	struct module **at = &modules;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	while (m->functions) {
		struct fc_function *f = m->functions;

		m->functions = f->next;
		fc_handle_kill(f->h);
		free(f);
	}
	fc_handle_kill(m->h);
	free(m->ptx);
	free(m);
	atomic_fetch_sub(&fc.live[LIVE_MODULE], 1);
}

static void kill_module_of(void *obj, void *ctx)
{
	if (((struct module *)obj)->ctx == ctx)
		module_free(obj);
}

void fc_module_kill_of(struct fc_ctx *ctx)
{
	fc_handle_each(FC_MODULE, kill_module_of, ctx);
}

static int unload(CUmodule h)
{
	struct module *m = fc_handle_find(h, FC_MODULE);
	struct fc_ctx *c;
	int r;

	if (!m)
		return CF_CU_INVALID_HANDLE;
	r = fc_capture_unsafe("cuModuleUnload");
	if (r)
		return r;
	c = m->ctx;
	if (atomic_load(&fc.idle_calls)) {
		fc_idle_await(c, false);
		if (atomic_load(&c->dead)) /* and the module with it */
			return CF_CU_CONTEXT_IS_DESTROYED;
		m = fc_handle_find(h, FC_MODULE);
		if (!m)
			return CF_CU_INVALID_HANDLE;
	}
	r = fc_ctx_state(c);
	module_free(m);
	return r;
}

CUresult cuModuleUnload(CUmodule module)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(unload(module));
}

static struct fc_function *function_of(struct module *m, const char *name)
{
	const struct registered *k = registered_find(name);
	struct fc_ptx_entry entry;
	bool in_text = m->ptx && fc_ptx_find(m->ptx, name, &entry);
	struct fc_function *f;

	for (f = m->functions; f; f = f->next)
		if (!strcmp(f->name, name))
			return f;
	if (!k || (m->ptx && !in_text && k->fn != fill_kernel))
		return NULL;
	f = fc_zalloc(sizeof(*f));
	memcpy(f->name, k->name, sizeof(f->name));
	f->ctx = m->ctx;
	f->fn = k->fn;
	f->ahead = k->ahead;
	f->sized = k->sized || in_text;
	f->params = k->sized ? k->params : entry;
	f->next = m->functions;
	m->functions = f;
	f->h = fc_handle_new(FC_FUNCTION, f);
	return f;
}

static int get_function(CUfunction *out, CUmodule h, const char *name)
{
	struct module *m = fc_handle_find(h, FC_MODULE);
	struct fc_function *f;

	if (!m)
		return CF_CU_INVALID_HANDLE;
	if (!out || !name)
		return CF_CU_INVALID_VALUE;
	f = function_of(m, name);
	if (!f)
		return CF_CU_NOT_FOUND;
	*out = (CUfunction)f->h;
	return 0;
}

CUresult cuModuleGetFunction(CUfunction *fn, CUmodule module, const char *name)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(get_function(fn, module, name));
}

CUresult cuFuncGetAttribute(int *value, int attr, CUfunction fn)
{
	FC_ENTER(FC_NORMAL);
	if (!value || attr < 0)
		return (int)CF_CU_INVALID_VALUE;
	if (!FC_LOCKED(fc_handle_find(fn, FC_FUNCTION) != NULL))
		return (int)CF_CU_INVALID_HANDLE;
	*value = attr == 0 ? 1024 : 0; /* 0: most threads in a block */
	return 0;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction fn,
						     int size, size_t shared)
{
	FC_ENTER(FC_NORMAL);
	(void)shared;
	if (!blocks || size <= 0 || size > 1024)
		return (int)CF_CU_INVALID_VALUE;
	if (!FC_LOCKED(fc_handle_find(fn, FC_FUNCTION) != NULL))
		return (int)CF_CU_INVALID_HANDLE;
	*blocks = 2048 / size;
	return 0;
}
