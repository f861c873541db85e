// SPDX-License-Identifier: Apache-2.0
/* route - the decision and its reasons, for every kind of piece. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/config.h"
#include "core/ferry.h"
#include "core/nic.h"
#include "engine/request.h"
#include "engine/route.h"

#define NR_KINDS 3

static struct cf_crew nobody = { .helpers = 0 };

/* A configuration with these settings and nothing else. */
static struct cf_config *configure(const char *path, bool bounce,
				   bool system_memory)
{
	struct cf_config_staged *staged = cf_config_staged();
	struct cf_config *config = cf_config_new();

	assert_non_null(config);
	assert_int_equal(cf_staged_set_string(staged, CF_CFG_PATH, path), 0);
	assert_int_equal(
		cf_staged_set_bool(staged, CF_CFG_ALLOW_COMPAT_MODE, bounce),
		0);
	assert_int_equal(cf_staged_set_bool(staged, CF_CFG_ALLOW_SYSTEM_MEMORY,
					    system_memory),
			 0);
	assert_int_equal(cf_config_load(config, staged), 0);
	cf_staged_reset(staged);
	return config;
}

/*
 * By a configuration, with the answers of all. Who was asked at first stopped
 * at no other path and for no other reason.
 */
static void decide(const struct cf_piece *piece, const struct cf_config *config,
		   struct cf_route *route)
{
	struct cf_rules rules;
	struct cf_route first;

	memset(&first, 0, sizeof(first));
	cf_rules_read(config, &rules);
	cf_route_choose(piece, &rules, &first);
	*route = first;
	cf_route_ask_rest(piece, &rules, route);
	assert_ptr_equal(route->path, first.path);
	assert_null(cf_path_at(route->nr_asked));
	for (unsigned i = 0; i < first.nr_asked; i++)
		assert_int_equal(route->why[i], first.why[i]);
	/* what they left out would not have mattered */
	assert_ptr_equal(cf_route_next(route), cf_route_next(&first));
}

static struct cf_piece piece_of(enum cf_memory_kind kind)
{
	return (struct cf_piece){
		.op = CF_READ, .mem.kind = kind, .mem.addr = 4096, .size = 4096
	};
}

static struct cf_route choose(const char *path, bool bounce, bool system_memory,
			      enum cf_memory_kind kind)
{
	struct cf_config *config = configure(path, bounce, system_memory);
	struct cf_piece piece = piece_of(kind);
	struct cf_route route;

	decide(&piece, config, &route);
	cf_config_free(config);
	return route;
}

/* The same, with compatibility mode forced, or a file on a list. */
static struct cf_route choose_compat(const char *path, bool forced,
				     enum cf_denied denied,
				     enum cf_memory_kind kind)
{
	struct cf_config *config = configure(path, true, true);
	struct cf_handle handle = { .denied = denied };
	struct cf_piece piece = piece_of(kind);
	struct cf_route route;

	cf_config_set_runtime_bool(config, CF_CFG_FORCE_COMPAT_MODE, forced);
	piece.handle = &handle;
	decide(&piece, config, &route);
	cf_config_free(config);
	return route;
}

/* What the path of this name answered. */
static enum cf_why why(const struct cf_route *route, const char *name)
{
	for (unsigned i = 0; cf_path_at(i); i++)
		if (!strcmp(cf_path_at(i)->name, name))
			return route->why[i];
	fail_msg("there is no path %s", name);
	return CF_NR_WHYS;
}

static void host_memory_takes_the_host_path(void **state)
{
	struct cf_route route = choose("", true, true, CF_MEMORY_HOST);

	assert_ptr_equal(route.path, &cf_path_host);
	assert_int_equal(why(&route, "host"), CF_WHY_YES);
	assert_int_equal(why(&route, "staged"), CF_WHY_NOT_DEVICE);
	assert_int_equal(why(&route, "null"), CF_WHY_NOT_ASKED);
}

