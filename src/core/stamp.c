// SPDX-License-Identifier: Apache-2.0
/* stamp - statx, and the clock that file systems take their times from. */
#include "core/stamp.h"

#include <errno.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "seam/os.h"

#define SECOND_NS 1000000000ull

/* Linux 5.8; the value is stable kernel ABI. */
#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif

static uint64_t nanoseconds(const struct statx_timestamp *ts)
{
	return (uint64_t)ts->tv_sec * SECOND_NS + ts->tv_nsec;
}

int cf_stamp_take(int fd, struct cf_stamp *stamp)
{
	struct statx stx = { 0 };
	int err = cf_os->statx(fd, STATX_BASIC_STATS, &stx);

	if (err)
		return err;
	if (!S_ISREG(stx.stx_mode) || stx.stx_attributes & STATX_ATTR_DAX)
		return -EINVAL;
	*stamp = (struct cf_stamp){
		.dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.ino = stx.stx_ino,
		.size = stx.stx_size,
		.mtime = nanoseconds(&stx.stx_mtime),
		.ctime = nanoseconds(&stx.stx_ctime),
	};
	return 0;
}

bool cf_stamp_equal(const struct cf_stamp *a, const struct cf_stamp *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* By ctime only: a program may set mtime to any time, but that sets ctime. */
bool cf_stamp_is_settled(const struct cf_stamp *stamp, uint64_t settle_ns)
{
	struct timespec now;

	if (cf_os->clock_gettime(CLOCK_REALTIME, &now))
		return false;
	if (!(stamp->ctime % SECOND_NS))
		settle_ns += 3 * SECOND_NS;
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec >
	       stamp->ctime + settle_ns;
}
