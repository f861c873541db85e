// SPDX-License-Identifier: Apache-2.0
/*
 * rm - a mapping is the memory, whole and nothing else; a driver that refuses
 * any step, or that knows another form of it, leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/log.h"
#include "core/rm.h"
#include "fake_rm.h"
#include "harness.h"
#include "seam/os.h"

#define SIZE (4 * TH_MIB)
#define PAGE ((size_t)4096)
#define EDGE ((size_t)64)
#define ADDRESS "0000:01:00.0"

/* ---------------------------------------------------- memory, exported */

struct memory {
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	int fd;
	unsigned char *bytes; /* what it holds */
	unsigned char *got;
};

/* In any thread: the answer is of the driver, or of malloc. */
static bool memory_make(struct memory *m)
{
	CUmemAllocationProp prop = {
		.type = CF_CU_MEM_ALLOCATION_PINNED,
		.requestedHandleTypes = CF_CU_MEM_HANDLE_FD,
		.location = { .type = CF_CU_MEM_LOCATION_DEVICE },
	};
	CUmemAccessDesc access = { .location = prop.location,
				   .flags = CF_CU_MEM_ACCESS_READWRITE };

	m->bytes = malloc(SIZE);
	m->got = malloc(SIZE);
	if (!m->bytes || !m->got)
		return false;
	th_fill(m->bytes, SIZE);
	return !cuMemCreate(&m->handle, SIZE, &prop, 0) &&
	       !cuMemAddressReserve(&m->at, SIZE, 0, 0, 0) &&
	       !cuMemMap(m->at, SIZE, 0, m->handle, 0) &&
	       !cuMemSetAccess(m->at, SIZE, &access, 1) &&
	       !cuMemExportToShareableHandle(&m->fd, m->handle,
					     CF_CU_MEM_HANDLE_FD, 0) &&
	       !th_fake()->write(m->at, m->bytes, SIZE);
}

static bool memory_end(struct memory *m)
{
	close(m->fd);
	free(m->bytes);
	free(m->got);
	return !cuMemUnmap(m->at, SIZE) && !cuMemAddressFree(m->at, SIZE) &&
	       !cuMemRelease(m->handle);
}

/* All of it is what it should be. */
static bool memory_is_right(struct memory *m)
{
	return !th_fake()->read(m->at, m->got, SIZE) &&
	       !memcmp(m->got, m->bytes, SIZE);
}

/* Fresh bytes of the CPU, at a place of the mapping. */
static void write_mapped(const struct cf_rm_map *map, struct memory *m,
			 size_t at, size_t n)
{
	th_fill(m->bytes + at, n);
	memcpy(map->mem + at, m->bytes + at, n);
}

/* Fresh bytes of the GPU. */
static void write_memory(struct memory *m, size_t at, size_t n)
{
	th_fill(m->bytes + at, n);
	assert_int_equal(th_fake()->write(m->at + at, m->bytes + at, n), 0);
}

/* ------------------------------------------------------------ the log */

static unsigned nr_lines;
static char last_line[256];

void __wrap_cf_log_write(enum cf_log_level level, const char *file, int line,
			 const char *fmt, ...);
void __wrap_cf_log_write(enum cf_log_level level, const char *file, int line,
			 const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(last_line, sizeof(last_line), fmt, args);
	va_end(args);
	nr_lines++;
}

/* ------------------------------------------------------------ a machine */

static int fds; /* that were open */

static void nothing_is_there(const struct cf_rm_map *map)
{
	assert_null(map->mem);
	assert_false(map->client.made);
	assert_int_equal(fake_rm_descriptors(), 0);
	assert_int_equal(fake_rm_clients(), 0);
	assert_int_equal(fake_rm_maps(), 0);
	assert_int_equal(th_count_fds(), fds);
}

static int setup(void **state)
{
	static struct memory m;

	th_need_fake();
	fake_rm_begin();
	nr_lines = 0;
	atomic_store(&cf_log_threshold, CF_LOG_INFO);
	assert_true(memory_make(&m));
	fds = th_count_fds();
	*state = &m;
	return 0;
}

static int teardown(void **state)
{
	atomic_store(&cf_log_threshold, -1);
	assert_true(memory_end(*state));
	fake_rm_end();
	return 0;
}