static void device_and_managed_memory_are_staged(void **state)
{
	static const enum cf_memory_kind kinds[] = { CF_MEMORY_DEVICE,
						     CF_MEMORY_MANAGED };

	for (int i = 0; i < 2; i++) {
		struct cf_route route = choose("", true, true, kinds[i]);

		assert_ptr_equal(route.path, &cf_path_staged);
		assert_int_equal(why(&route, "staged"), CF_WHY_YES);
		assert_int_equal(why(&route, "host"), CF_WHY_NOT_HOST);
	}
}

/* Behaviour, principle 3: strict mode turns a fallback into an error. */
static void without_compat_mode_device_memory_has_no_route(void **state)
{
	struct cf_route route = choose("", false, true, CF_MEMORY_DEVICE);

	assert_null(route.path);
	assert_int_equal(why(&route, "staged"), CF_WHY_STRICT);
	/* host memory is not a fallback */
	route = choose("", false, true, CF_MEMORY_HOST);
	assert_ptr_equal(route.path, &cf_path_host);
}

/* Contract 3.17: what a key sends through host memory is no fallback. */
static void strict_mode_leaves_what_was_chosen_its_way(void **state)
{
	struct cf_config *config = configure("", false, true);
	struct cf_handle handle = {
		.nvfs = CF_NVFS_PASS,
		.nvfs_target = CU_FILE_LUSTRE_SUPPORTED,
		.direct = true,
		.dio_align = 4096,
	};
	struct cf_piece piece = piece_of(CF_MEMORY_DEVICE);
	struct cf_route route;

	piece.handle = &handle;
	piece.via = CF_VIA_DIRECT;
	/* not registered: nvidia-fs cannot, and nothing else may */
	decide(&piece, config, &route);
	assert_null(route.path);
	cf_config_set_runtime_size(config, CF_CFG_LUSTRE_POSIX_GDS_MIN_KB, 4);
	decide(&piece, config, &route);
	assert_ptr_equal(route.path, &cf_path_staged);
	assert_int_equal(why(&route, "nvfs"), CF_WHY_NVFS_KEPT);
	piece.size++;
	decide(&piece, config, &route);
	assert_null(route.path);
	piece.op = CF_WRITE;
	cf_config_set_runtime_bool(config, CF_CFG_GDS_RDMA_WRITE_SUPPORT,
				   false);
	decide(&piece, config, &route);
	assert_ptr_equal(route.path, &cf_path_staged);
	/* and force_compat_mode, which goes before it */
	piece = piece_of(CF_MEMORY_DEVICE);
	decide(&piece, config, &route);
	assert_null(route.path);
	cf_config_set_runtime_bool(config, CF_CFG_FORCE_COMPAT_MODE, true);
	decide(&piece, config, &route);
	assert_ptr_equal(route.path, &cf_path_staged);
	cf_config_free(config);
}

/* Edges of a block are host memory's: in strict mode they are an error. */
static void strict_mode_gives_nvidia_fs_whole_blocks_alone(void **state)
{
	struct cf_handle handle = { .nvfs = CF_NVFS_PASS,
				    .nvfs_target = CU_FILE_NVME_SUPPORTED,
				    .direct = true,
				    .dio_align = 512,
				    .page_align = 4096 };
	struct cf_piece piece = piece_of(CF_MEMORY_DEVICE);

	piece.registered = true;
	piece.via = CF_VIA_DIRECT;
	piece.mem.buffer_id = 7;
	piece.handle = &handle;
	for (int strict = 0; strict < 2; strict++) {
		struct cf_config *config = configure("", !strict, true);
		struct cf_route route;

		piece.size = 8192;
		decide(&piece, config, &route);
		assert_ptr_equal(route.path, &cf_path_nvfs);
		piece.size = 8193;
		decide(&piece, config, &route);
		assert_ptr_equal(route.path, strict ? NULL : &cf_path_nvfs);
		assert_int_equal(why(&route, "nvfs"),
				 strict ? CF_WHY_STRICT : CF_WHY_YES);
		cf_config_free(config);
	}
}

