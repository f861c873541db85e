// SPDX-License-Identifier: Apache-2.0
/* os_fds - the library's own descriptors, among those of the program. */
#include "seam/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USUAL_TABLE 256 /* of a program that a shell has started */
#define HIGHEST 512

int cf_os_fd_table(void)
{
	static const char key[] = "\nFDSize:";
	int fd = open(CF_PROC_SELF "/status", O_RDONLY | O_CLOEXEC);
	char text[1024];
	const char *at;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, key);
	return at ? atoi(at + sizeof(key) - 1) : -ENOTSUP;
}

/*
 * In the last quarter of the table. For a number beyond it the table grows,
 * and with threads in the process that takes the kernel 10 ms and more.
 */
static int high_number(void)
{
	int size = cf_os->fd_table(), high;

	if (size <= 0)
		size = USUAL_TABLE;
	high = size - size / 4;
	return high < HIGHEST ? high : HIGHEST;
}

/*
 * If descriptors are limited to few numbers, it must at least not have that of
 * a standard stream that is closed: a program that prints all the same would
 * print into a file of ours.
 */
int cf_os_move_up(int fd)
{
	int high = cf_os->dup_above(fd, high_number());

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
