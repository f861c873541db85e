// SPDX-License-Identifier: Apache-2.0
/*
 * os - every system call the library makes, as one replaceable table.
 *
 * A function answers >= 0 or -errno; errno is read here, on the line after
 * the call, and nowhere else. Tests swap the table to count and to fail
 * calls (tests/fault); nothing else may write cf_os.
 */
#ifndef CF_SEAM_OS_H
#define CF_SEAM_OS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <time.h>

/* Pages of a range, as cachestat(2) counts them. */
struct cf_cachestat {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

struct cf_os {
	int (*open)(const char *path, int flags, mode_t mode);
	int (*close)(int fd);
	ssize_t (*read)(int fd, void *buf, size_t size);
	/* -EFBIG where a file may not grow, as resize; never SIGXFSZ */
	ssize_t (*write)(int fd, const void *buf, size_t size);
	ssize_t (*pread)(int fd, void *buf, size_t size, off_t off);
	/* the same, but small ones may not have asked whether there is a limit
	 */
	ssize_t (*pwrite)(int fd, const void *buf, size_t size, off_t off);
	int (*fstat)(int fd, struct stat *st);
	int (*statx)(int fd, unsigned mask, struct statx *stx);
	/* S_IFREG and its like, without asking a server or the disk */
	int (*file_type)(int fd);
	/* which file it is, in the same way */
	int (*file_id)(int fd, dev_t *dev, ino_t *ino);
	int (*fstatfs)(int fd, struct statfs *fs);
	int (*get_flags)(int fd); /* fcntl(F_GETFL) */
	int (*ioctl)(int fd, unsigned long request, void *arg);
	/* what is in the page cache of [off, off + len); len 0: to the end */
	int (*cachestat)(int fd, off_t off, size_t len,
			 struct cf_cachestat *out);
	/* the kernel may begin to read it into the page cache; 0 or -errno */
	int (*read_ahead)(int fd, off_t off, size_t size);
	/* a copy of fd whose number is lowest or more, close-on-exec */
	int (*dup_above)(int fd, int lowest);
	/* anonymous private memory, readable and writable; NULL on failure */
	void *(*map_anon)(size_t size);
	/* size bytes of fd from its start, shared, to read and write */
	int (*map_shared)(int fd, size_t size, void **mem);
	/* size bytes of fd from off on, shared, for reading; 0 or -errno */
	int (*map_file)(int fd, off_t off, size_t size, void **mem);
	/* the same, to read and write; -EFBIG where a write would be refused */
	int (*map_to_write)(int fd, off_t off, size_t size, void **mem);
	/*
	 * Copies to memory of ours whose pages may not be there: bytes, or
	 * -EFAULT before the first. The kernel has to know how: -ENOSYS, and
	 * let: -EPERM.
	 */
	ssize_t (*copy_to)(void *mem, const void *buf, size_t size);
	/* reserves the addresses of a mapping, which ends */
	int (*map_nothing)(void *mem, size_t size);
	/* nobody may touch a mapping any more; its pages stay */
	int (*forbid)(void *mem, size_t size);
	int (*madvise)(void *mem, size_t size, int advice);
	int (*unmap)(void *mem, size_t size);
	/* pages of [mem, mem + size) come from this node where it has any */
	int (*prefer_node)(void *mem, size_t size, unsigned node);
	/* the calling thread's memory policy, MPOL_...; 0: none was set */
	int (*memory_policy)(void);
	/* which processors; tid 0: the calling thread. size in bytes */
	int (*get_affinity)(pid_t tid, unsigned long *mask, size_t size);
	int (*set_affinity)(const unsigned long *mask, size_t size);
	/* so late may the calling thread's timers be; 0 or -errno */
	int (*set_timer_slack)(unsigned long ns);
	/* entries of a directory, as struct dirent64; 0: no more */
	ssize_t (*get_dents)(int fd, void *buf, size_t size);
	/* where a link leads, without a zero at the end; bytes or -errno */
	ssize_t (*read_link)(const char *path, char *buf, size_t size);
	int (*pipe)(int fds[2]); /* close-on-exec, never waited for */
	/* hands the pages of [mem, mem + size) to a pipe, not their bytes */
	ssize_t (*splice_pages)(int pipe, const void *mem, size_t size);
	/* a new memory file: can be sealed, close-on-exec, not executable */
	int (*memfd)(const char *name);
	int (*set_mode)(int fd, mode_t mode);
	int (*resize)(int fd, size_t size);
	int (*seal)(int fd, int seals); /* fcntl(F_ADD_SEALS) */
	/* in place of what is mapped there: the file, shared; zeros, private */
	int (*map_file_at)(void *mem, size_t size, int fd);
	int (*map_anon_at)(void *mem, size_t size);
	int (*clock_gettime)(clockid_t clock, struct timespec *ts);
	/* NULL where the process runs with more privilege than its caller */
	const char *(*getenv)(const char *name);
	/* all of it, "NAME=VALUE" and a NULL; NULL as getenv's is */
	char **(*environment)(void);
};

extern const struct cf_os cf_os_real;
extern const struct cf_os *cf_os;

/*
 * fd, moved away from the numbers that files get: a client that closes a
 * registered file too early would else read and write what took its number.
 * Answers the new number, or fd where there is none so high and its own is none
 * of a standard stream. Not for a file of the client's: closing any of its
 * descriptors drops its record locks.
 */
int cf_os_move_up(int fd);

/* Whether fd names that file. */
bool cf_os_is_file(int fd, dev_t dev, ino_t ino);
/*
 * Whether a descriptor of ours is no longer that file: a client may have closed
 * all it found, and got the number for one of its own. Not where nobody says.
 */
bool cf_os_is_lost(int fd, dev_t dev, ino_t ino);

/* An error that passes: of descriptors or memory there are too few just now. */
static inline bool cf_os_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

#endif
