// SPDX-License-Identifier: Apache-2.0
/* report - one line to stderr for what failed. */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void keep_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

bool fail(const char *fmt, ...)
{
	va_list args;

	/* a bar may stand there */
	fprintf(stderr, "%s%s: ", isatty(STDERR_FILENO) ? CLEAR_LINE : "",
		program_invocation_short_name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\n");
	return false;
}

static const char *code_name(int code)
{
	switch (code) {
#define CUFILE_OP(value, name, text) \
	case name: \
		return #name;
		CUFILEOP_STATUS_ENTRIES
#undef CUFILE_OP
	default:
		return "unknown code";
	}
}

bool check(CUfileError_t status, const char *call, const char *name)
{
	if (status.err == CU_FILE_SUCCESS)
		return true;
	if (IS_CUDA_ERR(status))
		return fail("%s %s: GPU driver error %d", call, name,
			    (int)CU_FILE_CUDA_ERR(status));
	return fail("%s %s: %s (%d), %s", call, name, code_name(status.err),
		    (int)status.err, cufileop_status_error(status.err));
}

bool wrote_all(void)
{
	if (fflush(stdout))
		return fail_errno("write", "the result");
	/* the errno of an earlier write is gone */
	return !ferror(stdout) || fail("write the result: a part is lost");
}

bool fail_io(const char *call, const char *name, off_t off, size_t size)
{
	return fail_code(call, name, off, size, errno);
}

bool fail_code(const char *call, const char *name, off_t off, size_t size,
	       int err)
{
	bool cufile = IS_CUFILE_ERR(err);

	return fail("%s %s at offset %lld, %zu bytes: %s%s%s", call, name,
		    (long long)off, size, cufile ? code_name(err) : "",
		    cufile ? ", " : "",
		    cufile ? CUFILE_ERRSTR(err) : strerror(err));
}

bool fail_errno(const char *call, const char *name)
{
	return fail("%s %s: %s", call, name, strerror(errno));
}
