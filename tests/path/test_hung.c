// SPDX-License-Identifier: Apache-2.0
/*
 * A file whose server is away: whoever reads of it waits, and nobody else does,
 * however many wait. When the server is back their bytes come.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <linux/stat.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"

/* of those who wait each has its own part of the memory */
#define PARTS 8
#define PART TH_MIB
#define SIZE (PARTS * PART)
#define EACH (64 * TH_KIB)
#define NR ((unsigned)(PART / EACH)) /* entries of a batch */
#define SLOT TH_MIB
#define SOON_S 30
/* a hang of ours must end, or a failure would be one */
#define FUSE_S 60

static struct {
	pthread_mutex_t lock;
	pthread_cond_t back;
	int fd; /* whose server it is; or -1 */
	bool blown;
	atomic_int waiting;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .back = PTHREAD_COND_INITIALIZER,
	     .fd = -1 };

/* Asleep, as in the kernel: it takes no processor time. */
static void ask_server(int fd)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += FUSE_S;
	pthread_mutex_lock(&server.lock);
	atomic_fetch_add(&server.waiting, fd == server.fd);
	while (fd == server.fd && !server.blown)
		server.blown = pthread_cond_timedwait(&server.back,
						      &server.lock, &until);
	pthread_mutex_unlock(&server.lock);
}

static void server_goes(int fd)
{
	atomic_store(&server.waiting, 0);
	server.blown = false;
	server.fd = fd;
}

static void server_is_back(void)
{
	pthread_mutex_lock(&server.lock);
	server.fd = -1;
	pthread_cond_broadcast(&server.back);
	pthread_mutex_unlock(&server.lock);
}

static void wait_for_waiters(int nr)
{
	for (int ms = 0; atomic_load(&server.waiting) < nr; ms++) {
		assert_true(ms < SOON_S * 1000);
		th_sleep_ms(1);
	}
}

static ssize_t hung_pread(int fd, void *buf, size_t size, off_t off)
{
	ask_server(fd);
	return cf_os_real.pread(fd, buf, size, off);
}

static int hung_statx(int fd, unsigned mask, struct statx *stx)
{
	/* what is asked before each read the kernel remembers */
	if (mask != STATX_BASIC_STATS)
		ask_server(fd);
	return cf_os_real.statx(fd, mask, stx);
}

static int hung_open(const char *path, int flags, mode_t mode)
{
	const char *number = strstr(path, "self/fd/");

	if (number)
		ask_server(atoi(number + strlen("self/fd/")));
	return cf_os_real.open(path, flags, mode);
}

/* Of a file that was written to, any; not by the test itself. */
static atomic_bool closes_wait;
static _Thread_local bool is_test;

static int hung_close(int fd)
{
	if (!is_test && atomic_load(&closes_wait))
		ask_server(server.fd);
	return cf_os_real.close(fd);
}

static struct cf_os os;

static int setup(void **state)
{
	os = cf_os_real;
	os.pread = hung_pread;
	os.statx = hung_statx;
	os.open = hung_open;
	os.close = hung_close;
	is_test = true;
	cf_os = &os;
	return 0;
}

static int teardown(void **state)
{
	int err;

	server_is_back();
	err = th_teardown_close(state);
	cf_os = &cf_os_real;
	return err;
}

/* A file that hangs and one that does not. */
struct pairs {
	struct th_pair hung, good;
};

static void pairs_init(struct pairs *p)
{
	th_mem_need(TH_DEVICE);
	th_pair_make(&p->hung, TH_TMPFS, SIZE, 0);
	th_pair_make(&p->good, TH_TMPFS, SIZE, 0);
}

static void pairs_end(struct pairs *p)
{
	assert_false(server.blown);
	th_pair_end(&p->good);
	th_pair_end(&p->hung);
}

static void check(struct th_pair *p)
{
	th_mem_get(&p->mem, 0, p->got, SIZE);
	th_equal("memory", p->got, p->bytes, SIZE);
}

/* ---------------------------------------------------------------- batches */

