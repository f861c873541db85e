// SPDX-License-Identifier: Apache-2.0
/* spread - what is mapped is the handle's file, for this process alone. */
#include "core/spread.h"
#include "core/file_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/handle.h"
#include "engine/request.h"
#include "harness.h"
#include "seam/os.h"

#define SIZE (CF_SPREAD_FROM + 4096)

struct world {
	struct th_file file;
	CUfileHandle_t value;
	struct cf_piece piece;
};

static void world_make(struct world *w)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct cf_file_answer answer;

	th_file_make(&w->file, TH_TMPFS, O_RDWR, NULL, SIZE);
	descr.handle.fd = w->file.fd;
	cf_file_ask(&descr, &answer);
	assert_int_equal(cf_handle_register(&descr, &answer, false, &w->value),
			 0);
	w->piece = (struct cf_piece){ .op = CF_WRITE,
				      .handle = cf_handle_get(w->value),
				      .size = CF_SPREAD_FROM,
				      .file_off = 77 };
}

static void world_end(struct world *w)
{
	cf_handle_put(w->piece.handle);
	assert_int_equal(cf_handle_deregister(w->value), 0);
	th_file_end(&w->file);
}

static bool is_mapped(const struct world *w)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		found |= strstr(line, w->file.path) != NULL;
	if (maps)
		fclose(maps);
	return found;
}

static void a_child_has_no_page_of_it(void **state)
{
	struct cf_spread spread;
	struct world w;
	int status;
	pid_t pid;

	if (th_emulated())
		th_skip("the emulator's children have all of it");
	world_make(&w);
	assert_int_equal(cf_spread_join(&spread, &w.piece), 1);
	assert_true(cf_spread_begin(&spread, &w.piece));
	assert_true(is_mapped(&w));
	pid = th_fork();
	if (!pid)
		_exit(is_mapped(&w));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	cf_spread_end(&spread);
	assert_false(is_mapped(&w));
	world_end(&w);
}

/* Its number may name one by now that is no memory. */
static void another_file_is_not_mapped(void **state)
{
	struct th_file other;
	struct world w;

	world_make(&w);
	assert_true(cf_spread_can(&w.piece));
	w.piece.handle->dev ^= 1; /* numbers of files are a file system's */
	assert_false(cf_spread_can(&w.piece));
	w.piece.handle->dev ^= 1;
	th_file_make(&other, TH_TMPFS, O_RDWR, NULL, SIZE);
	assert_int_equal(dup2(other.fd, w.file.fd), w.file.fd);
	assert_false(cf_spread_can(&w.piece));
	th_file_end(&other);
	world_end(&w);
}

static void the_last_byte_of_a_file_is_within(void **state)
{
	struct world w;

	world_make(&w);
	w.piece.file_off = SIZE - CF_SPREAD_FROM;
	assert_true(cf_spread_can(&w.piece));
	w.piece.file_off++;
	assert_false(cf_spread_can(&w.piece));
	w.piece.file_off--;
	w.piece.size = CF_SPREAD_CROWD_FROM;
	assert_true(cf_spread_can(&w.piece));
	w.piece.size--;
	assert_false(cf_spread_can(&w.piece)); /* it is short */
	world_end(&w);
}

static void who_writes_a_file_is_counted(void **state)
{
	struct cf_spread spread[3];
	struct world w;

	world_make(&w);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(cf_spread_join(&spread[i], &w.piece), 1 + i);
	cf_spread_end(&spread[0]);
	assert_int_equal(cf_spread_join(&spread[0], &w.piece), 3);
	w.piece.op = CF_READ;
	assert_int_equal(cf_spread_join(&spread[1], &w.piece), 0);
	cf_spread_end(&spread[1]); /* it was none */
	w.piece.op = CF_WRITE;
	assert_int_equal(cf_spread_join(&spread[1], &w.piece), 4);
	/* those who wrote are not in a child */
	cf_requests_fork_child();
	assert_int_equal(cf_spread_join(&spread[0], &w.piece), 1);
	cf_spread_end(&spread[0]);
	world_end(&w);
}

