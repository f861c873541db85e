// SPDX-License-Identifier: Apache-2.0
/* alias_world - see alias_world.h. */
#include "alias_world.h"

#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------------------ a provider */

struct aw_provider aw_provider;

static int map(void *arg, int gpu, const void *device, size_t size, void **cpu)
{
	char *at = th_fake()->alias((CUdeviceptr)(uintptr_t)device, size);
	size_t in_page = (uintptr_t)device & (AW_BLOCK - 1);

	assert_ptr_equal(arg, &aw_provider);
	assert_int_equal(gpu, 0);
	if (!at || aw_provider.lie == AW_REFUSES)
		return -ENOTSUP;
	if (aw_provider.lie == AW_OTHER_MEMORY)
		at = (char *)aw_provider.other + in_page;
	else if (aw_provider.lie == AW_NO_MEMORY)
		at = (char *)(uintptr_t)(AW_BLOCK + in_page);
	else if (aw_provider.lie == AW_SHIFTED)
		at += 8;
	else if (aw_provider.lie == AW_NO_LAST_PAGE && size == AW_MEM_SIZE)
		at -= AW_BLOCK;
	atomic_fetch_add(&aw_provider.maps, 1);
	*cpu = at;
	return 0;
}

static void unmap(void *arg, void *cpu, size_t size)
{
	atomic_fetch_add(&aw_provider.unmaps, 1);
}

void aw_offer(enum aw_lie lie)
{
	const ocf_alias_provider_t by = { .struct_size = sizeof(by),
					  .arg = &aw_provider,
					  .map = map,
					  .unmap = unmap };

	aw_provider.lie = lie;
	assert_int_equal(ocf_alias_set_provider(&by).err, CU_FILE_SUCCESS);
}

/* --------------------------------------------- system calls that are seen */

struct cf_os aw_os;
atomic_uint aw_straight, aw_edges;
atomic_int aw_refusal;
atomic_size_t aw_before;
atomic_llong aw_from;
static struct cf_uring ring;
static uintptr_t from, to; /* where the alias is */

bool aw_is_alias(const void *buf)
{
	return (uintptr_t)buf >= from && (uintptr_t)buf < to;
}

/* Counts what meets the alias, and what of that is no whole blocks. */
static bool see(const void *buf, size_t size, off_t off)
{
	bool is = aw_is_alias(buf);

	atomic_fetch_add(&aw_straight, is);
	atomic_fetch_add(&aw_edges,
			 is && (((uintptr_t)buf | size | (size_t)off) & 511));
	return is;
}

/* How much of it is not refused. */
static size_t goes(const void *buf, size_t size, off_t off)
{
	size_t at = (size_t)off % (64 * TH_KIB), before = aw_before;

	if (!see(buf, size, off) || !atomic_load(&aw_refusal) || off < aw_from)
		return size;
	if (at >= before)
		return 0;
	return size < before - at ? size : before - at;
}

static ssize_t see_pread(int fd, void *buf, size_t size, off_t off)
{
	size_t some = goes(buf, size, off);

	return some ? cf_os_real.pread(fd, buf, some, off) : -aw_refusal;
}

static ssize_t see_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	size_t some = goes(buf, size, off);

	return some ? cf_os_real.pwrite(fd, buf, some, off) : -aw_refusal;
}

static bool see_queue(struct cf_kring *kring, bool write, int fd, void *mem,
		      size_t size, off_t off, uint64_t cookie)
{
	size_t some = goes(mem, size, off);

	/* EFAULT, and nothing moves */
	return cf_uring_real.queue(kring, write, fd, some ? mem : NULL,
				   some ? some : size, off, cookie);
}

static bool see_reap(struct cf_kring *kring, struct cf_uring_done *done)
{
	bool is = cf_uring_real.reap(kring, done);

	if (is && done->result == -EFAULT && atomic_load(&aw_refusal))
		done->result = -atomic_load(&aw_refusal);
	return is;
}

/* ---------------------------------------------------------------- set up */

int aw_setup(void **state)
{
	aw_os = cf_os_real;
	aw_os.pread = see_pread;
	aw_os.pwrite = see_pwrite;
	cf_os = &aw_os;
	ring = cf_uring_real;
	ring.queue = see_queue;
	ring.reap = see_reap;
	cf_uring = &ring;
	atomic_store(&aw_straight, 0);
	atomic_store(&aw_edges, 0);
	atomic_store(&aw_refusal, 0);
	atomic_store(&aw_before, 0);
	atomic_store(&aw_from, 0);
	atomic_store(&aw_provider.maps, 0);
	atomic_store(&aw_provider.unmaps, 0);
	return 0;
}

