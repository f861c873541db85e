// SPDX-License-Identifier: Apache-2.0
/*
 * verbs - finds the libraries and fills the table.
 *
 * The table is filled on the side and published with one store. A thread that
 * comes second has filled in the same values, and closes what it opened.
 */
#include "seam/verbs.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define LIBIBVERBS "libibverbs.so.1"
#define LIBMLX5 "libmlx5.so.1"

struct row {
	size_t slot;
	bool mlx5, required;
	const char *name;
};

#define ROW(member, mlx5, required, name) \
	{ \
		offsetof(struct cf_verbs, member), mlx5, required, name \
	}
#define NEED(member) ROW(member, false, true, "ibv_" #member)

static const struct row rows[] = {
	NEED(get_device_list),
	NEED(free_device_list),
	NEED(get_device_name),
	NEED(open_device),
	NEED(close_device),
	NEED(alloc_pd),
	NEED(dealloc_pd),
	NEED(query_port),
	NEED(create_cq),
	NEED(destroy_cq),
	NEED(create_srq),
	NEED(destroy_srq),
	ROW(create_qp, true, true, "mlx5dv_create_qp"),
	NEED(modify_qp),
	NEED(destroy_qp),
	NEED(reg_mr),
	NEED(dereg_mr),
	ROW(reg_dmabuf_mr, false, false, "ibv_reg_dmabuf_mr"),
};

/* The release store makes a filled table visible to readers. */
static const struct cf_verbs *_Atomic published;

static bool fill(struct cf_verbs *verbs, void *ibv, void *mlx5,
		 const char **wrong)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *sym = dlsym(rows[i].mlx5 ? mlx5 : ibv, rows[i].name);

		*wrong = rows[i].name;
		if (!sym && rows[i].required)
			return false;
		*(void **)((char *)verbs + rows[i].slot) = sym;
	}
	return true;
}

/* True: this table is the one in force, and its libraries stay open. */
static bool publish(struct cf_verbs *verbs)
{
	const struct cf_verbs *none = NULL;

	return atomic_compare_exchange_strong(&published, &none, verbs);
}

static bool load(void *ibv, void *mlx5, const char **wrong)
{
	struct cf_verbs *verbs = malloc(sizeof(*verbs));

	*wrong = "memory";
	if (verbs && fill(verbs, ibv, mlx5, wrong) && publish(verbs))
		return true;
	free(verbs);
	return false;
}

const struct cf_verbs *cf_verbs_open(const char **wrong)
{
	const struct cf_verbs *found =
		atomic_load_explicit(&published, memory_order_acquire);
	void *ibv, *mlx5;

	if (found)
		return found;
	ibv = dlopen(LIBIBVERBS, RTLD_NOW);
	mlx5 = ibv ? dlopen(LIBMLX5, RTLD_NOW) : NULL;
	*wrong = ibv ? LIBMLX5 : LIBIBVERBS;
	if (!mlx5 || !load(ibv, mlx5, wrong)) {
		if (mlx5)
			dlclose(mlx5);
		if (ibv)
			dlclose(ibv);
	}
	return atomic_load_explicit(&published, memory_order_acquire);
}

void cf_verbs_replace(const struct cf_verbs *table)
{
	atomic_store_explicit(&published, table, memory_order_release);
}