static CUfileBatchHandle_t submit(struct th_pair *p, unsigned part)
{
	CUfileIOParams_t params[NR];
	CUfileBatchHandle_t batch;

	assert_int_equal(cuFileBatchIOSetUp(&batch, NR).err, 0);
	for (unsigned i = 0; i < NR; i++) {
		off_t at = (off_t)(part * PART + i * EACH);

		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = p->fh,
						.opcode = CUFILE_READ };
		params[i].u.batch.devPtr_base = p->mem.ptr;
		params[i].u.batch.devPtr_offset = at;
		params[i].u.batch.file_offset = at;
		params[i].u.batch.size = EACH;
	}
	assert_int_equal(cuFileBatchIOSubmit(batch, NR, params, 0).err, 0);
	return batch;
}

static void finish(CUfileBatchHandle_t batch)
{
	CUfileIOEvents_t events[NR];
	struct timespec soon = { .tv_sec = SOON_S };
	unsigned n = NR;

	assert_int_equal(
		cuFileBatchIOGetStatus(batch, NR, &n, events, &soon).err, 0);
	assert_int_equal(n, NR);
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(events[i].ret, EACH);
	cuFileBatchIODestroy(batch);
}

static void a_batch_is_done_beside_batches_that_wait(void **state)
{
	CUfileBatchHandle_t waiting[PARTS];
	struct pairs p;

	pairs_init(&p);
	server_goes(p.hung.file.fd);
	for (unsigned i = 0; i < PARTS; i++)
		waiting[i] = submit(&p.hung, i);
	wait_for_waiters(1);
	/* and those places stay filled */
	for (unsigned i = 0; i < PARTS; i++)
		finish(submit(&p.good, i));
	check(&p.good);
	server_is_back();
	for (unsigned i = 0; i < PARTS; i++)
		finish(waiting[i]);
	check(&p.hung);
	pairs_end(&p);
}

/* ---------------------------------------------------------------- streams */

struct read {
	CUstream stream;
	size_t size;
	off_t file_off, buf_off;
	ssize_t n;
};

static void begin(struct th_pair *p, struct read *r, size_t at, size_t size)
{
	*r = (struct read){ .size = size,
			    .file_off = (off_t)at,
			    .buf_off = (off_t)at,
			    .n = -9 };
	assert_int_equal(cuStreamCreate(&r->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	assert_int_equal(cuFileReadAsync(p->fh, p->mem.ptr, &r->size,
					 &r->file_off, &r->buf_off, &r->n,
					 r->stream)
				 .err,
			 0);
}

static void end(struct read *r)
{
	for (int ms = 0; cuStreamQuery(r->stream); ms++) {
		assert_true(ms < SOON_S * 1000);
		th_sleep_ms(1);
	}
	assert_int_equal(r->n, r->size);
	assert_int_equal(cuStreamDestroy(r->stream), 0);
}

static void a_stream_goes_on_beside_streams_that_wait(void **state)
{
	struct read waiting[PARTS], good;
	struct pairs p;

	pairs_init(&p);
	server_goes(p.hung.file.fd);
	for (unsigned i = 0; i < PARTS; i++)
		begin(&p.hung, &waiting[i], i * PART, PART);
	begin(&p.good, &good, 0, SIZE);
	end(&good);
	check(&p.good);
	server_is_back();
	for (unsigned i = 0; i < PARTS; i++)
		end(&waiting[i]);
	check(&p.hung);
	pairs_end(&p);
}

/* ------------------------------------------------------------------ slots */

struct readers {
	struct pairs pairs;
	struct th_bad bad;
};

static void read_part(struct readers *r, struct th_pair *p, unsigned i)
{
	off_t at = (off_t)(i * PART);
	ssize_t n = cuFileRead(p->fh, p->mem.ptr, PART, at, at);

	if (n != (ssize_t)PART)
		th_bad_note(&r->bad, "part %u: %zd", i, n);
}

/* By threads 0 to PARTS - 1 those parts, and by the last one all that is good.
 */
static void read_one(void *arg, unsigned i)
{
	struct readers *r = arg;
	uint64_t begun;

	if (i < PARTS) {
		read_part(r, &r->pairs.hung, i);
		return;
	}
	/* there are fewer slots than that */
	for (int ms = 0; ms < 1000 && atomic_load(&server.waiting) < PARTS;
	     ms++)
		th_sleep_ms(1);
	begun = th_now_ns();
	for (i = 0; i < PARTS; i++)
		read_part(r, &r->pairs.good, i);
	if (th_now_ns() - begun > UINT64_C(1000000000) * SOON_S)
		th_bad_note(&r->bad, "it waited for the others");
	server_is_back();
}

static void a_read_finds_a_slot_beside_reads_that_wait(void **state)
{
	struct readers r = { 0 };

	th_slots_of(SLOT);
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
			4 * SLOT / TH_KIB)
			.err,
		0);
	pairs_init(&r.pairs);
	server_goes(r.pairs.hung.file.fd);
	th_threads(PARTS + 1, read_one, &r);
	th_bad_check(&r.bad);
	check(&r.pairs.good);
	check(&r.pairs.hung);
	pairs_end(&r.pairs);
}

