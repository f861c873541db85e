// SPDX-License-Identifier: Apache-2.0
/* common - see common.h. */
#include "common.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "seam/os.h"

void rig_begin(struct rig *r, size_t size)
{
	*r = (struct rig){ .size = size };
	r->bytes = th_bytes(size);
	r->gpu = th_bytes(size);
	th_file_make(&r->file, TH_ODIRECT, O_RDWR, r->bytes, size);
	th_mem_alloc(&r->mem, TH_DEVICE, size);
	th_mem_put(&r->mem, 0, r->gpu, size);
	th_open();
	assert_int_equal(cuFileBufRegister(r->mem.ptr, size, 0).err, 0);
	r->fh = th_handle(r->file.fd);
}

void rig_end(struct rig *r)
{
	cuFileHandleDeregister(r->fh);
	assert_int_equal(cuFileBufDeregister(r->mem.ptr).err, 0);
	th_close();
	th_mem_free(&r->mem);
	th_file_end(&r->file);
	free(r->bytes);
	free(r->gpu);
}

void rig_check(struct rig *r, const char *what)
{
	unsigned char *got = malloc(r->size);

	th_mem_get(&r->mem, 0, got, r->size);
	th_equal(what, got, r->gpu, r->size);
	th_file_get(&r->file, 0, got, r->size);
	th_equal(what, got, r->bytes, r->size);
	free(got);
}

void rig_read(struct rig *r, size_t size, off_t off, size_t at, ssize_t want)
{
	char what[80];

	assert_int_equal(cuFileRead(r->fh, r->mem.ptr, size, off, (off_t)at),
			 want);
	memcpy(r->gpu + at, r->bytes + off, (size_t)want);
	snprintf(what, sizeof(what), "after a read of %zu from %lld to %zu",
		 size, (long long)off, at);
	rig_check(r, what);
}

void rig_write(struct rig *r, size_t size, off_t off, size_t at, ssize_t want)
{
	char what[80];

	assert_int_equal(cuFileWrite(r->fh, r->mem.ptr, size, off, (off_t)at),
			 want);
	memcpy(r->bytes + off, r->gpu + at, (size_t)want);
	snprintf(what, sizeof(what), "after a write of %zu to %lld from %zu",
		 size, (long long)off, at);
	rig_check(r, what);
}

const char *rig_why(struct rig *r, size_t size, off_t off, size_t at)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };

	assert_int_equal(
		ocf_explain_read(r->fh, r->mem.ptr, size, off, (off_t)at, &e)
			.err,
		0);
	assert_non_null(e.path);
	if (!strcmp(e.path, "nvfs"))
		return NULL;
	for (unsigned i = 0; i < e.nr_refusals; i++)
		if (!strcmp(e.refusals[i].path, "nvfs"))
			return e.refusals[i].reason;
	fail_msg("nothing is said of nvfs");
	return NULL;
}

int rig_teardown(void **state)
{
	(void)state;
	th_close();
	cf_os = &cf_os_real;
	return 0;
}
