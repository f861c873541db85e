// SPDX-License-Identifier: Apache-2.0
/* asks - what the library would do with every kind of request on one file. */
#include "asks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "check_config.h"

#define SIZE (1ul << 20)
#define ODD 1001

const char *asks_memory(ocf_memory_t memory)
{
	static const char *const names[] = { "host", "device", "managed" };

	return names[memory];
}

/*
 * For writing too if that is allowed; the descriptor, or -1 and errno. Not so
 * devices: closing one that was open for writing is an event for udev.
 */
static int open_as(const char *name, int direct, bool *writable)
{
	int flags = direct | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = *writable ? open(name, O_RDWR | flags) : -1;

	*writable = fd >= 0;
	return fd >= 0 ? fd : open(name, O_RDONLY | flags);
}

/* Opening anything else may do something. */
static bool is_for_us(struct asks *asks, char *why, size_t size)
{
	if (stat(asks->name, &asks->st)) {
		snprintf(why, size, "%s", strerror(errno));
		return false;
	}
	asks->in_directory = S_ISDIR(asks->st.st_mode);
	if (asks->in_directory)
		return true;
	asks->writable = S_ISREG(asks->st.st_mode);
	if (asks->writable || S_ISBLK(asks->st.st_mode))
		return true;
	snprintf(why, size, "neither a regular file nor a block device");
	return false;
}

/*
 * A file in a directory; the descriptor, or -1 and why. It has no name (then
 * *name is empty), or one that the caller unlinks: NFS, SMB, 9p and FAT make
 * none without.
 */
static int make_file(const char *dir, char name[PATH_MAX], char *why,
		     size_t size)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int len = snprintf(name, PATH_MAX, "%s/.gdscheck-XXXXXX", dir);

	if (fd >= 0 || errno != EOPNOTSUPP || len >= PATH_MAX)
		*name = '\0';
	else
		fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		snprintf(why, size, "no file can be made there: %s",
			 strerror(errno));
	return fd;
}

/* In strict mode some files are refused for good; others are as they are. */
static const char *why_refused(CUfileOpError err)
{
	char compat[16] = "";

	if (!config_value("properties.allow_compat_mode", compat,
			  sizeof(compat)) ||
	    !strcmp(compat, "true"))
		return cufileop_status_error(err);
	if (err == CU_FILE_IO_DISABLED)
		return "error 5034: a denylist names the file, and "
		       "properties.allow_compat_mode is false";
	if (err == CU_FILE_IO_NOT_SUPPORTED)
		return "error 5008: GPU memory has no path that is not through "
		       "host memory, and properties.allow_compat_mode is false";
	return cufileop_status_error(err);
}

/* NULL, or what is wrong. */
static const char *ask_all(struct asks *asks, int fd, bool direct)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };
	CUfileHandle_t fh;
	CUfileError_t status = cuFileHandleRegister(&fh, &descr);

	asks->refused = status.err;
	if (status.err)
		return why_refused(status.err);
	for (unsigned n = 0; n < NR_MEMORIES * 2; n++, asks->nr++) {
		/* GPU memory first: it is what people ask about */
		ocf_memory_t memory = (ocf_memory_t)((n / 2 + 1) % NR_MEMORIES);
		off_t off = n % 2 ? ODD : 0;

		for (int op = 0; op < NR_OPS; op++) {
			struct ask *ask = &asks->asks[op][asks->nr];

			ask->direct = direct;
			ask->aligned = !off;
			ask->e.struct_size = sizeof(ask->e);
			status = ocf_explain_memory(fh, (ocf_op_t)op, memory,
						    SIZE, off, 0, &ask->e);
			if (status.err)
				break;
		}
	}
	cuFileHandleDeregister(fh);
	return status.err ? cufileop_status_error(status.err) : NULL;
}

static bool ask_opened(struct asks *asks, int fd, bool direct, char *why,
		       size_t size)
{
	const char *wrong = ask_all(asks, fd, direct);

	if (wrong)
		snprintf(why, size, "%s", wrong);
	return !wrong;
}

/* The answers for what opens by this name. */
static bool ask_by_name(struct asks *asks, const char *name, char *why,
			size_t size)
{
	int fd, direct;
	bool writable, ok;

	fd = open_as(name, 0, &asks->writable);
	if (fd < 0) {
		snprintf(why, size, "%s", strerror(errno));
		return false;
	}
	place_of_file(fd, &asks->place);
	writable = asks->writable;
	direct = open_as(name, O_DIRECT, &writable);
	if (direct < 0)
		snprintf(asks->why_not_direct, sizeof(asks->why_not_direct),
			 "%s", strerror(errno));
	ok = direct < 0 || ask_opened(asks, direct, true, why, size);
	ok = ok && ask_opened(asks, fd, false, why, size);
	if (direct >= 0)
		close(direct);
	close(fd);
	return ok;
}

bool asks_make(struct asks *asks, const char *name, char *why, size_t size)
{
	char made[64], named[PATH_MAX];
	bool ok;
	int fd;

	memset(asks, 0, sizeof(*asks));
	asks->name = name;
	if (!is_for_us(asks, why, size))
		return false;
	if (!asks->in_directory)
		return ask_by_name(asks, name, why, size);
	fd = make_file(name, named, why, size);
	if (fd < 0)
		return false;
	snprintf(made, sizeof(made), "/proc/self/fd/%d", fd);
	asks->writable = !fstat(fd, &asks->st);
	ok = ask_by_name(asks, made, why, size);
	if (*named)
		unlink(named);
	close(fd);
	return ok;
}