/* ---------------------------------------------------------------- handles */

struct late {
	int fd;
	CUfileHandle_t fh;
	CUfileError_t err;
	ssize_t n;
};

static void *register_late(void *arg)
{
	struct late *late = arg;
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = late->fd };

	late->err = cuFileHandleRegister(&late->fh, &descr);
	return NULL;
}

static void files_are_registered_beside_one_that_waits(void **state)
{
	struct th_file hung, good;
	struct late late;
	pthread_t thread;

	th_open();
	th_file_make(&hung, TH_TMPFS, O_RDWR, NULL, SIZE);
	th_file_make(&good, TH_TMPFS, O_RDWR, NULL, SIZE);
	server_goes(hung.fd);
	late.fd = hung.fd;
	assert_int_equal(pthread_create(&thread, NULL, register_late, &late),
			 0);
	wait_for_waiters(1);
	cuFileHandleDeregister(th_handle(good.fd));
	assert_false(server.blown);
	server_is_back();
	pthread_join(thread, NULL);
	assert_int_equal(late.err.err, 0);
	cuFileHandleDeregister(late.fh);
	th_file_end(&good);
	th_file_end(&hung);
	th_close();
}

static void *write_some(void *arg)
{
	struct late *late = arg;
	char bytes[100] = { 0 };

	late->n = cuFileWrite(late->fh, bytes, sizeof(bytes), 0, 0);
	return NULL;
}

#define NR_FILES 100

/* A write that is not aligned needs one where the first is O_DIRECT. */
static void descriptors_are_opened_beside_one_that_waits(void **state)
{
	struct th_file hung, good;
	struct late late, mine[NR_FILES];
	pthread_t thread;

	th_open();
	th_file_make(&hung, TH_ODIRECT, O_RDWR, NULL, SIZE);
	th_file_make(&good, TH_ODIRECT, O_RDWR, NULL, SIZE);
	late.fh = th_handle(hung.fd);
	for (unsigned i = 0; i < NR_FILES; i++) {
		mine[i].fd = dup(good.fd);
		mine[i].fh = th_handle(mine[i].fd);
	}
	server_goes(hung.fd);
	assert_int_equal(pthread_create(&thread, NULL, write_some, &late), 0);
	wait_for_waiters(1);
	for (unsigned i = 0; i < NR_FILES; i++) {
		write_some(&mine[i]);
		assert_int_equal(mine[i].n, 100);
	}
	assert_false(server.blown);
	server_is_back();
	pthread_join(thread, NULL);
	assert_int_equal(late.n, 100);
	cuFileHandleDeregister(late.fh);
	for (unsigned i = 0; i < NR_FILES; i++) {
		cuFileHandleDeregister(mine[i].fh);
		close(mine[i].fd);
	}
	th_file_end(&good);
	th_file_end(&hung);
	th_close();
}

static void *deregister_late(void *arg)
{
	cuFileHandleDeregister(((struct late *)arg)->fh);
	return NULL;
}

/* While the thread waits for a server that is away; then that is back. */
static void good_comes_and_goes(pthread_t waits, const struct th_file *good)
{
	wait_for_waiters(1);
	cuFileHandleDeregister(th_handle(good->fd));
	assert_false(server.blown);
	server_is_back();
	atomic_store(&closes_wait, false);
	pthread_join(waits, NULL);
}

