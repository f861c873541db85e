// SPDX-License-Identifier: Apache-2.0
/*
 * consumer FILE - a stranger's program: includes the installed headers, links
 * to the installed library, and reads a file with it. Says which file the
 * library was loaded from and the bytes it read.
 */
#include <cufile.h>
#include <opencufile.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	ocf_config_t config = { .struct_size = sizeof(config) };
	static char bytes[64];
	CUfileHandle_t file;
	Dl_info where;
	ssize_t nr;

	descr.handle.fd = open(argc > 1 ? argv[1] : "", O_RDONLY);
	if (cuFileHandleRegister(&file, &descr).err)
		return 1;
	nr = cuFileRead(file, bytes, sizeof(bytes) - 1, 0, 0);
	cuFileHandleDeregister(file);
	if (nr < 0 || ocf_config_get(0, &config).err ||
	    !dladdr((void *)cuFileRead, &where))
		return 1;
	printf("%s\n%.*s\n", where.dli_fname, (int)nr, bytes);
	return 0;
}