static void map_is_had(struct memory *m, const char *address)
{
	struct cf_rm_map map;

	assert_int_equal(cf_rm_map(m->fd, address, SIZE, &map), 0);
	th_equal("mapped", map.mem, m->bytes, SIZE);
	assert_int_equal(fake_rm_maps(), 1);
	cf_rm_unmap(&map);
	nothing_is_there(&map);
}

static void map_is_refused(struct memory *m, size_t size, const char *step)
{
	struct cf_rm_map map;

	nr_lines = 0;
	assert_true(cf_rm_map(m->fd, ADDRESS, size, &map) < 0);
	nothing_is_there(&map);
	assert_int_equal(nr_lines, 1);
	if (strncmp(last_line, step, strlen(step)))
		fail_msg("\"%s\" is not of \"%s\"", last_line, step);
	cf_rm_unmap(&map);
	nothing_is_there(&map);
}

/* ---------------------------------------------------------- well and so */

static void a_mapping_is_the_memory_both_ways(void **state)
{
	static const size_t places[] = { 0,	      EDGE,
					 PAGE - EDGE, PAGE,
					 SIZE / 2,    SIZE - PAGE - EDGE,
					 SIZE - EDGE };
	struct memory *m = *state;
	struct cf_rm_map map;

	assert_int_equal(cf_rm_map(m->fd, ADDRESS, SIZE, &map), 0);
	assert_int_equal(map.size, SIZE);
	th_equal("as it was", map.mem, m->bytes, SIZE);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		write_mapped(&map, m, places[i], EDGE);
		assert_true(memory_is_right(m));
		write_memory(m, places[i] ^ EDGE, EDGE);
		th_equal("mapped", map.mem, m->bytes, SIZE);
	}
	write_mapped(&map, m, 0, SIZE);
	assert_true(memory_is_right(m));
	cf_rm_unmap(&map);
	nothing_is_there(&map);
	assert_true(memory_is_right(m));
}

static void memory_beside_it_is_not_touched(void **state)
{
	struct memory *m = *state, before, behind;
	struct cf_rm_map map, other;

	assert_true(memory_make(&before));
	assert_true(memory_make(&behind));
	assert_int_equal(cf_rm_map(m->fd, ADDRESS, SIZE, &map), 0);
	assert_int_equal(cf_rm_map(behind.fd, ADDRESS, SIZE, &other), 0);
	write_mapped(&map, m, 0, SIZE);
	write_mapped(&other, &behind, SIZE - EDGE, EDGE);
	assert_true(memory_is_right(&before));
	assert_true(memory_is_right(m));
	assert_true(memory_is_right(&behind));
	assert_int_equal(fake_rm_clients(), 2);
	cf_rm_unmap(&map);
	th_equal("the other", other.mem, behind.bytes, SIZE);
	cf_rm_unmap(&other);
	assert_true(memory_end(&before));
	assert_true(memory_end(&behind));
}

static void the_first_part_of_memory_can_be_mapped(void **state)
{
	struct memory *m = *state;
	struct cf_rm_map map;

	assert_int_equal(cf_rm_map(m->fd, ADDRESS, SIZE - PAGE, &map), 0);
	th_equal("mapped", map.mem, m->bytes, SIZE - PAGE);
	cf_rm_unmap(&map);
	nothing_is_there(&map);
}

/* Another descriptor of it is the driver's own, from the import on. */
static void a_mapping_outlives_the_descriptor_that_it_came_by(void **state)
{
	struct memory *m = *state;
	struct cf_rm_map map;
	int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);

	assert_int_equal(cf_rm_map(fd, ADDRESS, SIZE, &map), 0);
	close(fd);
	write_memory(m, SIZE - EDGE, EDGE);
	th_equal("mapped", map.mem, m->bytes, SIZE);
	write_mapped(&map, m, 0, EDGE);
	assert_true(memory_is_right(m));
	cf_rm_unmap(&map);
	nothing_is_there(&map);
}

