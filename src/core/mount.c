// SPDX-License-Identifier: Apache-2.0
/* mount - reads mountinfo (proc(5)). */
#include "core/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "seam/os.h"

#define MOUNTINFO CF_PROC_SELF "/mountinfo"
#define STEP (64ul << 10)
#define LARGEST (16ul << 20)

static int read_all(int fd, char **text)
{
	size_t size = 0, len = 0;
	ssize_t n = 1;

	for (*text = NULL; n > 0 && len < LARGEST;) {
		if (size - len < STEP / 2) {
			char *more = realloc(*text, size + STEP);

			if (!more)
				return -ENOMEM;
			*text = more;
			size += STEP;
		}
		n = cf_os->read(fd, *text + len, size - len - 1);
		if (n == -EINTR)
			n = 1;
		else if (n > 0)
			len += (size_t)n;
		(*text)[len] = '\0';
	}
	return n < 0 ? (int)n : 0;
}

/* The caller frees *text, also after a failure. */
static int read_mounts(char **text)
{
	int fd = cf_os->open(MOUNTINFO, O_RDONLY | O_CLOEXEC, 0);
	int err;

	*text = NULL;
	if (fd < 0)
		return fd;
	err = read_all(fd, text);
	cf_os->close(fd);
	return err;
}

static bool is_octal(const char *text)
{
	for (int i = 0; i < 3; i++)
		if (text[i] < '0' || text[i] > '7')
			return false;
	return true;
}

/* Blanks, tabs, newlines and backslashes stand there as \040 and so on. */
static void unescape(char *text)
{
	char *to = text;

	while (*text) {
		if (*text == '\\' && is_octal(text + 1)) {
			*to++ = (char)((text[1] - '0') * 64 +
				       (text[2] - '0') * 8 + text[3] - '0');
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

/* ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD...] - TYPE SOURCE SUPER */
static bool parse(const char *line, uint64_t *number, struct cf_mount *mount)
{
	const char *rest = strstr(line, " - ");
	unsigned major, minor;

	*mount = (struct cf_mount){ 0 };
	if (!rest ||
	    sscanf(line, "%" SCNu64 " %*u %u:%u %*s %1023s", number, &major,
		   &minor, mount->point) != 4 ||
	    sscanf(rest, " - %31s %1023s %511s", mount->type, mount->source,
		   mount->options) < 1)
		return false;
	mount->dev = makedev(major, minor);
	unescape(mount->point);
	unescape(mount->source);
	return true;
}

int cf_mount_find(uint64_t number, dev_t dev, struct cf_mount *mount)
{
	struct cf_mount one;
	char *text, *rest, *line;
	uint64_t its_number;
	int err = read_mounts(&text);

	rest = err ? NULL : text;
	if (!err)
		err = -ENOENT;
	while ((line = strsep(&rest, "\n"))) {
		if (!parse(line, &its_number, &one) ||
		    (number ? its_number != number : one.dev != dev))
			continue;
		/* go on: a later mount lies on top */
		*mount = one;
		err = 0;
	}
	free(text);
	return err;
}
