// SPDX-License-Identifier: Apache-2.0
/*
 * file_facts - fcntl, statx and statfs of a descriptor (contract 3.6).
 *
 * Whatever POSIX can read or write is registered: any file system, no udev, no
 * list. Refused are only descriptors that are neither regular files nor block
 * devices, and open flags with which writes would land elsewhere.
 */
#include "core/file_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "core/cached.h"
#include "core/fs_kind.h"
#include "core/log.h"
#include "core/nic.h"
#include "core/nvfs_gate.h"
#include "seam/os.h"

#define DEFAULT_DIO_ALIGN CF_BLOCK_DEFAULT
#define MAX_FS_BLOCK 65536u

/* The value is stable kernel ABI; older headers do not name it. */
#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000U
#endif
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

/*
 * statx as kernels since 6.1 fill it, for C libraries that do not name the
 * two words yet; they stand where the kernel's header puts them.
 */
struct dio_words {
	unsigned char before[0x98];
	uint32_t mem_align;
	uint32_t offset_align;
};

static struct dio_words words_of(const struct statx *stx)
{
	struct dio_words words;

	memcpy(&words, stx, sizeof(words));
	return words;
}

static bool lacks_dio(const struct statx *stx)
{
	return stx->stx_mask & STATX_DIOALIGN && !words_of(stx).mem_align;
}

static unsigned dio_align(const struct statx *stx, long fs_magic)
{
	struct dio_words words = words_of(stx);
	unsigned align;

	align = words.mem_align > words.offset_align ? words.mem_align :
						       words.offset_align;
	if (!(stx->stx_mask & STATX_DIOALIGN))
		return cf_fs_takes_any_bytes(fs_magic) ? 1 : DEFAULT_DIO_ALIGN;
	if (!align || align & (align - 1) || align > DEFAULT_DIO_ALIGN)
		return DEFAULT_DIO_ALIGN;
	return align;
}

/*
 * The page cache reads and writes back whole blocks of the file system, which
 * may be larger than a page (XFS since Linux 6.12). 0: none is known; others
 * name what is best to read, or a cluster.
 */
static unsigned fs_block(const struct statx *stx,
			 const struct cf_handle *handle)
{
	unsigned size = stx->stx_blksize;

	return cf_cached_is_truth(handle) && size <= MAX_FS_BLOCK &&
			       !(size & (size - 1)) ?
		       size :
		       0;
}

static unsigned page_align(unsigned align)
{
	unsigned page = (unsigned)sysconf(_SC_PAGESIZE);

	return page > align ? page : align;
}

#define BAD_FLAGS (O_APPEND | O_PATH)

static bool has_bytes(const struct statx *stx)
{
	return S_ISREG(stx->stx_mode) || S_ISBLK(stx->stx_mode);
}

bool cf_file_is_taken(const struct cf_file_answer *answer)
{
	return answer->flags >= 0 && !(answer->flags & BAD_FLAGS) &&
	       !answer->err && has_bytes(&answer->stx);
}

static int check_flags(int fd, int flags)
{
	if (flags & BAD_FLAGS) {
		cf_log(CF_LOG_ERROR, "handle register fd %d: opened with %s",
		       fd, flags & O_APPEND ? "O_APPEND" : "O_PATH");
		return -CU_FILE_INVALID_FILE_OPEN_FLAG;
	}
	return 0;
}

/* Where the file's bytes are, and whether they may go straight to a GPU. */
static void storage_facts(int fd, const struct statx *stx,
			  struct cf_handle *handle)
{
	uint64_t mount = stx->stx_mask & STATX_MNT_ID ? stx->stx_mnt_id : 0;
	dev_t disk = S_ISBLK(stx->stx_mode) ?
			     makedev(stx->stx_rdev_major, stx->stx_rdev_minor) :
			     0;

	handle->dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
	handle->disk = disk ? disk : handle->dev;
	handle->ino = stx->stx_ino;
	handle->denied = cf_denylist_find(mount, handle->dev, disk);
	handle->nvfs = cf_nvfs_file_gate(fd, stx, &handle->nvfs_target);
	if (!stx->stx_mask && handle->nvfs == CF_NVFS_PASS)
		handle->nvfs = CF_NVFS_INODE;
}

/* Leaves the mask empty: attributes, mount and alignment are not known. */
static int ask_fstat(int fd, struct statx *stx)
{
	struct stat st;
	int err = cf_os->fstat(fd, &st);

	if (err)
		return err;
	*stx = (struct statx){
		.stx_mode = (uint16_t)st.st_mode,
		.stx_ino = st.st_ino,
		.stx_dev_major = major(st.st_dev),
		.stx_dev_minor = minor(st.st_dev),
		.stx_rdev_major = major(st.st_rdev),
		.stx_rdev_minor = minor(st.st_rdev),
	};
	return 0;
}

/*
 * EPERM, which statx itself never answers, is from a sandbox whose list of
 * system calls is older than statx: then fstat.
 */
static int ask(int fd, struct statx *stx)
{
	int err = cf_os->statx(
		fd, STATX_BASIC_STATS | STATX_DIOALIGN | STATX_MNT_ID, stx);

	return err == -EPERM ? ask_fstat(fd, stx) : err;
}

