// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "seam/os.h"
#include "spread_world.h"

static struct cf_os os;
_Atomic unsigned mapped, copied, written;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int cut; /* lock, while copies run */
size_t most_copied;
int map_err, copy_err, write_err;

static int count_map(int fd, off_t off, size_t size, void **mem)
{
	atomic_fetch_add(&mapped, 1);
	return map_err ? map_err : cf_os_real.map_to_write(fd, off, size, mem);
}

static ssize_t count_copy(void *mem, const void *buf, size_t size)
{
	atomic_fetch_add(&copied, 1);
	pthread_mutex_lock(&lock);
	if (cut >= 0 && ftruncate(cut, 0))
		abort();
	cut = -1;
	pthread_mutex_unlock(&lock);
	if (copy_err)
		return copy_err;
	return cf_os_real.copy_to(mem, buf,
				  size < most_copied ? size : most_copied);
}

static ssize_t count_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	atomic_fetch_add(&written, 1);
	return write_err ? write_err : cf_os_real.pwrite(fd, buf, size, off);
}

int setup(void **state)
{
	os = cf_os_real;
	os.map_to_write = count_map;
	os.copy_to = count_copy;
	os.pwrite = count_pwrite;
	cf_os = &os;
	mapped = copied = written = 0;
	cut = -1;
	most_copied = SIZE_MAX;
	map_err = copy_err = write_err = 0;
	return 0;
}

int teardown(void **state)
{
	int err = th_teardown_close(state);

	cf_os = &cf_os_real;
	return err;
}

void world_of(struct world *w, enum th_mem_kind mem, size_t workers)
{
	if (th_emulated())
		th_skip("the emulator has no process_vm_writev");
	th_mem_need(mem);
	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, workers)
				 .err,
			 0);
	th_open();
	w->model = th_bytes(SIZE);
	w->got = malloc(SIZE);
	assert_non_null(w->got);
	th_file_make(&w->file, TH_TMPFS, O_RDWR, w->model, SIZE);
	th_mem_alloc(&w->mem, mem, SIZE);
	w->fh = th_handle(w->file.fd);
}

void world_make(struct world *w, enum th_mem_kind mem)
{
	world_of(w, mem, 7);
}

void world_end(struct world *w)
{
	cuFileHandleDeregister(w->fh);
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->model);
	free(w->got);
	th_close();
}

ssize_t write_new(struct world *w, size_t off, size_t size, size_t at)
{
	th_fill(w->model + off, size);
	th_mem_put(&w->mem, at, w->model + off, size);
	return cuFileWrite(w->fh, w->mem.ptr, size, (off_t)off, (off_t)at);
}

void check_file(const struct world *w)
{
	assert_int_equal(th_file_size(&w->file), SIZE);
	th_file_get(&w->file, 0, w->got, SIZE);
	th_equal("file", w->got, w->model, SIZE);
}