int aw_teardown(void **state)
{
	int err = th_teardown_close(state);

	ocf_alias_set_provider(NULL);
	unsetenv("OCF_ALIAS");
	unsetenv("OCF_PATH");
	cf_os = &cf_os_real;
	cf_uring = &cf_uring_real;
	return err;
}

void aw_register_memory(struct aw_world *w)
{
	from = (uintptr_t)th_fake()->alias((CUdeviceptr)(uintptr_t)w->mem.ptr,
					   w->mem.size);
	to = from + w->mem.size;
	assert_int_equal(cuFileBufRegister(w->mem.ptr, w->mem.size, 0).err,
			 CU_FILE_SUCCESS);
}

void aw_begin(struct aw_world *w, enum aw_lie lie, enum th_file_kind file_kind)
{
	th_need_fake();
	th_open_for(file_kind);
	aw_provider.other = mmap(NULL, AW_MEM_SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(aw_provider.other, MAP_FAILED);
	aw_offer(lie);
	w->content = th_bytes(AW_SIZE);
	w->got = malloc(AW_SIZE);
	assert_non_null(w->got);
	th_file_make(&w->file, file_kind, O_RDWR, w->content, AW_SIZE);
	th_mem_alloc(&w->mem, TH_DEVICE, AW_MEM_SIZE);
	/* without it the wrong memory may look the same */
	th_mem_put(&w->mem, 0, w->content, AW_SIZE);
	w->fh = th_handle(w->file.fd);
	aw_register_memory(w);
}

void aw_end(struct aw_world *w)
{
	cuFileHandleDeregister(w->fh);
	(void)cuFileBufDeregister(w->mem.ptr);
	assert_int_equal(atomic_load(&aw_provider.maps),
			 atomic_load(&aw_provider.unmaps));
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	munmap(aw_provider.other, AW_MEM_SIZE);
	free(w->content);
	free(w->got);
	th_close();
}

/* The path a request would take; *why: the alias's refusal, or NULL. */
const char *aw_path_of(struct aw_world *w, bool write, size_t size, off_t off,
		       off_t at, const char **why)
{
	static ocf_explain_t e;

	e.struct_size = sizeof(e);
	assert_int_equal((write ? ocf_explain_write : ocf_explain_read)(
				 w->fh, w->mem.ptr, size, off, at, &e)
				 .err,
			 0);
	*why = NULL;
	for (unsigned i = 0; i < e.nr_refusals; i++)
		if (!strcmp(e.refusals[i].path, "alias"))
			*why = e.refusals[i].reason;
	return e.path ? e.path : "none";
}

void aw_read_is_right(struct aw_world *w, size_t size, size_t off, size_t at)
{
	th_mem_set(&w->mem, 0xa5);
	assert_int_equal(
		cuFileRead(w->fh, w->mem.ptr, size, (off_t)off, (off_t)at),
		size);
	th_mem_get(&w->mem, at, w->got, size);
	th_equal("read", w->got, w->content + off, size);
	if (at) {
		th_mem_get(&w->mem, 0, w->got, at);
		th_all("before the read", w->got, 0xa5, at);
	}
	th_mem_get(&w->mem, at + size, w->got, AW_MEM_SIZE - AW_SIZE - at);
	th_all("behind the read", w->got, 0xa5, AW_MEM_SIZE - AW_SIZE - at);
}

void aw_write_is_right(struct aw_world *w, size_t size, size_t off, size_t at)
{
	th_fill(w->content + off, size);
	th_mem_put(&w->mem, at, w->content + off, size);
	assert_int_equal(
		cuFileWrite(w->fh, w->mem.ptr, size, (off_t)off, (off_t)at),
		size);
	assert_int_equal(th_file_size(&w->file), AW_SIZE);
	th_file_get(&w->file, 0, w->got, AW_SIZE);
	th_equal("the file", w->got, w->content, AW_SIZE);
}

/* Both ways, whole blocks and edges; whether any of it went straight. */
unsigned aw_both_ways(struct aw_world *w)
{
	atomic_store(&aw_straight, 0);
	aw_read_is_right(w, AW_SIZE, 0, 0);
	aw_read_is_right(w, 64 * TH_KIB, AW_BLOCK, AW_BLOCK);
	aw_read_is_right(w, 3 * TH_MIB - 700, 100, 100);
	aw_write_is_right(w, AW_SIZE, 0, 0);
	aw_write_is_right(w, 64 * TH_KIB, 3 * AW_BLOCK, AW_BLOCK);
	aw_write_is_right(w, 3 * TH_MIB - 700, 5000, 904);
	return atomic_load(&aw_straight);
}
