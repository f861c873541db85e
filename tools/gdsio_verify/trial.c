// SPDX-License-Identifier: Apache-2.0
/* trial - opens the file and the memory, and gives both back. */
#include "gdsio_verify/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cuda_more.h"
#include "report.h"

#define PAGE 4096

static bool open_fds(struct trial *trial)
{
	struct stat st;

	/* looks before it opens: opening a pipe would wait for its other end */
	if (stat(trial->file, &st))
		return fail_errno("stat", trial->file);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return fail("%s is neither a regular file nor a block device",
			    trial->file);
	trial->plain_fd = open(trial->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (trial->plain_fd < 0)
		return fail_errno("open", trial->file);
	trial->fd =
		open(trial->file, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY);
	if (trial->fd >= 0)
		return true;
	if (errno != EINVAL)
		return fail_errno("open with O_DIRECT", trial->file);
	trial->fd = trial->plain_fd;
	fprintf(stderr,
		"gdsio_verify: %s cannot be opened with O_DIRECT, going "
		"through the page cache\n",
		trial->file);
	return true;
}

static bool check_range(struct trial *trial)
{
	off_t end = lseek(trial->plain_fd, 0, SEEK_END);

	if (end < 0)
		return fail_errno("lseek", trial->file);
	if (!trial->size && trial->off < end)
		trial->size = end - trial->off;
	if (!trial->size || trial->off > end - trial->size)
		return fail("%s has %lld bytes, and %lld from %lld on are "
			    "asked for",
			    trial->file, (long long)end, (long long)trial->size,
			    (long long)trial->off);
	if (trial->nr > trial->size)
		return fail("%ld requests for %lld bytes", trial->nr,
			    (long long)trial->size);
	trial->chunk = (size_t)((trial->size + trial->nr - 1) / trial->nr);
	/* or the last ones would have nothing to read */
	trial->nr = (trial->size - 1) / (off_t)trial->chunk + 1;
	return true;
}

static bool may_be_host(const struct trial *trial)
{
	if (!trial->host || trial->way != WAY_STREAM)
		return true;
	return fail("-t 0 is for the memory of a GPU, whose streams they are");
}

/* Without -d a machine without a GPU is no error. */
static bool open_gpu(struct trial *trial)
{
	bool any = trial->gpu == TRIAL_ANY_GPU;
	const char *why;

	if (trial->host)
		return may_be_host(trial);
	trial->gpu = any ? 0 : trial->gpu;
	why = gpu_open(&trial->device, trial->gpu);
	if (!why)
		why = gpu_more_load();
	if (why && !any)
		return fail("GPU %d: %s", trial->gpu, why);
	if (why)
		fprintf(stderr,
			"gdsio_verify: no GPU to be had, using host memory: "
			"%s\n",
			why);
	trial->host = why;
	return may_be_host(trial);
}

/* At a multiple of align that is none of twice align. */
static size_t start_for(const struct trial *trial)
{
	uintptr_t base = (uintptr_t)trial->memory.base + TRIAL_GUARD;
	uintptr_t align = (uintptr_t)trial->align;
	uintptr_t at;

	if (!align)
		return TRIAL_GUARD;
	at = (base + 2 * align - 1) / (2 * align) * (2 * align) + align;
	return (size_t)(at - (uintptr_t)trial->memory.base);
}

static bool open_memory(struct trial *trial)
{
	off_t size = TRIAL_GUARD + 3 * trial->align + trial->buffer_off +
		     trial->devptr_off + trial->size + TRIAL_GUARD;
	const char *why = buffer_new(&trial->memory,
				     trial->host ? MEM_MALLOC : MEM_DEVICE,
				     (size_t)size, &trial->device);

	if (why)
		return fail("memory of %lld bytes: %s", (long long)size, why);
	trial->start = start_for(trial);
	return true;
}

static bool register_both(struct trial *trial)
{
	CUfileDescr_t descr = {
		.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
		.handle.fd = trial->fd,
	};
	size_t size = trial_at(trial) - trial->start + (size_t)trial->size;

	return check(cuFileHandleRegister(&trial->handle, &descr),
		     "cuFileHandleRegister", trial->file) &&
	       (!trial->registered ||
		check(cuFileBufRegister((char *)trial->memory.base +
						trial->start,
					size, 0),
		      "cuFileBufRegister", "the buffer"));
}

bool trial_open(struct trial *trial)
{
	trial->plain_fd = trial->fd = -1;
	if (open_fds(trial) && check_range(trial) && open_gpu(trial) &&
	    open_memory(trial) &&
	    check(cuFileDriverOpen(), "cuFileDriverOpen", "the driver") &&
	    register_both(trial))
		return true;
	trial->registered = false; /* that is last */
	(void)trial_close(trial);
	return false;
}

bool trial_close(struct trial *trial)
{
	const char *why;

	if (trial->registered)
		cuFileBufDeregister((char *)trial->memory.base + trial->start);
	if (trial->handle)
		cuFileHandleDeregister(trial->handle);
	(void)cuFileDriverClose(); /* harmless where there was no open */
	why = buffer_free(&trial->memory);
	gpu_close(&trial->device);
	if (trial->fd >= 0 && trial->fd != trial->plain_fd)
		close(trial->fd);
	if (trial->plain_fd >= 0)
		close(trial->plain_fd);
	return why ? fail("GPU %d: %s", trial->gpu, why) : true;
}
