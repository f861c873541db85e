// SPDX-License-Identifier: Apache-2.0
/*
 * The alias path and children of a fork: a mapping is the parent's, and the
 * child neither ends it nor unmaps what it has at the same address.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "alias_world.h"

/* What a test has the system calls note. */
static void *dma_buf;
static size_t dma_buf_size;
static unsigned unmaps;

static int note_map(int fd, size_t size, void **mem)
{
	int err = cf_os_real.map_shared(fd, size, mem);

	if (!err && size >= AW_MEM_SIZE) {
		dma_buf = *mem;
		dma_buf_size = size;
	}
	return err;
}

static int note_unmap(void *mem, size_t size)
{
	unmaps += mem == dma_buf;
	return cf_os_real.unmap(mem, size);
}

/* Fails unless fn(w) is true in a child. */
static void in_a_child(struct aw_world *w, bool (*fn)(struct aw_world *w))
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		alarm(100);
		_exit(!fn(w));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool deregister_alone(struct aw_world *w)
{
	return !cuFileBufDeregister(w->mem.ptr).err &&
	       !atomic_load(&aw_provider.unmaps);
}

static bool close_alone(struct aw_world *w)
{
	return !cuFileDriverClose_v2().err && !atomic_load(&aw_provider.unmaps);
}

static void a_child_ends_no_mapping_of_its_parent(void **state)
{
	struct aw_world w;

	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	/* that of the memory it was tested with has ended */
	atomic_store(&aw_provider.maps, 1);
	atomic_store(&aw_provider.unmaps, 0);
	in_a_child(&w, deregister_alone);
	in_a_child(&w, close_alone);
	assert_true(aw_both_ways(&w) >= 6);
	aw_end(&w);
}

/* The address is free: something else may lie there. */
static bool deregister_beside(struct aw_world *w)
{
	void *own =
		mmap(dma_buf, dma_buf_size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return own == dma_buf && !cuFileBufDeregister(w->mem.ptr).err &&
	       !unmaps && !msync(own, dma_buf_size, MS_ASYNC);
}

static void a_child_does_not_get_what_the_driver_mapped(void **state)
{
	struct aw_world w;

	if (!getenv("FAKECUDA_VERSION"))
		th_skip("this driver maps nothing");
	if (th_emulated())
		th_skip("the emulator's children have all of it");
	aw_os.map_shared = note_map;
	aw_os.unmap = note_unmap;
	aw_begin(&w, AW_REFUSES, TH_ODIRECT);
	assert_non_null(dma_buf);
	in_a_child(&w, deregister_beside);
	(void)aw_both_ways(&w); /* it has it still */
	aw_end(&w);
	assert_int_equal(unmaps, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, aw_setup, aw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_child_ends_no_mapping_of_its_parent),
		TEST(a_child_does_not_get_what_the_driver_mapped),
	};

	th_start(60);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}
