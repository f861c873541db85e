// SPDX-License-Identifier: Apache-2.0
/* os_fds - the library's own descriptors, among those of the program. */
#include "seam/os.h"

#define HIGH_FD 512

/*
 * If descriptors are limited to few numbers, it must at least not have that of
 * a standard stream that is closed: a program that prints all the same would
 * print into a file of ours.
 */
int cf_os_move_up(int fd)
{
	int high = cf_os->dup_above(fd, HIGH_FD);

	if (high < 0 && fd < CF_NR_STREAMS)
		high = cf_os->dup_above(fd, CF_NR_STREAMS);
	if (high < 0)
		return fd;
	cf_os->close(fd);
	return high;
}

/*
 * A sandbox whose list of system calls is older than statx answers EPERM, or
 * ENOSYS as older kernels do. Then glibc makes another call instead, which does
 * not have our flags: EINVAL.
 */
static bool knows_no_statx(int err)
{
	return err == -EPERM || err == -ENOSYS || err == -EINVAL;
}

static int ask(int fd, dev_t *dev, ino_t *ino)
{
	struct stat st;
	int err = cf_os->file_id(fd, dev, ino);

	if (!knows_no_statx(err))
		return err;
	err = cf_os->fstat(fd, &st);
	if (err)
		return err;
	*dev = st.st_dev;
	*ino = st.st_ino;
	return 0;
}

bool cf_os_is_file(int fd, dev_t dev, ino_t ino)
{
	dev_t is_dev;
	ino_t is_ino;

	return !ask(fd, &is_dev, &is_ino) && is_ino == ino && is_dev == dev;
}

bool cf_os_is_lost(int fd, dev_t dev, ino_t ino)
{
	dev_t is_dev;
	ino_t is_ino;
	int err = ask(fd, &is_dev, &is_ino);

	return err ? err == -EBADF : is_ino != ino || is_dev != dev;
}