/* A client that closes what is not its own does not hit them. */
static void its_descriptors_are_high_and_not_for_children(void **state)
{
	struct memory *m = *state;
	struct cf_rm_map map;

	assert_int_equal(cf_rm_map(m->fd, ADDRESS, SIZE, &map), 0);
	assert_int_equal(fake_rm_descriptors(), 2);
	assert_true(map.client.ctl >= 500 && map.client.node >= 500);
	assert_true(fcntl(map.client.ctl, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(map.client.node, F_GETFD) & FD_CLOEXEC);
	cf_rm_unmap(&map);
	nothing_is_there(&map);
}

static void to_unmap_twice_is_harmless(void **state)
{
	struct memory *m = *state;
	struct cf_rm_map map;
	struct stat st;

	assert_int_equal(cf_rm_map(m->fd, ADDRESS, SIZE, &map), 0);
	cf_rm_unmap(&map);
	nothing_is_there(&map);
	assert_int_equal(map.size, 0);
	cf_rm_unmap(&map);
	nothing_is_there(&map);
	assert_int_equal(fstat(STDIN_FILENO, &st), 0);
}

/* ------------------------------------------------------ other machines */

static void a_driver_535_is_asked_in_its_own_form(void **state)
{
	fake_rm.is_535 = true;
	map_is_had(*state, ADDRESS);
	assert_int_equal(fake_rm_asked(FAKE_RM_INFO), 2);
	/* the first form's refusal is nothing to tell */
	assert_int_equal(nr_lines, 0);
}

static void a_driver_of_today_is_asked_once(void **state)
{
	map_is_had(*state, ADDRESS);
	for (int step = 0; step <= FAKE_RM_SHOW; step++)
		assert_int_equal(fake_rm_asked((enum fake_rm_step)step), 1);
}

static void the_node_is_the_one_of_its_minor(void **state)
{
	fake_rm.minor = 3;
	map_is_had(*state, ADDRESS);
}

static void an_address_may_be_in_capitals(void **state)
{
	fake_rm.address = "0000:c1:00.0";
	map_is_had(*state, "0000:C1:00.0");
	fake_rm.address = "00ab:cd:1e.0";
	map_is_had(*state, "00AB:cd:1E.0");
}

static void a_gpu_that_is_not_there_has_no_mapping(void **state)
{
	fake_rm.address = "0000:02:00.0";
	map_is_refused(*state, SIZE, "rm information:");
}

static void a_file_without_a_minor_is_no_node(void **state)
{
	static const char *const lines[] = { "", "Device Minor: \t N/A\n",
					     "Device Minor: \t -1\n" };

	for (int i = 0; i < 3; i++) {
		fake_rm.minor_line = lines[i];
		map_is_refused(*state, SIZE, "rm minor:");
	}
	assert_int_equal(fake_rm_asked(FAKE_RM_NODE), 0);
}

static void memory_that_is_no_gpu_s_is_refused(void **state)
{
	fake_rm.type = 2; /* the CPU's */
	map_is_refused(*state, SIZE, "rm import of a GPU's memory:");
	fake_rm.type = 0; /* there was none */
	map_is_refused(*state, SIZE, "rm import of a GPU's memory:");
	assert_int_equal(fake_rm_asked(FAKE_RM_MAP), 0);
}

/* ----------------------------------------------------------- refusals */

static const char *const names[] = {
	[FAKE_RM_CTL] = "rm /dev/nvidiactl:",
	[FAKE_RM_CLIENT] = "rm client:",
	[FAKE_RM_INFO] = "rm export info:",
	[FAKE_RM_DEVICE] = "rm device:",
	[FAKE_RM_IMPORT] = "rm import:",
	[FAKE_RM_PROC] = "rm information:",
	[FAKE_RM_NODE] = "rm /dev/nvidia0:",
	[FAKE_RM_REGISTER] = "rm register:",
	[FAKE_RM_MAP] = "rm map:",
	[FAKE_RM_SHOW] = "rm mapping of the node:",
};

static void refuse_each_step(struct memory *m, int first, int last, int with)
{
	for (int step = first; step <= last; step++) {
		fake_rm.refusal[step] = with;
		map_is_refused(m, SIZE, names[step]);
		fake_rm.refusal[step] = 0;
	}
	map_is_had(m, ADDRESS);
}

static void a_step_that_fails_leaves_nothing_open(void **state)
{
	refuse_each_step(*state, 0, FAKE_RM_SHOW, -ENOENT);
	refuse_each_step(*state, 0, FAKE_RM_SHOW, -EACCES);
	refuse_each_step(*state, 0, FAKE_RM_SHOW, -EINVAL);
}

static void a_step_that_is_refused_leaves_nothing_open(void **state)
{
	static const int statuses[] = { 0x1b, 0x1f, 0x56, 0x57, 0xffff };

	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		refuse_each_step(*state, FAKE_RM_CLIENT, FAKE_RM_DEVICE,
				 statuses[i]);
		refuse_each_step(*state, FAKE_RM_REGISTER, FAKE_RM_MAP,
				 statuses[i]);
	}
}

