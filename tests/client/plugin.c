// SPDX-License-Identifier: Apache-2.0
/*
 * plugin - an object that opens the driver in its constructor, inside the
 * loader, and closes it in its destructor, once too often.
 */
#include <cufile.h>
#include <unistd.h>

__attribute__((visibility("default"))) extern int plugin_opened;
int plugin_opened;

static char memory[4096];

__attribute__((constructor)) static void begin(void)
{
	plugin_opened = !cuFileDriverOpen().err;
	/* long enough for another thread to want the loader's lock */
	usleep(30000);
	plugin_opened = plugin_opened &&
			!cuFileBufRegister(memory, sizeof(memory), 0).err &&
			!cuFileBufDeregister(memory).err;
}

__attribute__((destructor)) static void end(void)
{
	(void)cuFileDriverClose_v2();
	(void)cuFileDriverClose_v2();
}
