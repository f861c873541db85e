// SPDX-License-Identifier: Apache-2.0
/* library - the calls of any libcufile, by its path. */
#include "bench.h"

#include <dlfcn.h>
#include <string.h>

/* How many of the rows below no libcufile can be without. */
#define NR_REQUIRED 7

static const char *load(const char *path, struct mover *mover)
{
	const struct {
		void *slot;
		const char *name;
	} rows[] = {
		{ &mover->open, "cuFileDriverOpen" },
		{ &mover->handle_register, "cuFileHandleRegister" },
		{ &mover->handle_deregister, "cuFileHandleDeregister" },
		{ &mover->buf_register, "cuFileBufRegister" },
		{ &mover->buf_deregister, "cuFileBufDeregister" },
		{ &mover->read, "cuFileRead" },
		{ &mover->write, "cuFileWrite" },
		{ &mover->batch_set_up, "cuFileBatchIOSetUp" },
		{ &mover->batch_submit, "cuFileBatchIOSubmit" },
		{ &mover->batch_status, "cuFileBatchIOGetStatus" },
		{ &mover->batch_destroy, "cuFileBatchIODestroy" },
		{ &mover->stream_register, "cuFileStreamRegister" },
		{ &mover->stream_deregister, "cuFileStreamDeregister" },
		{ &mover->read_async, "cuFileReadAsync" },
		{ &mover->write_async, "cuFileWriteAsync" },
		{ &mover->version, "cuFileGetVersion" },
		{ &mover->stats_level, "cuFileSetStatsLevel" },
		{ &mover->stats_start, "cuFileStatsStart" },
		{ &mover->stats_stop, "cuFileStatsStop" },
		{ &mover->stats_l1, "cuFileGetStatsL1" },
	};
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return dlerror();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		*(void **)rows[i].slot = dlsym(lib, rows[i].name);
		if (!*(void **)rows[i].slot && i < NR_REQUIRED)
			return "a call is missing";
	}
	return NULL;
}

bool mover_is_limit(const char *name)
{
	return strcmp(name, "limit") == 0;
}

const char *mover_load(const char *name, struct mover *mover)
{
	memset(mover, 0, sizeof(*mover));
	if (strcmp(name, "byhand") == 0)
		byhand_load(mover);
	else if (mover_is_limit(name))
		limit_load(mover);
	else
		return load(name, mover);
	return NULL;
}