/* What the registration of a file answers; why goes into *why. */
static int file_check(const struct cf_handle *handle, bool strict,
		      const char *alias, enum cf_why *why)
{
	struct cf_config_staged *staged = cf_config_staged();
	struct cf_config *config;
	struct cf_rules rules;
	int code;

	assert_int_equal(cf_staged_set_string(staged, CF_CFG_ALIAS, alias), 0);
	config = configure("", !strict, true);
	cf_rules_read(config, &rules);
	code = cf_route_check_file(handle, &rules, why);
	cf_config_free(config);
	return code;
}

static void strict_mode_refuses_files_that_can_never_reach_a_gpu(void **state)
{
	static const CUfileFSOps_t ops;
	static const struct {
		struct cf_handle handle;
		const char *alias;
		int code;
		enum cf_why why;
	} rows[] = {
#define OFF .nvfs = CF_NVFS_OFF
		{ { .direct = true, OFF }, "direct", 0, CF_WHY_YES },
		/* opened otherwise it could, and host memory needs no path */
		{ { .direct = false, OFF }, "direct", 0, CF_WHY_YES },
		{ { .direct = true, OFF }, "off", -5008, CF_WHY_ALIAS_OFF },
		{ { .nvfs = CF_NVFS_PASS }, "off", 0, CF_WHY_YES },
		{ { .fs_ops = &ops, OFF }, "direct", -5008, CF_WHY_USER_FS },
		{ { .denied = CF_DENIED_DEVICE },
		  "direct",
		  -5034,
		  CF_WHY_DENIED_DEVICE },
#undef OFF
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum cf_why why;

		assert_int_equal(
			file_check(&rows[i].handle, true, rows[i].alias, &why),
			rows[i].code);
		assert_int_equal(why, rows[i].why);
		assert_int_equal(
			file_check(&rows[i].handle, false, rows[i].alias, &why),
			0);
	}
}

static void without_system_memory_host_memory_has_no_route(void **state)
{
	struct cf_route route = choose("", true, false, CF_MEMORY_HOST);

	assert_null(route.path);
	assert_int_equal(why(&route, "host"), CF_WHY_NO_SYSTEM_MEMORY);
	route = choose("", true, false, CF_MEMORY_DEVICE);
	assert_ptr_equal(route.path, &cf_path_staged);
}

static void a_path_that_is_named_is_the_only_one(void **state)
{
	struct cf_route route = choose("staged", true, true, CF_MEMORY_HOST);

	assert_null(route.path);
	assert_int_equal(why(&route, "host"), CF_WHY_OTHER_ASKED);
	assert_int_equal(why(&route, "staged"), CF_WHY_NOT_DEVICE);
	route = choose("host", true, true, CF_MEMORY_HOST);
	assert_ptr_equal(route.path, &cf_path_host);
	assert_int_equal(why(&route, "staged"), CF_WHY_OTHER_ASKED);
}

/* Contract 3.17: such files and such a mode leave the POSIX paths. */
static void forced_and_denied_files_are_left_the_compat_paths(void **state)
{
	static const struct {
		bool forced;
		enum cf_denied denied;
		enum cf_why why;
	} cases[] = {
		{ true, CF_DENIED_NOT, CF_WHY_FORCED_COMPAT },
		{ false, CF_DENIED_DRIVER, CF_WHY_DENIED_DRIVER },
		{ false, CF_DENIED_DEVICE, CF_WHY_DENIED_DEVICE },
		{ false, CF_DENIED_MOUNT, CF_WHY_DENIED_MOUNT },
		{ false, CF_DENIED_FILESYSTEM, CF_WHY_DENIED_FILESYSTEM },
	};

	for (int n = 0; n < 5; n++) {
		struct cf_route route = choose_compat(
			"", cases[n].forced, cases[n].denied, CF_MEMORY_DEVICE);

		assert_ptr_equal(route.path, &cf_path_staged);
		assert_int_equal(why(&route, "mapped"), cases[n].why);
		route = choose_compat("", cases[n].forced, cases[n].denied,
				      CF_MEMORY_HOST);
		assert_ptr_equal(route.path, &cf_path_host);
		for (unsigned i = 0; cf_path_at(i); i++) {
			const char *name = cf_path_at(i)->name;

			/* mapped cannot be had alone */
			if (cf_path_at(i)->compat ||
			    cf_path_at(i) == &cf_path_mapped)
				continue;
			route = choose_compat(name, cases[n].forced,
					      cases[n].denied, CF_MEMORY_HOST);
			assert_null(route.path);
			assert_int_equal(route.why[i], cases[n].why);
			assert_non_null(cf_why_remedy(cases[n].why));
		}
	}
}