static void no_more_than_the_memory_is_mapped(void **state)
{
	map_is_refused(*state, 0, "rm map:");
	map_is_refused(*state, SIZE + 1, "rm map:");
	map_is_refused(*state, SIZE + PAGE, "rm map:");
	map_is_refused(*state, 2 * SIZE, "rm map:");
	map_is_refused(*state, SIZE_MAX, "rm map:");
	map_is_had(*state, ADDRESS);
}

static void what_was_not_exported_is_refused(void **state)
{
	struct memory m = { .fd = open("/dev/zero", O_RDWR | O_CLOEXEC) };

	(void)state;
	fds++;
	map_is_refused(&m, SIZE, "rm export info:");
	close(m.fd);
	fds--;
	map_is_refused(&m, SIZE, "rm export info:");
	m.fd = -1;
	map_is_refused(&m, SIZE, "rm export info:");
}

static int dup_never(int fd, int lowest)
{
	return -EMFILE;
}

static void where_numbers_are_few_it_stays_where_it_is(void **state)
{
	static struct cf_os few;
	const struct cf_os *was = cf_os;

	few = *cf_os;
	few.dup_above = dup_never;
	cf_os = &few;
	map_is_had(*state, ADDRESS);
	cf_os = was;
}

/* ------------------------------------------------------------- threads */

struct side {
	struct memory own, *shared;
	struct th_bad *bad;
};

/* What all look at nobody writes. */
static bool map_shows(struct memory *m, bool writes)
{
	struct cf_rm_map map;
	bool is_right;

	if (cf_rm_map(m->fd, ADDRESS, SIZE, &map))
		return false;
	is_right = !memcmp(map.mem, m->bytes, SIZE);
	if (writes) {
		write_mapped(&map, m, th_below(SIZE - EDGE), EDGE);
		is_right &= memory_is_right(m);
	}
	cf_rm_unmap(&map);
	return is_right;
}

static void map_and_unmap(void *arg, unsigned i)
{
	struct side *side = (struct side *)arg + i;

	for (int round = 0; round < TH_SCALE(40); round++)
		if (!map_shows(&side->own, true) ||
		    !map_shows(side->shared, false))
			th_bad_note(side->bad, "thread %u", i);
}

static void threads_map_beside_each_other(void **state)
{
	static struct th_bad bad;
	static struct side sides[2];
	const struct cf_rm_map none = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		sides[i].shared = *state;
		sides[i].bad = &bad;
		assert_true(memory_make(&sides[i].own));
	}
	fds = th_count_fds();
	th_threads(2, map_and_unmap, sides);
	th_bad_check(&bad);
	nothing_is_there(&none);
	for (unsigned i = 0; i < 2; i++)
		assert_true(memory_end(&sides[i].own));
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_mapping_is_the_memory_both_ways),
		test(memory_beside_it_is_not_touched),
		test(the_first_part_of_memory_can_be_mapped),
		test(a_mapping_outlives_the_descriptor_that_it_came_by),
		test(its_descriptors_are_high_and_not_for_children),
		test(to_unmap_twice_is_harmless),
		test(a_driver_535_is_asked_in_its_own_form),
		test(a_driver_of_today_is_asked_once),
		test(the_node_is_the_one_of_its_minor),
		test(an_address_may_be_in_capitals),
		test(a_gpu_that_is_not_there_has_no_mapping),
		test(a_file_without_a_minor_is_no_node),
		test(memory_that_is_no_gpu_s_is_refused),
		test(a_step_that_fails_leaves_nothing_open),
		test(a_step_that_is_refused_leaves_nothing_open),
		test(no_more_than_the_memory_is_mapped),
		test(what_was_not_exported_is_refused),
		test(where_numbers_are_few_it_stays_where_it_is),
		test(threads_map_beside_each_other),
	};

	th_start(60);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}
