// SPDX-License-Identifier: Apache-2.0
/*
 * fresh - runs each test in a process of its own.
 *
 * What these tests ask depends on what the process did before: was the driver
 * opened, is a parameter staged, which generation does a handle have. So every
 * test is the first thing that its process does with the library and with CUDA;
 * the parent touches neither.
 */
#ifndef TESTS_FRESH_H
#define TESTS_FRESH_H

#include "core/mount.h"
#include "harness.h"

struct fresh_test {
	const char *name;
	void (*run)(void **state);
};

#define FRESH(function) \
	{ \
#function, function \
	}

/*
 * All of main. A test that takes longer than 4 * seconds has hung, and fails.
 * Words on the command line choose the tests whose names contain one of them.
 */
int fresh_main(const struct fresh_test *tests, size_t nr, unsigned seconds,
	       int argc, char **argv);

#define FRESH_MAIN(tests, seconds) \
	int main(int argc, char **argv) \
	{ \
		return fresh_main(tests, sizeof(tests) / sizeof(tests[0]), \
				  seconds, argc, argv); \
	}

/* err is code, and cu_err is 0 (behaviour, principle 4). */
#define assert_code(call, code) \
	do { \
		CUfileError_t error_ = (call); \
		assert_int_equal(error_.err, code); \
		assert_int_equal(error_.cu_err, CUDA_SUCCESS); \
	} while (0)

#define assert_ok(call) assert_code(call, CU_FILE_SUCCESS)

/* A data call that fails: -1, and this in errno. */
#define assert_errno(call, code) \
	do { \
		ssize_t n_; \
		errno = 0; \
		n_ = (call); \
		assert_int_equal(n_, -1); \
		assert_int_equal(errno, code); \
	} while (0)

/* What cuFileHandleRegister answers for this fd; *fh: the handle, if any. */
CUfileError_t fresh_register(int fd, CUfileHandle_t *fh);

/* Writes text to a file in the test's directory; the path is static. */
const char *fresh_text_file(const char *name, const char *text);

/* The mount of the test's directory; false: it is not seen from this root. */
bool fresh_mount(struct cf_mount *mount);

/* Whether streams announce their operations by bells here. */
bool fresh_bells(void);

/* The log file's text, "" if there is none; static. */
const char *fresh_log(void);

#endif