static void the_null_path_carries_all_but_only_by_name(void **state)
{
	for (int kind = 0; kind < NR_KINDS; kind++) {
		struct cf_piece piece = piece_of((enum cf_memory_kind)kind);
		struct cf_route route =
			choose("null", false, false, piece.mem.kind);
		struct cf_feed feed;

		assert_ptr_equal(route.path, &cf_path_null);
		cf_feed_init(&feed, piece.size, 0, 4096);
		route.path->run(&piece, &feed, &nobody);
		assert_int_equal(cf_feed_result(&feed), piece.size);
	}
}

/* A piece of device memory that has an alias, on a direct file. */
struct aliased {
	struct cf_handle handle;
	struct cf_alias alias;
	struct cf_piece piece;
};

static void aliased_init(struct aliased *a)
{
	*a = (struct aliased){
		.handle = { .direct = true,
			    .dio_align = 512,
			    .page_align = 4096,
			    .disk = 5 },
		.alias = { .state = CF_ALIAS_PAGES,
			   .device = 1 << 20,
			   .cpu = 1 << 21,
			   .size = 1 << 16 },
		.piece = { .op = CF_READ,
			   .mem.kind = CF_MEMORY_DEVICE,
			   .mem.addr = 1 << 20,
			   .via = CF_VIA_DIRECT,
			   .size = 8192 },
	};
	a->piece.handle = &a->handle;
	a->piece.alias = &a->alias;
	a->piece.alias_state = a->alias.state;
}

static enum cf_why alias_says(struct aliased *a, const char *use, bool bounce)
{
	struct cf_config_staged *staged = cf_config_staged();
	struct cf_config *config = cf_config_new();
	struct cf_route route;

	assert_non_null(config);
	assert_int_equal(cf_staged_set_string(staged, CF_CFG_ALIAS, use), 0);
	assert_int_equal(
		cf_staged_set_bool(staged, CF_CFG_ALLOW_COMPAT_MODE, bounce),
		0);
	assert_int_equal(cf_config_load(config, staged), 0);
	cf_staged_reset(staged);
	decide(&a->piece, config, &route);
	cf_config_free(config);
	if (why(&route, "alias") == CF_WHY_YES)
		assert_ptr_equal(route.path, &cf_path_alias);
	return why(&route, "alias");
}

