// SPDX-License-Identifier: Apache-2.0
/*
 * nvtx - the tables that a tool fills, and the three functions we call.
 *
 * Numbers and shapes are those of NVTX 3, which are frozen: a module's table
 * has a place for each of its functions by number, and a place points to the
 * pointer that the tool sets. All modules are offered, because tools of today
 * ask for those that have always been there.
 */
#include "seam/nvtx.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "seam/os.h"

#define TOOL_VARIABLE "NVTX_INJECTION64_PATH"
#define TOOL_ENTRY "InitializeInjectionNvtx2"
#define OLD_LIBRARY "libnvToolsExt.so.1"
#define DOMAIN "opencufile"

#define ETID_CALLBACKS 1
#define ETID_VERSION 3
#define PAYLOAD_UINT64 1
#define MESSAGE_ASCII 1

/* Functions of a module by number; 0 is none, and NULL ends the table. */
#define NR_PLACES 16
enum { CORE = 1, CUDA, OPENCL, CUDART, CORE2, SYNC, NR_MODULES };
static const unsigned nr_places[NR_MODULES] = {
	[CORE] = 16,  [CUDA] = 9,   [OPENCL] = 15,
	[CUDART] = 7, [CORE2] = 16, [SYNC] = 7,
};
enum { DOMAIN_RANGE_PUSH = 4, DOMAIN_RANGE_POP = 5, DOMAIN_CREATE = 12 };

typedef void (*function)(void);

struct callbacks {
	size_t struct_size;
	int (*get_table)(int module, function ***table, unsigned *size);
};

struct version {
	size_t struct_size;
	uint32_t version;
	uint32_t reserved;
	void (*set_tool_version)(uint32_t version);
};

struct attributes {
	uint16_t version;
	uint16_t size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	uint64_t payload;
	int32_t message_type;
	const char *message;
};
_Static_assert(sizeof(struct attributes) == 48, "the ABI of NVTX");

/* The version is written by the thread that loads, then constant. */
static struct {
	uint16_t version;
	atomic_int settled; /* releases the domain */
	void *domain;
} tool;
enum { UNSETTLED, SETTLING, SETTLED };

static function functions[NR_MODULES][NR_PLACES]; /* atomic, tools write */
static function *places[NR_MODULES][NR_PLACES + 1];

enum { FRESH, LOADING, READY, FAILED };
static atomic_int state;
static atomic_bool wanted;
atomic_bool cf_nvtx_on;

/* ------------------------------------------------------ what tools ask for */

static int get_table(int module, function ***table, unsigned *size)
{
	if (module <= 0 || module >= NR_MODULES)
		return 0;
	for (unsigned i = 1; i < nr_places[module]; i++)
		places[module][i] = &functions[module][i];
	if (table)
		*table = places[module];
	if (size)
		*size = nr_places[module];
	return 1;
}

static void set_tool_version(uint32_t version)
{
}

static const void *get_export(uint32_t id)
{
	static const struct callbacks callbacks = { sizeof(callbacks),
						    get_table };
	static const struct version version = {
		.struct_size = sizeof(version),
		.version = 3,
		.set_tool_version = set_tool_version,
	};

	if (id == ETID_CALLBACKS)
		return &callbacks;
	return id == ETID_VERSION ? (const void *)&version : NULL;
}

/* ------------------------------------------------------------ what it took */

/*
 * A tool may set its functions at any time, and take them back: CUPTI 13
 * begins with none. So each pointer is read when it is to be called.
 */
static function function_now(int number)
{
	return __atomic_load_n(&functions[CORE2][number], __ATOMIC_ACQUIRE);
}

/*
 * Makes our domain when a tool takes its first range. A tool without domains
 * shows our ranges among all others. False while another thread makes it.
 */
static bool has_domain(void)
{
	int unsettled = UNSETTLED;
	void *(*make)(const char *name);

	if (atomic_load(&tool.settled) == SETTLED)
		return true;
	if (!atomic_compare_exchange_strong(&tool.settled, &unsettled,
					    SETTLING))
		return false;
	make = (void *(*)(const char *))function_now(DOMAIN_CREATE);
	tool.domain = make ? make(DOMAIN) : NULL;
	atomic_store(&tool.settled, SETTLED);
	return true;
}

