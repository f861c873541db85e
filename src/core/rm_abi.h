// SPDX-License-Identifier: Apache-2.0
/*
 * rm_abi - the calls to the resource manager, NVIDIA's kernel driver.
 *
 * libcuda makes them too. They are no public interface, but the driver's open
 * sources have had these structures and numbers unchanged from 545 to 595, and
 * from 535 but for one length. A call's number holds the size of its argument,
 * and nested arguments carry theirs, so a driver with other sizes refuses the
 * call. Each call reports how it went in its status field, 0 for success.
 */
#ifndef CF_CORE_RM_ABI_H
#define CF_CORE_RM_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define CF_RM_CALL(nr, type) \
	_IOC(_IOC_READ | _IOC_WRITE, 'F', (nr), sizeof(type))

/* A new object below another. */
struct cf_rm_alloc_arg {
	uint32_t client;
	uint32_t parent;
	uint32_t object; /* in: its handle, or 0; out: its handle */
	uint32_t class;
	uint64_t params;
	uint64_t rights;
	uint32_t params_size;
	uint32_t flags;
	uint32_t status;
};
#define CF_RM_ALLOC CF_RM_CALL(0x2b, struct cf_rm_alloc_arg)

/* A command to an object. */
struct cf_rm_control_arg {
	uint32_t client;
	uint32_t object;
	uint32_t command;
	uint32_t flags;
	uint64_t params;
	uint32_t params_size;
	uint32_t status;
};
#define CF_RM_CONTROL CF_RM_CALL(0x2a, struct cf_rm_control_arg)

/* Says what the next mmap of node, an open GPU node, will show. */
struct cf_rm_map_arg {
	uint32_t client;
	uint32_t device;
	uint32_t memory;
	uint64_t offset;
	uint64_t size;
	uint64_t addr; /* out */
	uint32_t status;
	uint32_t flags;
	int32_t node;
};
#define CF_RM_MAP CF_RM_CALL(0x4e, struct cf_rm_map_arg)

/* Makes pages of the process memory of a device; a call of the GPU's node. */
struct cf_rm_pages_arg {
	uint32_t client;
	uint32_t parent;
	uint32_t object;
	uint32_t class;
	uint32_t flags;
	uint64_t addr;
	uint64_t limit; /* the last byte's offset */
	uint32_t status;
	uint32_t unused;
	int32_t node; /* -1: nothing is to be mapped */
	uint32_t unused_too;
};
#define CF_RM_PAGES CF_RM_CALL(0x27, struct cf_rm_pages_arg)

enum cf_rm_pages_flags {
	CF_RM_PAGES_SCATTERED = 1 << 4,
	CF_RM_PAGES_CACHED = 1 << 12, /* in CPU caches: accesses snoop them */
	CF_RM_PAGES_READ_ONLY = 1 << 21,
	CF_RM_PAGES_NOT_SHOWN = 1 << 30,
};

/* Frees an object; what other clients have imported of it stays. */
struct cf_rm_free_arg {
	uint32_t client;
	uint32_t parent;
	uint32_t object;
	uint32_t status;
};
#define CF_RM_FREE CF_RM_CALL(0x29, struct cf_rm_free_arg)

/* Ties an open GPU node to the client that was made by ctl. */
struct cf_rm_register_arg {
	int32_t ctl;
};
#define CF_RM_REGISTER CF_RM_CALL(201, struct cf_rm_register_arg)

enum cf_rm_class {
	CF_RM_CLIENT = 0x41,
	CF_RM_PAGES_OF_OURS = 0x71,
	CF_RM_DEVICE = 0x80,
};

struct cf_rm_device_params {
	uint32_t instance;
	uint32_t share, target_client, target_device, flags;
	uint64_t va_size, va_start, va_limit;
	uint32_t va_mode;
};

enum cf_rm_command {
	CF_RM_EXPORT_INFO = 0x3d08,
	CF_RM_EXPORT = 0x3d0b,
	CF_RM_IMPORT = 0x3d0c,
};

#define CF_RM_METADATA 64 /* bytes that go with an export, libcuda's own */

/* Which device exported memory lies on; before 545 without gpu. */
struct cf_rm_export_info {
	int32_t fd;
	uint32_t instance; /* out, as all that follows */
	uint32_t gpu;
	uint16_t max_objects;
	uint8_t metadata[CF_RM_METADATA];
};
#define CF_RM_EXPORT_INFO_OLD (sizeof(struct cf_rm_export_info) - 4)

#define CF_RM_MAX_EXPORTS 512

/*
 * Exports objects of ours by fd, a descriptor of /dev/nvidiactl, which libcuda
 * then takes for memory. Object 0 ends the export at that place.
 */
struct cf_rm_export {
	int32_t fd;
	uint32_t device;
	uint16_t max_objects;
	uint8_t metadata[CF_RM_METADATA];
	uint32_t objects[CF_RM_MAX_EXPORTS];
	uint16_t nr;
	uint16_t first;
};

#define CF_RM_MAX_IMPORTS 128

/* Imports exported memory as objects of ours. */
struct cf_rm_import {
	int32_t fd;
	uint32_t parent;
	uint32_t objects[CF_RM_MAX_IMPORTS]; /* the handles that they get */
	uint8_t types[CF_RM_MAX_IMPORTS];    /* out */
	uint16_t nr;
	uint16_t first;
};
#define CF_RM_IMPORTED_VIDMEM 1

_Static_assert(sizeof(struct cf_rm_alloc_arg) == 48 &&
		       offsetof(struct cf_rm_alloc_arg, status) == 40,
	       "NVOS64_PARAMETERS");
_Static_assert(sizeof(struct cf_rm_control_arg) == 32, "NVOS54_PARAMETERS");
_Static_assert(sizeof(struct cf_rm_map_arg) == 56 &&
		       offsetof(struct cf_rm_map_arg, offset) == 16 &&
		       offsetof(struct cf_rm_map_arg, node) == 48,
	       "nv_ioctl_nvos33_parameters_with_fd");
_Static_assert(sizeof(struct cf_rm_pages_arg) == 56 &&
		       offsetof(struct cf_rm_pages_arg, addr) == 24 &&
		       offsetof(struct cf_rm_pages_arg, node) == 48,
	       "nv_ioctl_nvos02_parameters_with_fd");
_Static_assert(sizeof(struct cf_rm_free_arg) == 16, "NVOS00_PARAMETERS");
_Static_assert(sizeof(struct cf_rm_device_params) == 56,
	       "NV0080_ALLOC_PARAMETERS");
_Static_assert(sizeof(struct cf_rm_export_info) == 80,
	       "NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO_PARAMS");
_Static_assert(sizeof(struct cf_rm_export) == 2128 &&
		       offsetof(struct cf_rm_export, objects) == 76,
	       "NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD_PARAMS");
_Static_assert(sizeof(struct cf_rm_import) == 652,
	       "NV0000_CTRL_OS_UNIX_IMPORT_OBJECTS_FROM_FD_PARAMS");

#endif