static void the_alias_says_why_not(bool seen[CF_NR_WHYS])
{
	static const CUfileFSOps_t ops;
	struct aliased a;

#define SAYS(use, bounce, answer) \
	do { \
		assert_int_equal(alias_says(&a, use, bounce), answer); \
		seen[answer] = true; \
		aliased_init(&a); \
	} while (0)
	aliased_init(&a);
	SAYS("direct", true, CF_WHY_YES);
	SAYS("direct", false, CF_WHY_YES);
	SAYS("off", true, CF_WHY_ALIAS_OFF);
	a.piece.alias = NULL;
	a.piece.alias_state = CF_ALIAS_UNREGISTERED;
	SAYS("direct", true, CF_WHY_NOT_REGISTERED);
	a.piece.alias = NULL;
	a.piece.alias_state = CF_ALIAS_NOBODY;
	SAYS("direct", true, CF_WHY_NO_ALIAS);
	a.piece.alias = NULL;
	a.piece.alias_state = CF_ALIAS_WRONG;
	SAYS("direct", true, CF_WHY_ALIAS_WRONG);
	a.alias.state = CF_ALIAS_PLAIN;
	SAYS("on", true, CF_WHY_ALIAS_PLAIN);
	a.piece.via = CF_VIA_CACHE;
	SAYS("direct", true, CF_WHY_ALIAS_CACHED);
	a.piece.via = CF_VIA_CACHE;
	SAYS("on", true, CF_WHY_YES);
	a.piece.via = CF_VIA_CACHE;
	a.piece.op = CF_WRITE;
	SAYS("on", true, CF_WHY_ALIAS_CACHED);
	a.piece.mem.addr += 8;
	SAYS("direct", true, CF_WHY_ALIAS_NO_BLOCK);
	a.piece.size -= 8;
	SAYS("direct", false, CF_WHY_STRICT);
	a.handle.fs_ops = &ops;
	SAYS("direct", true, CF_WHY_USER_FS);
	cf_alias_refuse(5, 0, -EREMOTEIO);
	SAYS("direct", true, CF_WHY_ALIAS_REMOTE);
	cf_alias_refused_close();
	cf_alias_refuse(5, 0, -EFAULT);
	SAYS("direct", true, CF_WHY_ALIAS_FAULT);
	cf_alias_refused_close();
	cf_alias_refuse(5, 0, -EINVAL);
	SAYS("direct", true, CF_WHY_ALIAS_INVALID);
	cf_alias_refused_close();
	a.piece.mem.ordinal = 1000; /* a GPU that nobody knows */
	SAYS("direct", true, CF_WHY_LOOSE);
#undef SAYS
}

/* What the mapped path answers to what was seen of the page cache. */
static enum cf_why sighted(enum cf_sight sight, struct cf_ferry *ferry)
{
	struct cf_config *config = configure("", true, true);
	struct cf_piece piece = piece_of(CF_MEMORY_DEVICE);
	struct cf_route route;

	piece.view.sight = sight;
	piece.ferry = ferry;
	decide(&piece, config, &route);
	cf_config_free(config);
	/* staged can carry all that mapped does not, and what it gives up */
	assert_ptr_equal(route.path, why(&route, "mapped") == CF_WHY_YES ?
					     &cf_path_mapped :
					     &cf_path_staged);
	if (route.path == &cf_path_mapped)
		assert_ptr_equal(cf_route_next(&route), &cf_path_staged);
	else
		assert_null(cf_route_next(&route));
	return why(&route, "mapped");
}

static void pages_that_were_seen_are_mapped(void **state)
{
	struct cf_ferry ferry = { .drawn = true };

	assert_int_equal(sighted(CF_SIGHT_OPEN, NULL), CF_WHY_YES);
	assert_int_equal(sighted(CF_SIGHT_WORTH, NULL), CF_WHY_YES);
	assert_int_equal(sighted(CF_SIGHT_NOT_CACHED, NULL), CF_WHY_NOT_CACHED);
	assert_int_equal(sighted(CF_SIGHT_NONE, NULL), CF_WHY_NO_READ);
	/* a ferry has no windows opened while its stream waits */
	assert_int_equal(sighted(CF_SIGHT_OPEN, &ferry), CF_WHY_YES);
	assert_int_equal(sighted(CF_SIGHT_WORTH, &ferry), CF_WHY_NEXT_READ);
	ferry.drawn = false;
	assert_int_equal(sighted(CF_SIGHT_OPEN, &ferry), CF_WHY_COOL);
}

/* What the path by nvidia-fs says to this piece of an open file. */
static enum cf_why nvfs_says(struct cf_handle *handle, struct cf_piece piece,
			     struct cf_config *config)
{
	struct cf_route route;