/* -------------------------------------------------------------- to find one */

/* Has the library fill the tables. NULL, or why it is no tool. */
static const char *inject(void *lib)
{
	int (*entry)(const void *(*get_export)(uint32_t id));

	*(void **)&entry = dlsym(lib, TOOL_ENTRY);
	if (!entry)
		return "it has no " TOOL_ENTRY;
	tool.version = 3;
	return entry(get_export) ? NULL : "it refused to begin";
}

static const char *look_up(void *lib)
{
	static const struct {
		int number;
		const char *name;
	} rows[3] = { { DOMAIN_CREATE, "nvtxDomainCreateA" },
		      { DOMAIN_RANGE_PUSH, "nvtxDomainRangePushEx" },
		      { DOMAIN_RANGE_POP, "nvtxDomainRangePop" } };

	for (int i = 0; i < 3; i++)
		*(void **)&functions[CORE2][rows[i].number] =
			dlsym(lib, rows[i].name);
	tool.version = 2;
	return function_now(DOMAIN_RANGE_PUSH) ? NULL : "it takes no ranges";
}

static bool load(char *text, size_t size)
{
	const char *path = cf_os->getenv(TOOL_VARIABLE);
	bool named = path && *path;
	const char *name = named ? path : OLD_LIBRARY, *wrong;
	void *lib = dlopen(name, RTLD_LAZY);

	if (!lib && !named) {
		snprintf(text, size,
			 TOOL_VARIABLE
			 " names no tool, and there is no " OLD_LIBRARY);
		return false;
	}
	wrong = !lib  ? "it cannot be loaded" :
		named ? inject(lib) :
			look_up(lib);
	if (wrong) {
		snprintf(text, size, "%s: %s", name, wrong);
		memset(functions, 0, sizeof(functions));
		/* a tool that works stays loaded: its functions are called */
		if (lib)
			dlclose(lib);
	} else if (function_now(DOMAIN_RANGE_PUSH) && has_domain()) {
		snprintf(text, size, "%s", name);
	} else {
		snprintf(text, size, "%s, when it takes them", name);
	}
	return !wrong;
}

void cf_nvtx_want(bool on)
{
	int failed = FAILED;

	atomic_store(&wanted, on);
	if (on)
		(void)atomic_compare_exchange_strong(&state, &failed, FRESH);
	atomic_store(&cf_nvtx_on, on && atomic_load(&state) == READY);
}

enum cf_nvtx_news cf_nvtx_settle(char *text, size_t size)
{
	int fresh = FRESH;

	if (!atomic_load_explicit(&wanted, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong(&state, &fresh, LOADING))
		return CF_NVTX_NOTHING;
	if (!load(text, size)) {
		atomic_store(&state, FAILED);
		return CF_NVTX_FAILED;
	}
	atomic_store(&state, READY);
	atomic_store(&cf_nvtx_on, atomic_load(&wanted));
	return CF_NVTX_LOADED;
}

/* --------------------------------------------------------------- the ranges */

bool cf_nvtx_push(const char *what, const char *by, uint64_t bytes)
{
	int (*push)(void *domain, const struct attributes *attributes) =
		(int (*)(void *, const struct attributes *))function_now(
			DOMAIN_RANGE_PUSH);
	char message[48];
	struct attributes attributes = {
		.version = tool.version,
		.size = sizeof(attributes),
		.payload_type = PAYLOAD_UINT64,
		.payload = bytes,
		.message_type = MESSAGE_ASCII,
		.message = message,
	};

	if (!push || !has_domain())
		return false;
	snprintf(message, sizeof(message), "%s %s", what, by);
	(void)push(tool.domain, &attributes);
	return true;
}

void cf_nvtx_pop(void)
{
	int (*pop)(void *domain) =
		(int (*)(void *))function_now(DOMAIN_RANGE_POP);

	if (pop)
		(void)pop(tool.domain);
}
