// SPDX-License-Identifier: Apache-2.0
/*
 * path - one way to travel, as a const table.
 *
 * Deciding and doing are different functions: can is pure, cheap and answers
 * with a reason; run may assume that can said CF_WHY_YES. To add a path,
 * write one file with one table (path/null.c is the template, each hook
 * explained) and add its row to the array in engine/route.c.
 */
#ifndef CF_PATH_PATH_H
#define CF_PATH_PATH_H

#include "core/feed.h"
#include "core/file.h"
#include "core/piece.h"
#include "seam/hidden.h"

/* Why a path was refused; the texts stand in engine/route.c. */
enum cf_why {
	CF_WHY_YES,
	CF_WHY_NOT_ASKED,	 /* only taken when configuration names it */
	CF_WHY_OTHER_ASKED,	 /* configuration names another path */
	CF_WHY_NOT_HOST,	 /* the memory is a GPU's */
	CF_WHY_NOT_DEVICE,	 /* the CPU reaches the memory without a copy */
	CF_WHY_STRICT,		 /* allow_compat_mode is off */
	CF_WHY_NO_SYSTEM_MEMORY, /* allow_system_memory is off */
	CF_WHY_FORCED_COMPAT,	 /* force_compat_mode is on */
	CF_WHY_ALIAS_OFF,	 /* opencufile.alias is off */
	CF_WHY_NOT_REGISTERED,	 /* the buffer is not registered */
	CF_WHY_NO_ALIAS,	 /* no provider has an address for the CPU */
	CF_WHY_ALIAS_WRONG,	 /* that address shows other memory */
	CF_WHY_ALIAS_PLAIN,	 /* O_DIRECT needs pages, the alias has none */
	CF_WHY_ALIAS_CACHED,	 /* the bytes go through the page cache */
	CF_WHY_LOOSE,		 /* the GPU does not order foreign writes */
	CF_WHY_ALIAS_NO_BLOCK,	 /* no whole block lies as in the file */
	CF_WHY_ALIAS_REMOTE,	 /* EREMOTEIO from that disk to that GPU */
	CF_WHY_ALIAS_FAULT,	 /* EFAULT */
	CF_WHY_ALIAS_INVALID,	 /* EINVAL */
	CF_WHY_USER_FS, /* a user-space file system carries the bytes */
	/* the rdma path's */
	CF_WHY_NO_USER_FS,   /* the kernel carries the file's bytes */
	CF_WHY_RDMA_OFF,     /* no NIC is named */
	CF_WHY_RDMA_MEMORY,  /* no NIC has the memory */
	CF_WHY_RDMA_HOSTS,   /* the file system allows no NIC that has it */
	CF_WHY_RDMA_REFUSED, /* the file system answered ENOTSUP */
	CF_WHY_RDMA_WRITES,  /* configuration forbids these writes */
	/* in the order of enum cf_denied */
	CF_WHY_DENIED_DRIVER,
	CF_WHY_DENIED_DEVICE,
	CF_WHY_DENIED_MOUNT,
	CF_WHY_DENIED_FILESYSTEM,
	/* in the order of enum cf_nvfs_gate */
	CF_WHY_NVFS_OFF,
	CF_WHY_NVFS_ABSENT,
	CF_WHY_NVFS_FORBIDDEN,
	CF_WHY_NVFS_OLD,
	CF_WHY_NVFS_STORAGE,
	CF_WHY_NVFS_UNHOOKED,
	CF_WHY_NVFS_MOUNT,
	CF_WHY_NVFS_INODE,
	/* and of a piece */
	CF_WHY_NVFS_REFUSED, /* the storage said no */
	CF_WHY_NVFS_CACHE,   /* its bytes go through the page cache */
	CF_WHY_NVFS_MEMORY,  /* memory that cannot be pinned, or watched */
	CF_WHY_NVFS_SKEWED,  /* memory lies in its block unlike the file */
	CF_WHY_NVFS_SMALL,   /* no whole block */
	CF_WHY_NVFS_KEPT,    /* configuration keeps this size off it */
	CF_WHY_NVFS_WRITES,  /* configuration forbids these writes */
	CF_WHY_NVFS_ROUTED,  /* dynamic routing knows host memory only */
	/* the mapped path's; see enum cf_sight */
	CF_WHY_MAPPED_OFF,
	CF_WHY_NO_PINS,
	CF_WHY_NO_READ,
	CF_WHY_SMALL,
	CF_WHY_NO_PAGES,
	CF_WHY_STRANGER,
	CF_WHY_FIRST_READ,
	CF_WHY_COOL,
	CF_WHY_NO_ROOM,
	CF_WHY_CHANGING,
	CF_WHY_NOT_CACHED,
	CF_WHY_CANNOT_TELL,
	CF_WHY_REFUSED,
	CF_WHY_MEMORY_SHORT,
	CF_WHY_NEXT_READ,
	CF_NR_WHYS,
};