	handle->direct = true;
	handle->dio_align = 512;
	handle->page_align = 4096;
	piece.handle = handle;
	decide(&piece, config, &route);
	return why(&route, "nvfs");
}

/* A registered piece of whole blocks, of a file that may travel. */
static struct cf_piece nvfs_piece(void)
{
	struct cf_piece piece = piece_of(CF_MEMORY_DEVICE);

	piece.registered = true;
	piece.via = CF_VIA_DIRECT;
	piece.mem.buffer_id = 7;
	return piece;
}

static void see_nvfs_files(bool *seen)
{
	struct cf_config *config = configure("", true, true);
	struct cf_piece piece = nvfs_piece();
	struct cf_handle handle = { .nvfs = CF_NVFS_PASS,
				    .nvfs_target = CU_FILE_NVME_SUPPORTED };

	assert_int_equal(nvfs_says(&handle, piece, config), CF_WHY_YES);
	handle.nvfs_refused = true;
	seen[nvfs_says(&handle, piece, config)] = true;
	handle.nvfs_refused = false;
	for (int gate = CF_NVFS_OFF; gate <= CF_NVFS_INODE; gate++) {
		handle.nvfs = (enum cf_nvfs_gate)gate;
		seen[nvfs_says(&handle, piece, config)] = true;
	}
	handle.nvfs = CF_NVFS_PASS;
	handle.nvfs_target = CU_FILE_GPFS_SUPPORTED;
	piece.op = CF_WRITE;
	seen[nvfs_says(&handle, piece, config)] = true;
	handle.nvfs_target = CU_FILE_LUSTRE_SUPPORTED;
	cf_config_set_runtime_size(config, CF_CFG_LUSTRE_POSIX_GDS_MIN_KB, 4);
	seen[nvfs_says(&handle, piece, config)] = true;
	cf_config_free(config);
}

static void see_nvfs_pieces(bool *seen)
{
	struct cf_config *config = configure("", true, true);
	struct cf_handle handle = { .nvfs = CF_NVFS_PASS,
				    .nvfs_target = CU_FILE_NVME_SUPPORTED };
	struct cf_piece piece = nvfs_piece();

	piece.via = CF_VIA_CACHE;
	seen[nvfs_says(&handle, piece, config)] = true;
	piece = nvfs_piece();
	piece.registered = false;
	seen[nvfs_says(&handle, piece, config)] = true;
	piece = nvfs_piece();
	piece.mem.buffer_id = 0;
	seen[nvfs_says(&handle, piece, config)] = true;
	piece = nvfs_piece();
	piece.mem.addr++;
	seen[nvfs_says(&handle, piece, config)] = true;
	piece = nvfs_piece();
	piece.size = 4095;
	seen[nvfs_says(&handle, piece, config)] = true;
	cf_config_free(config);
}

/* A list has no setter: what a file says of it. */
static void see_nvfs_routing(bool *seen)
{
	static const char json[] =
		"{\"properties\": {\"rdma_dynamic_routing\": true, "
		"\"rdma_dynamic_routing_order\": [\"SYS_MEM\"]}}";
	struct cf_handle handle = { .nvfs = CF_NVFS_PASS,
				    .nvfs_target = CU_FILE_LUSTRE_SUPPORTED };
	char path[] = "/tmp/route-XXXXXX";
	struct cf_config *config;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, json, strlen(json)), strlen(json));
	close(fd);
	setenv("CUFILE_ENV_PATH_JSON", path, 1);
	config = configure("", true, true);
	seen[nvfs_says(&handle, nvfs_piece(), config)] = true;
	cf_config_free(config);
	setenv("CUFILE_ENV_PATH_JSON", "/nonexistent", 1);
	unlink(path);
}

