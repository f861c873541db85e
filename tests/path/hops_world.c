// SPDX-License-Identifier: Apache-2.0
/* hops_world - see hops_world.h. */
#include "hops_world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM 64
#define APERTURE (2 * TH_MIB)
#define MARGIN ((size_t)64) /* of canaries behind */

struct hops_world hw;
struct cf_os hw_os;
atomic_int hw_refusal;
atomic_uint hw_near_reads;
atomic_uint hw_nap_ms;

static _Atomic uintptr_t aperture; /* the last that was mapped */

/* --------------------------------------------------------- system calls */

static int made_clock(clockid_t id, struct timespec *ts)
{
	int err = th_clock(id, ts);

	if (atomic_load(&hw_nap_ms))
		th_sleep_ms(atomic_load(&hw_nap_ms));
	return err;
}

void hw_pass_time(void)
{
	atomic_fetch_add(&th_clock_ns, 10 * (int64_t)1000000000);
}

void hw_pass_us(unsigned us)
{
	atomic_fetch_add(&th_clock_ns, us * (int64_t)1000);
}

static int note_map(int fd, size_t size, void **mem)
{
	int err = cf_os_real.map_shared(fd, size, mem);

	if (!err && size == APERTURE)
		atomic_store(&aperture, (uintptr_t)*mem);
	return err;
}

bool hw_is_near(const void *mem)
{
	uintptr_t from = atomic_load(&aperture);

	return from && (uintptr_t)mem - from < APERTURE;
}

static ssize_t see_pread(int fd, void *buf, size_t size, off_t off)
{
	bool near = hw_is_near(buf);

	atomic_fetch_add(&hw_near_reads, near);
	if (near && atomic_load(&hw_refusal))
		return -atomic_load(&hw_refusal);
	return cf_os_real.pread(fd, buf, size, off);
}

/* ---------------------------------------------------------------- world */

void hw_start(unsigned watchdog_s)
{
	setenv("FAKECUDA_VERSION", "13030", 0);
	th_start(watchdog_s);
}

void hw_begin(unsigned threads, enum th_file_kind kind,
	      enum th_mem_kind mem_kind)
{
	th_need_gpu();
	th_mem_need(mem_kind);
	hw_os = cf_os_real;
	hw_os.clock_gettime = made_clock;
	hw_os.map_shared = note_map;
	hw_os.pread = see_pread;
	atomic_store(&aperture, 0);
	atomic_store(&hw_refusal, 0);
	atomic_store(&hw_near_reads, 0);
	atomic_store(&th_clock_look_ns, 0);
	if (th_fake())
		cf_os = &hw_os;
	th_open_for(kind);
	hw.threads = threads;
	hw.bytes = th_bytes(threads * HW_SPAN);
	th_file_make(&hw.file, kind, O_RDWR, hw.bytes, threads * HW_SPAN);
	th_mem_alloc(&hw.mem, mem_kind, threads * HW_SPAN);
	hw.fh = th_handle(hw.file.fd);
}

void hw_end(void)
{
	cuFileHandleDeregister(hw.fh);
	th_mem_free(&hw.mem);
	th_file_end(&hw.file);
	free(hw.bytes);
	th_close();
	cf_os = &cf_os_real;
}

/* ---------------------------------------------------------------- reads */

/* Of each thread its own. */
static void renew(unsigned thread, size_t at, size_t size)
{
	size_t from = thread * HW_SPAN + at;

	if (at >= HW_SPAN)
		return;
	if (size > HW_SPAN - at)
		size = HW_SPAN - at;
	th_fill(hw.bytes + from, size);
	th_file_put(&hw.file, (off_t)from, hw.bytes + from, size);
}

static void compare(struct th_bad *bad, const unsigned char *got,
		    const unsigned char *want, size_t size, const char *what)
{
	for (size_t i = 0; i < size; i++)
		if (got[i] != want[i]) {
			th_bad_note(bad, "%s: byte %zu of %zu", what, i, size);
			return;
		}
}

void hw_read(struct th_bad *bad, unsigned thread, size_t size, size_t file_off,
	     size_t mem_off)
{
	size_t from = thread * HW_SPAN + file_off;
	size_t end = hw.threads * HW_SPAN;
	size_t at = thread * HW_SPAN, span = mem_off + size + MARGIN;
	ssize_t n = (ssize_t)(from >= end	? 0 :
			      size < end - from ? size :
						  end - from);
	unsigned char *want = th_same(HW_CANARY, span), *got = malloc(span);
	char what[96];
	ssize_t res;

	th_mem_put(&hw.mem, at, want, span);
	renew(thread, file_off, size);
	memcpy(want + mem_off, hw.bytes + from, (size_t)n);
	res = cuFileRead(hw.fh, hw.mem.ptr, size, (off_t)from,
			 (off_t)(at + mem_off));
	snprintf(what, sizeof(what), "size %zu file +%zu memory +%zu: %zd",
		 size, file_off, mem_off, res);
	if (res != n)
		th_bad_note(bad, "%s", what);
	th_mem_get(&hw.mem, at, got, span);
	compare(bad, got, want, span, what);
	free(want);
	free(got);
}

void hw_warm_up(void)
{
	unsigned char got[64];

	for (int i = 0; i < WARM; i++)
		assert_int_equal(cuFileRead(hw.fh, hw.mem.ptr, 4096, 0, 0),
				 4096);
	th_mem_get(&hw.mem, 0, got, sizeof(got));
	assert_memory_equal(got, hw.bytes, sizeof(got));
}

unsigned long hw_parts(size_t size, size_t file_off)
{
	size_t first = HW_STEP - file_off % 4096;

	return size <= first ? 1 : 1 + (size - first + HW_STEP - 1) / HW_STEP;
}

unsigned long hw_orders(size_t size, size_t file_off, size_t mem_off)
{
	unsigned long orders = th_shuttle_orders();
	struct th_bad bad = { 0 };

	hw_read(&bad, 0, size, file_off, mem_off);
	th_bad_check(&bad);
	return th_shuttle_orders() - orders;
}

/* On a busy machine launches may look as if they waited for their end, and then
 * it rests. */
void hw_read_near(size_t size, size_t file_off, size_t mem_off)
{
	unsigned long want = hw_parts(size, file_off), orders = 0;

	for (int i = 0; i < 4 && orders != want; i++) {
		if (i) {
			hw_pass_time();
			hw_warm_up();
		}
		orders = hw_orders(size, file_off, mem_off);
	}
	if (th_fake())
		assert_int_equal(orders, want);
}

void hw_read_far(size_t size, size_t file_off, size_t mem_off)
{
	assert_int_equal(hw_orders(size, file_off, mem_off), 0);
}
