// SPDX-License-Identifier: Apache-2.0
/* library - the calls of any libcufile, by its path. */
#include "bench.h"

#include <dlfcn.h>
#include <string.h>

const char *mover_load(const char *name, struct mover *mover)
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
	};
	void *lib;

	if (strcmp(name, "byhand") == 0)
		return byhand_load(mover);
	lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return dlerror();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		*(void **)rows[i].slot = dlsym(lib, rows[i].name);
		if (!*(void **)rows[i].slot)
			return "a call is missing";
	}
	return NULL;
}
