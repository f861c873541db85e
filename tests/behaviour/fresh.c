// SPDX-License-Identifier: Apache-2.0
/* fresh - see fresh.h. */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct fresh_test *running;
static bool reached_end; /* a skipped test does not */

static void body(void **state)
{
	running->run(state);
	if (th_fake() && th_fake()->complaints(stderr))
		fail_msg("the driver was misused");
	reached_end = true;
}

/* The child's whole life. exit, so that leak checkers get their turn. */
static void run_here(const struct fresh_test *test, unsigned seconds)
{
	const struct CMUnitTest one[] = {
		{ .name = test->name, .test_func = body },
	};
	int failed;

	running = test;
	unlink(getenv("CUFILE_LOGFILE_PATH"));
	alarm(seconds * 4);
	failed = _cmocka_run_group_tests(test->name, one, 1, NULL, NULL);
	exit(failed ? 1 : reached_end ? 0 : 77);
}

/* 0, 1 or 77, as the child's exit status is. */
static int run_apart(const struct fresh_test *test, unsigned seconds)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid)
		run_here(test, seconds);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			abort();
	if (WIFEXITED(status) &&
	    (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77))
		return WEXITSTATUS(status);
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: %s\n", test->name,
			WTERMSIG(status) == SIGALRM ?
				"did not end in its time" :
				strsignal(WTERMSIG(status)));
	/* as cmocka counts; the child may not have got that far */
	if (WIFSIGNALED(status))
		fprintf(stderr, "[  FAILED  ] 1 test(s)\n");
	fprintf(stderr, "FAILED: %s\n", test->name);
	return 1;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

int fresh_main(const struct fresh_test *tests, size_t nr, unsigned seconds,
	       int argc, char **argv)
{
	size_t passed = 0, failed = 0, skipped = 0;

	th_start(600);
	/* made before the forks, so that its one owner removes it */
	(void)th_shm_dir();
	for (size_t i = 0; i < nr; i++) {
		int result;

		if (!is_wanted(tests[i].name, argc, argv))
			continue;
		result = run_apart(&tests[i], seconds);
		passed += result == 0;
		failed += result == 1;
		skipped += result == 77;
	}
	if (failed)
		return 1;
	return passed || !skipped ? 0 : 77;
}

CUfileError_t fresh_register(int fd, CUfileHandle_t *fh)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };

	*fh = NULL;
	return cuFileHandleRegister(fh, &descr);
}

const char *fresh_text_file(const char *name, const char *text)
{
	static char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", th_disk_dir(), name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return path;
}

bool fresh_mount(struct cf_mount *mount)
{
	struct statx stx = { 0 };
	dev_t dev;
	int err;

	assert_int_equal(statx(AT_FDCWD, th_disk_dir(), 0, STATX_MNT_ID, &stx),
			 0);
	dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	err = cf_mount_find(stx.stx_mnt_id, dev, mount);
	assert_true(!err || err == -ENOENT);
	return !err;
}

const char *fresh_log(void)
{
	static char text[65536];
	FILE *f = fopen(getenv("CUFILE_LOGFILE_PATH"), "r");

	text[0] = '\0';
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	return text;
}

bool fresh_bells(void)
{
	const char *value = getenv("OCF_STREAM_BELLS");

	return !value || !strcmp(value, "1");
}
