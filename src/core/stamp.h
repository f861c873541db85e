// SPDX-License-Identifier: Apache-2.0
/* stamp - what a file looks like at one moment, to notice a change. */
#ifndef CF_CORE_STAMP_H
#define CF_CORE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

/* Nothing but uint64_t: stamps are compared as bytes. */
struct cf_stamp {
	uint64_t dev, ino;
	uint64_t size;
	uint64_t mtime, ctime; /* nanoseconds of the real-time clock */
};

/*
 * 0; -EINVAL: no regular file, or one without page cache (DAX); or another
 * -errno.
 */
int cf_stamp_take(int fd, struct cf_stamp *stamp);

bool cf_stamp_equal(const struct cf_stamp *a, const struct cf_stamp *b);

/*
 * Whether the file has not changed for settle_ns, so that its next change will
 * show: a change in the same tick of the file system's clock would leave the
 * stamp as it is. The slowest kernel clock ticks every 10 ms. A time of whole
 * seconds may come from a file system that keeps no fractions (ext4 with small
 * inodes), so it has to be some seconds old.
 */
bool cf_stamp_is_settled(const struct cf_stamp *stamp, uint64_t settle_ns);

#endif
