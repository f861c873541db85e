// SPDX-License-Identifier: Apache-2.0
/* fake_rm - see fake_rm.h: its nodes, and the system calls that meet them. */
#include "fake_rm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "fake_rm_files.h"
#include "harness.h"
#include "seam/os.h"

#define GPUS "/proc/driver/nvidia/gpus/"
#define MAX_MAPS 64

struct fake_rm fake_rm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static const struct cf_os *behind;
static struct cf_os table;
static unsigned asked[FAKE_RM_NR_STEPS];
static unsigned nr_maps;
static struct {
	void *mem;
	size_t size;
	struct fake_rm_file *file;
} maps[MAX_MAPS];

/* ------------------------------------------------------------- opening */

int fake_rm_refusal(enum fake_rm_step step)
{
	asked[step]++;
	return fake_rm.refusal[step];
}

/* The step that opening it is, or -1: it is none of ours. */
static int step_of(const char *path)
{
	char there[128];
	unsigned minor;
	int end = 0;

	if (!strcmp(path, "/dev/nvidiactl"))
		return FAKE_RM_CTL;
	snprintf(there, sizeof(there), GPUS "%s/information", fake_rm.address);
	if (!strcmp(path, there))
		return FAKE_RM_PROC;
	if (sscanf(path, "/dev/nvidia%u%n", &minor, &end) == 1 && !path[end])
		return minor == fake_rm.minor ? FAKE_RM_NODE : FAKE_RM_NR_STEPS;
	return strncmp(path, GPUS, strlen(GPUS)) ? -1 : FAKE_RM_NR_STEPS;
}

static int open_as(enum fake_rm_step step, int flags)
{
	int err = fake_rm_refusal(step), fd;

	if (err)
		return err;
	/* the real one lets less, and then maps nothing */
	if (step != FAKE_RM_PROC && flags != (O_RDWR | O_CLOEXEC))
		return -EINVAL;
	fd = behind->open("/dev/null", flags, 0);
	if (fd >= 0)
		fake_rm_file_add(fd, step == FAKE_RM_CTL  ? FAKE_RM_IS_CTL :
				     step == FAKE_RM_NODE ? FAKE_RM_IS_NODE :
							    FAKE_RM_IS_PROC);
	return fd;
}

/* ---------------------------------------------------------- system calls */

static int rm_open(const char *path, int flags, mode_t mode)
{
	int step = step_of(path), fd;

	if (step < 0)
		return behind->open(path, flags, mode);
	if (step == FAKE_RM_NR_STEPS) /* a GPU that this machine has not */
		return -ENOENT;
	pthread_mutex_lock(&lock);
	fd = open_as((enum fake_rm_step)step, flags);
	pthread_mutex_unlock(&lock);
	return fd;
}

static int rm_dup_above(int fd, int lowest)
{
	struct fake_rm_file *file;
	int copy;

	pthread_mutex_lock(&lock);
	file = fake_rm_file(fd);
	copy = behind->dup_above(fd, lowest);
	if (file && copy >= 0)
		fake_rm_file_alias(copy, file);
	pthread_mutex_unlock(&lock);
	return copy;
}

/* It is forgotten first: its number is somebody's at once. */
static int rm_close(int fd)
{
	pthread_mutex_lock(&lock);
	fake_rm_file_forget(fd);
	pthread_mutex_unlock(&lock);
	return behind->close(fd);
}

static ssize_t text_of(char *buf, size_t size)
{
	char minor[32], text[512];
	size_t n;

	snprintf(minor, sizeof(minor), "Device Minor: \t %u\n", fake_rm.minor);
	snprintf(text, sizeof(text),
		 "Model: \t\t NVIDIA H200\nIRQ:   \t\t 45\n"
		 "GPU UUID: \t GPU-01234567-89ab-cdef-0123-456789abcdef\n"
		 "Video BIOS: \t 96.00.a5.00.01\nBus Type: \t PCIe\n"
		 "DMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
		 "Bus Location: \t %s\n%sGPU Firmware: \t 580.159.04\n"
		 "GPU Excluded:\t No\n",
		 fake_rm.address,
		 fake_rm.minor_line ? fake_rm.minor_line : minor);
	n = strlen(text) < size ? strlen(text) : size;
	memcpy(buf, text, n);
	return (ssize_t)n;
}

