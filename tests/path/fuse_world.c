// SPDX-License-Identifier: Apache-2.0
/* fuse_world - speaks the protocol of linux/fuse.h, as much as is needed. */
#include "fuse_world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "harness.h"

#define LARGE ((size_t)8 << 10)
#define MOST ((size_t)1 << 20) /* bytes of a request */
#define FIRST_NODE (FUSE_ROOT_ID + 1)
#define FOR_LONG 1000 /* seconds that what we tell is true */

static const char *const names[FUSE_NR_FILES] = { "whole", "short" };

struct server {
	int fd;
	unsigned nr; /* reads and writes of the short file */
	unsigned char *bytes[FUSE_NR_FILES];
	struct {
		struct fuse_in_header head;
		char rest[MOST + 4096];
	} in;
};

unsigned char fuse_world_byte(size_t at)
{
	return (unsigned char)(at * 2654435761u >> 13);
}

static void answer(const struct server *s, int err, const void *out,
		   size_t size)
{
	struct fuse_out_header head = { .error = -err,
					.unique = s->in.head.unique };
	struct iovec parts[2] = { { &head, sizeof(head) },
				  { (void *)(uintptr_t)out, err ? 0 : size } };

	head.len = (uint32_t)(parts[0].iov_len + parts[1].iov_len);
	(void)!writev(s->fd, parts, 2);
}

static struct fuse_attr attr_of(uint64_t node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 4096 };

	attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600;
	attr.size = node == FUSE_ROOT_ID ? 0 : FUSE_FILE_SIZE;
	return attr;
}

static void look_up(const struct server *s)
{
	struct fuse_entry_out out = { .entry_valid = FOR_LONG,
				      .attr_valid = FOR_LONG };

	for (unsigned i = 0; i < FUSE_NR_FILES; i++)
		if (!strcmp(s->in.rest, names[i]))
			out.nodeid = FIRST_NODE + i;
	out.attr = attr_of(out.nodeid);
	answer(s, out.nodeid ? 0 : ENOENT, &out, sizeof(out));
}

/* How much is done of a request of size bytes; 0: a signal came. */
static size_t some_of(struct server *s, size_t size)
{
	if (s->in.head.nodeid != FIRST_NODE + FUSE_SHORT || size < LARGE)
		return size;
	return ++s->nr % 3 ? size / 2 + 17 : 0;
}

static void do_read(struct server *s)
{
	const struct fuse_read_in *in = (const void *)s->in.rest;
	const unsigned char *bytes = s->bytes[s->in.head.nodeid - FIRST_NODE];
	size_t left =
		in->offset < FUSE_FILE_SIZE ? FUSE_FILE_SIZE - in->offset : 0;
	size_t size = left < in->size ? left : in->size;
	size_t some = some_of(s, size);

	answer(s, some < size && !some ? EINTR : 0, bytes + in->offset, some);
}

static void do_write(struct server *s)
{
	const struct fuse_write_in *in = (const void *)s->in.rest;
	unsigned char *bytes = s->bytes[s->in.head.nodeid - FIRST_NODE];
	struct fuse_write_out out = { .size = (uint32_t)some_of(s, in->size) };

	if (in->offset + out.size <= FUSE_FILE_SIZE)
		memcpy(bytes + in->offset, in + 1, out.size);
	answer(s, out.size ? 0 : EINTR, &out, sizeof(out));
}

static bool has_statfs(const struct server *s)
{
	return s->in.head.nodeid != FIRST_NODE + FUSE_SHORT;
}

static void serve_one(struct server *s)
{
	const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.flags = FUSE_BIG_WRITES | FUSE_MAX_PAGES,
		.max_write = MOST,
		.max_pages = MOST >> 12,
	};
	const struct fuse_attr_out attr = {
		.attr_valid = FOR_LONG, .attr = attr_of(s->in.head.nodeid)
	};
	const struct fuse_statfs_out statfs = { .st = { .bsize = 4096 } };
	const struct fuse_open_out opened = { .open_flags = FOPEN_DIRECT_IO };

	switch (s->in.head.opcode) {
	case FUSE_INIT:
		answer(s, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		look_up(s);
		break;
	case FUSE_GETATTR:
		answer(s, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(s, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		do_read(s);
		break;
	case FUSE_WRITE:
		do_write(s);
		break;
	case FUSE_STATFS:
		answer(s, has_statfs(s) ? 0 : ENOSYS, &statfs, sizeof(statfs));
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(s, ENOSYS, NULL, 0);
	}
}

/* Ends when nobody has any of the files open. */
static void serve(int fd)
{
	static struct server s;
	ssize_t n;

	s.fd = fd;
	for (unsigned i = 0; i < FUSE_NR_FILES; i++) {
		s.bytes[i] = malloc(FUSE_FILE_SIZE);
		for (size_t at = 0; at < FUSE_FILE_SIZE; at++)
			s.bytes[i][at] = fuse_world_byte(at);
	}
	do {
		n = read(fd, &s.in, sizeof(s.in));
		if (n > 0)
			serve_one(&s);
	} while (n > 0 || errno != ENODEV);
	_exit(0);
}

static bool open_files(const char *dir, int fds[FUSE_NR_FILES])
{
	char path[300];

	for (unsigned i = 0; i < FUSE_NR_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		fds[i] = open(path, O_RDWR | O_DIRECT);
		if (fds[i] < 0)
			return false;
	}
	return true;
}

bool fuse_world_begin(int fds[FUSE_NR_FILES])
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char dir[] = "/tmp/ocf-fuse-XXXXXX", options[80];
	bool mounted, open;

	if (fd < 0 || !mkdtemp(dir))
		return false;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	mounted = !mount("test", dir, "fuse", MS_NOSUID | MS_NODEV, options);
	if (mounted && !fork())
		serve(fd);
	close(fd);
	open = mounted && open_files(dir, fds);
	/* the descriptors keep it; nothing is left behind by a failure */
	if (mounted)
		umount2(dir, MNT_DETACH);
	rmdir(dir);
	return open;
}