/* ------------------------------------------------ a copy, and a write */

static struct cf_os os;
static ssize_t copies, writes; /* so much, or that error */
static size_t copied, written; /* that were to be */

static unsigned unmaps;

static int count_unmaps(void *mem, size_t size)
{
	(void)mem, (void)size;
	unmaps++;
	return 0;
}

static void who_has_mapped_nothing_unmaps_nothing(void **state)
{
	struct cf_spread spread;
	struct world w;

	(void)state;
	world_make(&w);
	os = cf_os_real;
	os.unmap = count_unmaps;
	cf_os = &os;
	memset(&spread, 0x5a, sizeof(spread));
	assert_int_equal(cf_spread_join(&spread, &w.piece), 1);
	cf_spread_end(&spread);
	cf_os = &cf_os_real;
	assert_int_equal(unmaps, 0);
	world_end(&w);
}

static ssize_t some_copy(void *mem, const void *buf, size_t size)
{
	copied = size;
	return copies;
}

static ssize_t some_write(int fd, const void *buf, size_t size, off_t off)
{
	written = size;
	return writes > (ssize_t)size ? (ssize_t)size : writes;
}

/* What the last part of the piece answers, of which a byte is written. */
static ssize_t last_part(struct world *w, ssize_t copy, ssize_t write)
{
	static const char bytes[8192];
	size_t at = w->piece.size - sizeof(bytes);

	copies = copy;
	writes = write;
	copied = written = 0;
	return cf_spread_write(&w->piece, bytes, sizeof(bytes),
			       w->piece.file_off + (off_t)at);
}

static void world_spread(struct world *w, struct cf_spread *spread)
{
	world_make(w);
	assert_int_equal(cf_spread_join(spread, &w->piece), 1);
	assert_true(cf_spread_begin(spread, &w->piece));
	w->piece.spread = spread;
	os = cf_os_real;
	os.copy_to = some_copy;
	os.pwrite = some_write;
	cf_os = &os;
}

static void world_end_spread(struct world *w, struct cf_spread *spread)
{
	cf_os = &cf_os_real;
	cf_spread_end(spread);
	world_end(w);
}

static void an_error_behind_some_bytes_tells_the_bytes(void **state)
{
	struct cf_spread spread;
	struct world w;

	world_spread(&w, &spread);
	assert_int_equal(last_part(&w, 8191, 8192), 8192);
	assert_int_equal(copied, 8191);
	assert_int_equal(written, 1);
	assert_int_equal(last_part(&w, 1000, 8192), 8192);
	assert_int_equal(written, 7192);
	assert_int_equal(last_part(&w, 1000, -ENOSPC), 1000);
	assert_int_equal(last_part(&w, -EFAULT, -ENOSPC), -ENOSPC);
	assert_int_equal(written, 8192);
	world_end_spread(&w, &spread);
}

/* The last test: none is begun any more. */
static void who_may_not_copy_asks_once(void **state)
{
	struct cf_spread spread;
	struct world w;

	world_spread(&w, &spread);
	assert_int_equal(last_part(&w, -EFAULT, 8192), 8192);
	assert_true(cf_spread_can(&w.piece));
	assert_int_equal(last_part(&w, -EPERM, 8192), 8192);
	assert_false(cf_spread_can(&w.piece));
	world_end_spread(&w, &spread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_has_no_page_of_it),
		cmocka_unit_test(another_file_is_not_mapped),
		cmocka_unit_test(the_last_byte_of_a_file_is_within),
		cmocka_unit_test(who_writes_a_file_is_counted),
		cmocka_unit_test(who_has_mapped_nothing_unmaps_nothing),
		cmocka_unit_test(an_error_behind_some_bytes_tells_the_bytes),
		cmocka_unit_test(who_may_not_copy_asks_once),
	};

	th_start(30);
	return th_finish(
		cmocka_run_group_tests_name("spread", tests, NULL, NULL));
}