void cf_file_ask(const CUfileDescr_t *descr, struct cf_file_answer *answer)
{
	int fd = descr->handle.fd;

	*answer = (struct cf_file_answer){ .flags = -EBADF };
	if (descr->type != CU_FILE_HANDLE_TYPE_OPAQUE_FD)
		return;
	answer->flags = cf_os->get_flags(fd);
	if (answer->flags < 0)
		return;
	answer->err = ask(fd, &answer->stx);
	if (!answer->err)
		answer->fs_kind = cf_fs_kind(fd, &answer->stx);
}

static int fd_facts(int fd, const struct cf_file_answer *answer,
		    struct cf_handle *handle)
{
	const struct statx *stx = &answer->stx;
	int err;

	if (answer->flags < 0) {
		cf_log(CF_LOG_ERROR, "handle register fd %d: %s", fd,
		       strerror(-answer->flags));
		return -CU_FILE_INVALID_VALUE;
	}
	if (answer->err)
		return answer->err;
	if (!has_bytes(stx)) {
		cf_log(CF_LOG_ERROR,
		       "handle register fd %d: mode 0%o is neither a "
		       "regular file nor a block device",
		       fd, stx->stx_mode);
		return -CU_FILE_INVALID_FILE_TYPE;
	}
	err = check_flags(fd, answer->flags);
	if (err)
		return err;
	handle->fs_magic = answer->fs_kind;
	handle->fd = fd;
	handle->open_flags = answer->flags;
	handle->direct = answer->flags & O_DIRECT;
	handle->no_dio = lacks_dio(stx);
	handle->dio_align = dio_align(stx, handle->fs_magic);
	handle->page_align = page_align((unsigned)cf_handle_block(handle));
	if (handle->page_align < fs_block(stx, handle))
		handle->page_align = fs_block(stx, handle);
	handle->bare = S_ISBLK(stx->stx_mode);
	storage_facts(fd, stx, handle);
	return 0;
}

bool cf_file_lacks_dio(const struct cf_handle *handle)
{
	struct statx stx;

	return handle->no_dio &&
	       !cf_os->statx(handle->fd, STATX_DIOALIGN, &stx) &&
	       lacks_dio(&stx);
}

/*
 * Asks the user-space file system which NICs its server may use; the array is
 * the file system's. A negative number is an error, and no NIC is used. Not
 * asked if configuration names no NIC.
 */
static void ask_for_hosts(const CUfileFSOps_t *ops, const void *fs,
			  struct cf_nic_hosts *hosts)
{
	sockaddr_t *list = NULL;
	int nr;

	hosts->nr = -1;
	if (!cf_nics_wanted() || !ops->getRDMADeviceList)
		return;
	nr = ops->getRDMADeviceList(fs, &list);
	if (nr >= 0 && !list)
		return;
	hosts->nr = 0;
	for (int i = 0; i < nr && hosts->nr < (int)CF_MAX_HOSTS; i++) {
		struct sockaddr_in in;

		memcpy(&in, &list[i], sizeof(in));
		if (in.sin_family == AF_INET)
			hosts->ip[hosts->nr++] = in.sin_addr.s_addr;
	}
	cf_log(CF_LOG_INFO, "handle register: RDMA by %d of %d addresses",
	       hosts->nr, nr);
}

/* For a user-space file system: its callbacks move the bytes. */
static void user_facts(const CUfileDescr_t *descr, struct cf_handle *handle)
{
	const CUfileFSOps_t *ops = descr->fs_ops;
	const char *type =
		ops->fs_type ? ops->fs_type(descr->handle.handle) : NULL;

	handle->fs_ops = ops;
	handle->fs_handle = descr->handle.handle;
	ask_for_hosts(ops, descr->handle.handle, &handle->hosts);
	handle->open_flags = O_RDWR;
	handle->nvfs = CF_NVFS_STORAGE;
	handle->dio_align = DEFAULT_DIO_ALIGN;
	handle->page_align = page_align(DEFAULT_DIO_ALIGN);
	if (type)
		handle->denied = cf_denylist_find_type(type);
	cf_log(CF_LOG_INFO, "handle register: user-space file system %.32s",
	       type ? type : "without a name");
}

int cf_file_facts(const CUfileDescr_t *descr,
		  const struct cf_file_answer *answer, struct cf_handle *handle)
{
	switch (descr->type) {
	case CU_FILE_HANDLE_TYPE_OPAQUE_FD:
		return fd_facts(descr->handle.fd, answer, handle);
	case CU_FILE_HANDLE_TYPE_USERSPACE_FS:
		if (descr->fs_ops) {
			user_facts(descr, handle);
			return 0;
		}
		cf_log(CF_LOG_ERROR, "handle register: user-space file system "
				     "without fs_ops");
		return -CU_FILE_IO_NOT_SUPPORTED;
	default:
		cf_log(CF_LOG_ERROR,
		       "handle register: type %d is not supported",
		       (int)descr->type);
		return -CU_FILE_IO_NOT_SUPPORTED;
	}
}