struct cf_config;

/* What configuration has to say to a path; read at open (engine/rules.h). */
struct cf_policy {
	bool allow_bounce;	  /* properties.allow_compat_mode */
	bool allow_system_memory; /* properties.allow_system_memory */
	bool alias;		  /* opencufile.alias is not off */
	bool alias_buffered;	  /* alias is `on`: cached reads, too */
	/* why compatibility mode is all there is; CF_WHY_YES: it is not */
	enum cf_why compat_only;
	const struct cf_config *config; /* settings that only one path has */
};

/*
 * Threads that help, lent by the engine for one piece. work runs lead(arg)
 * on the calling thread and help(arg) on up to `helpers` others, possibly on
 * none, at the same time. It returns when all have come back. A helper has no
 * CUDA context current, and no default stream that matters.
 */
struct cf_crew {
	unsigned helpers;
	void (*work)(struct cf_crew *crew, void (*lead)(void *arg),
		     void (*help)(void *arg), void *arg);
};

/*
 * Told to the feed in place of an error, by a path that cannot go on: the
 * next one that said yes carries the rest. No other code has this value.
 */
#define CF_PATH_GIVES_UP (-6000)

struct cf_path_ops {
	const char *name;
	/*
	 * cuFile calls this way compatibility mode: POSIX IO to and from host
	 * memory. Such a path never gives up. The other paths are closed to
	 * files on a denylist, and to all files under force_compat_mode.
	 */
	bool compat;
	/*
	 * CF_WHY_YES, or why this path cannot carry the piece. Pure. For a
	 * buffered piece with no alias and no windows the answer must not
	 * depend on size and place: cf_request_init_like copies it.
	 */
	enum cf_why (*can)(const struct cf_piece *piece,
			   const struct cf_policy *policy);
	/*
	 * Which of the piece's bytes go O_DIRECT, and why the others go
	 * through the page cache; for engine/explain.c and detour.c. Pure.
	 */
	struct cf_file_way (*way)(const struct cf_piece *piece);
	/*
	 * Called before an ordered write that other threads will carry, on the
	 * thread that asked for it: waits for what must come before the write.
	 * 0 or a negative code.
	 */
	int (*settle)(const struct cf_piece *piece);
	/*
	 * Takes parts of the piece from the feed and carries them until there
	 * are none, alone or with the crew. The feed is told where bytes are
	 * missing, and why.
	 */
	void (*run)(const struct cf_piece *piece, struct cf_feed *feed,
		    struct cf_crew *crew);
};

/* A stock settle: nothing must come before the write. */
int cf_path_no_settle(const struct cf_piece *piece);
/*
 * For paths whose writes no copy in a lane orders: waits for the default
 * streams. Their runs call it, too; it does nothing for other pieces.
 */
int cf_path_settle_write(const struct cf_piece *piece);
/*
 * For paths by which bytes come to a GPU from outside, after a run: the client
 * may start a kernel on them as soon as the read returns (core/arrival.h).
 */
void cf_path_arrive(const struct cf_piece *piece, struct cf_feed *feed);

/* How a piece meets the file if its bytes are moved to and from buf. */
static inline struct cf_file_way cf_path_way(const struct cf_piece *piece,
					     uintptr_t buf)
{
	const struct cf_transfer t = { .handle = piece->handle,
				       .write = piece->op == CF_WRITE,
				       .via = piece->via,
				       .buf = (char *)buf,
				       .size = piece->size,
				       .off = piece->file_off };

	return cf_file_way(&t);
}

/* The host path for a piece that is one part: no feed. Bytes, or -errno. */
ssize_t cf_path_host_whole(const struct cf_piece *piece);

extern CF_HIDDEN const struct cf_path_ops cf_path_null;
extern CF_HIDDEN const struct cf_path_ops cf_path_host;
extern CF_HIDDEN const struct cf_path_ops cf_path_rdma;
extern CF_HIDDEN const struct cf_path_ops cf_path_nvfs;
extern CF_HIDDEN const struct cf_path_ops cf_path_alias;
extern CF_HIDDEN const struct cf_path_ops cf_path_mapped;
extern CF_HIDDEN const struct cf_path_ops cf_path_staged;

/* Whether a piece with an alias has no edge that would be staged. Pure. */
bool cf_path_alias_takes_all(const struct cf_piece *piece);

#endif
