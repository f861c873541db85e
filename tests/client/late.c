// SPDX-License-Identifier: Apache-2.0
/*
 * late - opens libcufile.so.0 itself, over and over.
 *
 *   late LIBRARY
 *
 * Nothing may happen at load time: no thread, no descriptor, no driver; and
 * a program may close the library as often as it opens it.
 */
#include "client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

static void *load(const char *path, int flags)
{
	void *lib = dlopen(path, flags);

	if (!lib)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(lib);
	return lib;
}

static void check_quiet_load(const char *path)
{
	int tasks = count_entries("/proc/self/task");
	int fds = count_entries("/proc/self/fd");
	void *lib;

	CHECK(!count_mapped("libcufile.so"));
	lib = load(path, RTLD_NOW | RTLD_LOCAL);
	CHECK(count_mapped("libcufile.so"));
	CHECK(count_entries("/proc/self/task") == tasks);
	CHECK(count_entries("/proc/self/fd") == fds);
	CHECK(!count_mapped("libcuda"));
	CHECK(!dlclose(lib));
	/* it stays: threads of ours may still be in it */
	CHECK(count_mapped("libcufile.so"));
}

static void use(void *lib)
{
	CUfileError_t (*driver_open)(void), (*driver_close)(void);
	CUfileError_t (*reg)(CUfileHandle_t * fh, CUfileDescr_t * descr);
	ssize_t (*rd)(CUfileHandle_t fh, void *buf, size_t size, off_t off,
		      off_t buf_off);
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh;
	char buf[16];

	*(void **)&driver_open = dlsym(lib, "cuFileDriverOpen");
	*(void **)&driver_close = dlsym(lib, "cuFileDriverClose");
	*(void **)&reg = dlsym(lib, "cuFileHandleRegister");
	*(void **)&rd = dlsym(lib, "cuFileRead");
	OK(driver_open());
	descr.handle.fd = open("/proc/self/exe", O_RDONLY);
	OK(reg(&fh, &descr));
	CHECK(rd(fh, buf, sizeof(buf), 0, 0) == sizeof(buf));
	CHECK(!memcmp(buf, "\177ELF", 4));
	close(descr.handle.fd);
	OK(driver_close());
}

int main(int argc, char **argv)
{
	static const int flags[] = {
		RTLD_LAZY | RTLD_LOCAL,
		RTLD_NOW | RTLD_GLOBAL,
		RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE,
	};

	CHECK(argc == 2);
	alarm(300);
	check_quiet_load(argv[1]);
	for (int i = 0; i < 60; i++) {
		void *lib = load(argv[1], flags[i % 3]);

		if (i % 2)
			use(lib);
		CHECK(!dlclose(lib));
	}
	/* as InstantTensor finds it again */
	CHECK(dlopen("libcufile.so.0", RTLD_LAZY | RTLD_NOLOAD));
	say_done();
	return 0;
}