/* The second descriptor of one is closed, which writes to its server. */
static void files_come_and_go_beside_one_whose_close_waits(void **state)
{
	struct th_file hung, good;
	struct late late;
	pthread_t thread;
	int fds;

	th_open();
	th_file_make(&hung, TH_ODIRECT, O_RDWR, NULL, SIZE);
	th_file_make(&good, TH_TMPFS, O_RDWR, NULL, SIZE);
	late.fh = th_handle(hung.fd);
	fds = th_count_fds();
	write_some(&late);
	assert_int_equal(th_count_fds(), fds + 1);
	server_goes(hung.fd);
	atomic_store(&closes_wait, true);
	assert_int_equal(pthread_create(&thread, NULL, deregister_late, &late),
			 0);
	good_comes_and_goes(thread, &good);
	assert_int_equal(th_count_fds(), fds);
	th_file_end(&good);
	th_file_end(&hung);
	th_close();
}

/*
 * It was closed without a deregister, and the next file has its number: whoever
 * registers that has its second descriptor closed first.
 */
static void files_are_registered_beside_one_that_is_replaced(void **state)
{
	struct th_file hung, good;
	struct late late;
	pthread_t thread;

	th_open();
	th_file_make(&hung, TH_ODIRECT, O_RDWR, NULL, SIZE);
	th_file_make(&good, TH_TMPFS, O_RDWR, NULL, SIZE);
	late.fd = hung.fd;
	late.fh = th_handle(hung.fd);
	write_some(&late);
	assert_int_equal(dup2(good.fd, hung.fd), hung.fd);
	server_goes(hung.plain);
	atomic_store(&closes_wait, true);
	assert_int_equal(pthread_create(&thread, NULL, register_late, &late),
			 0);
	good_comes_and_goes(thread, &good);
	assert_int_equal(late.err.err, 0);
	cuFileHandleDeregister(late.fh);
	th_file_end(&good);
	th_file_end(&hung);
	th_close();
}

static void *read_block(void *arg)
{
	static _Alignas(4096) char block[4096];
	struct late *late = arg;

	late->n = cuFileRead(late->fh, block, sizeof(block), 0, 0);
	return NULL;
}

/* Not by the test's own thread, whose closes never wait. */
static void *fork_one(void *arg)
{
	pid_t child = fork(), *pid = arg;

	if (!child)
		_exit(0);
	*pid = child;
	return NULL;
}

static bool ends_soon(pid_t pid)
{
	for (int ms = 0; ms < SOON_S * 1000; ms++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		th_sleep_ms(1);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return false;
}

/* The deregister waits for a read; in the child neither of them is. */
static void a_child_begins_beside_a_deregister_that_waits(void **state)
{
	pthread_t reader, deregisterer, forker;
	struct th_file hung;
	struct late late;
	pid_t pid = -1;

	th_open();
	th_file_make(&hung, TH_ODIRECT, O_RDWR, NULL, SIZE);
	late.fh = th_handle(hung.fd);
	write_some(&late);
	server_goes(hung.fd);
	assert_int_equal(pthread_create(&reader, NULL, read_block, &late), 0);
	wait_for_waiters(1);
	atomic_store(&closes_wait, true);
	assert_int_equal(
		pthread_create(&deregisterer, NULL, deregister_late, &late), 0);
	/* until it is known no more */
	while (cuFileRead(late.fh, &pid, 0, 0, 0) == 0)
		th_sleep_ms(1);
	assert_int_equal(pthread_create(&forker, NULL, fork_one, &pid), 0);
	pthread_join(forker, NULL);
	assert_true(ends_soon(pid));
	assert_false(server.blown);
	atomic_store(&closes_wait, false);
	server_is_back();
	pthread_join(reader, NULL);
	pthread_join(deregisterer, NULL);
	assert_int_equal(late.n, 4096);
	th_file_end(&hung);
	th_close();
}

#define BESIDE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BESIDE(a_batch_is_done_beside_batches_that_wait),
		BESIDE(a_stream_goes_on_beside_streams_that_wait),
		BESIDE(a_read_finds_a_slot_beside_reads_that_wait),
		BESIDE(files_are_registered_beside_one_that_waits),
		BESIDE(descriptors_are_opened_beside_one_that_waits),
		BESIDE(files_come_and_go_beside_one_whose_close_waits),
		BESIDE(files_are_registered_beside_one_that_is_replaced),
		BESIDE(a_child_begins_beside_a_deregister_that_waits),
	};

	th_start(240);
	return th_finish(
		cmocka_run_group_tests_name("hung", tests, NULL, NULL));
}
