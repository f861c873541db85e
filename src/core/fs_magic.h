// SPDX-License-Identifier: Apache-2.0
/* fs_magic.h - linux/magic.h, with what that of an older kernel lacks. */
#ifndef CF_CORE_FS_MAGIC_H
#define CF_CORE_FS_MAGIC_H

#include <linux/magic.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xfe534d42
#endif

#endif
