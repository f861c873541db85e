// SPDX-License-Identifier: Apache-2.0
/* target - a file or block device that threads read and write. */
#include "gdsio/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "report.h"

#define BLOCK 4096

static bool make_name(struct target *target, const struct job *job, int nr)
{
	int len = job->is_dir ? asprintf(&target->name, "%s/gdsio.%d",
					 job->target, nr) :
				asprintf(&target->name, "%s", job->target);

	if (len < 0) {
		target->name = NULL;
		return fail("no memory for the name of a file");
	}
	return true;
}

/* Looks before it opens: opening a pipe would wait for its other end. */
static bool is_usable(struct target *target)
{
	struct stat st;

	target->was_made = stat(target->name, &st) && errno == ENOENT;
	if (target->was_made)
		return true;
	if (stat(target->name, &st))
		return fail_errno("stat", target->name);
	if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))
		return true;
	return fail("%s is neither a regular file nor a block device",
		    target->name);
}

static bool open_both(struct target *target, const struct plan *plan,
		      const struct job *job)
{
	int flags = plan_writes(plan) ? O_RDWR | O_CREAT : O_RDONLY;

	flags |= O_CLOEXEC | O_NOCTTY;
	target->plain_fd = open(target->name, flags, 0666);
	if (target->plain_fd < 0)
		return fail_errno("open", target->name);
	target->fd = target->plain_fd;
	if (job->buffered == 1)
		return true;
	target->fd = open(target->name, flags | O_DIRECT, 0666);
	if (target->fd >= 0)
		return true;
	if (errno != EINVAL)
		return fail_errno("open with O_DIRECT", target->name);
	target->fd = target->plain_fd;
	fprintf(stderr,
		"gdsio: %s cannot be opened with O_DIRECT, going "
		"through the page cache\n",
		target->name);
	return true;
}

/* What there is of the file, against what is to be moved. */
static bool check_range(struct target *target, const struct plan *plan,
			const struct job *job)
{
	struct stat st;
	bool may_grow;

	target->size = lseek(target->plain_fd, 0, SEEK_END);
	if (target->size < 0 || fstat(target->plain_fd, &st))
		return fail_errno("lseek", target->name);
	may_grow =
		plan_writes(plan) && S_ISREG(st.st_mode) && plan->mix == UNSET;
	if (!may_grow && !target->size)
		return fail(
			"%s has no size%s", target->name,
			plan->mix == UNSET ?
				"" :
				", and mixed runs need a file that is written");
	target->begin = job->start;
	target->end =
		job->size == UNSET ? target->size : job->start + job->size;
	if (!may_grow && target->end > target->size)
		return fail("%s has %lld bytes, and %lld from offset %lld "
			    "are asked for",
			    target->name, (long long)target->size,
			    (long long)job->size, (long long)job->start);
	if (target->begin >= target->end)
		return fail("%s has %lld bytes, nothing from offset %lld",
			    target->name, (long long)target->size,
			    (long long)job->start);
	return true;
}

bool target_open(struct target *target, const struct plan *plan,
		 const struct job *job, int nr)
{
	*target = (struct target){ .fd = -1, .plain_fd = -1 };
	return make_name(target, job, nr) && is_usable(target) &&
	       open_both(target, plan, job) && check_range(target, plan, job);
}

bool target_extend(const struct target *target)
{
	return target->size >= target->end ||
	       !ftruncate(target->plain_fd, target->end) ||
	       fail_errno("ftruncate", target->name);
}

bool target_register(struct target *target)
{
	CUfileDescr_t descr = {
		.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
		.handle.fd = target->fd,
	};

	target->has_handle =
		check(cuFileHandleRegister(&target->handle, &descr),
		      "cuFileHandleRegister", target->name);
	return target->has_handle;
}

/* The file, where the name is a link to where there was none. */
static void remove_file(const char *name)
{
	char *real = realpath(name, NULL);

	if (real)
		(void)unlink(real);
	free(real);
}

void target_close(struct target *target, bool undo)
{
	if (undo && target->was_made && target->plain_fd >= 0)
		remove_file(target->name);
	if (target->has_handle)
		cuFileHandleDeregister(target->handle);
	if (target->fd >= 0 && target->fd != target->plain_fd)
		close(target->fd);
	if (target->plain_fd >= 0)
		close(target->plain_fd);
	free(target->name);
}

int target_fd(const struct target *target, off_t off, size_t size)
{
	return off % BLOCK || size % BLOCK ? target->plain_fd : target->fd;
}