/* Who switches it on wants it; where it says no, the alias is next. */
static void nvidia_fs_is_asked_before_the_alias(void **state)
{
	struct cf_config *config = configure("", true, true);
	struct cf_route route;
	struct aliased a;

	aliased_init(&a);
	a.handle.nvfs_target = CU_FILE_NVME_SUPPORTED;
	a.piece.registered = true;
	a.piece.mem.buffer_id = 7;
	decide(&a.piece, config, &route);
	assert_ptr_equal(route.path, &cf_path_nvfs);
	assert_int_equal(why(&route, "alias"), CF_WHY_YES);
	a.handle.nvfs = CF_NVFS_OFF;
	decide(&a.piece, config, &route);
	assert_ptr_equal(route.path, &cf_path_alias);
	cf_config_free(config);
}

/* A configuration that names a NIC, which nobody opens. */
static struct cf_config *configure_nic(bool writes)
{
	char path[] = "/tmp/route-XXXXXX";
	struct cf_config *config = cf_config_new();
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd,
			    "{\"properties\": {\"gds_rdma_write_support\": %s,"
			    " \"rdma_dev_addr_list\": [\"10.0.0.1\"]}}",
			    writes ? "true" : "false") > 0);
	close(fd);
	setenv("CUFILE_ENV_PATH_JSON", path, 1);
	assert_int_equal(cf_config_load(config, cf_config_staged()), 0);
	unsetenv("CUFILE_ENV_PATH_JSON");
	unlink(path);
	return config;
}

static enum cf_why rdma_says(const struct cf_piece *piece,
			     const struct cf_config *config)
{
	struct cf_route route;

	decide(piece, config, &route);
	return why(&route, "rdma");
}

static void see_rdma(bool *seen)
{
	static const CUfileFSOps_t ops = { 0 };
	static _Alignas(64) char no_nics[4096]; /* memory at none of them */
	struct cf_config *config = configure_nic(true);
	struct cf_config *no_writes = configure_nic(false);
	struct cf_handle handle = { .fs_ops = &ops, .hosts.nr = -1 };
	struct cf_piece piece = piece_of(CF_MEMORY_DEVICE);

	piece.handle = &handle;
	seen[rdma_says(&piece, config)] = true;
	cf_nics_want(config);
	assert_int_equal(rdma_says(&piece, config), CF_WHY_NOT_REGISTERED);
	piece.registered = true;
	seen[rdma_says(&piece, config)] = true;
	piece.remote = (struct cf_remote *)no_nics;
	seen[rdma_says(&piece, config)] = true;
	piece.op = CF_WRITE;
	seen[rdma_says(&piece, no_writes)] = true;
	handle.rdma_refused = true;
	seen[rdma_says(&piece, config)] = true;
	cf_nics_close();
	cf_config_free(config);
	cf_config_free(no_writes);
}

/* Every reason can be met, and a person can read it. */
static void every_reason_is_reachable_and_has_a_text(void **state)
{
	struct cf_ferry ferry = { .drawn = true };
	static const char *const paths[] = { "", "null", "host", "staged" };
	bool seen[CF_NR_WHYS] = { false };

	for (int n = 0; n < 4 * 4 * NR_KINDS; n++) {
		struct cf_route route =
			choose(paths[n % 4], n / 4 % 2, n / 8 % 2,
			       (enum cf_memory_kind)(n / 16));

		for (unsigned i = 0; cf_path_at(i); i++) {
			assert_in_range(route.why[i], 0, CF_NR_WHYS - 1);
			seen[route.why[i]] = true;
		}
	}
	for (int n = 0; n <= CF_DENIED_FILESYSTEM; n++) {
		struct cf_route route = choose_compat(
			"null", !n, (enum cf_denied)n, CF_MEMORY_DEVICE);

		for (unsigned i = 0; cf_path_at(i); i++)
			seen[route.why[i]] = true;
	}
	the_alias_says_why_not(seen);
	for (int sight = 0; sight < CF_NR_SIGHTS; sight++)
		seen[sighted((enum cf_sight)sight, NULL)] = true;
	seen[sighted(CF_SIGHT_WORTH, &ferry)] = true;
	see_nvfs_files(seen);
	see_nvfs_pieces(seen);
	see_nvfs_routing(seen);
	see_rdma(seen);
	for (int i = 0; i < CF_NR_WHYS; i++) {
		if (!seen[i])
			fail_msg("no path ever says \"%s\"",
				 cf_why_text((enum cf_why)i));
		assert_non_null(cf_why_text((enum cf_why)i));
		assert_true(strlen(cf_why_text((enum cf_why)i)) > 5);
	}
}