static ssize_t rm_read(int fd, void *buf, size_t size)
{
	ssize_t n = behind->read(fd, buf, size);
	struct fake_rm_file *file;

	pthread_mutex_lock(&lock);
	file = fake_rm_file(fd);
	if (file && n == 0 && file->kind == FAKE_RM_IS_PROC)
		n = text_of(buf, size);
	pthread_mutex_unlock(&lock);
	return n;
}

static int rm_ioctl(int fd, unsigned long request, void *arg)
{
	int err = behind->ioctl(fd, request, arg);
	struct fake_rm_file *file;

	pthread_mutex_lock(&lock);
	file = fake_rm_file(fd);
	/* what is there to the kernel knows no such call */
	if (file && (err == -ENOTTY || err == -ENOSYS))
		err = fake_rm_call(file, fd, request, arg);
	pthread_mutex_unlock(&lock);
	return err;
}

static int show(struct fake_rm_file *file, int fd, size_t size, void **mem)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err = fake_rm_refusal(FAKE_RM_SHOW);

	if (err)
		return err;
	if (file->kind != FAKE_RM_IS_NODE || !file->shown)
		return -EINVAL;
	if (((size + page - 1) & ~(page - 1)) != file->shown)
		return -ENXIO;
	err = behind->map_shared(fd, size, mem);
	if (err)
		return err;
	assert_in_range(nr_maps, 0, MAX_MAPS - 1);
	maps[nr_maps].mem = *mem;
	maps[nr_maps].size = size;
	maps[nr_maps++].file = file;
	file->refs++;
	return 0;
}

static int rm_map_shared(int fd, size_t size, void **mem)
{
	struct fake_rm_file *file;
	int err;

	pthread_mutex_lock(&lock);
	file = fake_rm_file(fd);
	err = file ? show(file, fd, size, mem) :
		     behind->map_shared(fd, size, mem);
	pthread_mutex_unlock(&lock);
	return err;
}

static int rm_unmap(void *mem, size_t size)
{
	unsigned i = 0;
	int err;

	pthread_mutex_lock(&lock);
	while (i < nr_maps && maps[i].mem != mem)
		i++;
	err = i < nr_maps && maps[i].size != size ? -EINVAL :
						    behind->unmap(mem, size);
	if (i < nr_maps && !err) {
		fake_rm_file_put(maps[i].file);
		maps[i] = maps[--nr_maps];
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* ------------------------------------------------------------ for a test */

void fake_rm_begin(void)
{
	fake_rm = (struct fake_rm){ .address = "0000:01:00.0", .type = 1 };
	memset(asked, 0, sizeof(asked));
	nr_maps = 0;
	fake_rm_nr_fds = fake_rm_nr_clients = 0;
	fake_rm_nr_pages = fake_rm_nr_exports = 0;
	behind = cf_os;
	table = *behind;
	table.open = rm_open;
	table.close = rm_close;
	table.read = rm_read;
	table.ioctl = rm_ioctl;
	table.dup_above = rm_dup_above;
	table.map_shared = rm_map_shared;
	table.unmap = rm_unmap;
	cf_os = &table;
}

void fake_rm_end(void)
{
	cf_os = behind;
	assert_int_equal(fake_rm_descriptors(), 0);
	assert_int_equal(fake_rm_maps(), 0);
	assert_int_equal(fake_rm_clients(), 0);
	assert_int_equal(fake_rm_pages(), 0);
	assert_int_equal(fake_rm_exports(), 0);
}

static unsigned look_at(const unsigned *what)
{
	unsigned nr;

	pthread_mutex_lock(&lock);
	nr = *what;
	pthread_mutex_unlock(&lock);
	return nr;
}

unsigned fake_rm_descriptors(void)
{
	return look_at(&fake_rm_nr_fds);
}

unsigned fake_rm_clients(void)
{
	return look_at(&fake_rm_nr_clients);
}

unsigned fake_rm_pages(void)
{
	return look_at(&fake_rm_nr_pages);
}

unsigned fake_rm_exports(void)
{
	return look_at(&fake_rm_nr_exports);
}

unsigned fake_rm_maps(void)
{
	return look_at(&nr_maps);
}

unsigned fake_rm_asked(enum fake_rm_step step)
{
	return look_at(&asked[step]);
}
