// SPDX-License-Identifier: Apache-2.0
/* kept - see kept.h. */
#include "core/kept.h"

#include <fcntl.h>
#include <stdlib.h>
#include "core/log.h"
#include "seam/os.h"

struct cf_kept {
	struct cf_kept *next;
	struct cf_twin_left twin;
};

static struct cf_kept *kept; /* handle.c's table_lock */

/* By its flags a twin is told from the client's own descriptor of the file. */
bool cf_kept_is_lost(const struct cf_twin_left *twin)
{
	int flags = cf_os->get_flags(twin->fd);

	return cf_os_is_lost(twin->fd, twin->dev, twin->ino) ||
	       (flags >= 0 && (flags ^ twin->flags) & (O_ACCMODE | O_DIRECT));
}

/*
 * The kernel names one lock alone, and another's may hide ours. But when the
 * client closed the descriptor that was registered, that dropped ours.
 */
static bool drops_locks(const struct cf_twin_left *twin)
{
	int locks = cf_os->record_locks(twin->fd);

	return locks == CF_LOCKS_OWN ||
	       (locks == CF_LOCKS_OTHER &&
		cf_os_is_file(twin->client, twin->dev, twin->ino));
}

/* True if nothing is left to close. */
static bool ends(const struct cf_twin_left *twin)
{
	if (cf_kept_is_lost(twin))
		return true;
	if (drops_locks(twin))
		return false;
	cf_os->close(twin->fd);
	return true;
}

struct cf_kept *cf_kept_draw_locked(dev_t dev, bool all)
{
	struct cf_kept *drawn = NULL, **at = &kept;

	while (*at) {
		struct cf_kept *one = *at;

		if (!all && one->twin.dev != dev) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		one->next = drawn;
		drawn = one;
	}
	return drawn;
}

struct cf_kept *cf_kept_sift(struct cf_kept *drawn)
{
	struct cf_kept **at = &drawn;

	while (*at) {
		struct cf_kept *one = *at;

		if (!ends(&one->twin)) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		free(one);
	}
	return drawn;
}

struct cf_kept *cf_kept_leave(const struct cf_twin_left *left,
			      struct cf_kept *others)
{
	struct cf_kept *one;

	if (left->fd < 0 || ends(left))
		return others;
	cf_log(CF_LOG_INFO,
	       "fd %d: descriptor %d of the library stays open: the file has "
	       "record locks",
	       left->client, left->fd);
	one = malloc(sizeof(*one));
	if (!one)
		return others; /* it stays open for good */
	*one = (struct cf_kept){ .next = others, .twin = *left };
	return one;
}

void cf_kept_return_locked(struct cf_kept *back)
{
	while (back) {
		struct cf_kept *one = back;

		back = one->next;
		one->next = kept;
		kept = one;
	}
}

int cf_kept_take_locked(dev_t dev, ino_t ino, int flags)
{
	for (struct cf_kept **at = &kept; *at; at = &(*at)->next) {
		struct cf_kept *one = *at;
		int fd = one->twin.fd;

		if (one->twin.ino != ino || one->twin.dev != dev ||
		    one->twin.flags != flags)
			continue;
		*at = one->next;
		free(one);
		return fd;
	}
	return -1;
}
