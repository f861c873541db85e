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
#include "seam/hidden.h"

/* Pages of a range, as cachestat(2) counts them. */
struct cf_cachestat {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/* Whose record locks (POSIX) a file has. Another's may hide our own. */
enum cf_locks { CF_LOCKS_NONE, CF_LOCKS_OWN, CF_LOCKS_OTHER };

struct cf_os {
	int (*open)(const char *path, int flags, mode_t mode);
	int (*close)(int fd);
	ssize_t (*read)(int fd, void *buf, size_t size);
	/* as resize: -EFBIG beyond RLIMIT_FSIZE, and never SIGXFSZ */
	ssize_t (*write)(int fd, const void *buf, size_t size);
	ssize_t (*pread)(int fd, void *buf, size_t size, off_t off);
	/* as write, but small ones do not always ask whether there is a limit
	 */
	ssize_t (*pwrite)(int fd, const void *buf, size_t size, off_t off);
	int (*fstat)(int fd, struct stat *st);
	int (*statx)(int fd, unsigned mask, struct statx *stx);
	/* S_IFREG and its like, without asking a file server or the disk */
	int (*file_type)(int fd);
	/* which file it is, in the same way */
	int (*file_id)(int fd, dev_t *dev, ino_t *ino);
	int (*fstatfs)(int fd, struct statfs *fs);
	int (*get_flags)(int fd); /* fcntl(F_GETFL) */
	int (*get_lease)(int fd); /* fcntl(F_GETLEASE) */
	/* enum cf_locks, or -errno; a server may be asked */
	int (*record_locks)(int fd);
	int (*ioctl)(int fd, unsigned long request, void *arg);
	/* what is in the page cache of [off, off + len); len 0: to the end */
	int (*cachestat)(int fd, off_t off, size_t len,
			 struct cf_cachestat *out);
	/* lets the kernel begin to read the range into the page cache */
	int (*read_ahead)(int fd, off_t off, size_t size);
	/* a copy of fd whose number is lowest or more, close-on-exec */
	int (*dup_above)(int fd, int lowest);
	/* how many descriptors the kernel has room for now (FDSize) */
	int (*fd_table)(void);
	/* anonymous private memory, readable and writable; NULL on failure */
	void *(*map_anon)(size_t size);
	/* size bytes of fd from its start, shared, to read and write */
	int (*map_shared)(int fd, size_t size, void **mem);
	/* size bytes of fd from off on, shared, for reading; 0 or -errno */
	int (*map_file)(int fd, off_t off, size_t size, void **mem);
	/* the same, to read and write; -EFBIG where a write would be refused */
	int (*map_to_write)(int fd, off_t off, size_t size, void **mem);
	/*
	 * Copies to memory of this process whose pages may be missing: how many
	 * bytes, or -EFAULT if not even the first. -ENOSYS: the kernel has no
	 * such call; -EPERM: it is forbidden.
	 */
	ssize_t (*copy_to)(void *mem, const void *buf, size_t size);
	/* the same, of bytes of ours to a client's memory of any kind */
	ssize_t (*copy_out)(void *mem, const void *buf, size_t size);
	/* ends a mapping, and keeps its addresses reserved */
	int (*map_nothing)(void *mem, size_t size);
	/* takes all access to a mapping away (PROT_NONE); its pages stay */
	int (*forbid)(void *mem, size_t size);
	int (*madvise)(void *mem, size_t size, int advice);
	int (*unmap)(void *mem, size_t size);
	/* pages of [mem, mem + size) come from this node, if it has any free */
	int (*prefer_node)(void *mem, size_t size, unsigned node);
	/* the calling thread's memory policy, MPOL_...; 0: none was set */
	int (*memory_policy)(void);
	/* the thread's processors; tid 0: the caller's. size: mask's bytes */
	int (*get_affinity)(pid_t tid, unsigned long *mask, size_t size);
	int (*set_affinity)(const unsigned long *mask, size_t size);
	/* how late the calling thread's timers may fire; 0 or -errno */
	int (*set_timer_slack)(unsigned long ns);
	/* entries of a directory, as struct dirent64; 0: no more */
	ssize_t (*get_dents)(int fd, void *buf, size_t size);
	/* where a link leads, without a zero at the end; bytes or -errno */
	ssize_t (*read_link)(const char *path, char *buf, size_t size);
	int (*pipe)(int fds[2]); /* close-on-exec, nonblocking */
	/* hands the pages of [mem, mem + size) to a pipe, not their bytes */
	ssize_t (*splice_pages)(int pipe, const void *mem, size_t size);
	/* a new memory file: can be sealed, close-on-exec, not executable */
	int (*memfd)(const char *name);
	int (*set_mode)(int fd, mode_t mode);
	int (*resize)(int fd, size_t size);
	int (*seal)(int fd, int seals); /* fcntl(F_ADD_SEALS) */
	/* replace what is mapped at mem: by the file, shared; by own zeros */
	int (*map_file_at)(void *mem, size_t size, int fd);
	int (*map_anon_at)(void *mem, size_t size);
	int (*clock_gettime)(clockid_t clock, struct timespec *ts);
	/* NULL where the process runs with more privilege than its caller */
	const char *(*getenv)(const char *name);
	/* all "NAME=VALUE", then NULL; NULL itself where getenv answers NULL */
	char **(*environment)(void);
};

extern CF_HIDDEN const struct cf_os cf_os_real;
extern CF_HIDDEN const struct cf_os *cf_os;

/*
 * The calling thread's. That of the process, /proc/self, is its first thread's:
 * once that has ended, it has no descriptors, pages, mounts and groups.
 */
#define CF_PROC_SELF "/proc/thread-self"

#define CF_NR_STREAMS 3 /* standard input, output and error */

/*
 * Moves a descriptor of ours away from the low numbers. Else, when a client
 * closes a registered file too early, ours could get its number, and the
 * client's IO. Answers the new number; or fd, if none so high can be had and fd
 * is not the number of a standard stream. Not for a file of the client's: the
 * move closes a descriptor, which drops the process's record locks on the file.
 */
int cf_os_move_up(int fd);
int cf_os_fd_table(void); /* the row of cf_os_real */

/* Whether fd names the file dev, ino. False also if that cannot be asked. */
bool cf_os_is_file(int fd, dev_t dev, ino_t ino);
/*
 * Whether a descriptor of ours no longer names that file: a client may have
 * closed all that it found, and its own file got the number. False if it cannot
 * be asked.
 */
bool cf_os_is_lost(int fd, dev_t dev, ino_t ino);

/* An error that passes: too few descriptors, or too little memory, just now. */
static inline bool cf_os_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

#endif
