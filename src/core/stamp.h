// SPDX-License-Identifier: Apache-2.0
/* stamp - what a file looked like at one moment, to see that it changed. */
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
 * 0; -EINVAL for what is no regular file, or has no page cache (DAX); or why
 * it cannot be asked.
 */
int cf_stamp_take(int fd, struct cf_stamp *stamp);

bool cf_stamp_equal(const struct cf_stamp *a, const struct cf_stamp *b);

/*
 * Whether the file lay still for so long that its next change will show: one
 * in the same tick of the file system's clock would leave the stamp as it is.
 * The slowest kernel clock ticks every 10 ms; a time of whole seconds may come
 * from a file system that keeps no more (ext4 with small inodes), so it has to
 * be some seconds older.
 */
bool cf_stamp_is_settled(const struct cf_stamp *stamp, uint64_t settle_ns);

#endif