/* The route goes to the first path that says yes, and to no other. */
static void the_path_taken_is_the_first_that_said_yes(void **state)
{
	for (int n = 0; n < 4 * NR_KINDS; n++) {
		struct cf_route route = choose("", n % 2, n / 2 % 2,
					       (enum cf_memory_kind)(n / 4));
		const struct cf_path_ops *first = NULL;

		for (unsigned i = 0; cf_path_at(i) && !first; i++)
			if (route.why[i] == CF_WHY_YES)
				first = cf_path_at(i);
		assert_ptr_equal(route.path, first);
	}
}

/* Deciding is pure: same answer twice, and nothing asked was touched. */
static void deciding_changes_nothing(void **state)
{
	struct cf_config *config = configure("", true, true);

	for (int kind = 0; kind < NR_KINDS; kind++) {
		struct cf_piece piece = piece_of((enum cf_memory_kind)kind);
		struct cf_piece before = piece;
		struct cf_route one, two;

		memset(&one, 0, sizeof(one));
		memset(&two, 0, sizeof(two));
		decide(&piece, config, &one);
		decide(&piece, config, &two);
		assert_memory_equal(&one, &two, sizeof(one));
		assert_memory_equal(&piece, &before, sizeof(piece));
	}
	cf_config_free(config);
}

static void path_names_are_short_and_different(void **state)
{
	unsigned nr = 0;

	for (; cf_path_at(nr); nr++)
		for (unsigned j = 0; j < nr; j++)
			assert_string_not_equal(cf_path_at(nr)->name,
						cf_path_at(j)->name);
	assert_in_range(nr, 3, CF_MAX_PATHS);
	assert_null(cf_path_at(nr));
	assert_null(cf_path_at(1000));
}

/* A path that gave up has moved them, whatever becomes of the rest. */
static void bytes_that_were_moved_count_before_an_error(void **state)
{
	assert_int_equal(cf_request_in_all(0, -EIO), -EIO);
	assert_int_equal(cf_request_in_all(7, -EIO), 7);
	assert_int_equal(cf_request_in_all(7, 0), 7);
	assert_int_equal(cf_request_in_all(7, 3), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_were_moved_count_before_an_error),
		cmocka_unit_test(host_memory_takes_the_host_path),
		cmocka_unit_test(device_and_managed_memory_are_staged),
		cmocka_unit_test(
			without_compat_mode_device_memory_has_no_route),
		cmocka_unit_test(
			without_system_memory_host_memory_has_no_route),
		cmocka_unit_test(strict_mode_leaves_what_was_chosen_its_way),
		cmocka_unit_test(
			strict_mode_gives_nvidia_fs_whole_blocks_alone),
		cmocka_unit_test(
			strict_mode_refuses_files_that_can_never_reach_a_gpu),
		cmocka_unit_test(a_path_that_is_named_is_the_only_one),
		cmocka_unit_test(
			forced_and_denied_files_are_left_the_compat_paths),
		cmocka_unit_test(the_null_path_carries_all_but_only_by_name),
		cmocka_unit_test(pages_that_were_seen_are_mapped),
		cmocka_unit_test(nvidia_fs_is_asked_before_the_alias),
		cmocka_unit_test(every_reason_is_reachable_and_has_a_text),
		cmocka_unit_test(the_path_taken_is_the_first_that_said_yes),
		cmocka_unit_test(deciding_changes_nothing),
		cmocka_unit_test(path_names_are_short_and_different),
	};

	/* not the machine's own configuration */
	setenv("CUFILE_ENV_PATH_JSON", "/nonexistent", 1);
	return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
